// Any bytes: the gates refuse them with a message that names a line, or let them pass, the same way every time. As a
// text, as one behind the argument block, as a cubin. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/gate.h"
#include <cstdint>
#include <cstdlib>

using namespace cubridge::runtime;

namespace {

void demand(bool holds) {
    if (!holds) std::abort();
}

void look(const std::string& text, const Declared& declared) {
    const auto first = text_gate(text, declared), second = text_gate(text, declared);
    demand(static_cast<bool>(first) == static_cast<bool>(second));
    if (first) return;
    demand(first.fault().kind == "gate" && first.fault().message.rfind("line ", 0) == 0);
    demand(first.fault().message == second.fault().message);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Declared declared;
    declared.kernels = {{"attention", 128, 0, 0}};
    declared.ticket = size % 2 != 0;
    const std::string text(reinterpret_cast<const char*>(data), size);
    look(text, declared);
    look(cubridge::ir::abi::kernel_abi_text() + text, declared);
    const auto cubin = cubin_gate(std::as_bytes(std::span(data, size)), declared, {"LN2"});
    demand(cubin || cubin.fault().message.rfind("cubin: ", 0) == 0);
    return 0;
}
