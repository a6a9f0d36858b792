#include "start_again.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

namespace taiyen::os {
namespace {

// Says which process has started itself again: a start that did not help is not repeated.
constexpr const char *mark_name = "TAIYEN_STARTED_AGAIN";
constexpr unsigned long ask_only = 0xffffffff;
constexpr const char *own_program = "/proc/self/exe";

failure refused(int error) {
    return failure(TY_E_UNSUPPORTED, "start the program without randomised addresses")
        .cause(error)
        .remedy("a container or sandbox may forbid it (personality in its seccomp profile): allow that, start the "
                "program by `setarch -R`, or make the heap with TY_CODE_MAPPED");
}

bool is_own_file(const char *path) {
    struct stat own, other;
    return ::stat(own_program, &own) == 0 && ::stat(path, &other) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

// By its own path, so that it has its name in lists of processes; else by what leads to what runs, whatever became of
// its file.
void execute(char *const *arguments) {
    char path[PATH_MAX];
    const ssize_t length = sys::readlink(own_program, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    if (is_own_file(path))
        ::execv(path, arguments);
    ::execv(own_program, arguments);
}

} // namespace

ty_status start_without_randomisation(char *const *arguments) {
    const int now = ::personality(ask_only);
    if (now < 0)
        return refused(errno);
    if ((now & ADDR_NO_RANDOMIZE) != 0)
        return TY_OK;
    char process[24];
    snprintf(process, sizeof process, "%lld", static_cast<long long>(::getpid()));
    const char *mark = ::getenv(mark_name);
    if (mark != nullptr && strcmp(mark, process) == 0)
        return refused(0);
    if (::setenv(mark_name, process, 1) != 0)
        return failure(TY_E_MEMORY, "start the program without randomised addresses").cause(errno);
    if (::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) >= 0)
        execute(arguments);
    const int error = errno;
    ::personality(static_cast<unsigned long>(now));
    ::unsetenv(mark_name);
    return refused(error);
}

} // namespace taiyen::os
