#include "start_again.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "loaded_objects.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

namespace taiyen::os {
namespace {

// Holds the id of the process that has restarted itself: a restart that did not help is not repeated.
constexpr const char *mark_name = "TAIYEN_STARTED_AGAIN";
constexpr unsigned long ask_only = 0xffffffff;
failure refused(int error) {
    return failure(TY_E_UNSUPPORTED, "start the program without randomised addresses")
        .cause(error)
        .remedy("%s: start the program by `setarch -R`, or make the heap with TY_CODE_MAPPED",
                error == ENOEXEC ? "the kernel has started something else (the dynamic linker, valgrind), which loaded "
                                   "this program"
                                 : "a container or sandbox may forbid it (personality in its seccomp profile)");
}

// Opens a path if it leads to the file that this process was started with. Tools such as valgrind substitute the
// program's file for their own in open, but not in stat: then it is neither.
int open_own(const char *path) {
    struct stat own, other;
    const int fd = open_descriptor(path, O_RDONLY);
    if (fd >= 0 && (::stat(program_link, &own) != 0 || ::fstat(fd, &other) != 0 || own.st_dev != other.st_dev ||
                    own.st_ino != other.st_ino)) {
        sys::close(fd);
        return -1;
    }
    return fd;
}

// Whether a file is the program, and not its loader: the dynamic linker, started with the program's name, or a tool.
bool is_program(int fd) {
    struct looking {
        int fd;
        bool same;
    } all{fd, false};
    auto compare = [](dl_phdr_info *program, size_t, void *context) {
        auto &[file, same] = *static_cast<looking *>(context);
        ElfW(Ehdr) header;
        ElfW(Phdr) part;
        same = sys::pread(file, &header, sizeof header, 0) == ssize_t(sizeof header) &&
               memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_phnum == program->dlpi_phnum &&
               header.e_phentsize == sizeof part;
        for (uint64_t n = 0; same && n < header.e_phnum; ++n)
            same = sys::pread(file, &part, sizeof part, header.e_phoff + n * sizeof part) == ssize_t(sizeof part) &&
                   memcmp(&part, &program->dlpi_phdr[n], sizeof part) == 0;
        return 1; // the program is the first
    };
    dl_iterate_phdr(compare, &all);
    return all.same;
}

// By its own path, so that it keeps its name in lists of processes; otherwise by /proc/self/exe, whatever became of its
// file.
void execute(char *const *arguments) {
    char path[PATH_MAX];
    const ssize_t length = sys::readlink(program_link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    for (const char *one : {static_cast<const char *>(path), program_link}) {
        const int fd = open_own(one);
        if (fd < 0)
            continue;
        const bool right = is_program(fd);
        sys::close(fd);
        if (right)
            ::execv(one, arguments);
        else
            errno = ENOEXEC;
    }
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
    errno = ENOEXEC;
    if (::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) >= 0)
        execute(arguments);
    const int error = errno;
    ::personality(static_cast<unsigned long>(now));
    ::unsetenv(mark_name);
    return refused(error);
}

} // namespace taiyen::os
