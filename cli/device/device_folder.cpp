// The folder that `taiyen device` works in, and the process that removes it.
//
// The files have names while they are in use: a heap needs them, and some file systems are slower for unnamed files. So
// a second process, which no interrupt of the terminal reaches, creates the folder, waits until this program is done
// with it or has ended in whatever way, and removes what this program wrote there, and nothing else.
#include "device/device.hpp"

#include "common/text.hpp"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <taiyen/detail/fault.hpp>
#include <unistd.h>

namespace cli::device {

namespace {

constexpr const char *operation = "work in the folder";
constexpr const char *folder_remedy = "give a folder that exists and may be written to";

refusal refuse(int error, const std::string &path, const char *remedy = folder_remedy) {
    const bool forbidden = error == EACCES || error == EPERM || error == EROFS;
    const bool full = error == ENOSPC || error == EDQUOT;
    const ty_status status = forbidden                             ? TY_E_PERMISSION
                             : error == ENOENT || error == ENOTDIR ? TY_E_NOT_FOUND
                             : full                                ? TY_E_SPACE
                                                                   : TY_E_IO;
    return {status, error, operation, path, remedy};
}

bool is_ours(const char *name) {
    return !std::strcmp(name, "disk") || !std::strcmp(name, "append") || !std::strncmp(name, "heap.ty", 7);
}

// CL9: `device` leaves nothing, and removes nothing of others. The folder is found by its descriptor, whatever became
// of its name. Returns 0, or the errno.
int remove_all(int parent, int folder, const char *name) {
    DIR *entries = fdopendir(folder);
    if (!entries)
        return errno;
    while (const dirent *entry = readdir(entries))
        if (is_ours(entry->d_name) ||
            (taiyen::detail::fault("device_removes_files_of_others") && entry->d_name[0] != '.'))
            unlinkat(folder, entry->d_name, 0); // the next call reports what stays
    const int error = unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOENT ? errno : 0;
    closedir(entries);
    return error;
}

// The answer about the folder, in one message: the errno (0: it exists), then its name in the given folder.
struct answer {
    int error;
    char name[32];
};

answer make_folder(int parent, int *folder) {
    answer made{0, ""};
    for (unsigned number = 0; number < 1000; ++number) {
        std::snprintf(made.name, sizeof made.name, "taiyen-device-%d-%u", int(getpid()), number);
        if (!mkdirat(parent, made.name, 0700)) {
            *folder = openat(parent, made.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            made.error = *folder < 0 ? errno : 0;
            if (made.error)
                unlinkat(parent, made.name, AT_REMOVEDIR);
            return made;
        }
        made.error = errno;
        if (errno != EEXIST)
            break;
    }
    return made;
}

// Standard error stays open, to report what could not be removed.
[[noreturn]] void guard(int parent, int socket, const std::string &path) {
    setsid(); // out of reach of the terminal's interrupts
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    for (int one : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
        std::signal(one, SIG_IGN);
    int folder = -1;
    const answer made = make_folder(parent, &folder);
    const bool sent = send(socket, &made, sizeof made, MSG_NOSIGNAL) == ssize_t(sizeof made);
    if (made.error)
        _exit(0);
    char end;
    while (sent && ::read(socket, &end, 1) < 0 && errno == EINTR) {
    }
    if (const int error = remove_all(parent, folder, made.name))
        std::fprintf(stderr, "taiyen: cannot remove the folder %s/%s: %s; remove it by hand\n",
                     text::printable(path).c_str(), made.name, std::strerror(error));
    _exit(0);
}

} // namespace

work_folder::work_folder(const std::string &folder) {
    const int parent = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        throw refuse(errno, folder);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
        close(parent);
        throw refuse(errno, folder, "let the program have more open files: ulimit -n");
    }
    std::fflush(stdout); // or both processes would write the buffered output
    guard_id_ = fork();
    if (guard_id_ == 0) {
        close(ends[0]);
        guard(parent, ends[1], folder);
    }
    const int fork_error = errno;
    close(parent);
    close(ends[1]);
    guard_ = ends[0];
    answer made{guard_id_ < 0 ? fork_error : EIO, ""};
    if (guard_id_ > 0)
        while (recv(guard_, &made, sizeof made, 0) < 0 && errno == EINTR) {
        }
    if (made.error) {
        close(guard_);
        if (guard_id_ > 0)
            waitpid(guard_id_, nullptr, 0);
        throw refuse(made.error, folder);
    }
    path_ = folder + "/" + made.name;
}

work_folder::~work_folder() {
    close(guard_);
    while (waitpid(guard_id_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void require_free(const std::string &folder, uint64_t bytes) {
    struct statvfs of {};
    if (statvfs(folder.c_str(), &of))
        throw refuse(errno, folder);
    const uint64_t free_bytes = uint64_t{of.f_bavail} * of.f_frsize;
    if (free_bytes < bytes)
        throw refusal{TY_E_SPACE, ENOSPC, "use " + text::size(bytes) + " where " + text::size(free_bytes) + " are free",
                      folder, "free some space, or give a smaller --size"};
}

} // namespace cli::device
