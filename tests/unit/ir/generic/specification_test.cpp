// Specifications as people write them, from text to the kernel's text on the host, against the text's own evaluation.
// With CUBRIDGE_SPECIFICATIONS set to a folder, every file there too.
// SPDX-License-Identifier: Apache-2.0
#include "host.h"
#include "ir/generic/run.h"
#include "ir/spec/state.h"
#include "problem.h"
#include "tests/unit/sample.h"
#include <fstream>
#include <sstream>

using namespace cubridge::ir;
using namespace cubridge::ir::generic;
using namespace cubridge::ir::generic::test;
namespace fs = std::filesystem;

namespace {

std::string read_file(const fs::path& p) {
    std::ostringstream s;
    s << std::ifstream(p).rdbuf();
    return s.str();
}

/// One kernel and the launches that it is compared on.
struct Case {
    std::string name;
    std::shared_ptr<const Specification> specification;
    std::vector<std::pair<std::vector<Argument>, std::vector<Array>>> runs;
    int kernel = -1;
};

/// The argument block over evaluator inputs, which it copies.
class Block {
public:
    Block(const Scalar& s, const std::vector<Argument>& in) {
        cubridge::ir::abi::cb_tensor* const tensors[] = {&args.q, &args.k, &args.v};
        for (std::size_t x = 0; x < 3; ++x) {
            if (!in[x]) continue;
            const auto& shape = in[x]->shape;
            *tensors[x] = {copy(*in[x], DType::F64), shape[1] * shape[2] * shape[3], shape[3], shape[2] * shape[3]};
        }
        args.requests = static_cast<int>(in[0]->shape[0]);
        args.heads_q = static_cast<int>(in[0]->shape[1]), args.heads_kv = static_cast<int>(in[1]->shape[1]);
        args.max_q = static_cast<int>(in[0]->shape[2]), args.max_kv = static_cast<int>(in[1]->shape[2]);
        args.total_q = args.requests * args.max_q;
        int slot = 0;
        for (std::size_t x = 3; x < in.size(); ++x) {
            const Input& input = s.inputs[x];
            if (input.fate != Input::Fate::Operand && input.fate != Input::Fate::Bound) continue;
            auto& o = args.operand[slot++];
            o.value = in[x] ? in[x]->values.at(0) : input.value;
            if (!in[x] || input.rank == 0) continue;
            o.data = copy(*in[x], input.dtype);
            std::int64_t stride = 1;
            for (std::size_t a = in[x]->shape.size(); a-- > 0;)
                o.size[a] = in[x]->shape[a], o.stride[a] = stride, stride *= o.size[a];
        }
    }
    cubridge::ir::abi::cb_args args{};

private:
    void* copy(const Array& a, DType t) {
        buffers_.emplace_back(a.values.size() * 8 + 8);
        for (std::size_t k = 0; k < a.values.size(); ++k)
            store_element(buffers_.back().data(), t, static_cast<std::int64_t>(k), a.values[k]);
        return buffers_.back().data();
    }
    std::deque<std::vector<unsigned char>> buffers_;
};

Request request_of(const Scalar& s, const std::vector<Argument>& in) {
    Request r;
    r.q_dtype = r.kv_dtype = r.o_dtype = DType::F64;
    r.head_dim = static_cast<int>(in[0]->shape[3]);
    r.group = static_cast<int>(in[0]->shape[1] / in[1]->shape[1]);
    r.heads = s.heads;
    r.lse = s.out.size() > 1 ? Request::Lse::Natural : Request::Lse::None;
    return r;
}

class Corpus {
public:
    void add(const std::string& name, const Source& source) {
        const auto spec = Specification::parse(source);
        if (!spec) {
            ++refused;
            notes += name + ": " + spec.error().message + "\n";
            return;
        }
        const Scalar& s = (*spec)->scalar();
        Case* last = nullptr;
        Request before;
        for (const auto& sizes : spec::small_sizes(s, 1)) {
            if (cases_.size() > 400) return;
            const auto in = spec::random_inputs(s, sizes, 5);
            auto want = (*spec)->evaluate(in);
            if (!want) continue; // PyTorch would raise here too: a maximum over nothing, the log of no keys
            if ((*want)[0].shape.size() != 4) continue;
            Request r = request_of(s, in);
            r.head_dim_v = static_cast<int>((*want)[0].shape[3]);
            if (last == nullptr || r.head_dim != before.head_dim || r.head_dim_v != before.head_dim_v ||
                r.group != before.group) {
                if (last != nullptr && name_count_[name] >= 3) continue; // enough kernels of this text
                Options o;
                o.f64 = true;
                const auto k = print(s, r, o);
                EXPECT_TRUE(k) << name << ": " << k.error().message;
                if (!k) return;
                cases_.push_back({name, *spec, {}, host_.add(*k)});
                last = &cases_.back(), before = r;
                ++name_count_[name];
            }
            if (last->runs.size() < 4) last->runs.emplace_back(in, *want);
        }
    }

