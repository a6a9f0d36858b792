// Goal: buffers are made, taken up again in later sessions, refused and removed as undo.h says; and bytes of buffers
// that make no sense do no harm.
#include "tests/undo/support.hpp"

#include "src/undo/undo.hpp"
#include "src/undo/undo_layout.hpp"

namespace taiyen::test {
namespace {

undo_control *control_of(ty_heap *heap) {
    return static_cast<undo_control *>(heap_service_root(heap));
}

TEST(attach, yesterdays_changes_are_undone_today) {
    undo_heap heap;
    char *block = heap.block(100, 1), *freed = heap.block(70000, 2);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    heap.change(block, 100, 3, "yesterday");
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_free(heap, freed));
    ASSERT_OK(ty_undo_end(heap));
    heap.close();
    heap.open();
    EXPECT_EQ(ty_undo(heap), TY_E_ARGUMENT); // not attached
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    EXPECT_TRUE(stats_of(heap).reattached);
    EXPECT_EQ(stats_of(heap).kept_blocks, 1u);
    EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_BUSY);
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(freed, 70000, 2));
    heap.close(); // in a cycle
    heap.open();
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    EXPECT_TRUE(stats_of(heap).cycle);
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 100, 1));
    ASSERT_OK(ty_redo(heap));
    ASSERT_OK(ty_redo(heap));
    EXPECT_TRUE(all_are(block, 100, 3));
    EXPECT_EQ(stats_of(heap).kept_blocks, 1u);
}

TEST(attach, the_history_is_that_of_the_snapshot) {
    undo_heap heap;
    char *block = heap.block(100, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    heap.change(block, 100, 2);
    ASSERT_OK(ty_undo_begin(heap, "half"));
    heap.write(block, 50, 3);
    ASSERT_OK(ty_snapshot(heap));
    heap.write(block, 100, 4);
    ASSERT_OK(ty_undo_end(heap));
    heap.change(block, 100, 5);
    heap.discard();
    heap.open();
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    EXPECT_TRUE(stats_of(heap).open);
    EXPECT_TRUE(all_are(block, 50, 3) && all_are(block + 50, 50, 2));
    ASSERT_OK(ty_undo_cancel(heap));
    EXPECT_TRUE(all_are(block, 100, 2));
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 100, 1));
}

TEST(attach, other_options_make_new_buffers_only_without_a_history) {
    undo_heap heap;
    char *block = heap.block(100, 1);
    uint64_t live = live_blocks(heap);
    ty_undo_options options = TY_UNDO_OPTIONS_INIT, others = TY_UNDO_OPTIONS_INIT;
    options.undo_bytes = 10000;
    others.fixed = true;
    ASSERT_OK(ty_undo_attach(heap, &options));
    heap.change(block, 100, 2);
    ASSERT_OK(ty_undo_detach(heap, true));
    EXPECT_EQ(ty_undo_attach(heap, &others), TY_E_EXISTS);
    ASSERT_OK(ty_undo_attach(heap, &options)); // the same
    ASSERT_OK(ty_undo_clear(heap));
    ASSERT_OK(ty_undo_detach(heap, true));
    options.undo_bytes = SIZE_MAX - 100;
    EXPECT_EQ(ty_undo_attach(heap, &options), TY_E_MEMORY);
    ASSERT_OK(ty_undo_attach(heap, nullptr)); // what there was is still there
    EXPECT_TRUE(stats_of(heap).reattached);
    ASSERT_OK(ty_undo_detach(heap, true));
    ASSERT_OK(ty_undo_attach(heap, &others));
    EXPECT_EQ(stats_of(heap).undo_size, size_t{16} << 20);
    EXPECT_FALSE(stats_of(heap).reattached);
    EXPECT_EQ(live_blocks(heap), live + 1);
    ASSERT_OK(ty_undo_detach(heap, false));
    EXPECT_EQ(live_blocks(heap), live);
    EXPECT_EQ(ty_undo_detach(heap, false), TY_E_NOT_FOUND);
    EXPECT_EQ(ty_undo_detach(heap, true), TY_E_NOT_FOUND);
    EXPECT_EQ(ty_undo_attach(heap, &options), TY_E_MEMORY);
    EXPECT_EQ(live_blocks(heap), live);
}

TEST(attach, a_detach_of_what_is_not_attached_frees_all_that_is_kept) {
    undo_heap heap;
    uint64_t live = live_blocks(heap);
    char *freed = heap.block(5000, 2);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_free(heap, freed));
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_undo_detach(heap, true));
    EXPECT_EQ(live_blocks(heap), live + 2);
    ASSERT_OK(ty_undo_detach(heap, false));
    EXPECT_EQ(live_blocks(heap), live);
}

