// What the library's files share: failures as values, arguments' checks, and the core's functions under short names.
#pragma once

#include "packages/common/common.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <sys/random.h>
#include <taiyen/detail/fault.hpp>
#include <taiyen/distributed.h>
#include <taiyen/outbox.h>
#include <taiyen/plugin.h>
#include <taiyen/taiyen.h>
#include <unistd.h>

namespace taiyen::twophase {

using taiyen::detail::fault;

// return failure(TY_E_SPACE, "put %zu bytes: it is full", bytes).at(path).remedy("take something out first");
class [[nodiscard]] failure {
public:
    // operation: completes "cannot ...", printf-like.
    [[gnu::format(printf, 3, 4)]] failure(ty_status status, const char *operation, ...) : status_(status) {
        va_list arguments;
        va_start(arguments, operation);
        vsnprintf(operation_, sizeof operation_, operation, arguments);
        va_end(arguments);
    }
    failure &at(const char *path) {
        path_ = path;
        return *this;
    }
    [[gnu::format(printf, 2, 3)]] failure &remedy(const char *format, ...) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(remedy_, sizeof remedy_, format, arguments);
        va_end(arguments);
        return *this;
    }
    // Sets the thread's detail.
    operator ty_status() const {
        return ty_error_set(status_, 0, operation_, path_, UINT64_MAX, remedy_[0] ? remedy_ : nullptr);
    }

private:
    ty_status status_;
    const char *path_ = nullptr;
    char operation_[512], remedy_[512] = {};
};

inline ty_status no_memory(const char *operation) {
    return failure(TY_E_MEMORY, "%s", operation).remedy("free memory, or raise the process's limits");
}

// The thread's last failure, to be reported again after other calls.
inline ty_error keep_error() {
    ty_error error{};
    ty_error_detail(&error);
    return error;
}
inline ty_status report_again(const ty_error &error, ty_status status) {
    return ty_error_set(status, error.system_error, error.operation, error.path[0] ? error.path : nullptr, error.offset,
                        error.remedy);
}

inline ty_status check_pointer(const void *pointer, const char *call, const char *what) {
    return pointer ? TY_OK : failure(TY_E_ARGUMENT, "%s: %s is NULL", call, what).remedy("pass a valid pointer");
}

inline ty_plugin_files files_of(ty_heap *heap) {
    ty_plugin_files files;
    ty_plugin_get_files(heap, &files);
    return files;
}
inline const char *path_of(ty_heap *heap) {
    return files_of(heap).image;
}

// False: the address is not the begin of a live block of the heap.
inline bool find_block(ty_heap *heap, const void *address, ty_block *block) {
    return ty_heap_of(address) == heap && !ty_block_of(address, block) && block->address == address;
}

inline uint64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

inline void random_bytes(void *place, size_t bytes) {
    for (size_t got = 0; got < bytes;) {
        const ssize_t more = getrandom(static_cast<char *>(place) + got, bytes - got, 0);
        got += more > 0 ? static_cast<size_t>(more) : 0; // else a signal
    }
}

inline pid_t this_process() {
    return getpid();
}

// Of the calling thread, unique in the process, never reused, not 0.
uint64_t thread_number();

class mutex {
public:
    explicit constexpr mutex(uint32_t rank) : mutex_{0, rank} {}
    void lock() { ty_plugin_lock(&mutex_); }
    void unlock() { ty_plugin_unlock(&mutex_); }

private:
    ty_plugin_mutex mutex_;
};

// For containers whose memory is the process's, also where the program has entered a scope of a heap.
template <class Type>
struct process_memory {
    using value_type = Type;
    Type *allocate(size_t count) {
        if (void *memory = ty_plugin_malloc(count * sizeof(Type)))
            return static_cast<Type *>(memory);
        throw std::bad_alloc();
    }
    void deallocate(Type *memory, size_t) { free(memory); }
    bool operator==(const process_memory &) const { return true; }
};

// Opens resolve distributed transactions in each program that has any of the library's files.
extern const bool resolver_is_set;
[[gnu::used]] static const bool *const with_resolver = &resolver_is_set;

} // namespace taiyen::twophase
