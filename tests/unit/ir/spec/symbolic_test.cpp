// The tracer against the evaluator: each recorded random program is followed on expressions, its tensors captured ones
// of known shapes, and what the expressions give is what the arrays give. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/evaluate.h"
#include "ir/spec/concrete.h"
#include "ir/spec/interpreter.h"
#include "ir/spec/library.h"
#include "ir/spec/symbolic.h"
#include "ir/syntax/parser.h"
#include "tests/unit/ir/spec/difference.h"
#include "tests/unit/ir/spec/record.h"
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

namespace cubridge::ir {
namespace {

using namespace spec;
using record::Case;
using record::Record;

constexpr int kMaxRestarts = 50;

void flatten(const Value& v, Values& out) {
    if (v.is<Sequence>()) {
        for (const Value& i : *v.as<Sequence>().items) flatten(i, out);
    } else if (v.is<TensorRef>() || v.number()) {
        out.push_back(v);
    }
}

Values run(const syntax::Node& module, Domain& domain, Values arguments) {
    Interpreter in(module, domain);
    in.run_module();
    Values out;
    try {
        flatten(in.call(*in.global("program"), std::move(arguments)), out);
    } catch (Failure& f) {
        if (f.error.span.line == 0) f.error.span = in.span();
        throw;
    }
    return out;
}

/// The program on expressions; assumptions on sizes cannot arise, for all of them are numbers.
class Traced {
public:
    Traced(const Record& r, const Case& c, const syntax::Node& module) {
        for (std::size_t k = 0; k < c.inputs.size(); ++k) {
            const auto& a = r.arrays[c.inputs[k].second.array];
            environment_.inputs[static_cast<int>(k)] = {a.shape, std::make_shared<const std::vector<double>>(a.values)};
            for (std::size_t m = 0; m < a.shape.size(); ++m) {
                const int dim = dims::of(static_cast<int>(k), static_cast<int>(m));
                environment_.dims[dim] = a.shape[m];
                know_.defined[dim] = pool_.integer(a.shape[m]);
            }
        }
        for (int n = 0; n < kMaxRestarts; ++n) {
            domain_ = std::make_unique<SymbolicDomain>(pool_, know_);
            Values arguments;
            for (std::size_t k = 0; k < c.inputs.size(); ++k) {
                const auto& i = c.inputs[k].second;
                std::vector<int> sizes;
                for (std::size_t m = 0; m < r.arrays[i.array].shape.size(); ++m)
                    sizes.push_back(dims::of(static_cast<int>(k), static_cast<int>(m)));
                arguments.push_back(domain_->input(static_cast<int>(k), i.dtype, sizes, !c.pinned, false));
            }
            try {
                results = run(module, *domain_, std::move(arguments));
                return;
            } catch (const Restart&) {
            }
        }
        fail("internal", "the run starts over without end");
    }

    tensor::Tensor array(const Value& v) {
        Evaluator at(pool_, environment_);
        tensor::Tensor out;
        if (v.is<TensorRef>()) {
            const auto& t = domain_->at(v.as<TensorRef>());
            if (t.sorted) fail("unsupported", "an argsort as a result");
            out.dtype = t.dtype;
            for (const Expr e : t.shape) out.shape.push_back(static_cast<std::int64_t>(at.value(e)));
            out.data = std::make_shared<const std::vector<double>>(at.over(t.body, out.shape));
            return out;
        }
        const Expr e = domain_->to_expr(v);
        out.dtype = e->type == Type::Bool ? DType::Bool : e->type == Type::Int ? DType::I64 : DType::F64;
        out.data = std::make_shared<const std::vector<double>>(1, at.value(e));
        return out;
    }

    Values results;

private:
    ExprPool pool_;
    Assumptions know_;
    Environment environment_;
    std::unique_ptr<SymbolicDomain> domain_;
};

tensor::Tensor array(const Value& v) {
    if (v.is<TensorRef>()) return ConcreteDomain::at(v.as<TensorRef>());
    if (v.is<bool>()) return tensor::from_values({}, {v.as<bool>() ? 1.0 : 0.0}, DType::Bool, false);
    if (v.is<std::int64_t>())
        return tensor::from_values({}, {static_cast<double>(v.as<std::int64_t>())}, DType::I64, false);
    return tensor::from_values({}, {v.as<double>()}, DType::F64, false);
}

TEST(Symbolic, RandomProgramsEqualTheEvaluator) {
    const Record r = record::Reader("tests/corpus/record/random.gz").record();
    std::size_t equal = 0, refused = 0, wrong = 0, numbers = 0;
    std::map<std::string, int> why;
    const char* filter = std::getenv("RECORD_FILTER");
    const char* show = std::getenv("RECORD_SHOW");
    const auto report = [&](const Case& c, const std::string& what) {
        if (++wrong <= (show ? static_cast<std::size_t>(std::atoi(show)) : 10))
            ADD_FAILURE() << c.name << ": " << what << "\n" << (std::getenv("RECORD_TEXT") ? r.texts[c.text] : "");
    };
    for (const Case& c : r.cases) {
        if (c.kind != Case::Kind::Program || (filter && c.name.find(filter) == std::string::npos)) continue;
        const auto module = syntax::parse(r.texts[c.text]);
        Values expected;
        ConcreteDomain concrete;
        try {
            Values arguments;
            for (const auto& [name, i] : c.inputs) {
                const auto& a = r.arrays[i.array];
                arguments.push_back(concrete.make(tensor::from_values(a.shape, a.values, i.dtype, c.pinned)));
            }
            expected = run(**module, concrete, std::move(arguments));
        } catch (const Failure&) { // refused there: record_test says why
            continue;
        }
        try {
            Traced traced(r, c, **module);
            if (traced.results.size() != expected.size()) {
                report(c, "another number of results");
                continue;
            }
            std::string difference;
            for (std::size_t k = 0; k < expected.size() && difference.empty(); ++k) {
                const tensor::Tensor a = array(expected[k]), b = traced.array(traced.results[k]);
                difference = record::difference(a.dtype, a.shape, *a.data, b.dtype, b.shape, *b.data);
                if (!difference.empty()) difference += " in result " + std::to_string(k);
                numbers += a.data->size();
            }
            if (difference.empty())
                ++equal;
            else
                report(c, difference);
        } catch (const Failure& f) {
            const bool fair = f.error.kind == "unsupported" || f.error.kind == "limit";
            if (fair)
                ++refused, ++why[f.error.message];
            else
                report(c, f.error.kind + ": " + f.error.render(r.texts[c.text]));
        }
    }
    std::printf("random programs as expressions: %zu equal, %zu numbers, %zu refused, %zu different\n", equal, numbers,
                refused, wrong);
    if (show)
        for (const auto& [message, n] : why) std::printf("  %d: %s\n", n, message.c_str());
    EXPECT_EQ(wrong, 0u);
    EXPECT_GE(equal, 2000u);
}

} // namespace
} // namespace cubridge::ir
