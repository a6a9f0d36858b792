// What the package libraries (pack, ship, standby) share; they use only the public API. Checks of callers' arguments,
// as in src/api/arguments.hpp (O1: structs of other lengths count as if filled with zeros; O2: nothing beyond
// struct_size is read or written), failures passed between threads, and descriptors that a forked child does not keep.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <pthread.h>
#include <string>
#include <taiyen/storage.h>
#include <unistd.h>
#include <vector>

namespace taiyen::common {

inline constexpr size_t struct_size_max = 4096;

inline size_t struct_size_of(const void *given) {
    size_t bytes;
    memcpy(&bytes, given, sizeof bytes);
    return bytes;
}

inline ty_status refuse_call(const char *call, const char *remedy) {
    return ty_error_set(TY_E_ARGUMENT, 0, call, nullptr, UINT64_MAX, remedy);
}

// known holds the defaults, and keeps them where the caller gives nothing.
template <class Options>
ty_status copy_options(const Options *given, Options *known, const char *call) {
    if (given == nullptr)
        return TY_OK;
    const size_t bytes = struct_size_of(given);
    if (bytes < sizeof(size_t) || bytes > struct_size_max)
        return ty_error_set(TY_E_ARGUMENT, 0, call, nullptr, UINT64_MAX,
                            "initialise the options with their _INIT macro");
    const auto *from = reinterpret_cast<const char *>(given);
    for (size_t i = sizeof *known; i < bytes; i++)
        if (from[i] != 0)
            return ty_error_set(TY_E_ARGUMENT, 0, call, nullptr, UINT64_MAX,
                                "leave options that are newer than the library zero, or use a newer library");
    memset(static_cast<void *>(known), 0, sizeof *known);
    memcpy(static_cast<void *>(known), given, bytes < sizeof *known ? bytes : sizeof *known);
    known->struct_size = sizeof *known;
    return TY_OK;
}

template <class Output>
ty_status check_output(const Output *given, const char *call) {
    if (given == nullptr)
        return TY_OK;
    const size_t bytes = struct_size_of(given);
    if (bytes < sizeof(size_t) || bytes > struct_size_max)
        return ty_error_set(TY_E_ARGUMENT, 0, call, nullptr, UINT64_MAX,
                            "set the result's struct_size to its sizeof before the call");
    return TY_OK;
}

template <class Output>
void copy_output(const Output &known, Output *given) {
    if (given == nullptr)
        return;
    const size_t bytes = struct_size_of(given);
    const size_t common = bytes < sizeof known ? bytes : sizeof known;
    memcpy(static_cast<void *>(given), &known, common);
    if (bytes > common)
        memset(reinterpret_cast<char *>(given) + common, 0, bytes - common);
    memcpy(static_cast<void *>(given), &bytes, sizeof bytes);
}

// An operation that gives the reason after a colon is the whole text: the status' own words ("it is in use", "it does
// not exist") would be about something else.
inline ty_status fail(ty_status status, const std::string &operation, const std::string &path,
                      const std::string &remedy) {
    const bool says_why = operation.find(": ") != std::string::npos;
    return ty_error_set(status, says_why ? TY_CAUSE_IN_OPERATION : 0, operation.c_str(),
                        path.empty() ? nullptr : path.c_str(), UINT64_MAX, remedy.c_str());
}

// Exceptions of the C++ library become a status.
template <class Function>
ty_status at_boundary(const char *operation, const Function &body) {
    try {
        return body();
    } catch (const std::exception &) {
        return ty_error_set(TY_E_MEMORY, 0, operation, nullptr, UINT64_MAX, "free memory of the process");
    }
}

// The calling thread's last failure, kept for another thread or a later call.
struct kept_failure {
    ty_status status = TY_OK;
    ty_error error{};
    void keep(ty_status failed) {
        status = failed;
        ty_error_detail(&error);
    }
    ty_status restore() const {
        return status ? ty_error_set(status, error.system_error, error.operation, error.path[0] ? error.path : nullptr,
                                     error.offset, error.remedy)
                      : TY_OK;
    }
};

// A lock (flock(2)) belongs to an open file description, which a forked child's copy of the descriptor refers to, too:
// the child would hold the lock after its parent has ended. So a child closes its copies at the fork.
class child_closes {
public:
    // From now on, a forked child closes the descriptor.
    static void add(int descriptor) {
        std::lock_guard guard(all().lock_);
        all().descriptors_.push_back(descriptor);
    }
    // Closes it in this process.
    static void close(int descriptor) {
        std::lock_guard guard(all().lock_);
        // In a forked child it is closed already, and its number may be another file's.
        if (std::erase(all().descriptors_, descriptor) != 0)
            ::close(descriptor);
    }

private:
    child_closes() {
        pthread_atfork([] { all().lock_.lock(); }, [] { all().lock_.unlock(); },
                       [] {
                           for (int each : all().descriptors_)
                               ::close(each);
                           all().descriptors_.clear();
                           all().lock_.unlock();
                       });
    }
    static child_closes &all() { // never destroyed: a process may fork while it exits
        static auto &made = *new child_closes;
        return made;
    }

    std::mutex lock_;
    std::vector<int> descriptors_;
};

} // namespace taiyen::common
