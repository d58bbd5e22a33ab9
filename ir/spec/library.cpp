// Looking rows up and binding calls to them. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/library.h"
#include <algorithm>
#include <map>

namespace cubridge::ir::spec {

namespace {

struct Parameter {
    std::string name;
    bool rest = false; // *name
    bool keyword_only = false;
    bool required = true;
    Value fallback;
};

Value literal(std::string_view text) {
    if (text == "None" || text == "?") return Value();
    if (text == "True") return true;
    if (text == "False") return false;
    const std::string s(text);
    if (s.find_first_of(".e") != std::string::npos) return std::stod(s);
    return static_cast<std::int64_t>(std::stoll(s));
}

std::vector<Parameter> parse_parameters(std::string_view text) {
    std::vector<Parameter> out;
    bool keyword_only = false;
    while (!text.empty()) {
        const auto end = text.find(", ");
        std::string_view part = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
        if (part == "*") {
            keyword_only = true;
            continue;
        }
        Parameter p;
        p.keyword_only = keyword_only;
        if (part[0] == '*') p.rest = true, part.remove_prefix(1), p.required = false;
        if (const auto eq = part.find('='); eq != std::string_view::npos) {
            p.fallback = literal(part.substr(eq + 1));
            p.required = false;
            part = part.substr(0, eq);
        }
        p.name = part;
        out.push_back(std::move(p));
    }
    return out;
}

struct Tables {
    std::vector<Routine> all;
    std::vector<std::vector<Parameter>> parameters;
    std::map<std::pair<unsigned, std::string_view>, const Routine*> byname;
    Tables() {
        for (const auto rows :
             {rows_making(), rows_elementwise(), rows_shape(), rows_reduce(), rows_product(), rows_python()})
            all.insert(all.end(), rows.begin(), rows.end());
        for (const Routine& r : all) {
            parameters.push_back(parse_parameters(r.parameters));
            for (unsigned place = 1; place <= kListMethod; place *= 2)
                if ((r.places & place) != 0) byname.emplace(std::pair{place, std::string_view(r.name)}, &r);
        }
    }
};

const Tables& tables() {
    static const Tables t; // constant after its first use; the language makes that thread-safe
    return t;
}

std::size_t distance(std::string_view a, std::string_view b) { // Levenshtein
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t k = 0; k <= b.size(); ++k) row[k] = k;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t k = 1; k <= b.size(); ++k) {
            const std::size_t up = row[k];
            row[k] = std::min({up + 1, row[k - 1] + 1, diagonal + (a[i - 1] == b[k - 1] ? 0 : 1)});
            diagonal = up;
        }
    }
    return row[b.size()];
}

const std::vector<Parameter>& parameters_of(const Routine& r) {
    return tables().parameters[static_cast<std::size_t>(&r - tables().all.data())];
}

} // namespace

std::span<const Routine> routines() {
    return tables().all;
}

const Routine* find_routine(Place place, std::string_view name) {
    const auto it = tables().byname.find({place, name});
    return it == tables().byname.end() ? nullptr : it->second;
}

std::string nearest_routine(Place place, std::string_view name) {
    if (name.size() > 60) return "";
    std::string best;
    std::size_t least = name.size() < 5 ? 2 : 3; // below this it is a slip of the pen
    for (const auto& [key, r] : tables().byname) {
        if (key.first != place) continue;
        const std::size_t d = distance(key.second, name);
        if (d < least) least = d, best = key.second;
    }
    return best;
}

Args bind(const Routine& r, Values positional, std::vector<std::pair<std::string, Value>> keywords, Interpreter& in) {
    const auto& parameters = parameters_of(r);
    Values bound(parameters.size());
    std::size_t next = 0;
    for (std::size_t k = 0; k < parameters.size(); ++k) {
        const Parameter& p = parameters[k];
        if (p.rest) {
            // x.view(2, 3) and x.view((2, 3)) are one call
            const bool packed = positional.size() == next + 1 && positional[next].is<Sequence>();
            Values rest =
                packed ? *positional[next].as<Sequence>().items
                       : Values(positional.begin() + static_cast<std::ptrdiff_t>(std::min(next, positional.size())),
                                positional.end());
            next = positional.size();
            bound[k] = make_tuple(std::move(rest));
            for (auto it = keywords.begin(); it != keywords.end(); ++it)
                if (it->first == p.name || (p.name == "size" && it->first == "shape") ||
                    (p.name == "dims" && it->first == "dim")) {
                    bound[k] = it->second.is<Sequence>() ? it->second : make_tuple({it->second});
                    keywords.erase(it);
                    break;
                }
            continue;
        }
        const auto given = std::find_if(keywords.begin(), keywords.end(), [&](const auto& w) {
            return w.first == p.name || (p.name == "dim" && w.first == "axis") ||
                   (p.name == "keepdim" && w.first == "keepdims");
        });
        if (!p.keyword_only && next < positional.size()) {
            if (given != keywords.end())
                fail("type", std::string(r.name) + "() got two values for `" + p.name + "`", in.span());
            bound[k] = positional[next++];
        } else if (given != keywords.end()) {
            bound[k] = given->second;
            keywords.erase(given);
        } else if (p.required) {
            fail("type", std::string(r.name) + "() needs the argument `" + p.name + "`", in.span(),
                 std::string("its parameters are (") + r.parameters + ")");
        } else {
            bound[k] = p.fallback;
        }
    }
    // Where values live and whether they are differentiated changes none of them.
    std::erase_if(keywords, [](const auto& w) {
        static constexpr const char* ignored[] = {"device", "requires_grad", "non_blocking", "memory_format",
                                                  "layout", "pin_memory",    "copy"};
        return std::any_of(std::begin(ignored), std::end(ignored), [&](const char* n) { return w.first == n; });
    });
    if (next < positional.size())
        fail("type",
             std::string(r.name) + "() takes " + std::to_string(next) + " arguments, " +
                 std::to_string(positional.size()) + " are given",
             in.span(), std::string("its parameters are (") + r.parameters + ")");
    if (!keywords.empty())
        fail("unsupported", std::string(r.name) + "() has no keyword `" + keywords[0].first + "` here", in.span(),
             std::string("its parameters are (") + r.parameters + ")");
    return Args(r, std::move(bound), in);
}

