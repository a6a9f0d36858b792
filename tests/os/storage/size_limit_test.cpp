// Goal: a limit of the file's size (ulimit -f) is an error like a full disk, and never the signal that ends a process.
// Method: each call that can make a file grow, in a child with such a limit.
#include "src/os/os.hpp"
#include "tests/os/temporary_folder.hpp"

#include <csignal>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <taiyen/storage.h>
#include <unistd.h>

namespace {

constexpr size_t unit = TY_STORAGE_BLOCK;
constexpr rlim_t limit_bytes = 4 * unit;
alignas(unit) char buffer[8 * unit];
const ty_storage &storage = *ty_storage_default();

// The number of the first call with a wrong answer.
int grow_in_all_ways(const std::string &path) {
    rlimit limit{limit_bytes, limit_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    ty_file *file = nullptr;
    if (storage.open(storage.context, path.c_str(), TY_FILE_WRITE | TY_FILE_CREATE, &file))
        return 1;
    if (storage.write(storage.context, file, 0, buffer, limit_bytes))
        return 2;
    if (storage.write(storage.context, file, limit_bytes, buffer, unit) != TY_E_SPACE)
        return 3;
    if (storage.write(storage.context, file, 2 * unit, buffer, 8 * unit) != TY_E_SPACE)
        return 4;
    ty_write writes[] = {{limit_bytes, buffer, unit}, {limit_bytes + unit, buffer, unit}};
    if (storage.write_many(storage.context, file, writes, 2) != TY_E_SPACE)
        return 5;
    if (storage.write_durable(storage.context, file, limit_bytes, buffer, unit) != TY_E_SPACE)
        return 6;
    if (storage.set_size(storage.context, file, limit_bytes + 1) != TY_E_SPACE)
        return 7;
    if (storage.allocate(storage.context, file, limit_bytes, unit) != TY_E_SPACE)
        return 8;
    ty_error detail;
    ty_error_detail(&detail);
    if (detail.system_error != EFBIG || std::string(detail.remedy).find("ulimit -f") == std::string::npos)
        return 9;
    if (storage.flush(storage.context, file))
        return 10;
    storage.close(storage.context, file);
    return 0;
}

int exit_code_of(int (*action)(const std::string &), const std::string &path) {
    pid_t child = fork();
    if (child == 0)
        _exit(action(path));
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

} // namespace

TEST(size_limit, is_an_error_and_no_signal) {
    temporary_folder folder;
    EXPECT_EQ(exit_code_of(grow_in_all_ways, folder.file("a.ty")), 0);
}

// The program's own treatment of the signal is as before: it is not blocked afterwards, and one that waits still waits.
TEST(size_limit, leaves_the_programs_signals_alone) {
    temporary_folder folder;
    auto keeps_its_mask = [](const std::string &path) {
        sigset_t mask;
        int code = grow_in_all_ways(path);
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        return code != 0 ? code : sigismember(&mask, SIGXFSZ) ? 20 : 0;
    };
    EXPECT_EQ(exit_code_of(keeps_its_mask, folder.file("a.ty")), 0);
    auto keeps_what_waits = [](const std::string &path) {
        sigset_t mask;
        sigemptyset(&mask);
        sigaddset(&mask, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &mask, nullptr);
        raise(SIGXFSZ);
        int code = grow_in_all_ways(path);
        sigset_t pending;
        sigpending(&pending);
        return code != 0 ? code : sigismember(&pending, SIGXFSZ) != 1 ? 21 : 0;
    };
    EXPECT_EQ(exit_code_of(keeps_what_waits, folder.file("b.ty")), 0);
    auto takes_its_own = [](const std::string &path) {
        sigset_t mask;
        sigemptyset(&mask);
        sigaddset(&mask, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &mask, nullptr);
        int code = grow_in_all_ways(path);
        sigset_t pending;
        sigpending(&pending);
        return code != 0 ? code : sigismember(&pending, SIGXFSZ) ? 22 : 0;
    };
    EXPECT_EQ(exit_code_of(takes_its_own, folder.file("c.ty")), 0);
}
