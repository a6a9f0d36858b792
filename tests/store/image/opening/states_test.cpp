// Goal: each state that files can be in is distinguished, and gives the last snapshot or a refusal that changes
// nothing. Method: make the state on a simulated disk, open, look at report, content, and the files' bytes.
#include "../support.hpp"
#include "src/store/image/files/checksum.hpp"
#include "tests/files_on.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class states_test : public testing::Test {
protected:
    void make(const disk &files, int rounds = 3) {
        ty_open_options options = files.options();
        ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
        scribble.forget_others(heap);
        for (int i = 0; i < rounds; ++i) {
            scribble.change(heap, 100);
            ASSERT_OK(ty_snapshot(heap));
        }
        last = content_of(heap);
    }
    // Opens a copy of the disk as a crash leaves it.
    void expect_found(os::sim_disk *taken, ty_recovery_state found, const content &expected) {
        disk copy(taken);
        ty_open_options options = copy.options();
        ty_heap *reopened = nullptr;
        ASSERT_OK(ty_open(heap_path, &options, &reopened, &report));
        EXPECT_EQ(found, report.found) << report.text;
        EXPECT_EQ(expected, content_of(reopened));
        expect_sound(reopened);
        ASSERT_OK(ty_close(reopened));
    }
    // Opening must be refused, and change nothing.
    void expect_refused(const disk &files, ty_status status, ty_open_options options) {
        std::string image = files.read_file(heap_path), journal = files.read_file(journal_path);
        const uint64_t events = os::sim_event_count(files.get());
        ty_heap *reopened = nullptr;
        EXPECT_EQ(status, ty_open(heap_path, &options, &reopened, nullptr)) << ty_error_text();
        EXPECT_NE(std::string::npos, std::string(ty_error_text()).find(".ty")) << ty_error_text();
        if (image != "(none)") { // where there is none, it is made under another name, and removed again
            EXPECT_EQ(events, os::sim_event_count(files.get())) << "something was written";
        }
        EXPECT_TRUE(image == files.read_file(heap_path)) << "the image was changed";
        EXPECT_TRUE(journal == files.read_file(journal_path)) << "the journal was changed";
        ASSERT_OK(ty_discard(reopened));
    }
    void expect_refused(const disk &files, ty_status status) { expect_refused(files, status, files.options()); }

    // Where the first chunk of an epoch stands in the journal.
    static uint64_t chunk_of(const disk &files, uint64_t epoch) {
        for (uint64_t at = journal_front; at < 4 << 20; at += page_bytes) {
            chunk_header header; // a whole page
            if (!files.read(journal_path, at, &header))
                break;
            if (header.magic == chunk_magic && header.epoch == epoch && header.index == 0)
                return at;
        }
        ADD_FAILURE() << "no epoch " << epoch;
        return 0;
    }

    scribbler scribble{11};
    ty_heap *heap = nullptr;
    ty_report report{};
    content last;
};

TEST_F(states_test, closed_and_clean) {
    disk files;
    make(files);
    ASSERT_OK(ty_close(heap));
    expect_found(files.cut(os::sim_cut::keep_all), TY_RECOVERY_CLOSED, last);
    expect_found(files.cut(os::sim_cut::drop_all), TY_RECOVERY_CLOSED, last);
}

TEST_F(states_test, closed_with_batches_to_checkpoint) {
    disk files;
    make(files);
    ASSERT_OK(ty_discard(heap));
    expect_found(files.cut(os::sim_cut::keep_all), TY_RECOVERY_CLOSED_BATCHES, last);
}

TEST_F(states_test, died_between_snapshots) {
    disk files;
    make(files);
    ASSERT_OK(ty_run_background_work(heap));
    os::sim_disk *copy = files.cut(os::sim_cut::keep_all);
    ASSERT_OK(ty_discard(heap));
    expect_found(copy, TY_RECOVERY_CRASHED, last);
}