TEST(attach, volatile_buffers_end_with_the_session) {
    for (bool in_order : {true, false}) {
        SCOPED_TRACE(in_order);
        undo_heap heap;
        char *block = heap.block(100, 1), *freed = heap.block(70000, 2);
        ty_undo_options options = TY_UNDO_OPTIONS_INIT;
        options.volatile_buffers = true;
        ASSERT_OK(ty_undo_attach(heap, &options));
        uint64_t live = live_blocks(heap);
        heap.change(block, 100, 3);
        ASSERT_OK(ty_undo_begin(heap, nullptr));
        ASSERT_OK(ty_undo_free(heap, freed));
        ASSERT_OK(ty_undo_end(heap));
        ASSERT_OK(ty_undo(heap));
        ASSERT_OK(ty_redo(heap));
        ASSERT_OK(ty_snapshot(heap));
        if (in_order)
            heap.close();
        else
            heap.discard();
        heap.open();
        ASSERT_OK(ty_undo_attach(heap, nullptr));
        EXPECT_EQ(stats_of(heap).lost_volatile, !in_order);
        EXPECT_EQ(ty_undo(heap), TY_E_NOT_FOUND);
        EXPECT_EQ(live_blocks(heap), live - 1);
        EXPECT_TRUE(all_are(block, 100, 3));
        heap.change(block, 100, 4);
        ASSERT_OK(ty_undo(heap));
        EXPECT_TRUE(all_are(block, 100, 3));
        ASSERT_OK(ty_undo_detach(heap, true));
        ASSERT_OK(ty_undo_attach(heap, nullptr));
        EXPECT_FALSE(stats_of(heap).lost_volatile);
        EXPECT_EQ(ty_redo(heap), TY_E_NOT_FOUND);
        expect_sound(heap);
    }
}

TEST(attach, volatile_and_archive_heaps) {
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_heap_create(nullptr, &heap));
    auto *block = static_cast<char *>(ty_alloc(heap, 100));
    memset(block, 1, 100);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_record(heap, block, 100));
    memset(block, 2, 100);
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 100, 1));
    ASSERT_OK(ty_heap_destroy(heap)); // attached

    disk files;
    ty_open_options options = files.options();
    options.kind = TY_ARCHIVE;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    block = static_cast<char *>(ty_alloc(heap, 100));
    memset(block, 1, 100);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_record(heap, block, 100));
    memset(block, 2, 100);
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_close(heap));
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 100, 1));
    ASSERT_OK(ty_close(heap));
    options.mode = TY_OPEN_READ_ONLY;
    options.kind = TY_KIND_DEFAULT;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_PERMISSION);
    EXPECT_EQ(ty_undo_detach(heap, false), TY_E_PERMISSION);
    ASSERT_OK(ty_close(heap));
}

TEST(attach, transactional_heaps_have_none) {
    disk files;
    ty_heap *heap = nullptr;
    ty_open_options options = files.options(), as_transactional = options;
    as_transactional.kind = TY_TRANSACTIONAL;
    as_transactional.log_bytes = size_t{1} << 20;
    options.kind = TY_SNAPSHOT;
    ASSERT_OK(ty_open(heap_path, &as_transactional, &heap, nullptr));
    EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_UNSUPPORTED);
    EXPECT_EQ(ty_undo_detach(heap, false), TY_E_NOT_FOUND);
    ASSERT_NE(ty_reserve(heap, 100), nullptr); // the list of reserved blocks is in the service root now
    EXPECT_EQ(ty_undo_detach(heap, false), TY_E_NOT_FOUND);
    ASSERT_OK(ty_close(heap));

    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr)); // the log is detached, and the list left
    EXPECT_NE(heap_service_root(heap), nullptr);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    EXPECT_EQ(live_blocks(heap), 1u);
    auto *block = static_cast<char *>(ty_alloc(heap, 100));
    memset(block, 1, 100);
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_OK(ty_undo_record(heap, block, 100));
    memset(block, 2, 100);
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_close(heap));

    std::string image = files.read_file(heap_path);
    EXPECT_EQ(ty_open(heap_path, &as_transactional, &heap, nullptr), TY_E_UNSUPPORTED);
    EXPECT_NE(std::string(ty_error_text()).find("undo"), std::string::npos) << ty_error_text();
    EXPECT_EQ(image, files.read_file(heap_path));
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 100, 1));
    ASSERT_OK(ty_undo_detach(heap, false));
    ASSERT_OK(ty_close(heap));
    ASSERT_OK(ty_open(heap_path, &as_transactional, &heap, nullptr));
    ASSERT_OK(ty_close(heap));
}

