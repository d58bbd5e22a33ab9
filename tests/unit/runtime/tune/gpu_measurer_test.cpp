// The measurer on a driver that only counts: what is launched, in which order, on what. SPDX-License-Identifier:
// Apache-2.0
#include "cubridge/runtime/tune.h"
#include "tests/unit/runtime/support.h"
#include <algorithm>
#include <dlfcn.h>
#include <set>
#include <sstream>

namespace cubridge::runtime {
namespace {

using namespace testing_support;

class GpuMeasurer : public testing::Test {
protected:
    void SetUp() override {
        const auto driver = Driver::open(CUBRIDGE_FAKE_CUDA);
        ASSERT_TRUE(driver) << driver.fault().message;
        library = dlopen(CUBRIDGE_FAKE_CUDA, RTLD_NOW);
        ASSERT_NE(library, nullptr);
        reinterpret_cast<void (*)(int)>(dlsym(library, "fake_reset"))(0);
        auto opened = gpu_measurer(*driver);
        ASSERT_TRUE(opened) << opened.fault().message;
        measurer = std::move(*opened);
        options.compiler = std::make_shared<FakeCompiler>();
        store = folder.open();
        options.store = store.get();
    }
    void TearDown() override {
        measurer.reset();
        dlclose(library);
    }
    std::vector<std::string> log() const {
        std::istringstream in(reinterpret_cast<const char* (*)()>(dlsym(library, "fake_log"))());
        std::vector<std::string> out;
        for (std::string line; std::getline(in, line);) out.push_back(line);
        return out;
    }
    ir::abi::cb_args block() const {
        ir::abi::cb_args out;
        std::memcpy(&out, reinterpret_cast<const void* (*)()>(dlsym(library, "fake_block"))(), sizeof out);
        return out;
    }

    void* library = nullptr;
    std::unique_ptr<Measurer> measurer;
    Folder folder;
    std::unique_ptr<cache::Store> store;
    AdaptOptions options;
    ir::Request request = request_for("sm_90a", 128);
};

TEST_F(GpuMeasurer, TheKernelThatTakesLeastIsChosen) {
    EXPECT_EQ(measurer->device(), "Fake, 132 SMs");
    const auto spec = parsed(kCausal);
    ASSERT_NE(spec, nullptr);
    request.group = 2;
    const auto report = tune(spec, request, options, *measurer, {2, 300, 500, 3});
    ASSERT_TRUE(report.artifact && report.artifact->tuning) << (report.error ? report.error->message : "");
    const auto& rows = report.artifact->tuning->rows;
    ASSERT_EQ(rows.size(), 4U);
    // A launch takes as long as it has shared memory; narrow tiles have the least.
    EXPECT_EQ(report.artifact->build.expert, "prefill_sm90/64");
    const auto own = std::find_if(rows.begin(), rows.end(), [](const auto& r) { return r.chosen; });
    ASSERT_NE(own, rows.end());
    EXPECT_NEAR(own->us, report.artifact->plan.entries.back().shared_bytes / 1024.0, 0.5);
    EXPECT_GT(rows[0].us, own->us);
    for (const auto& r : rows) {
        EXPECT_GE(r.launches, 5 * 4) << r.configuration.name;
        EXPECT_NEAR(r.spread, 0, 1e-3) << r.configuration.name;
        EXPECT_EQ(r.refused, "") << r.configuration.name;
    }
    // Blocks alternate: the shared memory of launches, one block a word.
    std::vector<std::string> blocks;
    for (const auto& line : log()) {
        if (line.rfind("launch", 0) != 0) continue;
        const std::string shared = line.substr(line.rfind(' ') + 1);
        if (blocks.empty() || blocks.back() != shared) blocks.push_back(shared);
    }
    EXPECT_EQ(std::set<std::string>(blocks.begin(), blocks.end()).size(), 3U) << "two orders have the same tiles";
    EXPECT_GE(blocks.size(), 3U * 6);
    // What the last launch was given.
    const auto b = block();
    EXPECT_EQ(b.requests, 2);
    EXPECT_EQ(b.heads_kv, 3);
    EXPECT_EQ(b.heads_q, 6);
    EXPECT_EQ(b.max_q, 300);
    EXPECT_EQ(b.max_kv, 500);
    EXPECT_EQ(b.q.outer, 6 * 300 * 128);
    EXPECT_EQ(b.k.head, 500 * 128);
    EXPECT_EQ(b.k.row, 128);
    EXPECT_NE(b.ticket, nullptr);
    EXPECT_EQ(b.lse.data, nullptr);
}

TEST_F(GpuMeasurer, OperandsAndAnLseAreThere) {
    const auto spec = parsed(R"(
import torch
def attention(q, k, v, doc, prefix: int):
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    keep = (doc[i] == doc[j]) & ((j <= i) | (j < prefix))
    return torch.softmax(s.masked_fill(~keep, float("-inf")), -1) @ v
)");
    ASSERT_NE(spec, nullptr);
    request.lse = ir::Request::Lse::Natural;
    request.empty_rows = ir::Request::EmptyRows::Zero;
    const auto report = tune(spec, request, options, *measurer, {1, 256, 256, 2});
    ASSERT_TRUE(report.artifact && report.artifact->tuning) << (report.error ? report.error->message : "");
    EXPECT_NE(block().lse.data, nullptr);
    bool documents = false, prefix = false;
    for (const auto& o : block().operand) {
        documents = documents || (o.data != nullptr && o.size[0] == 256);
        prefix = prefix || (o.data == nullptr && o.value == 64);
    }
    EXPECT_TRUE(documents && prefix);
}

TEST_F(GpuMeasurer, WhatDoesNotFitIsSaid) {
    const auto spec = parsed(kCausal);
    const auto report = tune(spec, request, options, *measurer, {64, 4096, 4096, 32});
    ASSERT_TRUE(report.error);
    EXPECT_EQ(report.error->kind, "memory");
    EXPECT_NE(report.error->message.find("4096 are free"), std::string::npos) << report.error->message;
    EXPECT_TRUE(store->list().empty());
}

} // namespace
} // namespace cubridge::runtime
