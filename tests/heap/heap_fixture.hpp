// Heaps in plain memory for the tests of the heap layer: a reserved span whose pages become usable when the heap asks.
#pragma once

#include "src/heap/tables/heap_runtime.hpp"
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace taiyen::test {

inline ty_status commit_pages(void *context, void *address, size_t bytes) {
    ++*static_cast<int *>(context);
    return os::commit(address, bytes);
}

inline bool decommit_pages(void *, void *address, size_t bytes) {
    return os::decommit(address, bytes) == TY_OK;
}

inline ty_heap_stats stats_of(ty_heap *heap) {
    ty_heap_stats stats{};
    EXPECT_EQ(heap_get_stats(heap, &stats), TY_OK);
    return stats;
}

struct memory_heap {
    char *base = nullptr;
    size_t limit = 0;
    size_t reserved = 0;
    int provided = 0; // calls
    ty_heap *heap = nullptr;
    heap_owner owner{};

    explicit memory_heap(ty_class_table classes, size_t limit_bytes = size_t{1} << 30, size_t reserved_bytes = 0)
        : limit(limit_bytes), reserved(reserved_bytes > limit_bytes ? reserved_bytes : limit_bytes) {
        void *address = nullptr;
        reserved = (reserved + heap_granule_bytes - 1) / heap_granule_bytes * heap_granule_bytes;
        EXPECT_EQ(os::reserve(0, reserved, heap_granule_bytes, &address), TY_OK) << ty_error_text();
        base = static_cast<char *>(address);
        owner = {&provided, commit_pages, decommit_pages};
        EXPECT_EQ(heap_format(base, limit, classes, owner), TY_OK) << ty_error_text();
        attach(true);
    }
    ~memory_heap() {
        if (heap != nullptr)
            heap_detach(heap);
        EXPECT_EQ(os::release(base, reserved), TY_OK);
    }
    memory_heap(const memory_heap &) = delete;
    memory_heap &operator=(const memory_heap &) = delete;

    void attach(bool writable) {
        ASSERT_EQ(heap_attach(base, limit, owner, writable, &heap), TY_OK) << ty_error_text();
    }
    void detach() {
        heap_detach(heap);
        heap = nullptr;
    }
    void reattach() {
        detach();
        attach(true);
    }
};

// Its threads keep short runs, as those of large volatile heaps do.
struct keeping_heap : memory_heap {
    keeping_heap() : memory_heap(TY_CLASSES_DENSE, kept_limit_min) {
        detach();
        owner.movable = true;
        attach(true);
    }
    char *alloc(size_t bytes, bool zeroed = false) { return static_cast<char *>(heap_alloc(heap, bytes, 0, zeroed)); }
    uint64_t used() const { return heap->used_pages; }
};

// Page faults of this process so far, without those that read a file.
inline size_t faults() {
#if defined(__SANITIZE_THREAD__)
    return 0; // its shadow memory has page faults of its own
#else
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<size_t>(usage.ru_minflt);
#endif
}

inline void collect_problem(const char *text, void *context) {
    static_cast<std::vector<std::string> *>(context)->push_back(text);
}

// The problems that verify finds, one a line; empty: sound.
inline std::string problems_of(ty_heap *heap) {
    std::vector<std::string> problems;
    ty_status status = heap_verify(heap, collect_problem, &problems);
    EXPECT_EQ(status, problems.empty() ? TY_OK : TY_E_DAMAGED);
    std::string all;
    for (const std::string &problem : problems)
        all += problem + "\n";
    return all;
}

// A small, fast, seeded generator.
struct random_source {
    uint64_t state;
    uint64_t next() {
        state += 0x9e3779b97f4a7c15;
        uint64_t z = state;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    uint64_t below(uint64_t bound) { return next() % bound; }
};

} // namespace taiyen::test
