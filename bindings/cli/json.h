// Just enough JSON to print: an object built member by member. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cubridge::cli {

/// A JSON string: quotes and control characters escaped, bytes that are no UTF-8 replaced.
std::string quoted(std::string_view text);
/// A JSON number, or null for what has none (inf, NaN).
std::string number(double value);

/// `{"name": value, ...}` on one line; members in the order they were added.
class Object {
public:
    Object& text(std::string_view name, std::string_view value) { return raw(name, quoted(value)); }
    Object& real(std::string_view name, double value) { return raw(name, number(value)); }
    Object& integer(std::string_view name, std::int64_t value) { return raw(name, std::to_string(value)); }
    Object& boolean(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
    Object& raw(std::string_view name, std::string_view json);
    std::string done() const { return "{" + members_ + "}"; }

private:
    std::string members_;
};

/// `[a, b, ...]` of values that are JSON already.
class List {
public:
    List& add(std::string_view json);
    std::string done() const { return "[" + items_ + "]"; }

private:
    std::string items_;
};

} // namespace cubridge::cli
