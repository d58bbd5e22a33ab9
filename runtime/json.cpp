// Reader and writer of JSON.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/json.h"
#include <array>
#include <charconv>
#include <cmath>

namespace cubridge::runtime {
namespace {

constexpr int kMostDepth = 32;

/// Bytes of the UTF-8 sequence at the start of `s`; 0 where there is none.
std::size_t sequence(std::string_view s) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || s.size() < length) return 0;
    for (std::size_t k = 1; k < length; ++k)
        if ((byte(k) & 0xc0) != 0x80) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0; // overlong
    if (first == 0xed && byte(1) > 0x9f) return 0; // surrogates
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) > 0x8f) return 0; // beyond U+10FFFF
    return length;
}

void put_code_point(std::string& out, std::uint32_t c) {
    const auto put = [&](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xc0 | c >> 6), put(0x80 | (c & 63));
    } else if (c < 0x10000) {
        put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
    } else {
        put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
    }
}

void put_string(std::string& out, std::string_view s) {
    static constexpr char kDigits[] = "0123456789abcdef";
    const std::string valid = valid_utf8(s);
    out += '"';
    for (const char c : valid) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else if (byte < 0x20 || byte == 0x7f)
            ((out += "\\u00") += kDigits[byte >> 4]) += kDigits[byte & 15];
        else
            out += c;
    }
    out += '"';
}

template <class T> void put_number(std::string& out, T v) {
    std::array<char, 40> buffer{};
    out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), v).ptr);
}

void put(std::string& out, const Json& v) {
    if (const auto* b = v.boolean()) {
        out += *b ? "true" : "false";
    } else if (const auto* i = v.integer()) {
        put_number(out, *i);
    } else if (const auto* s = v.string()) {
        put_string(out, *s);
    } else if (const auto* items = v.items()) {
        out += '[';
        for (const auto& item : *items) {
            if (&item != items->data()) out += ',';
            put(out, item);
        }
        out += ']';
    } else if (const auto* members = v.members()) {
        out += '{';
        for (const auto& [name, value] : *members) {
            if (&name != &members->front().first) out += ',';
            put_string(out, name);
            out += ':';
            put(out, value);
        }
        out += '}';
    } else if (const auto d = v.number(); d && std::isfinite(*d)) {
        put_number(out, *d);
    } else {
        out += "null";
    }
}

/// Each function takes what it reads from the front of the text; false: it is not there.
class Reader {
public:
    explicit Reader(std::string_view text) : rest_(text) {}

