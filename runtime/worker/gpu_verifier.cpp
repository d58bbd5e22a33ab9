// The library's side: a verifier that has a worker. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/program.h"
#include "runtime/registry/fork_mark.h"
#include "runtime/registry/thread.h"
#include "runtime/worker/find.h"
#include "runtime/worker/process.h"
#include <fmt/format.h>
#include <random>
#include <system_error>

namespace cubridge::runtime {
namespace worker {
namespace {

constexpr auto kStart = std::chrono::seconds(30); ///< for a context on a busy GPU
constexpr auto kPause = std::chrono::seconds(10); ///< between attempts where none starts
constexpr int kDeaths = 2;
constexpr std::uint64_t kMemory = std::uint64_t{8} << 30; ///< of the host: references are evaluated there

std::uint64_t fresh_seed() {
    std::random_device device;
    return 1 + device();
}

Question question_of(const VerifyJob& job) {
    Question q;
    q.source = job.specification->source();
    q.heads = job.specification->heads();
    q.request = job.request;
    q.kernel = job.kernel;
    q.exact = job.exact;
    q.baseline = job.baseline;
    q.seed = job.seed != 0 ? job.seed : fresh_seed();
    q.launch = job.launch;
    if (job.program.empty()) return q;
    if (const auto program = ir::cuir::read(job.program); program && program->main() != nullptr) {
        const auto constant = [&](const char* name, std::int64_t otherwise) {
            const auto node = program->main()->constant(name);
            return node ? node->integer : otherwise;
        };
        q.tile_rows = constant("BM", 0);
        q.tile_keys = constant("BN", 0);
        q.stages = static_cast<int>(constant("ST", 1));
    }
    return q;
}

VerifyResult rejected(const Question& question, std::string why) {
    VerifyResult out;
    out.seed = question.seed;
    out.failures.push_back(std::move(why));
    return out;
}

class GpuVerifier final : public Verifier {
public:
    explicit GpuVerifier(VerifierSettings settings)
        : settings_(std::move(settings)), file_(find_executable(settings_.file)) {}

    ~GpuVerifier() override {
        if (fork_.forked()) { // the parent's
            if (process_ != nullptr) process_.release()->disown();
            if (starting_.joinable()) starting_.detach();
        }
        if (starting_.joinable()) starting_.join();
    }
    GpuVerifier(const GpuVerifier&) = delete;
    GpuVerifier& operator=(const GpuVerifier&) = delete;

    Outcome<VerifyResult> verify(const VerifyJob& job) override {
        if (fork_.forked()) return forked();
        const auto deadline = Clock::now() + job.deadline;
        const Question question = question_of(job);
        const std::lock_guard lock(mutex_);
        for (int deaths = 0;;) {
            if (auto running = start(); !running) return running.fault();
            auto answer = process_->verify(question, kMemory, deadline);
            if (!process_->usable()) process_.reset();
            if (answer) {
                if (!answer->fault.kind.empty()) return answer->fault;
                return std::move(answer->result);
            }
            const auto& fault = answer.fault();
            // What the kernel did to the process that ran it is the kernel's; one death may have been anybody's.
            if (fault.kind == "deadline") return rejected(question, fault.message);
            if (fault.kind != "died") return fault;
            if (++deaths == kDeaths)
                return rejected(question, fmt::format("{}, {} times while it ran this kernel", fault.message, deaths));
        }
    }

    void expect() override {
        if (fork_.forked()) return;
        const std::lock_guard lock(expecting_);
        if (expected_) return; // later processes are started by those who need them
        expected_ = true;
        try {
            starting_ = start_thread("cubridge-start", [this] {
                const std::lock_guard alone(mutex_);
                (void)start();
            });
        } catch (const std::system_error&) { // verify() starts it
        }
    }

    Outcome<std::string> arch() override {
        if (fork_.forked()) return forked();
        const std::lock_guard lock(mutex_);
        if (auto running = start(); !running) return running.fault();
        return process_->ready().identity;
    }

    Outcome<Confinement> confinement() override {
        if (fork_.forked()) return forked();
        const std::lock_guard lock(mutex_);
        if (auto running = start(); !running) return running.fault();
        return process_->ready().confinement;
    }

private:
    static Fault forked() {
        return {"worker", "this process was made by fork after its verifier was opened", "open it after fork"};
    }

    Outcome<void> start() {
        if (process_ != nullptr && process_->idle()) return {};
        process_.reset();
        if (broken_ && Clock::now() < again_) return *broken_;
        Outcome<std::unique_ptr<Process>> made =
            Fault{"worker",
                  "the executable `cubridge`, which runs kernels for this library, was not found beside it nor in PATH",
                  "name it in CUBRIDGE_WORKER"};
        Hello hello;
        hello.build = build_id();
        hello.gpu = true;
        hello.room = settings_.room;
        if (!file_.empty()) made = Process::start(file_, hello, Clock::now() + kStart, settings_.device);
        broken_.reset();
        if (!made) {
            broken_ = made.fault();
            again_ = Clock::now() + kPause;
            return made.fault();
        }
        process_ = *std::move(made);
        return {};
    }

    const VerifierSettings settings_;
    const std::string file_;
    const ForkMark fork_;
    std::mutex expecting_;
    bool expected_ = false;
    std::thread starting_;
    std::mutex mutex_; ///< of all below
    std::unique_ptr<Process> process_;
    std::optional<Fault> broken_;
    Clock::time_point again_{};
};

} // namespace
} // namespace worker

std::string VerifyResult::record() const {
    if (!passed) return failures.empty() ? "gpu: not passed" : "gpu: " + failures.front();
    return fmt::format("gpu: {} cases, seed {}, error {:.2f} of 2 ({})", cases, seed, ratio, device);
}

std::shared_ptr<Verifier> open_verifier(VerifierSettings settings) {
    return std::make_shared<worker::GpuVerifier>(std::move(settings));
}

} // namespace cubridge::runtime