TEST_F(states_test, died_with_batches_unapplied) {
    disk files;
    make(files);
    os::sim_disk *copy = files.cut(os::sim_cut::keep_all);
    ASSERT_OK(ty_discard(heap));
    expect_found(copy, TY_RECOVERY_CRASHED_BATCHES, last);
}

TEST_F(states_test, died_while_writing_a_batch) {
    disk files;
    make(files);
    scribble.change(heap, 100);
    ASSERT_OK(ty_write_back_early(heap, 0));
    uint64_t epoch = 0;
    ASSERT_OK(ty_snapshot_start(heap, &epoch));
    uint64_t before_flush = os::sim_event_count(files.get());
    ASSERT_OK(ty_snapshot_wait(heap, epoch));
    uint64_t after = os::sim_event_count(files.get());
    ASSERT_LT(before_flush + 1, after);
    ASSERT_OK(ty_discard(heap));
    // The first chunk is there, the last is not.
    os::sim_disk *copy = os::sim_power_cut(files.get(), before_flush, os::sim_cut::keep_all, 1);
    expect_found(copy, TY_RECOVERY_CRASHED_WRITING, last);
    EXPECT_EQ(1u, report.batches_discarded);
}

// A process that dies before its flush leaves a batch that is whole but not durable. Once an open has reported that
// epoch, a power cut must not take it away.
TEST_F(states_test, what_an_open_reports_is_durable) {
    disk files;
    make(files);
    scribbler s(12);
    s.change(heap, 50);
    ASSERT_OK(ty_snapshot(heap));
    content newest = content_of(heap);
    uint64_t flush = os::sim_event_count(files.get()) - 1;
    disk died(os::sim_power_cut(files.get(), flush, os::sim_cut::process_death, 1));
    ASSERT_OK(ty_discard(heap));
    ty_open_options options = died.options();
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    ASSERT_EQ(newest, content_of(heap));
    uint64_t epoch = report.epoch;
    disk cut(died.cut(os::sim_cut::drop_all));
    ASSERT_OK(ty_discard(heap));
    options = cut.options();
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(epoch, report.epoch);
    EXPECT_EQ(newest, content_of(heap));
    ASSERT_OK(ty_close(heap));
}

// Nor where the process saw the flush fail, and could not take the batch out of the journal: then no later flush makes
// it durable.
TEST_F(states_test, what_an_open_reports_is_durable_after_a_failed_flush) {
    int found = 0;
    for (uint64_t n = 0; n < 12; ++n) { // the write fails, or the flush and what comes after it
        SCOPED_TRACE(n);
        disk files;
        make(files);
        scribbler s(12);
        for (uint64_t batches = n % 3; batches > 0; --batches) { // that lie before it, not checkpointed
            s.change(heap, 20);
            ASSERT_OK(ty_snapshot(heap));
        }
        if (n % 2) {
            ASSERT_OK(ty_run_background_work(heap));
        }
        uint64_t acknowledged = ty_heap_epoch(heap);
        s.change(heap, 50);
        os::sim_set_fault(files.get(), {os::sim_op_flush | os::sim_op_write, n / 6, true, TY_E_IO});
        EXPECT_EQ(TY_E_IO, ty_snapshot(heap));
        (void)ty_discard(heap); // it may fail to write the header
        os::sim_set_fault(files.get(), {});
        ty_open_options options = files.options();
        ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
        uint64_t epoch = report.epoch;
        found += epoch > acknowledged;
        content there = content_of(heap);
        disk cut(files.cut(os::sim_cut::drop_all));
        s.forget_others(heap);
        s.change(heap, 5);
        ASSERT_OK(ty_snapshot(heap));
        content next = content_of(heap);
        disk later(files.cut(os::sim_cut::drop_all));
        ASSERT_OK(ty_run_background_work(heap)); // it finds the batches where they are now
        ASSERT_OK(ty_discard(heap));
        for (auto &[from, expected] : {std::pair{&cut, &there}, {&later, &next}, {&files, &next}}) {
            options = from->options();
            ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
            EXPECT_EQ(epoch + (from != &cut), report.epoch);
            EXPECT_EQ(*expected, content_of(heap));
            ASSERT_OK(ty_close(heap));
        }
    }
    EXPECT_GT(found, 0) << "no batch stood in the journal whole";
}