    bool document(Json& out) {
        if (!value(out, 0)) return false;
        blanks();
        return rest_.empty();
    }

private:
    void blanks() {
        while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_[0]) != rest_.npos) rest_.remove_prefix(1);
    }
    bool word(std::string_view w) {
        if (!rest_.starts_with(w)) return false;
        rest_.remove_prefix(w.size());
        return true;
    }
    bool next(char c) {
        blanks();
        return word(std::string_view(&c, 1));
    }

    bool value(Json& out, int depth) {
        blanks();
        if (rest_.empty() || depth > kMostDepth) return false;
        switch (rest_[0]) {
        case '{': return object(out, depth);
        case '[': return array(out, depth);
        case '"': {
            std::string s;
            if (!string(s)) return false;
            out = Json(std::move(s));
            return true;
        }
        case 't': out = Json(true); return word("true");
        case 'f': out = Json(false); return word("false");
        case 'n': out = Json(); return word("null");
        default: return number(out);
        }
    }

    bool object(Json& out, int depth) {
        rest_.remove_prefix(1);
        out = Json::object();
        if (next('}')) return true;
        do {
            std::string name;
            Json member;
            blanks();
            if (!string(name) || out.find(name) != nullptr || !next(':') || !value(member, depth + 1)) return false;
            out.add(std::move(name), std::move(member));
        } while (next(','));
        return next('}');
    }

    bool array(Json& out, int depth) {
        rest_.remove_prefix(1);
        out = Json::array();
        if (next(']')) return true;
        do {
            Json item;
            if (!value(item, depth + 1)) return false;
            out.push(std::move(item));
        } while (next(','));
        return next(']');
    }

    bool string(std::string& out) {
        if (!word("\"")) return false;
        while (!rest_.empty()) {
            const char c = rest_[0];
            if (c == '"') return word("\"");
            if (c == '\\') {
                if (!escape(out)) return false;
                continue;
            }
            if (static_cast<unsigned char>(c) < 0x20) return false;
            const std::size_t length = sequence(rest_);
            if (length == 0) return false;
            out += rest_.substr(0, length);
            rest_.remove_prefix(length);
        }
        return false;
    }

    bool escape(std::string& out) {
        if (rest_.size() < 2) return false;
        static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
        const char c = rest_[1];
        rest_.remove_prefix(2);
        if (const auto at = kFrom.find(c); at != kFrom.npos) {
            out += kTo[at];
            return true;
        }
        std::uint32_t high = 0, low = 0;
        if (c != 'u' || !hex(high)) return false;
        if (high >= 0xd800 && high < 0xdc00) {
            if (!word("\\u") || !hex(low) || low < 0xdc00 || low > 0xdfff) return false;
            high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        } else if (high >= 0xdc00 && high < 0xe000) {
            return false;
        }
        put_code_point(out, high);
        return true;
    }

    bool hex(std::uint32_t& out) {
        if (rest_.size() < 4) return false;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, out, 16);
        if (error != std::errc() || end != rest_.data() + 4) return false;
        rest_.remove_prefix(4);
        return true;
    }

    std::size_t digits(std::size_t at) const {
        std::size_t n = 0;
        while (at + n < rest_.size() && rest_[at + n] >= '0' && rest_[at + n] <= '9') ++n;
        return n;
    }

    bool number(Json& out) {
        std::size_t n = rest_[0] == '-' ? 1 : 0;
        const std::size_t whole = digits(n);
        if (whole == 0 || (whole > 1 && rest_[n] == '0')) return false;
        n += whole;
        bool real = false;
        if (n < rest_.size() && rest_[n] == '.') {
            const std::size_t fraction = digits(n + 1);
            if (fraction == 0) return false;
            n += 1 + fraction;
            real = true;
        }
        if (n < rest_.size() && (rest_[n] == 'e' || rest_[n] == 'E')) {
            const bool sign = n + 1 < rest_.size() && (rest_[n + 1] == '+' || rest_[n + 1] == '-');
            const std::size_t exponent = digits(n + 1 + sign);
            if (exponent == 0) return false;
            n += 1 + sign + exponent;
            real = true;
        }
        const std::string_view text = rest_.substr(0, n);
        rest_.remove_prefix(n);
        std::int64_t integer = 0;
        if (!real && std::from_chars(text.data(), text.data() + n, integer).ec == std::errc()) {
            out = Json(integer);
            return true;
        }
        double d = 0;
        if (std::from_chars(text.data(), text.data() + n, d).ec != std::errc()) return false;
        out = Json(d);
        return true;
    }

    std::string_view rest_;
};

} // namespace

std::string valid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = sequence(text);
        if (length == 0)
            out += "\xef\xbf\xbd";
        else
            out += text.substr(0, length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

std::optional<double> Json::number() const {
    if (const auto* i = integer()) return static_cast<double>(*i);
    if (const auto* d = std::get_if<double>(&value_)) return *d;
    return std::nullopt;
}

const Json* Json::find(std::string_view name) const {
    if (const auto* all = members())
        for (const auto& [n, v] : *all)
            if (n == name) return &v;
    return nullptr;
}

Json& Json::add(std::string name, Json value) {
    std::get<Object>(value_).emplace_back(std::move(name), std::move(value));
    return *this;
}

Json& Json::push(Json value) {
    std::get<Array>(value_).push_back(std::move(value));
    return *this;
}

std::string Json::text() const {
    std::string out;
    put(out, *this);
    return out;
}

std::optional<Json> Json::parse(std::string_view text) {
    Json out;
    return Reader(text).document(out) ? std::optional<Json>(std::move(out)) : std::nullopt;
}

} // namespace cubridge::runtime
