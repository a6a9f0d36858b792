// Goal: whenever the power fails while a heap is unpacked into files, there is no file of its name, or the whole heap;
// and a fault of the disk is an error that leaves neither (PK6).
// Method: an unpacking onto a simulated disk, cut before each event in several ways, and with each operation failing.
#include "packages/pack/tests/support.hpp"
#include "tests/simulated_disk/storage_sim.hpp"

namespace taiyen::test {
namespace {

constexpr const char *heap_path = "heap.ty";

struct unpacking {
    std::string stream;
    content before;
    ty_kind kind;

    explicit unpacking(ty_kind to) : kind(to) {
        volatile_heap heap(TY_CLASSES_CACHE_LINE, size_t{64} << 20);
        std::mt19937 dice(21);
        fill_at_random(heap, dice, 120, 30000);
        before = content_of(heap);
        stream = packed(heap).text();
    }
    ty_status run(os::sim_disk *disk) const {
        ty_open_options open = on(disk);
        ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
        options.path = heap_path;
        options.kind = kind;
        options.open = &open;
        options.threads = 1;
        return unpack(stream, options, nullptr);
    }
    static ty_open_options on(os::sim_disk *disk) {
        ty_open_options open = TY_OPEN_OPTIONS_INIT;
        open.storage = os::sim_storage(disk);
        open.background = TY_BACKGROUND_CALLS;
        open.staging_bytes = size_t{8} << 20;
        open.log_bytes = size_t{1} << 20;
        return open;
    }
    // Whether the heap is there; then it is whole.
    bool is_there(os::sim_disk *disk) const {
        ty_open_options open = on(disk);
        open.mode = TY_OPEN_EXISTING;
        ty_heap *heap;
        ty_status status = ty_open(heap_path, &open, &heap, nullptr);
        EXPECT_TRUE(status == TY_OK || status == TY_E_NOT_FOUND) << ty_error_text();
        if (status != TY_OK)
            return false;
        EXPECT_EQ(kind, ty_heap_kind(heap));
        EXPECT_EQ(before, content_of(heap));
        EXPECT_OK(ty_discard(heap));
        return true;
    }
};

TEST(pack_power_cut, none_or_whole) {
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL}) {
        unpacking work(kind);
        os::sim_disk *disk = os::sim_create();
        ASSERT_OK(work.run(disk));
        uint64_t events = os::sim_event_count(disk);
        size_t whole = 0, none = 0;
        for (uint64_t event = 0; event <= events; event += event + 40 > events || event % 3 == 0 ? 1 : 2)
            for (os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random,
                                    os::sim_cut::prefix, os::sim_cut::trash}) {
                os::sim_disk *found = os::sim_power_cut(disk, event, how, event);
                bool there = work.is_there(found);
                (there ? whole : none)++;
                if (event % 16 == 0 && !there) { // it can be tried again
                    EXPECT_OK(work.run(found));
                }
                os::sim_destroy(found);
            }
        EXPECT_TRUE(work.is_there(disk));
        EXPECT_GT(whole, 0u);
        EXPECT_GT(none, 0u);
        os::sim_destroy(disk);
    }
}

TEST(pack_power_cut, failing_disk) {
    unpacking work(TY_SNAPSHOT);
    for (uint64_t after = 0;; after++) {
        os::sim_disk *disk = os::sim_create();
        os::sim_set_fault(disk, {os::sim_op_any, after, false, TY_E_IO});
        ty_status status = work.run(disk);
        bool over = os::sim_operation_count(disk, os::sim_op_any) <= after;
        os::sim_set_fault(disk, {});
        bool there = work.is_there(disk);
        EXPECT_TRUE(status == TY_OK ? there : true) << after;
        if (status != TY_OK && there) { // the last flush of the folder alone may fail after the name is there
            EXPECT_EQ(TY_E_EXISTS, work.run(disk));
        } else if (status != TY_OK) {
            EXPECT_OK(work.run(disk));
        }
        os::sim_destroy(disk);
        if (over)
            break;
    }
}

} // namespace
} // namespace taiyen::test
