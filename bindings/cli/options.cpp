// Parsing of the command line. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/options.h"
#include "bindings/cli/status.h"
#include "cubridge/ir/program.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <functional>

namespace cubridge::cli {

namespace {

using ir::DType;
using ir::Request;
using ir::Setting;

template <class T> T whole(const std::string& text, const std::string& option, T least, T most) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
        throw Usage(fmt::format("{}: `{}` is no whole number from {} to {}", option, text, least, most));
    return value;
}

// "A" or "A:B"; the second is 0 where it is not given.
std::pair<int, int> pair_of(const std::string& text, const std::string& option, int most) {
    const auto colon = text.find(':');
    const int a = whole(text.substr(0, colon), option, 1, most);
    return {a, colon == std::string::npos ? 0 : whole(text.substr(colon + 1), option, 1, most)};
}

// "B:SQ[:SK]"
ir::Shape shape_of(const std::string& text, const std::string& option) {
    const auto first = text.find(':');
    if (first == std::string::npos) throw Usage(option + ": `" + text + "` should read REQUESTS:QUERIES[:KEYS]");
    const auto [rows, keys] = pair_of(text.substr(first + 1), option, 1 << 20);
    return {whole(text.substr(0, first), option, 1, 1 << 16), rows, keys == 0 ? rows : keys, 0};
}

DType dtype_of(const std::string& text) {
    if (text == "bf16") return DType::BF16;
    if (text == "fp16" || text == "f16") return DType::F16;
    if (text == "fp32" || text == "f32") return DType::F32;
    throw Usage("--dtype: `" + text + "` is not one of bf16, fp16, fp32");
}

void check_arch(const std::string& text) {
    std::size_t digits = 3;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
    const std::string suffix = text.substr(std::min(digits, text.size()));
    const bool fine = text.compare(0, 3, "sm_") == 0 && digits >= 5 && digits <= 6 &&
                      (suffix.empty() || suffix == "a" || suffix == "f");
    if (!fine) throw Usage("--arch: `" + text + "` is no architecture; write sm_90a, sm_80, ...");
}

std::string name_before(const std::string& text, const std::string& option, std::string& rest) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        throw Usage(option + ": `" + text + "` should read NAME=" + (option == "--set" ? "VALUE" : "DTYPE[AXES]"));
    rest = text.substr(equals + 1);
    return text.substr(0, equals);
}

Setting constant(const std::string& text, const std::string& name) {
    Setting s;
    if (text == "None") {
        s.kind = Setting::Kind::Absent;
        return s;
    }
    if (text == "True" || text == "true")
        s.value = 1;
    else if (text == "False" || text == "false")
        s.value = 0;
    else {
        const char* begin = text.data() + (!text.empty() && text[0] == '+' ? 1 : 0);
        const auto [end, error] = std::from_chars(begin, text.data() + text.size(), s.value);
        if (error != std::errc() || end != text.data() + text.size() || text.empty())
            throw Usage("--set " + name + ": `" + text + "` is no number");
    }
    return s;
}

// "i32[S]", "f32[B,Hk]", "f32[]", "i32"
Setting operand(const std::string& text, const std::string& name) {
    Setting s;
    s.kind = Setting::Kind::Operand;
    const auto bracket = text.find('[');
    const std::string type = text.substr(0, bracket);
    s.dtype = type == "fp16" ? DType::F16 : type == "fp32" ? DType::F32 : ir::dtype_from_short(type);
    if (!s.dtype)
        throw Usage("--arg " + name + ": `" + type + "` is no element type; there are f32, f16, bf16, i32, bool, ...");
    if (bracket == std::string::npos) return s;
    if (text.back() != ']') throw Usage("--arg " + name + ": `" + text + "` lacks its `]`");
    std::string axis;
    for (const char c : text.substr(bracket + 1, text.size() - bracket - 2) + ",") {
        if (c == ' ') continue;
        if (c != ',') {
            axis += c;
            continue;
        }
        if (!axis.empty())
            s.axes.push_back(axis);
        else if (!s.axes.empty())
            throw Usage("--arg " + name + ": an axis in `" + text + "` has no name");
        axis.clear();
    }
    if (s.axes.size() > 4) throw Usage("--arg " + name + ": at most four axes");
    s.rank = static_cast<int>(s.axes.size());
    return s;
}

} // namespace

