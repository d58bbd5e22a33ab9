// What went wrong with an input, where, and what to do about it. Values, owned by whoever holds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace cubridge::ir {

/// A place in a source text. Lines and columns count from 1, columns in Unicode code points; 0 means "no place".
struct Span {
    int line = 0, column = 0;
    int end_line = 0, end_column = 0; ///< one past the last character
};

/// Why a text or a request was not accepted. `kind` is a stable word that programs may compare.
struct Error {
    std::string kind;    ///< "syntax", "unsupported", "name", "type", "shape", "limit", "domain", "recursion", ...
    std::string message; ///< one sentence, names the construct
    Span span;
    std::string hint; ///< what to write instead; may be empty

    /// "3:7: message", then the source line with a caret under it and the hint. `source` may be empty: no caret.
    std::string render(const std::string& source) const;
};

/// Thrown inside ir only; every public entry point of ir turns it into a Result.
struct Failure {
    Error error;
};
[[noreturn]] void fail(std::string kind, std::string message, Span span = {}, std::string hint = {});

/// A value or the reason why there is none.
template <class T> class Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
    explicit operator bool() const { return state_.index() == 0; }
    T& operator*() { return std::get<0>(state_); }
    const T& operator*() const { return std::get<0>(state_); }
    T* operator->() { return &std::get<0>(state_); }
    const T* operator->() const { return &std::get<0>(state_); }
    const Error& error() const { return std::get<1>(state_); }

private:
    std::variant<T, Error> state_;
};

} // namespace cubridge::ir
