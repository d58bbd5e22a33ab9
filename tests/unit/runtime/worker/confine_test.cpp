// What a confined worker can't do. SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/nvrtc_compiler.h"
#include "runtime/worker/confine.h"
#include "tests/unit/runtime/worker/support.h"
#include <cerrno>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace cubridge::runtime {
namespace {

using namespace testing_worker;

using WorkerConfined = WorkerTest;

/// The include gate is off: what holds here is the process.
TEST_F(WorkerConfined, ReadsNoFileThatATextNames) {
    auto s = settings();
    s.gated = false;
    Workers workers(s);
    const auto held = workers.confinement();
    ASSERT_TRUE(held);
    if (!held->seccomp && held->landlock == 0) GTEST_SKIP() << held->text();

    const auto secret = std::filesystem::temp_directory_path() / ("cubridge-secret-" + std::to_string(getpid()) + ".h");
    std::ofstream(secret) << "#define SECRET 42\n";
    auto includes = good_job(), asks = good_job();
    includes.source = "#include \"" + secret.string() + "\"\n__device__ int x = SECRET;\n";
    asks.source = "#if !__has_include(\"" + secret.string() + "\")\n#error it is not there\n#endif\n" + asks.source;
    NvrtcCompiler here(*find_nvrtc({}), false); // reads it: so the worker would
    EXPECT_TRUE(here.compile(includes));
    EXPECT_TRUE(here.compile(asks));
    auto result = workers.compile(includes);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().kind, "compile");
    EXPECT_NE(result.fault().detail.find("source file"), std::string::npos) << result.fault().detail;
    EXPECT_FALSE(workers.compile(asks));
    std::filesystem::remove(secret);

    includes.source = "#include \"/etc/passwd\"\n" + good_job().source;
    result = workers.compile(includes);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.fault().detail.find("root"), std::string::npos) << result.fault().detail;

    Workers gated(settings());
    EXPECT_EQ(gated.compile(includes).fault().kind, "gate");
}

/// The number of the call that a confined process was allowed, or failed at with another error than was meant; 0: none.
int first_allowed(const std::string& folder, const std::string& readable) {
    Confinement held;
    worker::limit_resources(0, held);
    worker::lock_down(folder, held);
    if (!held.seccomp) return -1;
    const auto denied = [](long result) { return result == -1 && (errno == EPERM || errno == EACCES); };
    if (!denied(open("/etc/passwd", O_RDONLY))) return 1;
    if (!denied(open("/proc/self/environ", O_RDONLY))) return 2;
    if (!denied(open((folder + "/new").c_str(), O_WRONLY | O_CREAT, 0600))) return 3;
    if (!denied(open(readable.c_str(), O_RDWR))) return 4;
    if (!denied(socket(AF_INET, SOCK_STREAM, 0))) return 5;
    if (!denied(socket(AF_UNIX, SOCK_DGRAM, 0))) return 6;
    if (!denied(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr))) return 7;
    if (!denied(kill(getppid(), 0))) return 8;
    if (!denied(syscall(SYS_tgkill, getppid(), getppid(), 0))) return 9;
    if (!denied(syscall(SYS_execve, "/bin/true", nullptr, nullptr))) return 10;
    if (!denied(syscall(SYS_ptrace, 0, 0, 0, 0))) return 11;
    if (!denied(syscall(SYS_process_vm_readv, getppid(), nullptr, 0, nullptr, 0, 0))) return 12;
    rlimit limit{};
    if (!denied(syscall(SYS_prlimit64, getppid(), RLIMIT_CORE, nullptr, &limit))) return 13;
    if (!denied(syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", nullptr, 0))) return 14;
    if (!denied(unlink(readable.c_str()))) return 15;
    if (!denied(mkdir((folder + "/new").c_str(), 0700))) return 16;
    if (!denied(syscall(SYS_memfd_create, "x", 0u))) return 17;
    // And what it needs.
    const int file = open(readable.c_str(), O_RDONLY | O_CLOEXEC);
    if ((file >= 0) != (held.landlock != 0)) return 30;
    pthread_t thread{}; // std::thread's call is one that sanitizers look at by means that are denied
    const auto body = [](void* ran) { return ran; };
    void* ran = nullptr;
    if (pthread_create(&thread, nullptr, body, &limit) != 0 || pthread_join(thread, &ran) != 0) return 31;
    return ran == &limit ? 0 : 32;
}

TEST_F(WorkerConfined, MakesNoCallButItsOwn) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer makes calls of its own when a thread starts, which are denied";
#endif
    const auto folder = std::filesystem::temp_directory_path() / ("cubridge-confined-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const auto readable = (folder / "library").string();
    std::ofstream(readable) << "text";
    const pid_t child = fork();
    if (child == 0) _exit(first_allowed(folder.string(), readable) & 0xff);
    int status = 0;
    waitpid(child, &status, 0);
    std::filesystem::remove_all(folder);
    if (WEXITSTATUS(status) == 0xff) GTEST_SKIP() << "no seccomp here";
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
} // namespace cubridge::runtime
