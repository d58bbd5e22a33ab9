// What delays show: faults of order put into both experts through their margins, launched as they are and with delays
// beside a load, each in a process of its own, since faults and hangs are findings too. Programs without a fault must
// never differ. A record goes to $CUBRIDGE_DELAYS_RECORD if that is set. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include "cubridge/runtime/capture.h"
#include "cubridge/runtime/json.h"
#include "ir/lower/delays.h"
#include "runtime/check/gpu.h"
#include "runtime/check/inputs.h"
#include "tests/gpu/check.h"
#include "tests/gpu/margin_mutants.h"
#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace cubridge;
using namespace cubridge::runtime;

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kText[] = "import torch\n\n\n"
                         "def attention(q, k, v):\n"
                         "    group = q.size(1) // k.size(1)\n"
                         "    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)\n"
                         "    return (q @ k.mT / q.size(-1) ** 0.5).softmax(-1) @ v\n";
constexpr int kCtas = 3, kHeadDim = 128, kLaunches = 20; // at a time
constexpr double kPlainSeconds = 2, kDelayedSeconds = 10;
constexpr double kBudget = 270; // for all of it: what would begin later does not

struct Subject {
    std::string expert;
    tests::MarginMutant mutant; ///< without edits: the program as it is
};

// The delays that those of gpu_coupling bring along are left out.
std::vector<Subject> subjects() {
    std::vector<Subject> out;
    for (const auto& [expert, mutants] :
         {std::pair("prefill_sm80", tests::margin_mutants()), std::pair("prefill_sm90", tests::hopper_mutants())}) {
        out.push_back({expert, {"the program as it is", {}, false}});
        for (auto m : mutants) {
            if (!m.race) continue;
            m.edits.erase(std::remove_if(m.edits.begin(), m.edits.end(),
                                         [](const auto& e) { return e.kind == tests::MarginEdit::Kind::Delay; }),
                          m.edits.end());
            out.push_back({expert, m});
        }
    }
    return out;
}

struct Answer {
    std::string error;   ///< why nothing can be said
    std::string finding; ///< empty: launches leave what they should
    std::string arch;
    int launches = 0;
    double seconds = 0;
};

Case problem(int number, int heads_kv, int rows, int keys) {
    Case c;
    c.number = number;
    c.Hk = heads_kv, c.Hq = 2 * heads_kv;
    c.Sq = rows, c.Sk = keys;
    return c;
}

// Launches until something differs, or time is up.
Answer try_one(const Subject& subject, bool delayed) {
    Answer out;
    const auto fails = [&](const std::string& why) { return out.error = why, out; };
    const auto driver = Driver::open();
    if (!driver) return fails(driver.fault().text());
    auto gpu = Gpu::open(*driver, 0);
    const auto compiler = open_nvrtc();
    if (!gpu || !compiler) return fails((gpu ? compiler.fault() : gpu.fault()).text());
    out.arch = (*gpu)->device().arch;
    ir::Source source;
    source.text = kText;
    const auto spec = ir::Specification::parse(source);
    if (!spec) return fails(spec.error().message);
    Unit unit;
    unit.request.head_dim = unit.request.head_dim_v = kHeadDim;
    unit.request.group = 2;
    unit.request.arch = out.arch;
    unit.request.lse = ir::Request::Lse::Natural;
    const auto candidate = ir::Candidate::transfer(**spec, unit.request, subject.expert);
    if (!candidate) return fails(candidate.error().message);
    const auto lowered = candidate->lower(**spec, unit.request);
    if (!lowered) return fails(lowered.error().message);
    ir::Result<std::string> text = tests::mutated(lowered->kernel.cuda, subject.mutant);
    if (text->empty()) return fails("an edit finds no place");
    if (delayed) text = ir::lower::with_delays(*text);
    if (!text) return fails(text.error().message);
    ir::launch::Plan plan = lowered->kernel.plan;
    for (int a = 0; a < 3; ++a) // each CTA has several items
        plan.entries.back().grid[static_cast<std::size_t>(a)] = ir::launch::Code::constant(a == 0 ? kCtas : 1);
    const auto compiled = [&](const std::string& cuda) {
        CompileJob job;
        job.source = cuda;
        job.arch = out.arch;
        return (*compiler)->compile(job);
    };
    const auto right = compiled(lowered->kernel.cuda), other = compiled(*text);
    if (!right || !other) return fails((right ? other.fault() : right.fault()).detail);
    const auto kernel = (*gpu)->load(right->cubin, plan);
    if (!kernel) return fails(kernel.fault().text());
    Outcome<Delayed> build = Fault{};
    if (delayed) {
        if (const auto done = (*gpu)->accompany(**compiler); !done) return fails(done.fault().text());
        build = (*gpu)->load_delayed({other->cubin, plan});
    } else {
        auto loaded = (*gpu)->load(other->cubin, plan);
        build = loaded ? Outcome<Delayed>(Delayed{std::move(*loaded), 0}) : Outcome<Delayed>(loaded.fault());
    }
    if (!build) return fails(build.fault().text());
    // Several items a CTA, several tiles an item, tails, one tile.
    const Case problems[] = {problem(0, 3, 200, 333), problem(1, 2, 130, 64), problem(2, 4, 300, 200),
                             problem(3, 2, 260, 1000)};
    std::vector<std::vector<ir::Argument>> inputs;
    for (const Case& c : problems) inputs.push_back(draw_inputs(**spec, unit, c, 1));
    const auto begin = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    for (std::uint64_t round = 0; seconds() < (delayed ? kDelayedSeconds : kPlainSeconds); ++round) {
        const Case& c = problems[round % std::size(problems)];
        const auto wrong = (*gpu)->repeat(*kernel, {*build, kLaunches, round + 1}, **spec, unit, c,
                                          inputs[round % std::size(problems)], {c.B, c.Hq, c.Sq, kHeadDim});
        if (!wrong || !wrong->empty()) {
            out.finding = "problem " + std::to_string(c.number) + ", " + (wrong ? *wrong : wrong.fault().text());
            if (!wrong && wrong.fault().kind == "hang") abandon(std::move(*gpu));
            break;
        }
        out.launches += kLaunches;
    }
    out.seconds = seconds();
    return out;
}