TEST_F(states_test, journal_missing) {
    disk files;
    make(files);
    ASSERT_OK(ty_discard(heap));
    files.rename(journal_path, "elsewhere");
    expect_refused(files, TY_E_MISMATCH);
    files.rename("elsewhere", journal_path);
    ty_open_options options = files.options();
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_close(heap));
    files.remove(journal_path); // the image is clean: it has all
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_TRUE(report.journal_recreated);
    EXPECT_EQ(last, content_of(heap));
    ASSERT_OK(ty_close(heap));
}

TEST_F(states_test, image_missing) {
    disk files;
    make(files);
    ASSERT_OK(ty_discard(heap));
    files.rename(heap_path, "elsewhere");
    expect_refused(files, TY_E_MISMATCH);
    ty_open_options options = files.options();
    options.mode = TY_OPEN_EXISTING;
    expect_refused(files, TY_E_NOT_FOUND, options);
}

TEST_F(states_test, journal_of_another_heap) {
    disk files;
    make(files);
    ASSERT_OK(ty_discard(heap));
    ty_open_options options = files.options();
    ASSERT_OK(ty_open("other.ty", &options, &heap, nullptr));
    ASSERT_OK(ty_close(heap));
    options.journal_path = "other.ty-journal";
    expect_refused(files, TY_E_MISMATCH, options);
}

TEST_F(states_test, image_that_is_an_older_copy) {
    disk files;
    make(files);
    ASSERT_OK(ty_run_background_work(heap));
    disk old(files.cut(os::sim_cut::keep_all));
    for (int i = 0; i < 3; ++i) {
        scribble.change(heap, 100);
        ASSERT_OK(ty_snapshot(heap));
        ASSERT_OK(ty_run_background_work(heap));
    }
    scribble.change(heap, 100);
    ASSERT_OK(ty_snapshot(heap));
    // The old image beside the new journal.
    const ty_storage *from = files.storage(), *to = old.storage();
    ty_file *source = nullptr, *target = nullptr;
    ASSERT_OK(from->open(from->context, journal_path, 0, &source));
    ASSERT_OK(to->open(to->context, journal_path, TY_FILE_WRITE, &target));
    uint64_t size = 0;
    ASSERT_OK(from->get_size(from->context, source, &size));
    std::vector<char> bytes(size + 4096);
    char *aligned = reinterpret_cast<char *>((uintptr_t(bytes.data()) + 4095) / 4096 * 4096);
    ASSERT_OK(from->read(from->context, source, 0, aligned, size / 4096 * 4096));
    ASSERT_OK(to->write(to->context, target, 0, aligned, size / 4096 * 4096));
    from->close(from->context, source);
    to->close(to->context, target);
    ASSERT_OK(ty_discard(heap));
    expect_refused(old, TY_E_MISMATCH);
}

// A batch counts after the one that it was written after, and no other of that epoch: two lines of snapshots that
// went on from one copy are not mixed.
TEST_F(states_test, batch_of_another_line) {
    disk files;
    make(files, 2);
    os::sim_disk *copy = files.cut(os::sim_cut::keep_all);
    ASSERT_OK(ty_discard(heap));
    disk other(copy);
    const uint64_t place = chunk_of(other, 2);
    chunk_header header;
    ASSERT_TRUE(other.read(journal_path, place, &header));
    header.previous_nonce += 1;
    header.checksum = header_checksum(header);
    other.patch(journal_path, place, &header, sizeof header);
    expect_refused(other, TY_E_MISMATCH);
}

