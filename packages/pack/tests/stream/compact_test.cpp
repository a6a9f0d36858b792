// Goal: a compacted heap has the same structures in fewer pages, also after a crash at any moment; what cannot be
// compacted stays as it is (PK9).
// Method: a table of lists that has churned, on a simulated disk; compacted, opened again, with power cuts before each
// event, and each operation of the disk failing.
#include "packages/pack/tests/support.hpp"
#include "tests/files_on.hpp"
#include "tests/simulated_disk/storage_sim.hpp"
#include "tests/stats.hpp"

namespace taiyen::test {
namespace {

constexpr const char *path = "compact.ty";

struct entry {
    struct entry *next;
    char *text;
    uint64_t number;
};
struct table {
    uint64_t count;
    struct entry **rows;
};
TY_TYPE_DECLARE(entry);
TY_TYPE(entry, TY_POINTER(entry, next, &entry_descriptor), TY_BYTES(entry, text))
TY_TYPE_POINTER_TO(row, &entry_descriptor)
TY_TYPE_DECLARE(table);
TY_TYPE(table, TY_POINTER_COUNTED(table, rows, count, &row_descriptor))

struct table_descriptors {
    ty_types *set = nullptr;
    table_descriptors() {
        EXPECT_OK(ty_types_create(&set));
        EXPECT_OK(ty_types_root(set, "table", &table_descriptor, nullptr));
    }
    ~table_descriptors() { ty_types_destroy(set); }
};

// The same table for the same numbers; three of four entries are freed again, and with them their texts.
void fill_table(ty_heap *heap, size_t entries) {
    auto *made = static_cast<table *>(ty_alloc_zeroed(heap, sizeof(table)));
    made->count = 64;
    made->rows = static_cast<entry **>(ty_alloc_zeroed(heap, 64 * sizeof(entry *)));
    ASSERT_OK(ty_root_set(heap, "table", made));
    std::vector<entry *> freed;
    for (size_t i = 0; i < entries; i++) {
        auto *one = static_cast<entry *>(ty_alloc_zeroed(heap, sizeof(entry)));
        size_t length = 1 + i * i % (i % 50 == 0 ? 9000 : 200);
        one->text = static_cast<char *>(ty_alloc_zeroed(heap, length));
        memset(one->text, static_cast<int>('a' + i % 20), length - 1);
        one->number = i;
        if (i % 4 != 0) {
            freed.push_back(one);
            continue;
        }
        one->next = made->rows[i / 4 % 64];
        made->rows[i / 4 % 64] = one;
    }
    for (entry *one : freed) {
        ASSERT_OK(ty_free(one->text));
        ASSERT_OK(ty_free(one));
    }
}

std::string read_table(ty_heap *heap) {
    auto *found = static_cast<table *>(ty_root(heap, "table"));
    if (found == nullptr)
        return "none";
    std::string all;
    for (uint64_t row = 0; row < found->count; row++)
        for (entry *one = found->rows[row]; one != nullptr; one = one->next)
            all += std::to_string(one->number) + one->text + "\n";
    return all;
}

ty_open_options on(os::sim_disk *disk) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.storage = os::sim_storage(disk);
    options.background = TY_BACKGROUND_CALLS;
    options.limit_bytes = size_t{64} << 20;
    options.staging_bytes = size_t{8} << 20;
    options.kind = TY_SNAPSHOT;
    return options;
}

// A disk with a heap that was closed.
os::sim_disk *make_disk(size_t entries, std::string *content) {
    os::sim_disk *disk = os::sim_create();
    ty_open_options options = on(disk);
    ty_heap *heap;
    EXPECT_OK(ty_open(path, &options, &heap, nullptr));
    fill_table(heap, entries);
    *content = read_table(heap);
    EXPECT_OK(ty_close(heap));
    return disk;
}

ty_status compact_on(os::sim_disk *disk, ty_compact_report *report = nullptr) {
    table_descriptors descriptors;
    ty_open_options options = on(disk);
    ty_heap *heap;
    ty_status status = ty_open(path, &options, &heap, nullptr);
    if (status != TY_OK)
        return status;
    ty_compact_options compact = TY_COMPACT_OPTIONS_INIT;
    compact.types = descriptors.set;
    compact.threads = 1;
    status = ty_compact(heap, &compact, report);
    if (status == TY_OK && (status = ty_close(heap)) == TY_OK)
        return TY_OK;
    EXPECT_OK(ty_discard(heap));
    return status;
}

std::string content_on(os::sim_disk *disk) {
    ty_open_options options = on(disk);
    ty_heap *heap;
    EXPECT_OK(ty_open(path, &options, &heap, nullptr));
    std::string content = read_table(heap);
    EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
    EXPECT_OK(ty_discard(heap));
    return content;
}

TEST(pack_compact, fewer_pages_and_the_same_content) {
    std::string before;
    os::sim_disk *disk = make_disk(60000, &before);
    ty_compact_report report{};
    report.struct_size = sizeof report;
    uint64_t used = os::sim_used_bytes(disk);
    ASSERT_OK(compact_on(disk, &report));
    EXPECT_EQ(before, content_on(disk));
    EXPECT_LT(report.used_bytes, report.old_used_bytes / 2);
    EXPECT_GT(static_cast<double>(report.live_bytes) / static_cast<double>(report.used_bytes), 0.9);
    EXPECT_GT(report.fixed_pointers, 30000u);
    EXPECT_LT(os::sim_used_bytes(disk), used * 2 / 3); // the disk's space went back
    EXPECT_OK(ty_scrub(path, files_on(os::sim_storage(disk)), nullptr, nullptr, nullptr));
    os::sim_destroy(disk);
}

// Of few blocks of many sizes, each with a span of its own, what stands before the first long span counts.
TEST(pack_compact, makes_no_small_heap_larger) {
    for (size_t count = 1; count < 80; ++count) {
        const volatile_heap owner;
        ty_heap *heap = owner.heap;
        for (size_t i = 0; i < count; ++i)
            ASSERT_NE(nullptr, ty_alloc(heap, 1 + (i * i * 37 + count) % (i % 8 == 0 ? 9000 : 300)));
        ty_compact_options how = TY_COMPACT_OPTIONS_INIT;
        how.force = true;
        ty_compact_report report{};
        report.struct_size = sizeof report;
        ASSERT_OK(ty_compact(heap, &how, &report));
        EXPECT_LE(report.used_bytes, report.old_used_bytes) << count;
        EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
    }
}

TEST(pack_compact, power_cuts) {
    std::string before;
    os::sim_disk *disk = make_disk(1500, &before);
    uint64_t first = os::sim_event_count(disk);
    ASSERT_OK(compact_on(disk));
    uint64_t events = os::sim_event_count(disk);
    ASSERT_GT(events, first + 10);
    for (uint64_t event = first; event <= events; event++)
        for (os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random, os::sim_cut::prefix,
                                os::sim_cut::trash}) {
            os::sim_disk *found = os::sim_power_cut(disk, event, how, event);
            EXPECT_EQ(before, content_on(found)) << event;
            os::sim_destroy(found);
        }
    os::sim_destroy(disk);
}