void Args::wrong(std::size_t k, const char* expected) const {
    fail("type",
         std::string(routine_.name) + "(): `" + parameters_of(routine_)[k].name + "` must be " + expected +
             ", this is " + kind_of(bound_[k]),
         in_.span());
}

TensorRef Args::tensor(std::size_t k) const {
    if (!bound_[k].is<TensorRef>() && !bound_[k].number()) wrong(k, "a tensor");
    return in_.tensor(bound_[k]);
}

std::int64_t Args::integer(std::size_t k) const {
    if (bound_[k].is<bool>()) return bound_[k].as<bool>() ? 1 : 0;
    if (bound_[k].is<std::int64_t>()) return bound_[k].as<std::int64_t>();
    if (bound_[k].is<Expr>()) return in_.domain().require_int(bound_[k], routine_.name);
    if (bound_[k].is<TensorRef>()) {
        const Value v = in_.domain().item(bound_[k].as<TensorRef>(), routine_.name);
        if (v.is<std::int64_t>()) return v.as<std::int64_t>();
        if (v.is<Expr>()) return in_.domain().require_int(v, routine_.name);
    }
    wrong(k, "an int");
}

int Args::dim(std::size_t k, std::size_t rank) const {
    const std::int64_t d = integer(k), n = std::max<std::int64_t>(static_cast<std::int64_t>(rank), 1);
    if (d < -n || d >= n)
        fail("index",
             std::string(routine_.name) + "(): dimension " + std::to_string(d) +
                 " is out of range for a tensor of rank " + std::to_string(rank),
             in_.span());
    return static_cast<int>(d < 0 ? d + n : d);
}

int Args::axis(std::size_t k, std::size_t rank) const {
    if (rank == 0) fail("index", std::string(routine_.name) + "() takes a tensor of rank 1 or more", in_.span());
    return dim(k, rank);
}

bool Args::flag(std::size_t k) const {
    if (bound_[k].none()) return false;
    if (!bound_[k].number()) wrong(k, "a bool");
    return in_.truth(bound_[k]);
}

DType Args::dtype(std::size_t k, DType fallback) const {
    if (bound_[k].none()) return fallback;
    if (bound_[k].is<DType>()) return bound_[k].as<DType>();
    if (bound_[k].is<RoutineValue>()) { // float, int and bool are dtypes too
        const std::string_view n = bound_[k].as<RoutineValue>().routine->name;
        if (n == "float") return DType::F64;
        if (n == "int") return DType::I64;
        if (n == "bool") return DType::Bool;
    }
    wrong(k, "a dtype");
}

const std::string& Args::name(std::size_t k) const {
    if (!bound_[k].is<std::string>()) wrong(k, "a string");
    return bound_[k].as<std::string>();
}

Values Args::sizes(std::size_t k) const {
    const Values items = bound_[k].is<Sequence>() ? *bound_[k].as<Sequence>().items : Values{bound_[k]};
    Values out;
    for (const Value& v : items) {
        if (v.is<TensorRef>())
            out.push_back(in_.domain().item(v.as<TensorRef>(), "a size"));
        else if (v.number() && !v.is<double>() && !v.is<bool>())
            out.push_back(v);
        else
            fail("type", std::string(routine_.name) + "(): a size must be an int, this is " + kind_of(v), in_.span());
    }
    return out;
}

std::string routines_markdown() {
    static constexpr std::pair<unsigned, const char*> places[] = {
        {kTorch, "torch"},     {kFunctional, "F"},      {kMethod, "method"},         {kMath, "math"},
        {kBuiltin, "builtin"}, {kProperty, "property"}, {kListMethod, "list method"}};
    std::string out = "| name | as | parameters | note |\n| --- | --- | --- | --- |\n";
    for (const Routine& r : routines()) {
        std::string as;
        for (const auto& [bit, text] : places)
            if ((r.places & bit) != 0) as += (as.empty() ? "" : ", ") + std::string(text);
        out += "| `" + std::string(r.name) + "` | " + as + " | `" + r.parameters + "` | " + r.note + " |\n";
    }
    return out;
}

std::string routines_json() {
    std::string out = "[\n";
    for (const Routine& r : routines()) {
        if (out.size() > 2) out += ",\n";
        out += " {\"name\": \"" + std::string(r.name) + "\", \"places\": " + std::to_string(r.places) +
               ", \"parameters\": \"" + r.parameters + "\"}";
    }
    return out + "\n]\n";
}

} // namespace cubridge::ir::spec
