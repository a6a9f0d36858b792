#include "file_name.hpp"

#include "../calls/calls.hpp"
#include "../process/process.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen::os {
namespace {

constinit mutex list_lock{lock_rank::storage};
constinit file_name *newest = nullptr; // of those that expect a rename; guarded by list_lock

} // namespace

void file_name::expect_rename() {
    lock_guard guard(list_lock);
    expects_ = true;
    next_ = newest;
    newest = this;
}

void file_name::leave_list() {
    for (file_name **place = &newest; *place != nullptr; place = &(*place)->next_)
        if (*place == this) {
            *place = next_;
            break;
        }
    expects_ = false;
}

void file_name::renamed(const char *from, const char *to) {
    lock_guard guard(list_lock);
    file_name *name = newest;
    while (name != nullptr && strcmp(name->opened_, from) != 0)
        name = name->next_;
    if (name == nullptr)
        return;
    name->leave_list();
    const size_t bytes = strlen(to) + 1;
    auto *text = static_cast<char *>(sys::memory(bytes));
    if (text == nullptr)
        return;
    memcpy(text, to, bytes);
    name->renamed_.store(text, std::memory_order_release);
}

// A file that has its final name takes no lock: in a forked child another thread may have held it.
void file_name::close() {
    if (expects_) {
        lock_guard guard(list_lock);
        leave_list();
    }
    free(renamed_.load(std::memory_order_relaxed));
}

current_name::current_name(const file_name &name, int fd) : text_(name.text()) {
    const int error = errno;
    char place[32], there[PATH_MAX];
    snprintf(place, sizeof place, "/proc/self/fd/%d", fd);
    const ssize_t length = sys::readlink(place, moved_, sizeof moved_ - 1);
    moved_[length > 0 ? length : 0] = 0;
    // The kernel appends " (deleted)" to the name of a removed file.
    const bool named = moved_[0] == '/' && strstr(moved_, " (deleted)") == nullptr;
    if (named && (sys::realpath(text_, there) == nullptr || strcmp(there, moved_) != 0))
        text_ = moved_;
    errno = error;
}

} // namespace taiyen::os