// A history with every kind of entry, in a cycle.
void make_history(undo_heap &heap, std::vector<char *> &blocks) {
    blocks = {heap.block(100, 1), heap.block(30000, 2), heap.block(3000, 3)};
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    options.undo_bytes = 8000;
    options.entries = 40;
    ASSERT_OK(ty_undo_attach(heap, &options));
    heap.change(blocks[0], 100, 4);
    ASSERT_OK(ty_undo_begin(heap, "blocks"));
    ASSERT_EQ(ty_undo_resize(heap, blocks[1], 9000), blocks[1]);
    ASSERT_OK(ty_undo_free(heap, blocks[2]));
    ASSERT_NE(ty_undo_alloc(heap, 60), nullptr);
    ASSERT_OK(ty_undo_end(heap));
    heap.change(blocks[0], 10, 5);
    ASSERT_OK(ty_undo(heap));
}

TEST(attach, every_wrong_byte_is_refused_or_harmless) {
    undo_heap heap;
    std::vector<char *> blocks;
    make_history(heap, blocks);
    ASSERT_OK(ty_undo_detach(heap, true));
    auto *bytes = reinterpret_cast<unsigned char *>(control_of(heap));
    size_t size = sizeof(undo_control) + 82 * sizeof(undo_entry) + 2 * 8192;
    int refused = 0, undone = 0;
    std::string saved(reinterpret_cast<char *>(bytes), size);
    content before = content_of(heap);
    for (size_t at = 0; at < size; at++) {
        if (bytes[at] == 0 && at > sizeof(undo_control) + 2000 && at % 64 != 0)
            continue; // rings that were never written
        if (at / 8 == offsetof(undo_control, kept_bytes_max) / 8)
            continue; // any value is a setting that could have been asked for
        for (int flip : {0x01, 0x80}) {
            bytes[at] = static_cast<unsigned char>(bytes[at] ^ flip);
            ty_status status = ty_undo_attach(heap, nullptr);
            refused += status != TY_OK;
            if (status == TY_OK) {
                // What was attached can be undone, or is refused with nothing changed; never more.
                std::string a(blocks[0], 100);
                status = ty_undo(heap);
                undone += status == TY_OK;
                EXPECT_TRUE(status == TY_OK || status == TY_E_DAMAGED || status == TY_E_NOT_FOUND) << at;
                if (status == TY_OK) {
                    ASSERT_OK(ty_redo(heap)) << at;
                }
                EXPECT_EQ(a, std::string(blocks[0], 100));
                ASSERT_OK(ty_undo_detach(heap, true));
            } else {
                EXPECT_TRUE(status == TY_E_DAMAGED || status == TY_E_FORMAT || status == TY_E_MEMORY) << at;
            }
            memcpy(bytes, saved.data(), size);
            ASSERT_FALSE(HasFailure()) << "byte " << at;
        }
    }
    EXPECT_GT(refused, 300);
    EXPECT_GT(undone, 100);
    content after = content_of(heap);
    after[reinterpret_cast<char *>(bytes)] = before[reinterpret_cast<char *>(bytes)];
    EXPECT_TRUE(before == after);
    expect_sound(heap);
}

TEST(attach, buffers_that_make_no_sense_can_be_removed) {
    undo_heap heap;
    std::vector<char *> blocks;
    make_history(heap, blocks);
    uint64_t live = live_blocks(heap);
    ASSERT_OK(ty_undo_detach(heap, true));
    control_of(heap)->cursor = 12345;
    EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_DAMAGED);
    ASSERT_OK(ty_undo_detach(heap, false));
    EXPECT_EQ(live_blocks(heap), live - 1); // what they held stays: no entry is believed
    expect_sound(heap);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    heap.change(blocks[0], 1, 9);
    ASSERT_OK(ty_undo(heap));
}

// Each size is compared with the block that the buffers lie in, and so are all together (U6): what would be recorded
// there later must not lie after it.
TEST(attach, buffers_that_are_larger_than_their_block_are_refused) {
    undo_heap heap;
    std::vector<char *> blocks;
    make_history(heap, blocks);
    ASSERT_OK(ty_undo_detach(heap, true));
    undo_control &control = *control_of(heap);
    uint64_t *sizes[] = {&control.entry_count, &control.payload_bytes[0], &control.payload_bytes[1]};
    for (uint64_t *size : sizes) {
        for (uint64_t wrong : {*size + 8192, uint64_t{1} << 40, UINT64_MAX & ~uint64_t{7}}) {
            uint64_t kept = std::exchange(*size, wrong);
            EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_DAMAGED) << size - sizes[0] << ": " << wrong;
            *size = kept;
        }
    }
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    expect_sound(heap);
}

