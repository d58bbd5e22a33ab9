// Opening and closing.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/c/handles.h"
#include <algorithm>
#include <unistd.h>

namespace cubridge::c {
namespace {

using runtime::Settings;

Verdict unbuilt(const char* field) {
    return {Status::Unsupported, std::string("config.") + field + " is set: this version does not have that yet"};
}

void install_callbacks(const cubridge_config& c, Settings& settings) {
    if (c.log != nullptr)
        settings.log = [log = c.log, user = c.user](runtime::Level level, const std::string& line) {
            log(user, static_cast<int32_t>(level), line.c_str());
        };
    if (c.notify != nullptr)
        settings.notify = [notify = c.notify, user = c.user](const runtime::Progress& p) {
            cubridge_progress progress{};
            progress.struct_size = sizeof progress;
            progress.job = p.job;
            progress.running = p.running ? 1 : 0;
            progress.status = static_cast<int32_t>(p.status);
            progress.ready = p.ready;
            progress.total = p.total;
            p.stage.copy(progress.stage, sizeof progress.stage - 1);
            notify(user, &progress);
        };
}

Verdict settings_of(const cubridge_config* config, Settings& settings) {
    if (config == nullptr) return {};
    cubridge_config c;
    if (auto v = read(config, "config", kConfig, c); !v) return v;
    if (c.remote != nullptr) return unbuilt("remote");
    if (c.trusted_keys != nullptr) return unbuilt("trusted_keys");
    if (c.llm != nullptr) return unbuilt("llm");
    if (c.workers < -1 || c.workers > 256) return misuse("config.workers is not between -1 and 256");
    if (c.verify != CUBRIDGE_VERIFY_GPU && c.verify != CUBRIDGE_VERIFY_EXECUTOR)
        return misuse("config.verify is none of CUBRIDGE_VERIFY_...");
    if (c.store != nullptr) settings.store = c.store;
    if (c.workers != 0) settings.workers = c.workers;
    if (c.worker != nullptr) settings.worker = c.worker;
    settings.executor = c.verify == CUBRIDGE_VERIFY_EXECUTOR;
    install_callbacks(c, settings);
    return {};
}

} // namespace

Verdict check(const cubridge_context* context) {
    if (context == nullptr) return misuse("the context is NULL");
    if (context->alive != cubridge_context::kAlive) return misuse("the context is closed, or none");
    if (context->engine->forked())
        return {Status::Forked, "the context was opened before a fork: close it in the child and open another"};
    return {};
}

} // namespace cubridge::c

using namespace cubridge::c;
using cubridge::runtime::Engine;

cubridge_status cubridge_open(const cubridge_config* config, cubridge_context** context) {
    return guarded([&]() -> Verdict {
        if (context == nullptr) return misuse("context is NULL");
        *context = nullptr;
        cubridge::runtime::Settings settings;
        if (auto v = settings_of(config, settings); !v) return v;
        auto opened = std::make_unique<cubridge_context>();
        auto v = Engine::open(cubridge::runtime::complete_settings(std::move(settings), environ), opened->engine);
        if (v) *context = opened.release();
        return v;
    });
}

void cubridge_close(cubridge_context* context) {
    if (context == nullptr || context->alive != cubridge_context::kAlive) return;
    context->alive = 0;
    if (context->engine->forked()) Engine::abandon(std::move(context->engine));
    delete context;
}

cubridge_status cubridge_seal(cubridge_context* context, int32_t sealed) {
    return guarded([&]() -> Verdict {
        if (auto v = check(context); !v) return v;
        if (sealed != 0 && sealed != 1) return misuse("sealed is neither 0 nor 1");
        return context->engine->seal(sealed == 1);
    });
}

uint64_t cubridge_generation(const cubridge_context* context) {
    return context == nullptr || context->alive != cubridge_context::kAlive ? 0 : context->engine->generation();
}

size_t cubridge_stats(const cubridge_context* context, cubridge_stat* out, size_t room) {
    std::size_t count = 0;
    (void)guarded([&]() -> Verdict {
        if (auto v = check(context); !v) return v;
        if (out == nullptr && room != 0) return misuse("out is NULL");
        const auto figures = context->engine->figures();
        count = figures.size();
        for (std::size_t k = 0; k < std::min(room, count); ++k)
            out[k] = {figures[k].name, figures[k].value, figures[k].gauge ? 1 : 0};
        return {};
    });
    return count;
}