Options parse_options(const std::vector<std::string>& arguments) {
    Options o;
    o.arguments = arguments;
    bool only_words = false;
    for (std::size_t k = 0; k < arguments.size(); ++k) {
        std::string name = arguments[k];
        if (only_words || name.size() < 2 || name[0] != '-') {
            if (o.command.empty())
                o.command = name;
            else
                o.words.push_back(name);
            continue;
        }
        if (name == "--") {
            only_words = true;
            continue;
        }
        std::optional<std::string> joined; // --arch=sm_90a
        if (const auto equals = name.find('='); equals != std::string::npos) {
            joined = name.substr(equals + 1);
            name.resize(equals);
        }
        const auto flag = [&](bool& value) {
            if (joined) throw Usage(name + " takes no value");
            value = true;
        };
        const auto value = [&]() -> std::string {
            if (joined) return *joined;
            if (k + 1 == arguments.size()) throw Usage(name + " needs a value");
            return arguments[++k];
        };
        const auto said = [&](const std::string& text) {
            o.said.push_back(name);
            o.said.push_back(text);
            return text;
        };
        const auto one_of = [&](const std::string& text, const char* a, const char* b) {
            if (text != a && text != b) throw Usage(fmt::format("{}: `{}` is neither {} nor {}", name, text, a, b));
            return text == a;
        };
        const auto setting = [&](const std::function<Setting(const std::string&, const std::string&)>& make) {
            std::string rest;
            const std::string parameter = name_before(said(value()), name, rest);
            if (!o.settings.emplace(parameter, make(rest, parameter)).second)
                throw Usage("`" + parameter + "` is given twice");
        };
        if (name == "--help" || name == "-h")
            flag(o.help);
        else if (name == "--version")
            o.command = "--version";
        else if (name == "--json")
            flag(o.json);
        else if (name == "--quiet")
            flag(o.quiet);
        else if (name == "--gpu")
            flag(o.gpu);
        else if (name == "--small")
            flag(o.small);
        else if (name == "--long")
            flag(o.longer);
        else if (name == "--sanitize")
            flag(o.sanitize);
        else if (name == "--delays")
            o.delays = whole(said(value()), name, 1, 100000);
        else if (name == "--worker")
            flag(o.worker);
        else if (name == "--verify")
            flag(o.verify);
        else if (name == "--tune")
            flag(o.tune);
        else if (name == "--shape")
            o.shape = shape_of(value(), name);
        else if (name == "--seed")
            o.seed = whole<std::uint64_t>(value(), name, 0, ~std::uint64_t{0}), o.seeded = true;
        else if (name == "--cases")
            o.cases = whole(value(), name, 1, 40);
        else if (name == "--resume")
            o.resume = value();
        else if (name == "--expert")
            o.expert = said(value());
        else if (name == "--spec")
            o.spec = value();
        else if (name == "--seeds")
            o.seeds = whole(value(), name, 1, 1000);
        else if (name == "--cache")
            o.cache = value();
        else if (name == "--emit")
            o.emit = value();
        else if (name == "--arch")
            check_arch(o.request.arch = value());
        else if (name == "--dtype")
            o.request.q_dtype = o.request.kv_dtype = o.request.o_dtype = dtype_of(said(value()));
        else if (name == "--head-dim")
            std::tie(o.request.head_dim, o.request.head_dim_v) = pair_of(said(value()), name, 65536);
        else if (name == "--heads")
            std::tie(o.heads_q, o.heads_kv) = pair_of(said(value()), name, 65536);
        else if (name == "--rows")
            o.request.rows =
                one_of(said(value()), "tail", "as-written") ? Request::Rows::Tail : Request::Rows::AsWritten;
        else if (name == "--empty-rows")
            o.request.empty_rows =
                one_of(said(value()), "zero", "as-written") ? Request::EmptyRows::Zero : Request::EmptyRows::AsWritten;
        else if (name == "--lse")
            o.request.lse = one_of(said(value()), "natural", "log2") ? Request::Lse::Natural : Request::Lse::Log2;
        else if (name == "--set")
            setting(constant);
        else if (name == "--arg")
            setting(operand);
        else if (name == "--absent") {
            Setting s;
            s.kind = Setting::Kind::Absent;
            const std::string parameter = said(value());
            if (!o.settings.emplace(parameter, s).second) throw Usage("`" + parameter + "` is given twice");
        } else
            throw Usage("there is no option " + name);
    }
    if (o.heads_kv != 0 && o.heads_q % o.heads_kv != 0)
        throw Usage(fmt::format("--heads: {} query heads can't share {} KV heads evenly", o.heads_q, o.heads_kv));
    if (o.command == "cache" && (o.gpu || o.seeded) && (o.words.empty() || o.words[0] != "verify" || !o.gpu))
        throw Usage("cache: --gpu, and its --seed, are options of verify");
    if (o.tune && o.command != "adapt") throw Usage("--tune is an option of adapt");
    if (o.verify && o.command != "adapt") throw Usage("--verify is an option of adapt");
    if ((o.sanitize || o.delays > 0) && (o.command != "check" || !o.gpu))
        throw Usage(std::string(o.sanitize ? "--sanitize" : "--delays") + " is an option of check --gpu");
    if (o.sanitize && !o.resume.empty()) throw Usage("--sanitize runs small cases: nothing to be resumed");
    if (o.verify && o.tune)
        throw Usage("--tune measures on the GPU, and compares what it measures; --verify is for one kernel");
    if (o.worker && o.command != "adapt") throw Usage("--worker is an option of adapt");
    if (o.tune && !o.expert.empty()) throw Usage("--tune chooses among configurations; --expert names one");
    if (o.shape && !o.tune && o.command != "explain") throw Usage("--shape is what --tune measures at");
    if (o.shape && o.request.rows == Request::Rows::Tail && o.shape->rows > o.shape->keys)
        throw Usage("--shape: the last rows of a square text are no more than its keys");
    const auto experts = ir::built_in_experts();
    if (!o.expert.empty() && o.command != "lower" && std::none_of(experts.begin(), experts.end(), [&](const auto& e) {
            return e.name == o.expert.substr(0, o.expert.find('/'));
        }))
        throw Usage("--expert: there is no expert " + o.expert);
    return o;
}

} // namespace cubridge::cli