TEST_F(states_test, damage_in_a_batch_that_a_later_one_follows) {
    disk files;
    make(files, 3);
    ASSERT_OK(ty_discard(heap));
    files.flip(journal_path, chunk_of(files, 2) + 4096 + 17); // a page
    expect_refused(files, TY_E_DAMAGED);
}

// A regression: with the first header of a batch gone, its end is not known, and the batches after it were overlooked:
// the open silently went back to the epoch before.
TEST_F(states_test, damage_in_the_first_header_of_a_batch_that_a_later_one_follows) {
    for (uint64_t pages : {5, 700}) { // in one chunk; in several
        disk files;
        make(files, 1);
        for (int i = 0; i < 2; ++i) {
            auto *block = static_cast<char *>(ty_alloc(heap, pages * 4096));
            memset(block, 1, pages * 4096);
            ASSERT_OK(ty_snapshot(heap));
        }
        os::sim_disk *copy = files.cut(os::sim_cut::keep_all); // the header knows nothing of them
        ASSERT_OK(ty_discard(heap));
        disk damaged(copy);
        damaged.flip(journal_path, chunk_of(damaged, 2) + 24);
        expect_refused(damaged, TY_E_DAMAGED);
    }
}

TEST_F(states_test, damage_in_a_batch_that_the_header_knows) {
    disk files;
    make(files, 1);
    ASSERT_OK(ty_discard(heap)); // writes that epoch 1 is durable
    files.flip(journal_path, chunk_of(files, 1) + 200);
    expect_refused(files, TY_E_DAMAGED);
}

TEST_F(states_test, one_damaged_header_is_served_by_the_other) {
    for (uint64_t slot : {0, 4096}) {
        disk files;
        make(files);
        ASSERT_OK(ty_run_background_work(heap));
        os::sim_disk *copy = files.cut(os::sim_cut::keep_all);
        ASSERT_OK(ty_discard(heap));
        disk damaged(copy);
        damaged.flip(heap_path, slot + 50);
        ty_open_options options = damaged.options();
        ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
        EXPECT_TRUE(report.header_repaired);
        EXPECT_EQ(last, content_of(heap));
        ASSERT_OK(ty_close(heap));
        damaged.flip(heap_path, 50);
        damaged.flip(heap_path, 4096 + 50);
        expect_refused(damaged, TY_E_DAMAGED);
    }
}

// Also when the journal's space was used again since: either header alone knows that the image holds what stood there.
TEST_F(states_test, one_damaged_header_is_served_by_the_other_after_the_journal_was_used_again) {
    for (uint64_t slot : {0, 4096}) {
        disk files;
        make(files);
        ASSERT_OK(ty_run_background_work(heap));
        scribble.change(heap, 100);
        ASSERT_OK(ty_snapshot(heap));
        last = content_of(heap);
        disk damaged(files.cut(os::sim_cut::keep_all));
        ASSERT_OK(ty_discard(heap));
        damaged.flip(heap_path, slot + 50);
        ty_open_options options = damaged.options();
        ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
        EXPECT_TRUE(report.header_repaired);
        EXPECT_EQ(last, content_of(heap));
        ASSERT_OK(ty_close(heap));
    }
}

TEST_F(states_test, truncated_image) {
    disk files;
    make(files);
    ASSERT_OK(ty_close(heap));
    files.resize(heap_path, small_limit);
    expect_refused(files, TY_E_DAMAGED);
}

TEST_F(states_test, open_twice) {
    disk files;
    make(files);
    ty_open_options options = files.options();
    ty_heap *second = nullptr;
    EXPECT_EQ(TY_E_BUSY, ty_open(heap_path, &options, &second, nullptr));
    options.mode = TY_OPEN_READ_ONLY;
    EXPECT_EQ(TY_E_BUSY, ty_open(heap_path, &options, &second, nullptr));
    ASSERT_OK(ty_close(heap));
}