TEST(pack_compact, failing_disk) {
    std::string before;
    for (uint64_t after = 0;; after += 3) {
        os::sim_disk *disk = make_disk(400, &before);
        os::sim_set_fault(disk, {os::sim_op_any, after, after % 2 == 0, TY_E_IO});
        ty_status status = compact_on(disk);
        bool over = os::sim_operation_count(disk, os::sim_op_any) <= after;
        os::sim_set_fault(disk, {});
        EXPECT_EQ(before, content_on(disk)) << after << " " << status;
        os::sim_destroy(disk);
        if (over)
            break;
    }
}

// Volatile heaps too, by type descriptors that the heap keeps, by a callback, or by force.
TEST(pack_compact, by_kept_descriptors_or_a_callback) {
    for (int how = 0; how < 3; how++) {
        volatile_heap heap;
        fill_table(heap, 20000);
        std::string before = read_table(heap);
        table_descriptors descriptors;
        ty_compact_options options = TY_COMPACT_OPTIONS_INIT;
        if (how == 0) {
            ASSERT_OK(ty_types_keep(descriptors.set, heap));
        } else if (how == 1) {
            options.fix = [](ty_heap *fixed, const ty_moves *moves, void *) {
                auto *found = static_cast<table *>(ty_root(fixed, "table"));
                ty_move_pointer(moves, &found->rows);
                for (uint64_t row = 0; row < found->count; row++) {
                    entry **place = &found->rows[row];
                    for (; *place != nullptr; place = &(*place)->next) {
                        ty_move_pointer(moves, place);
                        ty_move_pointer(moves, &(*place)->text);
                    }
                }
                return TY_OK;
            };
        } else {
            options.types = descriptors.set;
        }
        ASSERT_OK(ty_compact(heap, &options, nullptr));
        EXPECT_EQ(before, read_table(heap));
        EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
        const ty_heap_stats stats = heap_stats_of(heap);
        EXPECT_GT(static_cast<double>(stats.live_bytes) / static_cast<double>(stats.used_bytes), 0.85);
        fill_table(heap, 1000);
    }
}

