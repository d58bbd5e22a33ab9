// What a launch is refused for, with nothing enqueued: every rule once. SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/check.h"
#include <gtest/gtest.h>

namespace cubridge::runtime {
namespace {

using ir::launch::Code;
using ir::launch::Condition;
using ir::launch::Operand;
using ir::launch::Size;

void* at(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);
}

class CheckLaunch : public testing::Test {
protected:
    CheckLaunch() {
        request.head_dim = request.head_dim_v = 64;
        request.group = 2;
        args.requests = 2, args.heads_kv = 3, args.max_q = 10, args.max_kv = 20;
        args.q = {at(4096), 3840, 64, 640};
        args.k = args.v = {at(8192), 3840, 64, 1280};
        args.o = {at(65536), 3840, 64, 640};
        Operand doc;
        doc.name = "doc";
        doc.dtype = ir::DType::I32;
        doc.rank = 2;
        doc.least = {Code::size(Size::Requests), Code::size(Size::MaxKv)};
        Operand width;
        width.name = "width";
        width.dtype = ir::DType::I32;
        width.bound = true;
        width.value = 7;
        Operand slope;
        slope.name = "slope";
        plan.operands = {doc, width, slope};
        operands[0].data = at(256);
        operands[0].size[0] = 2, operands[0].size[1] = 20;
        operands[0].stride[0] = 20, operands[0].stride[1] = 1;
        args.operands = operands;
    }
    Verdict judge() {
        if (auto v = check_counts(request, args); !v) return v;
        auto sizes = sizes_of(request, args, 132);
        sizes.operand = {{2, 20, 0, 0}, {}, {}};
        return check_launch(plan, request, args, sizes);
    }
    void expect(Status status, const char* part) {
        const auto v = judge();
        EXPECT_EQ(v.status, status) << v.message;
        EXPECT_NE(v.message.find(part), std::string::npos) << v.message;
    }

    ir::launch::Plan plan;
    ir::Request request;
    LaunchArgs args;
    std::array<ir::abi::cb_operand, 2> operands{};
};

TEST_F(CheckLaunch, AcceptsWhatIsRight) {
    EXPECT_TRUE(judge()) << judge().message;
    args.k = {at(8192), 0, 0, 0}; // strides of 0
    operands[0].size[1] = 100;    // longer than needed
    EXPECT_TRUE(judge()) << judge().message;
    args.requests = 0; // nothing to do: nothing need be there
    args.q.data = nullptr;
    EXPECT_TRUE(judge()) << judge().message;
}

TEST_F(CheckLaunch, Counts) {
    args.max_q = -1;
    expect(Status::Misuse, "max_q");
    args.max_q = 1;
    args.heads_kv = 0;
    expect(Status::Misuse, "heads_kv");
    args.heads_kv = 1 << 30;
    request.group = 4;
    expect(Status::Unsupported, "32 bits");
    args.heads_kv = 1;
    args.head_begin = 3;
    expect(Status::Misuse, "head_begin");
    args.head_begin = 4;
    args.flags = 4;
    expect(Status::Misuse, "flags");
}

TEST_F(CheckLaunch, TensorsAndTheirAlignment) {
    args.q.data = nullptr;
    expect(Status::Misuse, "args.q.data");
    args.q.data = at(4096 + 8);
    expect(Status::Unsupported, "args.q.data");
    args.q.data = at(4096);
    args.v.row = 60;
    expect(Status::Unsupported, "args.v.row");
    request.alignment = 8;
    EXPECT_TRUE(judge()) << judge().message;
    args.v.row = 64;
    args.k.head = INT64_MAX;
    expect(Status::Unsupported, "args.k.head");
    args.heads_kv = 1; // a stride along one element is not looked at
    EXPECT_TRUE(judge()) << judge().message;
}

TEST_F(CheckLaunch, Lse) {
    args.lse.data = at(512);
    expect(Status::Misuse, "lse");
    plan.writes_lse = true;
    EXPECT_TRUE(judge()) << judge().message;
    args.lse.data = nullptr;
    expect(Status::Misuse, "lse");
}

TEST_F(CheckLaunch, OperandsThatAreCopied) {
    plan.operands[0].alignment = 16;
    EXPECT_TRUE(judge()) << judge().message;
    operands[0].data = at(260);
    expect(Status::Unsupported, "not aligned to 16 bytes");
    operands[0].data = at(256);
    operands[0].per_request = 3;
    expect(Status::Unsupported, "not aligned to 16 bytes");
    operands[0].per_request = 0;
    operands[0].stride[0] = 21;
    expect(Status::Unsupported, "the stride 21 of operand doc along axis 0 is not a multiple of 16 bytes");
    operands[0].stride[0] = 20, operands[0].stride[1] = 2;
    expect(Status::Unsupported, "the stride 2 of operand doc along axis 1 is not 1");
}

TEST_F(CheckLaunch, OperandsThatAreTooShort) {
    operands[0].size[1] = 19;
    expect(Status::Unsupported, "operand doc has 19 elements along axis 1, this launch reads 20");
    operands[0].size[1] = 1; // a size of 1 stands for no other
    expect(Status::Unsupported, "operand doc");
    operands[0].size[1] = 20;
    operands[0].size[0] = -1;
    expect(Status::Misuse, "negative");
    operands[0].size[0] = 2;
    operands[0].data = nullptr;
    expect(Status::Misuse, "NULL");
    operands[0].data = at(258);
    expect(Status::Unsupported, "aligned");
}

TEST_F(CheckLaunch, OperandsByNumberAndValue) {
    args.operands = std::span(operands).first(1);
    expect(Status::Misuse, "slope is missing");
    std::array<ir::abi::cb_operand, 3> more{operands[0], operands[1], operands[1]};
    args.operands = more;
    expect(Status::Misuse, "the specification has 2 operands");
    args.operands = operands;
    plan.operands[2].dtype = ir::DType::I32;
    operands[1].value = 0.5;
    expect(Status::Unsupported, "slope");
    operands[1].value = -3;
    EXPECT_TRUE(judge()) << judge().message;
}

TEST_F(CheckLaunch, Conditions) {
    plan.conditions = {{Condition::Kind::Equal, Code::size(Size::MaxQ), Code::size(Size::MaxKv), "Sq == Sk"}};
    expect(Status::Unsupported, "Sq == Sk");
    plan.conditions[0].kind = Condition::Kind::AtLeast;
    expect(Status::Unsupported, "Sq == Sk");
    std::swap(plan.conditions[0].left, plan.conditions[0].right);
    EXPECT_TRUE(judge());
    plan.conditions[0].kind = Condition::Kind::Divides;
    EXPECT_TRUE(judge());
    args.max_q = 7;
    expect(Status::Unsupported, "Sq == Sk");
}

TEST_F(CheckLaunch, FieldsOfOtherLayouts) {
    int something = 0;
    args.page_table = &something;
    expect(Status::Misuse, "page_table");
    args.page_table = nullptr;
    args.page_stride = 1;
    expect(Status::Misuse, "page_stride");
}

} // namespace
} // namespace cubridge::runtime