    void check() {
        ASSERT_TRUE(host_.build("-O0"));
        for (Case& c : cases_) {
            const Scalar& s = c.specification->scalar();
            for (auto& [in, want] : c.runs) {
                Block block(s, in);
                std::vector<double> o(want[0].values.size() + 1, 77),
                    lse(want.size() > 1 ? want[1].values.size() + 1 : 1, 77);
                const auto& shape = want[0].shape;
                block.args.o = {o.data(), shape[1] * shape[2] * shape[3], shape[3], shape[2] * shape[3]};
                block.args.lse = {lse.data(), shape[1] * shape[2], 1, shape[2]};
                const auto& plan = host_.kernel(c.kernel).plan;
                launch::Sizes sizes;
                using launch::Size;
                sizes[Size::Requests] = block.args.requests, sizes[Size::HeadsQ] = block.args.heads_q;
                sizes[Size::HeadsKv] = block.args.heads_kv, sizes[Size::MaxQ] = block.args.max_q;
                sizes[Size::MaxKv] = block.args.max_kv, sizes[Size::SmCount] = 1;
                for (std::size_t k = 0; k < plan.operands.size(); ++k) {
                    const auto& size = block.args.operand[k].size;
                    sizes.operand.push_back({size[0], size[1], size[2], size[3]});
                    for (std::size_t a = 0; a < plan.operands[k].least.size(); ++a)
                        EXPECT_LE(plan.operands[k].least[a].evaluate(sizes), size[a])
                            << c.name << " " << plan.operands[k].name;
                }
                for (const auto& condition : plan.conditions)
                    if (condition.kind == launch::Condition::Kind::Equal) {
                        EXPECT_EQ(condition.left.evaluate(sizes), condition.right.evaluate(sizes))
                            << c.name << " " << condition.text;
                    }
                host_.run(c.kernel, block.args, sizes);
                o.pop_back(), lse.pop_back();
                EXPECT_TRUE(near(o, want[0].values, 1e-11)) << c.name;
                if (want.size() > 1) {
                    EXPECT_TRUE(near(lse, want[1].values, 1e-11)) << c.name;
                }
                ++compared;
            }
        }
    }
    int refused = 0, compared = 0;
    std::string notes;

private:
    std::deque<Case> cases_;
    std::map<std::string, int> name_count_;
    HostKernels host_;
};

TEST(GenericSpecification, TextsOfTheCorpus) {
    Corpus corpus;
    const fs::path root = "tests/corpus/respell";
    std::vector<fs::path> files;
    for (const auto& f : fs::recursive_directory_iterator(root))
        if (f.path().extension() == ".py") files.push_back(f.path());
    std::sort(files.begin(), files.end());
    std::map<std::string, int> of;
    cubridge::test::Sample sample;
    for (const auto& f : files) {
        if (of[f.parent_path().string()]++ >= 3) continue; // a few spellings of each
        if (sample.skips()) continue;
        Source source;
        source.text = read_file(f);
        corpus.add(f.string(), source);
    }
    if (const char* more = std::getenv("CUBRIDGE_SPECIFICATIONS")) {
        for (const auto& f : fs::recursive_directory_iterator(more)) {
            if (f.path().extension() != ".py") continue;
            Source source;
            source.text = read_file(f.path());
            if (source.text.find("\ndef attention(") != std::string::npos) {
                corpus.add(f.path().string(), source);
                continue;
            }
            for (std::size_t at = source.text.find("\ndef "); at != std::string::npos;
                 at = source.text.find("\ndef ", at + 1)) {
                source.function = source.text.substr(at + 5, source.text.find('(', at) - at - 5);
                corpus.add(f.path().string() + ":" + source.function, source);
            }
        }
    }
    corpus.check();
    // Whether a text is accepted is for the front end's tests to say; here enough of them must get this far.
    RecordProperty("refused", corpus.notes);
    RecordProperty("compared", corpus.compared);
    EXPECT_GE(corpus.compared, cubridge::test::at_least(60)) << corpus.notes;
}

/// Buckets whose largest distance is their smallest: 0 / 0 and x / 0 become integers, with which the text computes on.
TEST(GenericSpecification, NumbersThatNoIntegerHolds) {
    Corpus corpus;
    Source source;
    source.text = R"(
import math
import torch
def attention(q, k, v, farthest: int):
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    d = (i - j).abs()
    far = 1 + (torch.log(d.clamp(min=1).float()) / math.log(farthest / farthest)).long()
    near = -3 - (torch.log(d.clamp(min=1).float()) / math.log(farthest / farthest)).long()
    s = q @ k.transpose(-2, -1) + torch.where(d < 1, d, far.clamp(max=3)) - near.clamp(min=-5)
    return torch.softmax(s, -1) @ v
)";
    corpus.add("buckets", source);
    EXPECT_EQ(corpus.refused, 0) << corpus.notes;
    corpus.check();
    EXPECT_GE(corpus.compared, 3);
}

} // namespace
