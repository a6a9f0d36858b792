// Heaps on a simulated disk that change together: what the tests of distributed transactions have in common.
#pragma once

#include "tests/txn/files.hpp"

#include <taiyen/distributed.h>
#include <taiyen/taiyen.h>

#include <memory>
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
    ty_status join(const ty_last_agent *agent = nullptr, const ty_resource_manager *resource_managers = nullptr,
                   size_t count = 0) {
        ty_group_options options = TY_GROUP_OPTIONS_INIT;
        options.heaps = heap;
        options.heap_count = count_;
        options.agent = agent;
        options.resource_managers = resource_managers;
        options.resource_manager_count = count;
        return ty_group_open(&options, &group);
    }
    ty_status open_joined() {
        const ty_status status = open();
        return status ? status : join();
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

// Open, and a group.
class joined_heaps : public heaps {
public:
    explicit joined_heaps(const disk &files, size_t count = 2, const ty_resource_manager *resource_manager = nullptr)
        : heaps(files, count) {
        EXPECT_OK(open());
        EXPECT_OK(join(nullptr, resource_manager, resource_manager ? 1 : 0));
    }
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
inline void change(heaps &in, ty_dtxn *dtxn, uint64_t number) {
    for (size_t n = 0; ty_dtxn_txn(dtxn, n); ++n)
        put(in.heap[n], ty_dtxn_txn(dtxn, n), number);
}
inline ty_status commit(heaps &in, uint64_t number) {
    ty_dtxn *dtxn = nullptr;
    if (ty_status status = ty_dtxn_begin(in.group, nullptr, &dtxn))
        return status;
    change(in, dtxn, number);
    return ty_dtxn_commit(dtxn);
}

// The events of the disk in the second of two distributed transactions, whose heaps die then.
inline std::pair<uint64_t, uint64_t> events_of_second_dtxn(const disk &files) {
    joined_heaps in(files);
    EXPECT_OK(commit(in, 1));
    const uint64_t begun = os::sim_event_count(files.get());
    EXPECT_OK(commit(in, 2));
    return {begun, os::sim_event_count(files.get())};
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

using disk_owner = std::unique_ptr<disk>;

inline disk_owner cut_at(const disk &from, uint64_t event, os::sim_cut how, uint64_t seed) {
    return std::make_unique<disk>(os::sim_power_cut(from.get(), event, how, seed));
}
inline disk_owner copy_of(const disk &from) {
    return cut_at(from, os::sim_event_count(from.get()), os::sim_cut::keep_all, 1);
}

inline void copy_file(const disk &from, const disk &to, const std::string &path, const std::string &target_path) {
    const ty_storage *in = from.storage(), *out = to.storage();
    ty_file *source = nullptr, *target = nullptr;
    static_cast<void>(out->remove(out->context, target_path.c_str()));
    if (in->open(in->context, path.c_str(), 0, &source))
        return; // a journal may not be there
    uint64_t size = 0, start = 0, end = 0;
    alignas(4096) static char bytes[1 << 16];
    ASSERT_OK(out->open(out->context, target_path.c_str(), TY_FILE_WRITE | TY_FILE_CREATE, &target));
    ASSERT_OK(in->get_size(in->context, source, &size));
    ASSERT_OK(out->set_size(out->context, target, size));
    for (uint64_t at = 0; !in->next_data(in->context, source, at, &start, &end); at = end) {
        end = (end + 4095) / 4096 * 4096;
        for (uint64_t offset = start / 4096 * 4096; offset < end; offset += sizeof bytes) {
            const size_t some = std::min<uint64_t>(sizeof bytes, end - offset);
            ASSERT_OK(in->read(in->context, source, offset, bytes, some));
            ASSERT_OK(out->write(out->context, target, offset, bytes, some));
        }
    }
    ASSERT_OK(out->flush(out->context, target));
    in->close(in->context, source);
    out->close(out->context, target);
    ASSERT_OK(out->flush_directory(out->context, target_path.c_str()));
}
// Puts the files of the n-th heap in place of those that are there.
inline void copy_member(const disk &from, const disk &to, size_t n) {
    for (const char *suffix : {"", "-journal", "-log"})
        copy_file(from, to, std::string(paths[n]) + suffix, std::string(paths[n]) + suffix);
}

} // namespace taiyen::test
