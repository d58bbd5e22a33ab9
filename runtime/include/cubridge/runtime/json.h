// JSON as this library writes it and reads back: metadata of records, reports, log of reports. Strict: what RFC 8259
// does not allow is refused, and so are duplicate names, depths above 32 and texts that are not UTF-8.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cubridge::runtime {

/// A value. Objects keep the order in which members were added. Numbers without a fraction or an exponent that fit are
/// integers, others doubles; a double that is no number is written as null.
class Json {
public:
    using Array = std::vector<Json>;
    using Object = std::vector<std::pair<std::string, Json>>;

    Json() = default; ///< null
    Json(bool v) : value_(v) {}
    Json(int v) : value_(std::int64_t{v}) {}
    Json(std::int64_t v) : value_(v) {}
    Json(double v) : value_(v) {}
    Json(std::string v) : value_(std::move(v)) {}
    Json(const char* v) : value_(std::string(v)) {}
    Json(std::string_view v) : value_(std::string(v)) {}
    Json(Array v) : value_(std::move(v)) {}
    Json(Object v) : value_(std::move(v)) {}
    static Json object() { return Json(Object{}); }
    static Json array() { return Json(Array{}); }

    bool is_null() const { return value_.index() == 0; }
    /// Null where the value is of another kind. `number` takes integers too.
    const bool* boolean() const { return std::get_if<bool>(&value_); }
    const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value_); }
    std::optional<double> number() const;
    const std::string* string() const { return std::get_if<std::string>(&value_); }
    const Array* items() const { return std::get_if<Array>(&value_); }
    const Object* members() const { return std::get_if<Object>(&value_); }
    /// A member of an object, or null.
    const Json* find(std::string_view name) const;

    /// Adds to an object or an array, and only to one.
    Json& add(std::string name, Json value);
    Json& push(Json value);

    /// One line, no blanks. Bytes that are not UTF-8 become U+FFFD.
    std::string text() const;
    static std::optional<Json> parse(std::string_view text);

    bool operator==(const Json&) const = default;

private:
    std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

/// The text with what is not UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

} // namespace cubridge::runtime
