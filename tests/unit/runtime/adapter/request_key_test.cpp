// Every field of the key changes it; what must not matter does not.
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/runtime/support.h"
#include <set>

namespace cubridge::runtime {
namespace {

using testing_support::kCausal;
using testing_support::parsed;
using testing_support::request_for;

TEST(RequestKey, ChangesWithEveryField) {
    const auto spec = parsed(kCausal);
    ASSERT_NE(spec, nullptr);
    using Change = void (*)(ir::Request&);
    const Change changes[] = {
        [](ir::Request&) {},
        [](ir::Request& r) { r.q_dtype = ir::DType::F16; },
        [](ir::Request& r) { r.kv_dtype = ir::DType::F16; },
        [](ir::Request& r) { r.o_dtype = ir::DType::F16; },
        [](ir::Request& r) { r.head_dim = 128; },
        [](ir::Request& r) { r.head_dim_v = 128; },
        [](ir::Request& r) { r.group = 2; },
        [](ir::Request& r) { r.layout = ir::Request::Layout::Ragged; },
        [](ir::Request& r) { r.layout = ir::Request::Layout::Paged, r.page_size = 16; },
        [](ir::Request& r) { r.layout = ir::Request::Layout::Paged, r.page_size = 32; },
        [](ir::Request& r) { r.phase = ir::Request::Phase::Prefill; },
        [](ir::Request& r) { r.phase = ir::Request::Phase::Decode; },
        [](ir::Request& r) { r.rows = ir::Request::Rows::Tail; },
        [](ir::Request& r) { r.empty_rows = ir::Request::EmptyRows::Zero; },
        [](ir::Request& r) { r.lse = ir::Request::Lse::Natural; },
        [](ir::Request& r) { r.lse = ir::Request::Lse::Log2; },
        [](ir::Request& r) { r.alignment = 4; },
        [](ir::Request& r) { r.flags = 1; },
        [](ir::Request& r) { r.arch = "sm_90"; },
        [](ir::Request& r) { r.arch = "sm_90a"; },
    };
    std::set<cache::Digest> keys;
    for (const auto change : changes) {
        auto request = request_for();
        change(request);
        keys.insert(request_key(*spec, request));
    }
    EXPECT_EQ(keys.size(), std::size(changes));
}

TEST(RequestKey, LeavesOutWhatDoesNotMatter) {
    const auto spec = parsed(kCausal);
    const auto key = request_key(*spec, request_for());
    auto request = request_for();
    request.head_dim_v = 0; // as q's
    request.group = 0;      // 1
    request.alignment = 0;  // 16
    request.page_size = 64; // of no layout without pages
    request.heads = 32;     // the text does not compute with it
    EXPECT_EQ(request_key(*spec, request), key);

    ir::Source other;
    other.text = std::string("# the same\n") + kCausal;
    other.settings["window"].value = 128; // a value that the specification holds
    EXPECT_EQ(request_key(**ir::Specification::parse(other), request_for()), key);
}

TEST(RequestKey, DependsOnTheSubjectAndItsOperands) {
    const auto spec = parsed(kCausal);
    std::string text = kCausal;
    text.replace(text.find("j - i < window"), 14, "j - i <= window");
    EXPECT_NE(request_key(*parsed(text), request_for()), request_key(*spec, request_for()));
    ir::Source typed;
    typed.text = kCausal;
    typed.settings["window"].kind = ir::Setting::Kind::Operand;
    typed.settings["window"].dtype = ir::DType::I64;
    EXPECT_NE(request_key(**ir::Specification::parse(typed), request_for()), request_key(*spec, request_for()));
}

} // namespace
} // namespace cubridge::runtime
