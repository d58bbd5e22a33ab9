// A launch from end to end under a driver that only notes: the order of what is enqueued, the argument block, tensor
// maps kept and made anew, what is refused with nothing enqueued. SPDX-License-Identifier: Apache-2.0
#include "runtime/driver/context.h"
#include "runtime/launch/block.h"
#include "runtime/launch/served_kernel.h"
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace cubridge::runtime {
namespace {

using ir::launch::Code;
using ir::launch::Map;
using ir::launch::Size;

void* at(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);
}

ir::launch::Plan plan_with_maps() {
    ir::launch::Plan plan;
    ir::launch::Entry entry;
    entry.name = "attention";
    entry.grid = {Code::binary(Code::Do::Mul, Code::size(Size::Requests), Code::size(Size::MaxQ)), Code::constant(1),
                  Code::constant(1)};
    entry.block = {384, 1, 1};
    entry.shared_bytes = 2048;
    plan.entries = {entry};
    plan.maps = {{Map::Tensor::Q, 64}, {Map::Tensor::K, 128}, {Map::Tensor::V, 128}, {Map::Tensor::O, 64}};
    plan.ticket = true;
    plan.workspace = Code::constant(512 + ir::launch::kTicketBytes);
    return plan;
}

class Launch : public testing::Test {
protected:
    void SetUp() override {
        const auto driver = Driver::open(CUBRIDGE_FAKE_CUDA);
        ASSERT_TRUE(driver) << driver.fault().message;
        library = dlopen(CUBRIDGE_FAKE_CUDA, RTLD_NOW);
        ASSERT_NE(library, nullptr);
        reset(CUDA_SUCCESS);
        const auto retained = Context::retain(*driver, 0);
        ASSERT_TRUE(retained) << retained.fault().message;
        context = *retained;
        args.requests = 2, args.heads_kv = 3, args.max_q = 10, args.max_kv = 20;
        args.q = {at(0x100000), 10 * 6 * 64, 6 * 64, 64}; // rows of 6 heads
        args.k = {at(0x200000), 20 * 3 * 64, 3 * 64, 64};
        args.v = {at(0x300000), 20 * 3 * 128, 3 * 128, 128};
        args.o = {at(0x400000), 10 * 6 * 128, 6 * 128, 128};
        args.workspace = at(0x500000), args.workspace_size = 1024;
    }
    void TearDown() override { dlclose(library); }

    template <class F> F* symbol(const char* name) const { return reinterpret_cast<F*>(dlsym(library, name)); }
    std::string log() const { return symbol<const char*()>("fake_log")(); }
    int encodes() const { return symbol<int()>("fake_encodes")(); }
    void reset(CUresult encoding) const { symbol<void(int)>("fake_reset")(encoding); }
    ir::abi::cb_args block() const {
        ir::abi::cb_args out;
        std::memcpy(&out, symbol<const void*()>("fake_block")(), sizeof out);
        return out;
    }

    std::unique_ptr<ServedKernel> kernel(const ir::launch::Plan& plan) const {
        auto state = std::make_unique<ServedKernel::State>();
        state->artifact.plan = plan;
        state->artifact.build.made_by = "rules";
        state->binding.plan = plan;
        state->request.head_dim = 64, state->request.head_dim_v = 128;
        state->request.group = 2;
        state->loaded.context = context;
        state->loaded.kernels.resize(plan.entries.size());
        return std::make_unique<ServedKernel>(std::move(state));
    }
    void expect_refused(const ServedKernel& k, Status status, const char* part) const {
        reset(CUDA_SUCCESS);
        const auto v = k.launch(args, nullptr);
        EXPECT_EQ(v.status, status) << v.message;
        EXPECT_NE(v.message.find(part), std::string::npos) << v.message;
        EXPECT_EQ(log(), "");
    }

    void* library = nullptr;
    std::shared_ptr<Context> context;
    LaunchArgs args;
};

/// The words that the fake writes into a map: address, dims, strides, rows of the box.
std::vector<unsigned long long> words(const ir::abi::cb_map& map) {
    return {std::begin(map.opaque), std::begin(map.opaque) + 11};
}

/// The same of a tensor whose requests are reached by rows.
std::vector<unsigned long long> numbers(unsigned long long data, unsigned long long columns, unsigned long long heads,
                                        unsigned long long row, unsigned long long head, unsigned long long rows) {
    return {data, columns, 1ull << 30, heads, 1ull << 31, 1ull << 31, row, head, row, (1ull << 34) - row, rows};
}

TEST_F(Launch, TheTicketIsSetAndMapsAreMadeBeforeTheKernel) {
    const auto k = kernel(plan_with_maps());
    const auto v = k->launch(args, nullptr);
    ASSERT_TRUE(v) << v.message;
    EXPECT_EQ(log(), "set " + std::to_string(0x500000 + 512) + " 0 2\nlaunch 20 384 2048\n");
    const auto b = block();
    EXPECT_EQ(b.ticket, at(0x500000 + 512));
    EXPECT_EQ(words(b.map[0]), numbers(0x100000, 64, 6, 768, 128, 64));
    EXPECT_EQ(words(b.map[1]), numbers(0x200000, 64, 3, 384, 128, 128));
    EXPECT_EQ(words(b.map[2]), numbers(0x300000, 128, 3, 768, 256, 128));
    EXPECT_EQ(words(b.map[3]), numbers(0x400000, 128, 6, 1536, 256, 64));
    EXPECT_EQ(std::vector(std::begin(b.map_rows), std::end(b.map_rows)), (std::vector{10, 20, 20, 10}));
    EXPECT_EQ(std::vector(std::begin(b.map_heads), std::end(b.map_heads)), (std::vector{0, 0, 0, 0}));
}

/// Where the coordinates of the kernel lead, in bytes from `data`, and whether they are inside: as the hardware
/// computes.
struct Reached {
    std::uint64_t offset;
    bool inside;
};
Reached reach(const ir::abi::cb_args& b, int map, std::int64_t request, std::int64_t head, std::int64_t rows,
              std::int64_t row) {
    const std::int64_t far = 1ll << 30;
    const std::int64_t at[] = {0, far - rows + row, head + request * b.map_heads[map], request * b.map_rows[map] + rows,
                               far};
    const auto& words = b.map[map].opaque;
    Reached out{words[0], true};
    for (std::size_t d = 0; d < 5; ++d) {
        out.inside = out.inside && at[d] >= 0 && static_cast<std::uint64_t>(at[d]) < words[1 + d];
        if (d > 0) out.offset += static_cast<std::uint64_t>(at[d]) * words[5 + d];
    }
    return out;
}

/// Every layout leads to the element that its strides say, and rows from a request's length on are outside.
TEST_F(Launch, CoordinatesLeadToTheRow) {
    const auto k = kernel(plan_with_maps());
    const std::int64_t S = 20, H = 3, D = 64, row = D + 16;
    struct Layout {
        long long outer, row, head;
    };
    for (const Layout& l :
         {Layout{H * S * D, D, S * D}, Layout{S * H * D, H * D, D}, Layout{(H + 1) * (S + 3) * row, row, (S + 3) * row},
          Layout{0, D, S * D}, Layout{7 * 1000 * 8, 24 * D, 1000 * 8}, // by heads alone
          Layout{2 * S * H * D, H * D, 0}}) {
        SCOPED_TRACE(l.outer);
        args.k = {at(0x200000), l.outer, l.row, l.head};
        const auto v = k->launch(args, nullptr);
        ASSERT_TRUE(v) << v.message;
        const auto b = block();
        for (std::int64_t request = 0; request < 2; ++request)
            for (std::int64_t head = 0; head < H; ++head)
                for (std::int64_t rows : {0, 1, 7, 20})
                    for (std::int64_t r = 0; r < S; ++r) {
                        const auto to = reach(b, 1, request, head, rows, r);
                        EXPECT_EQ(to.inside, r < rows);
                        EXPECT_EQ(to.offset, static_cast<std::uint64_t>(
                                                 0x200000 + 2 * (request * l.outer + head * l.head + r * l.row)));
                    }
    }
}

TEST_F(Launch, APlanWithoutThemMakesNeither) {
    auto plan = plan_with_maps();
    plan.maps.clear();
    plan.ticket = false;
    const auto k = kernel(plan);
    ASSERT_TRUE(k->launch(args, nullptr));
    EXPECT_EQ(log(), "launch 20 384 2048\n");
    EXPECT_EQ(encodes(), 0);
    EXPECT_EQ(block().ticket, nullptr);
    EXPECT_EQ(words(block().map[0]), std::vector<unsigned long long>(11, 0));
}

TEST_F(Launch, MapsAreMadeAnewOnlyWhereTheyChange) {
    const auto k = kernel(plan_with_maps());
    ASSERT_TRUE(k->launch(args, nullptr));
    const auto first = block();
    reset(CUDA_SUCCESS);
    ASSERT_TRUE(k->launch(args, nullptr));
    EXPECT_EQ(encodes(), 0);
    auto again = block();
    EXPECT_EQ(std::memcmp(&first.map, &again.map, sizeof first.map), 0);
    args.k.data = at(0x280000);
    ASSERT_TRUE(k->launch(args, nullptr));
    EXPECT_EQ(encodes(), 1);
    again = block();
    EXPECT_EQ(again.map[1].opaque[0], 0x280000u);
    EXPECT_EQ(std::memcmp(&first.map[2], &again.map[2], sizeof first.map[2]), 0);
    args.max_kv = 19; // the kernel knows lengths, its maps do not
    args.v.row = 4 * 128, args.v.outer = 20 * 4 * 128;
    ASSERT_TRUE(k->launch(args, nullptr));
    EXPECT_EQ(encodes(), 2);
    args.heads_kv = 2; // dims of all
    ASSERT_TRUE(k->launch(args, nullptr));
    EXPECT_EQ(encodes(), 6);
    const auto other = kernel(plan_with_maps()); // its maps are its own, or the same
    ASSERT_TRUE(other->launch(args, nullptr));
    again = block();
    EXPECT_EQ(again.map[2].opaque[6], 4 * 256u);
}

TEST_F(Launch, WhatTheDriverRefusedIsNotKept) {
    const auto k = kernel(plan_with_maps());
    args.q.data = at(0x180000);
    reset(CUDA_ERROR_INVALID_VALUE);
    const auto v = k->launch(args, nullptr);
    EXPECT_EQ(v.status, Status::Unsupported);
    EXPECT_NE(v.message.find("no tensor map of args.q: cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE"),
              std::string::npos)
        << v.message;
    EXPECT_EQ(log(), "");
    reset(CUDA_ERROR_DEINITIALIZED);
    EXPECT_EQ(k->launch(args, nullptr).status, Status::Cuda);
    reset(CUDA_SUCCESS);
    ASSERT_TRUE(k->launch(args, nullptr));
    EXPECT_GE(encodes(), 1) << "the others may be known of an earlier kernel at this address";
    EXPECT_EQ(words(block().map[0]), numbers(0x180000, 64, 6, 768, 128, 64));
}

TEST_F(Launch, RowsByStepsAreFurtherApart) {
    auto plan = plan_with_maps();
    plan.maps[1].step = 4;
    const auto k = kernel(plan);
    ASSERT_TRUE(k->launch(args, nullptr));
    auto wanted = numbers(0x200000, 64, 3, 384, 128, 128);
    wanted[6] = 4 * 384, wanted[9] = (1ull << 34) - 4 * 384; // what the last dim goes on by wraps the same way
    EXPECT_EQ(words(block().map[1]), wanted);
    EXPECT_EQ(block().map_rows[1], block().map_rows[2]) << "requests are reached by single rows";
    EXPECT_EQ(words(block().map[4]), wanted) << "a single map stands in both places";
    plan.maps.push_back({Map::Tensor::K, 128});
    const auto both = kernel(plan);
    ASSERT_TRUE(both->launch(args, nullptr));
    EXPECT_EQ(words(block().map[1]), numbers(0x200000, 64, 3, 384, 128, 128));
    EXPECT_EQ(words(block().map[4]), wanted);
    args.k.row = 1ll << 31; // bytes: 2^32 a row, 2^34 a step
    expect_refused(*k, Status::Unsupported, "args.k.row");
}

TEST_F(Launch, StridesThatNoMapHasEnqueueNothing) {
    const auto k = kernel(plan_with_maps());
    const auto refused = [&](long long ir::abi::cb_tensor::*stride, long long value, const char* part) {
        const auto kept = args.k;
        args.k.*stride = value;
        expect_refused(*k, Status::Unsupported, part);
        args.k = kept;
    };
    using T = ir::abi::cb_tensor;
    refused(&T::row, -192, "args.k.row = -192 elements");
    refused(&T::row, 0, "args.k.row = 0 elements");
    refused(&T::row, 1ll << 33, "args.k.row");
    refused(&T::head, -64, "args.k.head");
    refused(&T::head, 1ll << 39, "args.k.head");
    refused(&T::outer, 1ll << 39, "args.k.outer");
    refused(&T::outer, -3840, "args.k.outer");
    refused(&T::outer, 3848, "args.k.outer = 3848 elements is no small multiple of row = 192 or of head = 64");
    args.k.row = 8, args.k.head = 16, args.k.outer = 1ll << 38; // 2^35 rows on
    expect_refused(*k, Status::Unsupported, "args.k.outer");
    args.k = {at(0x200000), 20 * 192, 192, 64};
    args.q.head = 0; // one head for all
    reset(CUDA_SUCCESS);
    EXPECT_TRUE(k->launch(args, nullptr));
    args.workspace_size = 767;
    expect_refused(*k, Status::Unsupported, "needs 768 bytes of workspace");
}

/// A stride along one element is never used, and frameworks put anything there.
TEST_F(Launch, AxesOfOneElementAndEmptyTensors) {
    const auto k = kernel(plan_with_maps());
    const auto expect = [&](const std::vector<unsigned long long>& numbers, int rows, int heads) {
        const auto v = k->launch(args, nullptr);
        ASSERT_TRUE(v) << v.message;
        EXPECT_EQ(words(block().map[1]), numbers);
        EXPECT_EQ(block().map_rows[1], rows);
        EXPECT_EQ(block().map_heads[1], heads);
    };
    using Words = std::vector<unsigned long long>;
    const auto far = 1ull << 30, most = 1ull << 31, wrap = 1ull << 34;
    args.heads_kv = args.max_kv = 1; // two requests, by rows of their distance
    args.k = {at(0x200000), 72, 7, 1};
    expect(Words{0x200000, 64, far, 1, most, most, 144, 16, 144, wrap - 144, 128}, 1, 0);
    args.max_kv = 20; // rows that do not lead to the next request, and heads that are free to
    args.k = {at(0x200000), 20 * 72 + 8, 72, 1};
    expect(Words{0x200000, 64, far, 2, most, most, 144, 2896, 144, wrap - 144, 128}, 0, 1);
    args.requests = 1;
    args.k.outer = -3;
    expect(Words{0x200000, 64, far, 1, most, most, 144, 16, 144, wrap - 144, 128}, 0, 0);
    args.max_kv = 0;
    args.k = args.v = {};
    expect(Words{0x400000, 64, far, 1, most, most, 16, 16, 16, wrap - 16, 128}, 0, 0);
    args.max_q = 0; // nothing to launch: nothing is enqueued
    reset(CUDA_SUCCESS);
    const auto v = k->launch(args, nullptr);
    ASSERT_TRUE(v) << v.message;
    EXPECT_EQ(log(), "");
    EXPECT_EQ(encodes(), 0);
}

TEST(LaunchBlock, ADriverWithoutTensorMaps) {
    ir::abi::cb_args block{};
    const auto v = encode_maps(Symbols{}, plan_with_maps(), {}, &block, block);
    EXPECT_EQ(v.status, Status::Unsupported);
    EXPECT_NE(v.message.find("cuTensorMapEncodeTiled"), std::string::npos);
    EXPECT_TRUE(encode_maps(Symbols{}, {}, {}, &block, block)) << "a plan that needs none";
}

TEST(LaunchBlock, ElementsOfAnotherWidth) {
    ir::abi::cb_args block{};
    ir::Request request;
    request.kv_dtype = ir::DType::F32;
    MapNumbers numbers;
    EXPECT_EQ(numbers_of({Map::Tensor::V, 64}, request, block, numbers).status, Status::Unsupported);
    EXPECT_TRUE(numbers_of({Map::Tensor::Q, 64}, request, block, numbers));
}

} // namespace
} // namespace cubridge::runtime