TEST_F(states_test, read_only_sees_unapplied_batches_and_changes_nothing) {
    disk files;
    make(files);
    ASSERT_OK(ty_discard(heap));
    uint64_t events = os::sim_event_count(files.get());
    ty_open_options options = files.options();
    options.mode = TY_OPEN_READ_ONLY;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(last, content_of(heap));
    expect_sound(heap);
    EXPECT_EQ(nullptr, ty_alloc(heap, 10));
    EXPECT_EQ(TY_E_PERMISSION, ty_snapshot(heap));
    ASSERT_OK(ty_close(heap));
    EXPECT_EQ(events, os::sim_event_count(files.get()));
}

TEST_F(states_test, a_larger_limit_at_open) {
    disk files;
    make(files);
    ASSERT_OK(ty_close(heap));
    ty_open_options options = files.options();
    options.limit_bytes = 4 * small_limit;
    ty_info info{};
    info.struct_size = sizeof info;
    ASSERT_OK(ty_read_info(heap_path, files_on(files.storage()), &info));
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_TRUE(report.grown);
    EXPECT_EQ(info.epoch, report.epoch); // what was restored; the growth itself made one more
    EXPECT_LT(report.epoch, ty_heap_epoch(heap));
    EXPECT_EQ(last, content_of(heap));
    void *large = ty_alloc(heap, 3 * small_limit);
    ASSERT_NE(nullptr, large) << ty_error_text();
    ASSERT_OK(ty_free(large));
    expect_sound(heap);
    ASSERT_OK(ty_close(heap));
    options.limit_bytes = 0;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_FALSE(report.grown);
    EXPECT_EQ(last, content_of(heap));
    ASSERT_OK(ty_close(heap));
    EXPECT_OK(ty_scrub(heap_path, files_on(files.storage()), nullptr, nullptr, nullptr));
}

// What a growth takes for the heap's pages held the page checksums: it reads as zeros.
TEST_F(states_test, memory_won_by_growth_is_zero) {
    disk files;
    make(files);
    ASSERT_OK(ty_close(heap));
    ty_open_options options = files.options();
    options.limit_bytes = 4 * small_limit;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    ASSERT_TRUE(report.grown);
    constexpr size_t bytes = 2 * small_limit; // it lies where the old end was, too
    auto *zeroed = static_cast<char *>(ty_alloc_zeroed(heap, bytes));
    ASSERT_NE(nullptr, zeroed) << ty_error_text();
    ASSERT_OK(ty_root_set(heap, "zeroed", zeroed));
    const std::vector<char> zeros(bytes);
    EXPECT_EQ(0, memcmp(zeroed, zeros.data(), bytes));
    ASSERT_OK(ty_close(heap));
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(0, memcmp(ty_root(heap, "zeroed"), zeros.data(), bytes));
    ASSERT_OK(ty_close(heap));
}

// A power cut while an archive heap gets its journal: whatever becomes of the header that the open writes again in its
// place, the heap stays one that was closed in order, and gets it the next time. (taiyen-crash found one in 60,000.)
TEST_F(states_test, an_attach_that_is_cut_can_be_done_again) {
    disk files;
    ty_open_options options = files.options();
    options.kind = TY_ARCHIVE;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    scribble.change(heap, 300);
    last = content_of(heap);
    ASSERT_OK(ty_close(heap));
    options.kind = TY_SNAPSHOT;
    const uint64_t before = os::sim_event_count(files.get());
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    const uint64_t after = os::sim_event_count(files.get());
    ASSERT_OK(ty_discard(heap));
    for (uint64_t event = before; event <= after; event++)
        for (uint64_t seed = 0; seed < 64; seed++) {
            SCOPED_TRACE(testing::Message() << "cut before event " << event << ", seed " << seed);
            disk cut(os::sim_power_cut(files.get(), event, os::sim_cut::trash, seed));
            options = cut.options();
            options.kind = TY_SNAPSHOT;
            ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
            EXPECT_EQ(last, content_of(heap));
            ASSERT_OK(ty_discard(heap));
        }
}