int child(std::size_t index, bool delayed) {
    const Answer a = try_one(subjects()[index], delayed);
    std::printf("%s\n", Json::object()
                            .add("error", a.error)
                            .add("finding", a.finding)
                            .add("arch", a.arch)
                            .add("launches", a.launches)
                            .add("seconds", a.seconds)
                            .text()
                            .c_str());
    std::fflush(stdout);
    std::_Exit(0); // whatever the context is in
}

Answer in_a_process(std::size_t index, bool delayed) {
    Answer out;
    const auto ran = capture({std::filesystem::read_symlink("/proc/self/exe").string(), std::to_string(index),
                              delayed ? "delayed" : "plain"},
                             std::chrono::seconds(60));
    if (!ran) return out.error = ran.fault().text(), out;
    if (ran->ended) return out.finding = "the process hung", out;
    const auto end = ran->output.find_last_not_of('\n');
    const auto begin = end == std::string::npos ? end : ran->output.rfind('\n', end);
    const auto json = Json::parse(ran->output.substr(begin == std::string::npos ? 0 : begin + 1,
                                                     end - (begin == std::string::npos ? std::size_t(-1) : begin)));
    if (!json || ran->status != 0) {
        out.finding = "the process ended with status " + std::to_string(ran->status);
        return out;
    }
    const auto text = [&](const char* name) {
        const Json* found = json->find(name);
        return found != nullptr && found->string() != nullptr ? *found->string() : std::string();
    };
    const auto number = [&](const char* name) {
        const Json* found = json->find(name);
        return found != nullptr ? found->number().value_or(0) : 0;
    };
    out.error = text("error"), out.finding = text("finding"), out.arch = text("arch");
    out.launches = static_cast<int>(number("launches")), out.seconds = number("seconds");
    return out;
}

Json json_of(const Answer& a) {
    return Json::object()
        .add("shows", !a.finding.empty())
        .add("finding", a.finding)
        .add("error", a.error)
        .add("launches_before", a.launches)
        .add("seconds", a.seconds);
}

std::string said(const Answer& a) {
    if (!a.error.empty()) return "error: " + a.error;
    if (a.finding.empty()) return "silent after " + std::to_string(a.launches) + " launches";
    return "after " + std::to_string(a.launches) + ": " + a.finding;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 3) return child(static_cast<std::size_t>(std::atoi(argv[1])), std::string(argv[2]) == "delayed");
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const auto driver = Driver::open();
    const auto device = driver ? (*driver)->device(0) : Outcome<Device>(driver.fault());
    if (!device) {
        std::printf("skipped, no GPU: %s\n", device.fault().text().c_str());
        return gpu::no_gpu;
    }
    gpu::Checks checks;
    checks.machine(device->name);
    const auto begin = Clock::now();
    auto rows = Json::array();
    int plain_shown = 0, delayed_shown = 0, mutants = 0;
    const auto all = subjects();
    for (std::size_t k = 0; k < all.size(); ++k) {
        if (all[k].expert == "prefill_sm90" && device->arch != "sm_90a") continue;
        const std::string name = all[k].expert + ": " + all[k].mutant.name;
        if (std::chrono::duration<double>(Clock::now() - begin).count() > kBudget) {
            std::printf("not tried, for want of time: %s\n", name.c_str());
            continue;
        }
        const bool right = all[k].mutant.edits.empty();
        Answer plain, delayed;
        checks.run(name.c_str(), [&]() -> std::string {
            plain = in_a_process(k, false);
            delayed = in_a_process(k, true);
            if (!plain.error.empty() || !delayed.error.empty()) return plain.error + " " + delayed.error;
            if (right && !(plain.finding + delayed.finding).empty()) return plain.finding + " " + delayed.finding;
            return "";
        });
        std::printf("        plain:   %s\n        delayed: %s\n", said(plain).c_str(), said(delayed).c_str());
        rows.push(Json::object()
                      .add("expert", all[k].expert)
                      .add("program", all[k].mutant.name)
                      .add("right", right)
                      .add("plain", json_of(plain))
                      .add("delayed", json_of(delayed)));
        if (right) continue;
        ++mutants;
        plain_shown += plain.finding.empty() ? 0 : 1;
        delayed_shown += delayed.finding.empty() ? 0 : 1;
    }
    checks.run(("of " + std::to_string(mutants) + " races " + std::to_string(plain_shown) +
                " show in plain launches, " + std::to_string(delayed_shown) + " with delays")
                   .c_str(),
               [&] { return std::string(delayed_shown >= plain_shown ? "" : "delays hide some"); });
    if (const char* file = std::getenv("CUBRIDGE_DELAYS_RECORD"); file != nullptr && *file != 0) {
        const char* commit = std::getenv("CUBRIDGE_COMMIT");
        std::ofstream(file) << Json::object()
                                   .add("gpu", device->name)
                                   .add("commit", commit != nullptr ? commit : "unknown")
                                   .add("plain_seconds", kPlainSeconds)
                                   .add("delayed_seconds", kDelayedSeconds)
                                   .add("rows", std::move(rows))
                                   .text()
                            << "\n";
    }
    return checks.finish();
}
