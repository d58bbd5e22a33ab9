// Integer expressions over launch sizes: built, evaluated without overflow, written and read as postfix text.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/launch.h"
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>

namespace cubridge::ir::launch {
namespace {

constexpr std::array<const char*, static_cast<std::size_t>(Size::Count)> kSizes = {
    "requests", "heads_q", "heads_kv", "max_q", "max_kv", "total_q", "sm_count", "head_begin"};
constexpr std::array<const char*, 12> kOperators = {"",  "",   "",  "+",   "-",   "*",
                                                    "/", "/^", "%", "min", "max", "round_up"};
constexpr std::size_t kMaxSteps = 4096; // of a text that is read

std::optional<std::int64_t> floor_div(std::int64_t a, std::int64_t b) {
    if (b == 0 || (a == std::numeric_limits<std::int64_t>::min() && b == -1)) return std::nullopt;
    const std::int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

std::optional<std::int64_t> times(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
    return r;
}

std::optional<std::int64_t> minus(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    if (__builtin_sub_overflow(a, b, &r)) return std::nullopt;
    return r;
}

std::optional<std::int64_t> ceil_div(std::int64_t a, std::int64_t b) {
    const auto down = floor_div(a, b);
    if (!down) return std::nullopt;
    return *down * b == a ? down : minus(*down, -1);
}

std::optional<std::int64_t> apply(Code::Do what, std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    switch (what) {
    case Code::Do::Add:
        if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
        return r;
    case Code::Do::Sub: return minus(a, b);
    case Code::Do::Mul: return times(a, b);
    case Code::Do::FloorDiv: return floor_div(a, b);
    case Code::Do::CeilDiv: return ceil_div(a, b);
    case Code::Do::Mod: {
        const auto q = floor_div(a, b);
        return q ? std::optional(a - *q * b) : std::nullopt;
    }
    case Code::Do::Min: return std::min(a, b);
    case Code::Do::Max: return std::max(a, b);
    case Code::Do::RoundUp: {
        const auto q = ceil_div(a, b);
        return q ? times(*q, b) : std::nullopt;
    }
    case Code::Do::Push:
    case Code::Do::PushSize:
    case Code::Do::PushOperand: break;
    }
    return std::nullopt;
}

template <class T> bool number(std::string_view text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

std::optional<Code::Step> step_of(std::string_view word) {
    std::int64_t value = 0;
    if (number(word, value)) return Code::Step{Code::Do::Push, value};
    for (std::size_t s = 0; s < kSizes.size(); ++s)
        if (word == kSizes[s]) return Code::Step{Code::Do::PushSize, static_cast<std::int64_t>(s)};
    for (std::size_t o = 3; o < kOperators.size(); ++o)
        if (word == kOperators[o]) return Code::Step{static_cast<Code::Do>(o), 0};
    const auto dot = word.find('.');
    int operand = 0, axis = 0;
    if (word.starts_with('x') && dot != word.npos && number(word.substr(1, dot - 1), operand) &&
        number(word.substr(dot + 1), axis) && operand >= 0 && axis >= 0 && axis < 4)
        return Code::Step{Code::Do::PushOperand, std::int64_t{operand} * 4 + axis};
    return std::nullopt;
}

bool is_push(Code::Do d) {
    return d <= Code::Do::PushOperand;
}

bool well_formed(const std::vector<Code::Step>& steps) {
    std::size_t depth = 0;
    for (const auto& s : steps) {
        if (is_push(s.what)) {
            ++depth;
        } else {
            if (depth < 2) return false;
            --depth;
        }
    }
    return depth == 1;
}

} // namespace

const char* name(Size s) {
    return s < Size::Count ? kSizes[static_cast<std::size_t>(s)] : "?";
}

Code Code::constant(std::int64_t v) {
    return {{{Do::Push, v}}};
}
Code Code::size(Size s) {
    return {{{Do::PushSize, static_cast<std::int64_t>(s)}}};
}
Code Code::operand(int operand, int axis) {
    return {{{Do::PushOperand, std::int64_t{operand} * 4 + axis}}};
}

Code Code::binary(Do what, Code a, Code b) {
    if (a.steps.size() == 1 && b.steps.size() == 1 && a.steps[0].what == Do::Push && b.steps[0].what == Do::Push)
        if (const auto v = apply(what, a.steps[0].value, b.steps[0].value)) return constant(*v);
    a.steps.insert(a.steps.end(), b.steps.begin(), b.steps.end());
    a.steps.push_back({what, 0});
    return a;
}

std::optional<std::int64_t> Code::evaluate(const Sizes& sizes) const {
    std::array<std::int64_t, 32> few; // a launch evaluates dozens of these and is not to allocate
    std::vector<std::int64_t> many;
    if (steps.size() > few.size()) many.resize(steps.size());
    std::int64_t* const stack = many.empty() ? few.data() : many.data();
    std::size_t depth = 0;
    for (const auto& s : steps) {
        if (s.what == Do::Push) {
            stack[depth++] = s.value;
        } else if (s.what == Do::PushSize) {
            if (s.value < 0 || s.value >= static_cast<std::int64_t>(Size::Count)) return std::nullopt;
            stack[depth++] = sizes.value[static_cast<std::size_t>(s.value)];
        } else if (s.what == Do::PushOperand) {
            if (s.value < 0 || s.value / 4 >= static_cast<std::int64_t>(sizes.operand.size())) return std::nullopt;
            stack[depth++] =
                sizes.operand[static_cast<std::size_t>(s.value / 4)][static_cast<std::size_t>(s.value % 4)];
        } else {
            if (depth < 2) return std::nullopt;
            --depth;
            const auto r = apply(s.what, stack[depth - 1], stack[depth]);
            if (!r) return std::nullopt;
            stack[depth - 1] = *r;
        }
    }
    if (depth != 1) return std::nullopt;
    return stack[0];
}

std::string Code::text() const {
    std::string out;
    for (const auto& s : steps) {
        if (!out.empty()) out += ' ';
        switch (s.what) {
        case Do::Push: out += std::to_string(s.value); break;
        case Do::PushSize: out += name(static_cast<Size>(s.value)); break;
        case Do::PushOperand: out += "x" + std::to_string(s.value / 4) + "." + std::to_string(s.value % 4); break;
        default: out += kOperators[static_cast<std::size_t>(s.what)];
        }
    }
    return out;
}

Result<Code> Code::parse(const std::string& text) {
    Code code;
    std::string_view rest = text;
    while (!rest.empty()) {
        const auto end = std::min(rest.find(' '), rest.size());
        const auto word = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const auto step = step_of(word);
        if (!step)
            return Error{
                "syntax", "'" + std::string(word.substr(0, 40)) + "' is no word of a launch expression", {}, {}};
        if (code.steps.size() >= kMaxSteps) return Error{"limit", "a launch expression of too many words", {}, {}};
        code.steps.push_back(*step);
    }
    if (!well_formed(code.steps))
        return Error{"syntax", "a launch expression that leaves no single value: '" + text + "'", {}, {}};
    return code;
}

} // namespace cubridge::ir::launch