TEST_F(states_test, archive_then_attach) {
    disk files;
    ty_open_options options = files.options();
    options.kind = TY_ARCHIVE;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(TY_ARCHIVE, ty_heap_kind(heap));
    scribble.change(heap, 300);
    last = content_of(heap);
    ASSERT_OK(ty_snapshot(heap));
    uint64_t pages = 0;
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_dirty_count(heap, &pages));
    ASSERT_OK(ty_close(heap));
    options.kind = TY_KIND_DEFAULT;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(TY_ARCHIVE, report.kind);
    EXPECT_EQ(last, content_of(heap));
    os::sim_disk *died = files.cut(os::sim_cut::keep_all);
    ASSERT_OK(ty_close(heap));

    options.kind = TY_SNAPSHOT;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_TRUE(report.attached);
    EXPECT_EQ(last, content_of(heap));
    scribble.change(heap, 100);
    ASSERT_OK(ty_snapshot(heap));
    last = content_of(heap);
    scribble.change(heap, 100);
    ASSERT_OK(ty_discard(heap));
    expect_found(files.cut(os::sim_cut::drop_all), TY_RECOVERY_CLOSED_BATCHES, last);

    disk mixed(died);
    ty_open_options attach = mixed.options();
    attach.kind = TY_SNAPSHOT;
    expect_refused(mixed, TY_E_DAMAGED, attach); // was not closed in order
    attach.kind = TY_KIND_DEFAULT;
    ASSERT_OK(ty_open(heap_path, &attach, &heap, &report));
    EXPECT_TRUE(report.maybe_inconsistent);
    ASSERT_OK(ty_close(heap));
}

// The journal of a heap whose image is away: it may be needed.
TEST_F(states_test, attach_beside_the_journal_of_another_heap) {
    disk files;
    make(files);
    ASSERT_OK(ty_discard(heap));
    files.rename(heap_path, "elsewhere");
    files.rename(journal_path, "elsewhere-journal");
    ty_open_options options = files.options();
    options.kind = TY_ARCHIVE;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    scribble.forget_others(heap);
    scribble.change(heap, 100);
    const content there = content_of(heap);
    ASSERT_OK(ty_close(heap));
    files.rename("elsewhere-journal", journal_path);
    options.kind = TY_SNAPSHOT;
    expect_refused(files, TY_E_MISMATCH, options);
    options.kind = TY_KIND_DEFAULT;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(there, content_of(heap));
    ASSERT_OK(ty_close(heap));
}

TEST_F(states_test, scrub_names_the_damaged_page) {
    disk files;
    make(files);
    ASSERT_OK(ty_close(heap));
    EXPECT_OK(ty_scrub(heap_path, files_on(files.storage()), nullptr, nullptr, nullptr));
    files.flip(heap_path, image_pages_offset + 100);
    std::string problems;
    EXPECT_EQ(TY_E_DAMAGED,
              ty_scrub(
                  heap_path, files_on(files.storage()), nullptr,
                  [](const char *text, void *context) { *static_cast<std::string *>(context) += text; }, &problems));
    EXPECT_NE(std::string::npos, problems.find("page 0 ")) << problems;
}

TEST_F(states_test, info_reports_what_an_open_would_do) {
    disk files;
    make(files);
    ty_info info{};
    info.struct_size = sizeof info;
    ASSERT_OK(ty_read_info(heap_path, files_on(files.storage()), &info));
    EXPECT_TRUE(info.in_use);
    ASSERT_OK(ty_discard(heap));
    ASSERT_OK(ty_read_info(heap_path, files_on(files.storage()), &info));
    EXPECT_FALSE(info.in_use);
    EXPECT_EQ(TY_SNAPSHOT, info.kind);
    EXPECT_EQ(TY_RECOVERY_CLOSED_BATCHES, info.found);
    EXPECT_EQ(3u, info.batches);
    EXPECT_EQ(3u, info.epoch);
    EXPECT_EQ(0u, info.image_epoch);
    EXPECT_EQ(small_limit, info.limit_bytes);
}

} // namespace
