// What the opaque types of cubridge.h are, and how every call begins and ends. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge.h"
#include "cubridge/runtime/engine.h"
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>

struct cubridge_context {
    static constexpr std::uint64_t kAlive = 0x6375627269646765u;
    std::atomic<std::uint64_t> alive{kAlive}; ///< 0 from the moment of closing: callbacks may still come
    std::unique_ptr<cubridge::runtime::Engine> engine;
};

namespace cubridge::c {

using runtime::Status;
using runtime::Verdict;

/// This thread's message, cut to what fits: no call can fail for want of memory to say so.
void set_message(std::string_view text) noexcept;

inline cubridge_status answer(const Verdict& verdict) noexcept {
    if (verdict.status != Status::Ok) set_message(verdict.message);
    return static_cast<cubridge_status>(verdict.status);
}

inline Verdict misuse(const char* what) {
    return {Status::Misuse, what};
}

/// Misuse or Forked where the context can't be used.
Verdict check(const cubridge_context* context);

/// Runs a call: what it throws becomes a status.
template <class Call> cubridge_status guarded(Call call) noexcept {
    try {
        return answer(call());
    } catch (const std::bad_alloc&) {
        set_message("the process is out of memory");
        return CUBRIDGE_ENVIRONMENT;
    } catch (const std::exception& e) {
        try {
            return answer({Status::Internal, std::string("a bug of the library: ") + e.what()});
        } catch (...) {
        }
    } catch (...) {
    }
    set_message("a bug of the library");
    return CUBRIDGE_INTERNAL;
}

/// Reads a struct that begins with struct_size. A shorter one comes from a program built with an older header, a longer
/// one from a newer: the first is filled up with zeros, the second is taken if what is unknown is zero. `least` is the
/// size that was published first.
template <class T> Verdict read(const T* given, const char* name, std::size_t least, T& out) {
    if (given == nullptr) return {Status::Misuse, std::string(name) + " is NULL"};
    const std::size_t size = given->struct_size;
    if (size < least || size > 65536)
        return {Status::Misuse, std::string(name) + ".struct_size is wrong: start with CUBRIDGE_INIT"};
    std::memset(&out, 0, sizeof out);
    std::memcpy(&out, given, size < sizeof out ? size : sizeof out);
    for (std::size_t k = sizeof out; k < size; ++k)
        if (reinterpret_cast<const unsigned char*>(given)[k] != 0)
            return {Status::Misuse, std::string(name) + " has a field set that this library does not know"};
    return {};
}

/// Writes a struct that begins with struct_size: as much as the caller has room for.
template <class T> Verdict write(T value, const char* name, std::size_t least, T* out) {
    if (out == nullptr) return {Status::Misuse, std::string(name) + " is NULL"};
    const std::size_t size = out->struct_size;
    if (size < least || size > 65536)
        return {Status::Misuse, std::string(name) + ".struct_size is wrong: start with CUBRIDGE_INIT"};
    value.struct_size = size;
    std::memcpy(out, &value, size < sizeof value ? size : sizeof value);
    return {};
}

// The sizes of the structs in version 0.1, the first that was published.
inline constexpr std::size_t kConfig = 80, kLlm = 64, kSource = 56, kRequest = 96, kResult = 32, kProgress = 80,
                             kArgs = 336, kInfo = 48;

inline const runtime::Text* text_of(const cubridge_spec* spec) {
    return reinterpret_cast<const runtime::Text*>(spec);
}
inline const runtime::ServedKernel* kernel_of(const cubridge_kernel* kernel) {
    return reinterpret_cast<const runtime::ServedKernel*>(kernel);
}

/// A request with its defaults filled in. Misuse where struct or arch are none.
Verdict query_of(const cubridge_request* request, runtime::Query& query);
/// Borrows the operands of `args`.
Verdict arguments_of(const cubridge_args* args, runtime::LaunchArgs& out);

} // namespace cubridge::c