// An open transaction has no checksum yet: only the chain of places shows where the bytes of its entries must lie (U6).
TEST(attach, an_open_transaction_whose_places_were_changed_is_refused) {
    undo_heap heap;
    char *block = heap.block(100, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    heap.write(block, 40, 2);
    heap.write(block + 40, 40, 3);
    ASSERT_OK(ty_undo_detach(heap, true));
    auto *entries = reinterpret_cast<undo_entry *>(control_of(heap) + 1);
    const uint64_t what = entries[1].what;
    entries[1].what = entries[0].what;
    EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_DAMAGED);
    entries[1].what = what;
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_cancel(heap));
    EXPECT_TRUE(all_are(block, 100, 1));
}

// Found while fuzz_undo was written: an allocation, or a growth, of the buffers' own block could be undone, and the
// exit freed the buffers under the undo that used them.
TEST(attach, entries_on_the_block_of_the_buffers_are_refused) {
    undo_heap heap;
    heap.block(5000); // a run before the buffers, to which they could be joined
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    options.undo_bytes = 8000;
    options.entries = 40;
    ASSERT_OK(ty_undo_attach(heap, &options));
    ASSERT_OK(ty_undo_begin(heap, nullptr));
    ASSERT_NE(ty_undo_alloc(heap, 60), nullptr);
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_undo_detach(heap, true));
    undo_control *control = control_of(heap);
    const auto offset = uint64_t(reinterpret_cast<char *>(control) - static_cast<char *>(ty_heap_base(heap)));
    const uint64_t bytes = ty_usable_size(control), page = 4096;
    auto &entry = *reinterpret_cast<undo_entry *>(control + 1);
    const undo_entry sound = entry;
    auto what = [](undo_kind kind, uint64_t kept) { return uint64_t(kind) | kept << undo_position_shift; };
    for (const undo_entry &hostile :
         {undo_entry{offset, bytes, what(undo_kind::alloc, 0)}, undo_entry{offset, bytes, what(undo_kind::free, 0)},
          undo_entry{offset, bytes - page, what(undo_kind::grow, page)},
          undo_entry{offset - page, bytes, what(undo_kind::shrink, page)}}) {
        entry = hostile;
        EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_DAMAGED) << (hostile.what & 0xff);
    }
    entry = sound;
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo(heap));
    expect_sound(heap);
}

// Found while fuzz_undo was written: these were attached, and what ended the transaction left buffers that could not be
// attached again: the mark went over the oldest bytes, or had a label without an end.
TEST(attach, an_open_transaction_that_could_not_be_closed_is_refused) {
    undo_heap heap;
    char *block = heap.block(100, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_begin(heap, "label"));
    heap.write(block, 40, 2);
    heap.write(block + 40, 40, 3);
    ASSERT_OK(ty_undo_detach(heap, true));
    undo_control *control = control_of(heap);
    const undo_control sound = *control;
    control->label[sizeof control->label - 1] = 'x';
    EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_DAMAGED);
    *control = sound;
    control->payload_bytes[0] = 2 * 96 + 80 - 8;
    EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_DAMAGED);
    *control = sound;
    control->entry_count = 2;
    EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_DAMAGED);
    *control = sound;
    control->state = undo_full; // without one that is open: the next one would be given up
    control->cursor = control->positions[0].entries_end = 0;
    control->positions[0].payload_end = 0;
    EXPECT_EQ(ty_undo_attach(heap, nullptr), TY_E_DAMAGED);
    *control = sound;
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    ASSERT_OK(ty_undo_end(heap));
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 100, 1));
}

TEST(attach, recorded_bytes_that_changed_are_found) {
    undo_heap heap;
    char *block = heap.block(100, 1);
    ASSERT_OK(ty_undo_attach(heap, nullptr));
    heap.change(block, 100, 2);
    auto *payload =
        reinterpret_cast<char *>(control_of(heap) + 1) + 2 * control_of(heap)->entry_count * sizeof(undo_entry);
    ASSERT_TRUE(all_are(payload, 100, 1));
    payload[50] = 7;
    EXPECT_EQ(ty_undo(heap), TY_E_DAMAGED);
    EXPECT_TRUE(all_are(block, 100, 2));
    payload[50] = 1;
    ASSERT_OK(ty_undo(heap));
    EXPECT_TRUE(all_are(block, 100, 1));
}

} // namespace
} // namespace taiyen::test
