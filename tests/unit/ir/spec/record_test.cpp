// The evaluator against recorded PyTorch: random programs, and every specification of the corpus.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/specification.h"
#include "ir/spec/concrete.h"
#include "ir/spec/interpreter.h"
#include "ir/spec/library.h"
#include "ir/syntax/parser.h"
#include "tests/unit/ir/spec/coverage.h"
#include "tests/unit/ir/spec/difference.h"
#include "tests/unit/ir/spec/record.h"
#include "tests/unit/sample.h"
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

namespace cubridge::ir {
namespace {

using record::Case;
using record::Item;
using record::Record;
using namespace spec;

const std::string kFolder = "tests/corpus/record/";

const Record& programs() {
    static const Record r = record::Reader(kFolder + "random.gz").record();
    return r;
}
const Record& specifications() {
    static const Record r = record::Reader(kFolder + "specifications.gz").record();
    return r;
}

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Failures of one kind are many: the first ones in full, then a count. FILTER narrows to names that hold it.
class Tally {
public:
    void wrong(const std::string& name, const std::string& text, const std::string& what) {
        if (++wrong_ <= limit())
            ADD_FAILURE() << name << ": " << what << "\n" << (std::getenv("RECORD_TEXT") ? text : "");
    }
    void right(std::size_t numbers) { ++right_, numbers_ += numbers; }
    void say(const char* what) const {
        std::printf("%s: %zu equal, %zu numbers, %zu different\n", what, right_, numbers_, wrong_);
        EXPECT_EQ(wrong_, 0u);
    }

private:
    static std::size_t limit() {
        const char* n = std::getenv("RECORD_SHOW");
        return n ? static_cast<std::size_t>(std::atoi(n)) : 10;
    }
    std::size_t right_ = 0, numbers_ = 0, wrong_ = 0;
};

bool chosen(const Case& c) {
    const char* filter = std::getenv("RECORD_FILTER");
    return !filter || c.name.find(filter) != std::string::npos;
}

Value value_of(const Record& r, const Case& c, const Item& i, ConcreteDomain& domain) {
    if (i.tag == 'b') return i.number != 0;
    if (i.tag == 'i') return static_cast<std::int64_t>(i.number);
    if (i.tag == 'f') return i.number;
    if (i.tag == 'n') return {};
    const auto& a = r.arrays[i.array];
    return domain.make(tensor::from_values(a.shape, a.values, i.dtype, c.pinned));
}

/// What the program returns, sequences laid out flat.
void flatten(const Value& v, Values& out) {
    if (v.is<Sequence>()) {
        for (const Value& i : *v.as<Sequence>().items) flatten(i, out);
    } else if (v.is<TensorRef>() || v.number()) {
        out.push_back(v);
    }
}

/// The statements that make the result which holds item k of `found`: "r7 = a[1:]".
std::string origin(const std::string& text, const Value& result, std::size_t k) {
    const auto back = text.rfind("return ") + 7;
    std::size_t at = back;
    for (const Value& v : *result.as<Sequence>().items) {
        Values items;
        flatten(v, items);
        if (k < items.size()) break;
        k -= items.size();
        at = text.find(", ", at) + 2;
    }
    const std::string name = text.substr(at, text.find(',', at) - at);
    std::string out;
    for (std::size_t from = 0; from < back;) {
        const auto end = text.find('\n', from);
        const std::string line = text.substr(from, end - from);
        const auto word = line.find(name);
        if (word != std::string::npos && !std::isalnum(static_cast<unsigned char>(line[word + name.size()])) &&
            line.find("return") == std::string::npos)
            out += (out.empty() ? "" : "; ") + line.substr(line.find_first_not_of(' '));
        from = end + 1;
    }
    return out;
}

Value run(const Record& r, const Case& c, const syntax::Node& module, ConcreteDomain& domain) {
    Interpreter in(module, domain);
    in.run_module();
    Values arguments;
    std::vector<std::pair<std::string, Value>> keywords;
    for (const auto& [name, i] : c.inputs)
        if (c.kind == Case::Kind::Specification && arguments.size() == 3)
            keywords.emplace_back(name, value_of(r, c, i, domain));
        else
            arguments.push_back(value_of(r, c, i, domain));
    try {
        return in.call(*in.global(c.function), std::move(arguments), std::move(keywords));
    } catch (Failure& f) {
        if (f.error.span.line == 0) f.error.span = in.span();
        throw;
    }
}

std::string difference_of(const Record& r, const Item& expected, const Value& found) {
    if (expected.tag == 'T') {
        if (!found.is<TensorRef>()) return "no tensor but " + kind_of(found);
        const auto& t = ConcreteDomain::at(found.as<TensorRef>());
        const auto& a = r.arrays[expected.array];
        return record::difference(expected.dtype, a.shape, a.values, t.dtype, t.shape, *t.data);
    }
    const char tag = found.is<bool>() ? 'b' : found.is<std::int64_t>() ? 'i' : found.is<double>() ? 'f' : '?';
    if (tag != expected.tag)
        return std::string("a number of type ") + expected.tag + " is expected, this is " + kind_of(found);
    const double v = tag == 'b'   ? found.as<bool>()
                     : tag == 'i' ? static_cast<double>(found.as<std::int64_t>())
                                  : found.as<double>();
    return record::close(expected.number, v)
               ? ""
               : "the number " + std::to_string(expected.number) + " is expected, this is " + std::to_string(v);
}

TEST(Record, RandomProgramsEqualPyTorch) {
    const Record& r = programs();
    Tally tally;
    std::size_t refused = 0;
    std::map<std::string, int> why;
    for (const Case& c : r.cases) {
        if (c.kind != Case::Kind::Program || !chosen(c)) continue;
        const std::string& text = r.texts[c.text];
        const auto module = syntax::parse(text);
        if (!module) {
            tally.wrong(c.name, text, module.error().render(text));
            continue;
        }
        try {
            ConcreteDomain domain;
            const Value result = run(r, c, **module, domain);
            Values found;
            flatten(result, found);
            std::string wrong = found.size() == c.outputs.size() ? ""
                                                                 : std::to_string(found.size()) + " results, not " +
                                                                       std::to_string(c.outputs.size());
            std::size_t numbers = 0;
            for (std::size_t k = 0; wrong.empty() && k < found.size(); ++k) {
                wrong = difference_of(r, c.outputs[k], found[k]);
                if (!wrong.empty()) wrong += " in `" + origin(text, result, k) + "`";
                numbers += c.outputs[k].tag == 'T' ? r.arrays[c.outputs[k].array].values.size() : 1;
            }
            if (wrong.empty())
                tally.right(numbers);
            else
                tally.wrong(c.name, text, wrong);
        } catch (const Failure& f) {
            if (f.error.kind == "unsupported" && !f.error.hint.empty())
                ++refused, ++why[f.error.message + " " + c.name];
            else
                tally.wrong(c.name, text, "refused, " + f.error.kind + ": " + f.error.render(text));
        }
    }
    std::printf("%zu random programs use what is refused on purpose\n", refused);
    if (std::getenv("RECORD_TEXT"))
        for (const auto& [message, n] : why) std::printf("  %d: %s\n", n, message.c_str());
    EXPECT_LE(refused, r.cases.size() / 50);
    tally.say("random programs");
}

TEST(Record, WhatPyTorchRefusesIsRefused) {
    const Record& r = programs();
    Tally tally;
    for (const Case& c : r.cases) {
        if (c.kind != Case::Kind::Refused || !chosen(c)) continue;
        const std::string& text = r.texts[c.text];
        const auto module = syntax::parse(text);
        try {
            ConcreteDomain domain;
            if (module)
                run(r, c, **module, domain);
            else
                throw Failure{module.error()};
            tally.wrong(c.name, text,
                        "accepted, PyTorch says " + c.refusal +
                            text.substr(text.rfind("\n    ", text.rfind("return") - 6)));
        } catch (const Failure& f) {
            if (f.error.kind == "internal")
                tally.wrong(c.name, text, "refused as internal: " + f.error.message);
            else
                tally.right(0);
        }
    }
    tally.say("refused programs");
}

/// The text with what the case gives as settings; numbers that turn out to be static are given as constants.
Result<std::shared_ptr<const Specification>> parse(const Record& r, const Case& c) {
    Source source{r.texts[c.text], c.function, c.mask, {}};
    ParseOptions options;
    options.certify = false;
    options.heads = static_cast<int>(r.arrays[c.inputs[0].second.array].shape.at(1));
    for (std::size_t k = 3; k < c.inputs.size(); ++k) {
        const auto& [name, i] = c.inputs[k];
        Setting s;
        if (i.tag == 'n')
            s.kind = Setting::Kind::Absent;
        else if (i.tag != 'T')
            continue;
        else
            s.kind = Setting::Kind::Operand, s.dtype = i.dtype,
            s.rank = static_cast<int>(r.arrays[i.array].shape.size());
        source.settings[name] = s;
    }
    auto spec = Specification::parse(source, options);
    if (!spec) return spec;
    bool again = false;
    for (const Input& x : (*spec)->inputs())
        for (const auto& [name, i] : c.inputs)
            if (name == x.name && i.tag != 'T' && i.tag != 'n' &&
                (x.fate == Input::Fate::Absent || (x.fate == Input::Fate::Static && x.value != i.number))) {
                source.settings[name] = Setting{Setting::Kind::Constant, i.number, {}, {}, {}};
                again = true;
            }
    return again ? Specification::parse(source, options) : spec;
}

std::vector<Argument> arguments_of(const Record& r, const Case& c, const Specification& spec) {
    std::vector<Argument> out(spec.inputs().size());
    for (std::size_t k = 0; k < out.size(); ++k) {
        const Input& x = spec.inputs()[k];
        for (std::size_t m = 0; m < c.inputs.size(); ++m) {
            const auto& [name, i] = c.inputs[m];
            if (k < 3 ? m != k : name != x.name) continue;
            if (i.tag == 'T')
                out[k] = Array{x.dtype, r.arrays[i.array].shape, r.arrays[i.array].values};
            else if (i.tag != 'n' && x.fate != Input::Fate::Static)
                out[k] = Array{x.dtype, {}, {i.number}};
        }
    }
    return out;
}

TEST(Record, SpecificationsEqualPyTorch) {
    const Record& r = specifications();
    Tally text_tally, scalar_tally;
    std::map<std::string, Result<std::shared_ptr<const Specification>>> parsed;
    std::set<std::size_t> texts;
    std::map<std::string, int> followed;
    cubridge::test::Sample sample;
    for (const Case& c : r.cases) {
        if (!chosen(c) || sample.skips()) continue;
        std::string key = std::to_string(c.text) + c.function + "+" + c.mask +
                          std::to_string(r.arrays[c.inputs[0].second.array].shape.at(1));
        for (std::size_t k = 3; k < c.inputs.size(); ++k)
            key +=
                " " + c.inputs[k].first + c.inputs[k].second.tag + std::to_string(c.inputs[k].second.number) +
                (c.inputs[k].second.tag == 'T' ? std::to_string(r.arrays[c.inputs[k].second.array].shape.size()) : "");
        const auto it = parsed.find(key);
        const auto& spec = it != parsed.end() ? it->second : parsed.emplace(key, parse(r, c)).first->second;
        const std::string& text = r.texts[c.text];
        texts.insert(c.text);
        if (!spec && spec.error().kind == "unsupported") { // no Scalar yet: the text itself is followed
            ++followed[spec.error().message];
            try {
                ConcreteDomain domain;
                const auto module = syntax::parse(text);
                const Value result = run(r, c, **module, domain);
                Values found;
                flatten(result, found);
                std::string wrong = found.size() == c.outputs.size() ? "" : "another number of outputs";
                for (std::size_t k = 0; wrong.empty() && k < found.size(); ++k)
                    wrong = difference_of(r, c.outputs[k], found[k]);
                if (wrong.empty())
                    text_tally.right(0);
                else
                    text_tally.wrong(c.name, text, wrong);
            } catch (const Failure& f) {
                text_tally.wrong(c.name, text, "refused, " + f.error.kind + ": " + f.error.render(text));
            }
            continue;
        }
        if (!spec) {
            text_tally.wrong(c.name, text, "refused, " + spec.error().kind + ": " + spec.error().render(text));
            continue;
        }
        const auto inputs = arguments_of(r, c, **spec);
        const auto compare = [&](const Result<std::vector<Array>>& out, Tally& tally, bool types) {
            std::string wrong = out ? "" : out.error().kind + ": " + out.error().render(text);
            if (wrong.empty() && out->size() != c.outputs.size()) wrong = "another number of outputs";
            std::size_t numbers = 0;
            for (std::size_t k = 0; wrong.empty() && k < out->size(); ++k) {
                const auto& a = r.arrays[c.outputs[k].array];
                const Array& b = (*out)[k];
                wrong = record::difference(types ? c.outputs[k].dtype : b.dtype, a.shape, a.values, b.dtype, b.shape,
                                           b.values);
                numbers += a.values.size();
            }
            if (wrong.empty())
                tally.right(numbers);
            else
                tally.wrong(c.name, text, wrong);
        };
        compare((*spec)->evaluate(inputs), text_tally, true);
        compare((*spec)->evaluate_scalar(inputs), scalar_tally, false);
    }
    std::printf("%zu texts\n", texts.size());
    for (const auto& [message, n] : followed) std::printf("  %d cases without a Scalar: %s\n", n, message.c_str());
    text_tally.say("specifications, the text");
    scalar_tally.say("specifications, the Scalar");
}

TEST(Record, IsMadeFromTheCommittedTable) {
    const std::string json = contents(kFolder + "routines.json");
    char digest[16];
    std::snprintf(digest, sizeof digest, "%08lx",
                  crc32(0, reinterpret_cast<const Bytef*>(json.data()), static_cast<uInt>(json.size())));
    const std::string head = std::string("cubridge-record 1 crc32 ") + digest + "\n";
    EXPECT_EQ(programs().head, head);
    EXPECT_EQ(specifications().head, head);
}

// A row that is new in the table needs programs: print routines.json again and record again.
TEST(Record, CoversEveryRowAndKeyword) {
    record::Coverage coverage;
    std::size_t count = 0, refused = 0;
    for (const Case& c : programs().cases) {
        if (c.kind == Case::Kind::Refused) ++refused;
        if (c.kind != Case::Kind::Program) continue;
        ++count;
        const auto module = syntax::parse(programs().texts[c.text]);
        if (module) coverage.visit(**module);
    }
    EXPECT_GE(count, 3000u);
    EXPECT_GE(refused, 150u);
    const auto missing = coverage.missing();
    for (const std::string& m : missing) ADD_FAILURE() << "no recorded program uses " << m;
    std::printf("%zu programs and %zu refused ones cover %zu rows\n", count, refused, routines().size());
}

TEST(Record, TheDocumentedTableIsTheCodes) {
    const std::string page = contents("docs/specification.md");
    const std::string begin = "<!-- table: printed by print_routines markdown -->\n", end = "<!-- end of table -->\n";
    const auto from = page.find(begin), to = page.find(end);
    ASSERT_NE(from, std::string::npos);
    ASSERT_NE(to, std::string::npos);
    EXPECT_EQ(page.substr(from + begin.size(), to - from - begin.size()), routines_markdown());
}

} // namespace
} // namespace cubridge::ir