// Also with force: type descriptors that cannot be used are found out before a block is freed.
TEST(pack_compact, descriptors_that_cannot_be_used) {
    volatile_heap heap;
    fill_table(heap, 500);
    auto *text = static_cast<char *>(ty_alloc_zeroed(heap, 64));
    strcpy(text, "this is no description");
    ASSERT_OK(ty_root_set(heap, TY_TYPES_ROOT, text));
    content before = content_of(heap);
    ty_compact_options options = TY_COMPACT_OPTIONS_INIT;
    options.force = true;
    EXPECT_EQ(TY_E_FORMAT, ty_compact(heap, &options, nullptr)) << ty_error_text();
    EXPECT_EQ(before, content_of(heap));
}

// What a progress callback throws when blocks have moved comes out when the heap is whole.
TEST(pack_compact, progress_that_throws) {
    for (uint64_t calls : {1u, 2u, 3u, 4u}) {
        volatile_heap heap;
        fill_table(heap, 60000);
        std::string before = read_table(heap);
        table_descriptors descriptors;
        ty_compact_options options = TY_COMPACT_OPTIONS_INIT;
        options.types = descriptors.set;
        uint64_t left = calls;
        options.progress = [](uint64_t, uint64_t, void *context) -> bool {
            if (--*static_cast<uint64_t *>(context) == 0)
                throw 7;
            return true;
        };
        options.progress_context = &left;
        ty_status status = TY_OK;
        EXPECT_THROW(status = ty_compact(heap, &options, nullptr), int);
        EXPECT_EQ(TY_OK, status);
        EXPECT_EQ(before, read_table(heap));
        EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
    }
}

TEST(pack_compact, refusals_leave_the_heap_as_it_was) {
    volatile_heap heap;
    fill_table(heap, 2000);
    content before = content_of(heap);
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_compact(heap, nullptr, nullptr)) << ty_error_text(); // nobody fixes addresses
    // A type descriptor that leaves a pointer out.
    ty_types *wrong;
    ASSERT_OK(ty_types_create(&wrong));
    static const ty_type lost = {"entry", sizeof(entry), nullptr, 0, nullptr, nullptr, nullptr};
    static const ty_field rows[] = {{"address", TY_FIELD_POINTER, 0, &lost, {}, {}, 0, 0}};
    static const ty_type row = {"row", 8, rows, 1, nullptr, nullptr, nullptr};
    static const ty_field fields[] = {{"rows", TY_FIELD_POINTER, 8, &row, {}, {TY_COUNT_FIELD, 1, 0, 8}, 0, 0}};
    static const ty_type whole = {"table", sizeof(table), fields, 1, nullptr, nullptr, nullptr};
    ASSERT_OK(ty_types_root(wrong, "table", &whole, nullptr));
    ty_compact_options options = TY_COMPACT_OPTIONS_INIT;
    options.types = wrong;
    EXPECT_EQ(TY_E_MISMATCH, ty_compact(heap, &options, nullptr)) << ty_error_text();
    ty_types_destroy(wrong);
    options = TY_COMPACT_OPTIONS_INIT;
    table_descriptors descriptors;
    options.types = descriptors.set;
    options.progress = [](uint64_t, uint64_t, void *) { return false; };
    EXPECT_EQ(TY_E_BUSY, ty_compact(heap, &options, nullptr));
    EXPECT_EQ(before, content_of(heap));
    EXPECT_EQ(TY_E_ARGUMENT, ty_compact(nullptr, nullptr, nullptr));
    folder where;
    for (ty_kind kind : {TY_TRANSACTIONAL, TY_SNAPSHOT}) {
        ty_open_options open = TY_OPEN_OPTIONS_INIT;
        open.kind = kind;
        open.limit_bytes = size_t{64} << 20;
        open.log_bytes = size_t{1} << 20;
        ty_heap *other;
        ASSERT_OK(ty_open(where.path("other").c_str(), &open, &other, nullptr));
        if (kind == TY_SNAPSHOT) {
            ASSERT_OK(ty_undo_attach(other, nullptr));
        }
        options.progress = nullptr;
        EXPECT_EQ(kind == TY_SNAPSHOT ? TY_E_BUSY : TY_E_UNSUPPORTED, ty_compact(other, &options, nullptr));
        ASSERT_OK(ty_close(other));
    }
    ty_open_options read_only = TY_OPEN_OPTIONS_INIT;
    read_only.mode = TY_OPEN_READ_ONLY;
    ty_heap *other;
    ASSERT_OK(ty_open(where.path("other").c_str(), &read_only, &other, nullptr));
    EXPECT_NE(TY_OK, ty_compact(other, &options, nullptr)) << ty_error_text();
    ASSERT_OK(ty_close(other));
}

} // namespace
} // namespace taiyen::test
