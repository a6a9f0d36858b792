// Heaps on a simulated disk that change together: what the tests of joints have in common.
#pragma once

#include "tests/txn/files.hpp"

#include <taiyen/taiyen.h>

#include <string>
#include <vector>

namespace taiyen::test {

inline constexpr const char *paths[] = {"a.ty", "b.ty", "c.ty"};

class heaps {
public:
    explicit heaps(const disk &files, size_t count = 2) : files_(&files), count_(count) {}
    ~heaps() { discard(); }

    ty_status open(size_t n, ty_report *report = nullptr) {
        ty_open_options options = with_log(*files_);
        return ty_open(paths[n], &options, &heap[n], report);
    }
    ty_status open() {
        for (size_t n = 0; n < count_; ++n)
            if (ty_status status = open(n))
                return status;
        return TY_OK;
    }
    ty_status join(const ty_agent *agent = nullptr, const ty_participant *participants = nullptr, size_t count = 0) {
        ty_group_options options = TY_GROUP_OPTIONS_INIT;
        options.heaps = heap;
        options.heap_count = count_;
        options.agent = agent;
        options.participants = participants;
        options.participant_count = count;
        return ty_group_open(&options, &group);
    }
    void discard() {
        ty_group_close(group);
        group = nullptr;
        for (ty_heap *&each : heap) {
            if (each) {
                EXPECT_OK(ty_discard(each));
            }
            each = nullptr;
        }
    }
    uint64_t number(size_t n) const {
        auto *place = static_cast<const uint64_t *>(ty_root(heap[n], "number"));
        return place ? *place : 0;
    }

    ty_heap *heap[3] = {};
    ty_group *group = nullptr;

private:
    const disk *files_;
    size_t count_;
};

inline void put(ty_heap *heap, ty_txn *txn, uint64_t number) {
    auto *place = static_cast<uint64_t *>(ty_root(heap, "number"));
    if (!place) {
        place = static_cast<uint64_t *>(ty_txn_alloc(txn, 8));
        ASSERT_NE(nullptr, place);
        ASSERT_OK(ty_txn_root_set(txn, "number", place));
    }
    ASSERT_OK(ty_declare(txn, place, 8));
    *place = number;
    void *other = ty_txn_alloc(txn, 64 + number % 200); // blocks come and go, too
    ASSERT_NE(nullptr, other);
    if (void *old = ty_root(heap, "block")) {
        ASSERT_OK(ty_txn_free(txn, old));
    }
    ASSERT_OK(ty_txn_root_set(txn, "block", other));
}

// The number in all of the group's heaps.
inline void change(heaps &in, ty_joint *joint, uint64_t number) {
    for (size_t n = 0; ty_joint_txn(joint, n); ++n)
        put(in.heap[n], ty_joint_txn(joint, n), number);
}
inline ty_status commit(heaps &in, uint64_t number) {
    ty_joint *joint = nullptr;
    if (ty_status status = ty_joint_begin(in.group, nullptr, &joint))
        return status;
    change(in, joint, number);
    return ty_joint_commit(joint);
}

struct acknowledged {
    uint64_t event;
    uint64_t number;
};

inline uint64_t newest(const std::vector<acknowledged> &all, uint64_t event) {
    uint64_t number = 0;
    for (const acknowledged &one : all)
        if (one.event <= event)
            number = one.number;
    return number;
}

} // namespace taiyen::test
