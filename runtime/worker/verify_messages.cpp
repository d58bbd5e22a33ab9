// What a worker that runs kernels is asked, and answers, to bytes and back.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker/messages.h"
#include <utility>

namespace cubridge::runtime::worker {
namespace {

constexpr std::size_t kLeastSetting = 6 * sizeof(std::uint64_t);

template <class E> std::uint64_t bits(E e) {
    return static_cast<std::uint64_t>(e);
}

void put(Writer& out, const ir::Source& source) {
    out.text(source.text).text(source.function).text(source.mask).number(source.settings.size());
    for (const auto& [name, s] : source.settings) {
        out.text(name).number(bits(s.kind)).real(s.value);
        out.number(s.dtype ? bits(*s.dtype) + 1 : 0).number(s.rank ? bits(*s.rank) + 1 : 0).texts(s.axes);
    }
}

ir::Source source_of(Reader& in) {
    ir::Source out;
    out.text = in.text();
    out.function = in.text();
    out.mask = in.text();
    for (std::size_t k = in.count(kLeastSetting); k-- > 0;) {
        auto& s = out.settings[in.text()];
        s.kind = static_cast<ir::Setting::Kind>(in.whole());
        s.value = in.real();
        if (const int dtype = in.whole(); dtype > 0) s.dtype = static_cast<ir::DType>(dtype - 1);
        if (const int rank = in.whole(); rank > 0) s.rank = rank - 1;
        s.axes = in.texts();
    }
    return out;
}

void put(Writer& out, const ir::Request& r) {
    for (const std::uint64_t n :
         {bits(r.q_dtype), bits(r.kv_dtype), bits(r.o_dtype), bits(r.head_dim), bits(r.head_dim_v), bits(r.group),
          bits(r.heads), bits(r.layout), bits(r.page_size), bits(r.phase), bits(r.rows), bits(r.empty_rows),
          bits(r.lse), bits(r.alignment), bits(r.flags)})
        out.number(n);
    out.text(r.arch);
}

ir::Request request_of(Reader& in) {
    ir::Request r;
    for (ir::DType* t : {&r.q_dtype, &r.kv_dtype, &r.o_dtype}) *t = static_cast<ir::DType>(in.whole());
    for (int* n : {&r.head_dim, &r.head_dim_v, &r.group, &r.heads}) *n = in.whole();
    r.layout = static_cast<ir::Request::Layout>(in.whole());
    r.page_size = in.whole();
    r.phase = static_cast<ir::Request::Phase>(in.whole());
    r.rows = static_cast<ir::Request::Rows>(in.whole());
    r.empty_rows = static_cast<ir::Request::EmptyRows>(in.whole());
    r.lse = static_cast<ir::Request::Lse>(in.whole());
    r.alignment = in.whole();
    r.flags = static_cast<std::uint32_t>(in.whole());
    r.arch = in.text();
    return r;
}

void put(Writer& out, const Built& built) {
    out.bytes(built.cubin).text(built.plan.text());
}

bool get(Reader& in, Built& built) {
    built.cubin = in.bytes();
    auto plan = ir::launch::Plan::parse(in.text());
    if (!plan || built.cubin.empty()) return false;
    built.plan = std::move(*plan);
    return true;
}

} // namespace

std::string write(const Question& q) {
    Writer out;
    put(out, q.source);
    out.number(bits(q.heads));
    put(out, q.request);
    put(out, q.kernel);
    put(out, q.exact);
    out.number(q.baseline ? 1 : 0);
    if (q.baseline) put(out, *q.baseline);
    out.number(bits(q.tile_rows)).number(bits(q.tile_keys)).number(bits(q.stages)).number(q.seed);
    out.number(bits(q.launch.count()));
    return std::move(out.body);
}

bool read(std::string_view body, Question& q) {
    Reader in(body);
    q.source = source_of(in);
    q.heads = in.whole();
    q.request = request_of(in);
    if (!get(in, q.kernel) || !get(in, q.exact)) return false;
    if (in.number() != 0 && !get(in, q.baseline.emplace())) return false;
    q.tile_rows = in.whole();
    q.tile_keys = in.whole();
    q.stages = in.whole();
    q.seed = in.number();
    q.launch = std::chrono::milliseconds(in.whole());
    return in.done();
}

std::string write(const Answer& a) {
    Writer out;
    const auto& r = a.result;
    out.number(r.passed ? 1 : 0).number(bits(r.cases)).number(bits(r.against_text)).real(r.ratio);
    out.texts(r.failures).texts(r.not_done).number(r.seed).text(r.device);
    out.number(bits(r.driver)).real(r.ms);
    put(out, a.fault);
    out.number(a.spent ? 1 : 0);
    return std::move(out.body);
}

bool read(std::string_view body, Answer& a) {
    Reader in(body);
    auto& r = a.result;
    r.passed = in.number() != 0;
    r.cases = in.whole();
    r.against_text = in.whole();
    r.ratio = in.real();
    r.failures = in.texts();
    r.not_done = in.texts();
    r.seed = in.number();
    r.device = in.text();
    r.driver = in.whole();
    r.ms = in.real();
    a.fault = fault_of(in);
    a.spent = in.number() != 0;
    return in.done();
}

} // namespace cubridge::runtime::worker
