// Messages to bytes and back.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker/messages.h"
#include <utility>

namespace cubridge::runtime::worker {

void put(Writer& out, const Fault& f) {
    out.text(f.kind).text(f.message).text(f.hint).number(static_cast<std::uint64_t>(std::max(0, f.code)));
    out.text(f.detail);
}

Fault fault_of(Reader& in) {
    Fault f;
    f.kind = in.text();
    f.message = in.text();
    f.hint = in.text();
    f.code = in.whole();
    f.detail = in.text();
    return f;
}

namespace {

constexpr std::size_t kLeastHeader = 2 * sizeof(std::uint64_t), kLeastEntry = 7 * sizeof(std::uint64_t);

} // namespace

std::string write(const Hello& hello) {
    Writer out;
    out.text(hello.build).text(hello.nvrtc.file).texts(hello.nvrtc.folders).number(hello.memory);
    out.number(hello.gpu ? 1 : 0).number(hello.room);
    return std::move(out.body);
}

bool read(std::string_view body, Hello& hello) {
    Reader in(body);
    hello.build = in.text();
    hello.nvrtc.file = in.text();
    hello.nvrtc.folders = in.texts();
    hello.memory = in.number();
    hello.gpu = in.number() != 0;
    hello.room = in.number();
    return in.done();
}

std::string write(const Ready& ready) {
    Writer out;
    out.text(ready.build).number(static_cast<std::uint64_t>(ready.pid));
    put(out, ready.fault);
    out.text(ready.identity).text(ready.location);
    const auto& c = ready.confinement;
    out.number(c.seccomp ? 1 : 0).number(static_cast<std::uint64_t>(c.landlock)).number(c.memory ? 1 : 0);
    out.texts(c.missing);
    return std::move(out.body);
}

bool read(std::string_view body, Ready& ready) {
    Reader in(body);
    ready.build = in.text();
    ready.pid = in.whole();
    ready.fault = fault_of(in);
    ready.identity = in.text();
    ready.location = in.text();
    auto& c = ready.confinement;
    c.seccomp = in.number() != 0;
    c.landlock = in.whole();
    c.memory = in.number() != 0;
    c.missing = in.texts();
    return in.done();
}

std::string write(const Request& request) {
    Writer out;
    const auto& job = request.job;
    out.text(job.source).text(job.name).text(job.arch).texts(job.options).number(job.headers.size());
    for (const auto& header : job.headers) out.text(header.name).text(header.text);
    out.number(static_cast<std::uint64_t>(job.deadline.count())).number(request.memory).number(request.gated ? 1 : 0);
    return std::move(out.body);
}

bool read(std::string_view body, Request& request) {
    Reader in(body);
    auto& job = request.job;
    job.source = in.text();
    job.name = in.text();
    job.arch = in.text();
    job.options = in.texts();
    job.headers.resize(in.count(kLeastHeader));
    for (auto& header : job.headers) {
        header.name = in.text();
        header.text = in.text();
    }
    job.deadline = std::chrono::milliseconds(in.whole());
    request.memory = in.number();
    request.gated = in.number() != 0;
    return in.done();
}

std::string write(const Outcome<CompileResult>& answer) {
    Writer out;
    out.number(answer ? 1 : 0);
    if (!answer) {
        put(out, answer.fault());
        return std::move(out.body);
    }
    out.bytes(answer->cubin).text(answer->log).number(answer->entries.size());
    for (const auto& e : answer->entries) {
        out.text(e.name);
        for (const int n : {e.registers, e.stack, e.spill_stores, e.spill_loads, e.shared, e.barriers})
            out.number(static_cast<std::uint64_t>(std::max(0, n)));
    }
    out.texts(answer->remarks).real(answer->milliseconds).text(answer->compiler);
    return std::move(out.body);
}

bool read(std::string_view body, Outcome<CompileResult>& answer) {
    Reader in(body);
    if (in.number() == 0) {
        answer = fault_of(in);
        return in.done() && !answer.fault().kind.empty();
    }
    CompileResult result;
    result.cubin = in.bytes();
    result.log = in.text();
    result.entries.resize(in.count(kLeastEntry));
    for (auto& e : result.entries) {
        e.name = in.text();
        for (int* n : {&e.registers, &e.stack, &e.spill_stores, &e.spill_loads, &e.shared, &e.barriers})
            *n = in.whole();
    }
    result.remarks = in.texts();
    result.milliseconds = in.real();
    result.compiler = in.text();
    const bool fine = in.done() && !result.cubin.empty();
    answer = std::move(result);
    return fine;
}

} // namespace cubridge::runtime::worker
