// Goal: whenever the power fails, the heap opens, with the content of the last acknowledged snapshot or a later one.
// Method: short lives of a heap on a simulated disk, each with what is rare in random ones: processes that die before a
// flush, raises, a full disk. Each is cut before each of its events, in each way, and between the writes of headers as
// often as elsewhere. What was a process's death in a life is no cut: what it left unflushed stays so.
#include "../support.hpp"
#include "tests/effort.hpp"

#include <functional>
#include <memory>

using namespace taiyen;
using namespace taiyen::test;

namespace {

class cuts_test : public testing::Test {
protected:
    ~cuts_test() override {
        if (heap)
            (void)ty_discard(heap);
    }

    void open() {
        ty_open_options options = files->options();
        options.limit_bytes = limit_bytes;
        ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
        scribble.forget_others(heap);
        acknowledge(ty_heap_epoch(heap));
    }
    void snapshot(int changes = 60) {
        scribble.change(heap, changes);
        contents[ty_heap_epoch(heap) + 1] = content_of(heap);
        ASSERT_OK(ty_snapshot(heap));
        acknowledge(ty_heap_epoch(heap));
    }
    void close() {
        contents[ty_heap_epoch(heap) + 1] = content_of(heap); // it takes a snapshot, if anything is dirty
        ASSERT_OK(ty_close(heap));
        heap = nullptr;
    }
    void discard() {
        ASSERT_OK(ty_discard(heap));
        heap = nullptr;
    }
    // The process dies so many events before now.
    void die(uint64_t events = 0) {
        uint64_t event = os::sim_event_count(files->get()) - events;
        auto after = std::make_unique<disk>(os::sim_power_cut(files->get(), event, os::sim_cut::process_death, 1));
        discard();
        files = std::move(after);
        while (!known.empty() && known.back().event > event)
            known.pop_back();
    }
    // Within the last snapshot: its chunks are written, and its flush is not done.
    void die_before_the_flush() {
        die(1);
        begin(); // what a cut finds that came before is no matter of this life any more
    }

    // As a failing disk does it; of the rest of the file, what is unflushed stays so.
    void damage_durably(const char *path, uint64_t offset) const {
        const ty_storage *s = files->storage();
        ty_file *file = nullptr;
        alignas(4096) static char block[4096];
        ASSERT_OK(s->open(s->context, path, TY_FILE_WRITE, &file));
        ASSERT_OK(s->read(s->context, file, offset, block, sizeof block));
        block[50] = char(block[50] ^ 0x40);
        ASSERT_OK(s->write_durable(s->context, file, offset, block, sizeof block));
        s->close(s->context, file);
    }

    // From here on the life is cut.
    void begin() { first = os::sim_event_count(files->get()); }

    void cut_everywhere(const std::function<void(const disk &)> &changed = {}, bool may_refuse = false) {
        const uint64_t last = os::sim_event_count(files->get());
        ASSERT_LT(first, last);
        for (uint64_t event = first; event <= last; ++event)
            for (auto [how, seeds] : ways)
                for (uint64_t seed = 0; seed < seeds; ++seed) {
                    if ((event + uint64_t(how) + seed) % stride(2))
                        continue;
                    SCOPED_TRACE(testing::Message() << "event " << event << " of " << first << " to " << last << " cut "
                                                    << int(how) << " seed " << seed);
                    disk cut(os::sim_power_cut(files->get(), event, how, seed + event * 1000));
                    if (changed)
                        changed(cut);
                    may_refuse ? expect_sound_or_refused(cut, acknowledged_at(event))
                               : expect_sound_content(cut, acknowledged_at(event));
                    if (HasFailure())
                        return;
                }
    }
    void expect_sound_content(const disk &cut, uint64_t acknowledged) {
        ty_open_options options = cut.options();
        options.limit_bytes = 0;
        ty_report found{};
        ty_heap *reopened = nullptr;
        ASSERT_OK(ty_open(heap_path, &options, &reopened, &found));
        EXPECT_GE(found.epoch, acknowledged) << found.text;
        EXPECT_FALSE(found.created && acknowledged > 0) << "the heap is gone";
        EXPECT_TRUE(contents[found.epoch] == content_of(reopened)) << "epoch " << found.epoch << ": " << found.text;
        expect_sound(reopened);
        ASSERT_OK(ty_discard(reopened));
    }

    // Without its journal, or its end, a heap has all that counts, or is refused.
    void expect_sound_or_refused(const disk &cut, uint64_t acknowledged) {
        ty_open_options options = cut.options();
        options.limit_bytes = 0;
        ty_heap *reopened = nullptr;
        if (ty_status status = ty_open(heap_path, &options, &reopened, nullptr)) {
            EXPECT_TRUE(status == TY_E_MISMATCH || status == TY_E_DAMAGED) << ty_error_text();
            return;
        }
        ASSERT_OK(ty_discard(reopened));
        expect_sound_content(cut, acknowledged);
    }

    struct moment {
        uint64_t event;
        uint64_t epoch;
    };
    void acknowledge(uint64_t epoch) {
        if (!contents.count(epoch)) // made by the open itself: a growth
            contents[epoch] = content_of(heap);
        known.push_back({os::sim_event_count(files->get()), epoch});
    }
    uint64_t acknowledged_at(uint64_t event) const {
        uint64_t epoch = 0;
        for (const moment &one : known)
            epoch = one.event <= event ? one.epoch : epoch;
        return epoch;
    }

    static constexpr std::pair<os::sim_cut, uint64_t> ways[] = {
        {os::sim_cut::keep_all, 1}, {os::sim_cut::drop_all, 1}, {os::sim_cut::random, 3},
        {os::sim_cut::prefix, 2},   {os::sim_cut::trash, 8},
    };
    std::unique_ptr<disk> files = std::make_unique<disk>();
    scribbler scribble{21};
    ty_heap *heap = nullptr;
    ty_report report{};
    size_t limit_bytes = small_limit;
    uint64_t first = 0;
    std::map<uint64_t, content> contents;
    std::vector<moment> known;
};

TEST_F(cuts_test, snapshots_a_checkpoint_and_snapshots_in_its_space) {
    open();
    begin();
    snapshot();
    snapshot(20);
    ASSERT_OK(ty_run_background_work(heap));
    snapshot(); // at the journal's front
    ASSERT_OK(ty_run_background_work(heap));
    snapshot(5);
    discard();
    cut_everywhere();
}

// I6. Cut short, it is made anew; once it was acknowledged, it is there.
TEST_F(cuts_test, a_creation) {
    open();
    snapshot(10);
    discard();
    cut_everywhere();
}

// I6. A rename whose folder was not flushed is undone by a power cut. A heap that was made is there, empty, of any
// kind.
TEST_F(cuts_test, a_heap_that_was_made_is_there) {
    for (ty_kind kind : {TY_SNAPSHOT, TY_ARCHIVE, TY_TRANSACTIONAL}) {
        SCOPED_TRACE(kind);
        disk made;
        ty_open_options options = made.options();
        options.kind = kind;
        options.log_bytes = TY_LOG_BYTES_MIN;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        disk after(made.cut(os::sim_cut::drop_all));
        discard();
        options.mode = TY_OPEN_EXISTING;
        options.storage = after.storage();
        EXPECT_OK(ty_open(heap_path, &options, &heap, nullptr));
        discard();
    }
}

// The waiting batches end where the header says that batches begin: their second copies must not lie there, where the
// first of them would be taken for the batch that it is a copy of, and the next one be missed.
TEST_F(cuts_test, an_open_that_copies_batches_of_the_same_length) {
    constexpr size_t bytes = 4 * 4096;
    open();
    auto *block = static_cast<char *>(ty_alloc_zeroed(heap, bytes));
    ASSERT_NE(nullptr, block);
    ASSERT_OK(ty_root_set(heap, "block", block));
    snapshot(0);
    ASSERT_OK(ty_run_background_work(heap));
    for (char change = 1; change <= 6; ++change) {
        memset(block, change, bytes);
        snapshot(0);
        if (change == 3) {
            ASSERT_OK(ty_run_background_work(heap));
        }
    }
    die_before_the_flush();
    open();
    discard();
    cut_everywhere();
}

// An open writes a header over itself, and then the other one.
TEST_F(cuts_test, an_open_of_what_was_closed) {
    open();
    snapshot();
    close();
    begin();
    open();
    snapshot(5);
    close();
    open();
    discard();
    cut_everywhere();
}

TEST_F(cuts_test, an_open_of_what_died) {
    for (int batches : {0, 1, 3}) {
        open();
        snapshot();
        ASSERT_OK(ty_run_background_work(heap));
        for (int i = 0; i < batches; ++i)
            snapshot(20);
        die();
        begin();
        open();
        snapshot(5);
        discard();
        cut_everywhere();
    }
}

// What the open believes is not durable: it writes all batches once more, beside the old ones, which lie at the
// journal's front or not. Then the image takes them.
TEST_F(cuts_test, an_open_of_what_died_before_a_flush) {
    for (auto [batches, checkpointed] : {std::pair{0, true}, {1, false}, {2, true}}) {
        SCOPED_TRACE(testing::Message() << batches << " batches, checkpointed " << checkpointed);
        open();
        snapshot();
        if (checkpointed) {
            ASSERT_OK(ty_run_background_work(heap));
        }
        for (int i = 0; i < batches; ++i)
            snapshot(20);
        snapshot(10);
        die_before_the_flush();
        open();
        ASSERT_OK(ty_run_background_work(heap));
        snapshot(5);
        discard();
        cut_everywhere();
    }
}

// After it the batches do not lie at the journal's front; and what lies before them is too short for all of them.
TEST_F(cuts_test, an_open_of_what_died_before_a_flush_again) {
    open();
    snapshot(20);
    die_before_the_flush();
    open();
    snapshot(60);
    die_before_the_flush();
    open();
    snapshot(5);
    discard();
    cut_everywhere();
}

// Where the disk has no room for that, the flush is all; what it covers is reported, and so must stay.
TEST_F(cuts_test, an_open_of_what_died_before_a_flush_on_a_full_disk) {
    open();
    snapshot(200);
    snapshot(30);
    die_before_the_flush();
    os::sim_set_fault(files->get(), {os::sim_op_allocate, 0, true, TY_E_SPACE});
    open();
    os::sim_set_fault(files->get(), {});
    discard();
    cut_everywhere();
}

// The same of a file system that allocates nothing beforehand (ext2), or writes each block elsewhere (btrfs): it finds
// out that it is full when it writes.
TEST_F(cuts_test, an_open_of_what_died_before_a_flush_on_a_disk_that_becomes_full) {
    for (uint64_t bytes : {0, 100000}) {
        SCOPED_TRACE(bytes);
        open();
        snapshot(200);
        snapshot(30);
        die_before_the_flush();
        os::sim_set_fault(files->get(), {os::sim_op_allocate, 0, true, TY_E_UNSUPPORTED});
        os::sim_set_capacity(files->get(), os::sim_used_bytes(files->get()) + bytes);
        open();
        os::sim_set_fault(files->get(), {});
        os::sim_set_capacity(files->get(), UINT64_MAX);
        discard();
        cut_everywhere();
    }
}

// Nor may it believe a batch whose flush failed: that flush makes nothing durable that a failed one covered.
TEST_F(cuts_test, an_open_after_a_failed_flush_on_a_full_disk) {
    open();
    snapshot(100);
    scribble.change(heap, 30);
    contents[ty_heap_epoch(heap) + 1] = content_of(heap);
    os::sim_set_fault(files->get(), {os::sim_op_flush, 0, false, TY_E_IO});
    ASSERT_EQ(TY_E_IO, ty_snapshot(heap));
    die();
    begin();
    os::sim_set_fault(files->get(), {os::sim_op_allocate, 0, true, TY_E_SPACE});
    open();
    os::sim_set_fault(files->get(), {});
    discard();
    cut_everywhere();
}

// A snapshot failed, and was taken out of the journal again; the process that did so died, or discarded the heap. The
// next one finds the heap without it. From there on no cut may bring it back.
TEST_F(cuts_test, an_open_after_a_snapshot_that_failed) {
    for (bool discards : {false, true})
        for (uint64_t flush : {0, 1, 2, 3}) {
            SCOPED_TRACE(testing::Message() << "flush " << flush << (discards ? ", discarded" : ", died"));
            open();
            snapshot(40);
            close();
            open();
            scribble.change(heap, 30);
            os::sim_set_fault(files->get(), {os::sim_op_flush, flush, false, TY_E_IO});
            ASSERT_EQ(TY_E_IO, ty_snapshot(heap));
            os::sim_set_fault(files->get(), {});
            discards ? discard() : die();
            open();
            begin();
            scribble.change(heap, 60);
            ASSERT_OK(ty_write_back_early(heap, 0));
            snapshot(5);
            discard();
            cut_everywhere();
        }
}

// Its header, which no journal is needed with, was written again by a process that died before the flush.
TEST_F(cuts_test, an_open_without_a_journal_after_one_that_died) {
    open();
    snapshot(40);
    close();
    const uint64_t closed = os::sim_event_count(files->get());
    open();
    const uint64_t now = os::sim_event_count(files->get());
    ASSERT_LT(closed + 1, now);
    die(now - closed - 1);
    const ty_storage *s = files->storage();
    ASSERT_OK(s->remove(s->context, (std::string(heap_path) + "-journal").c_str()));
    ASSERT_OK(s->flush_directory(s->context, heap_path));
    begin();
    open();
    EXPECT_TRUE(report.journal_recreated);
    snapshot(5);
    discard();
    cut_everywhere();
}

// A close that failed may have left a header that calls the heap closed, so that no journal is needed. What is done to
// the heap afterwards needs one.
TEST_F(cuts_test, a_heap_in_use_after_a_close_that_failed) {
    for (bool forever : {false, true}) {
        uint64_t failures = 0;
        for (uint64_t flush = 0;; ++flush) {
            SCOPED_TRACE(testing::Message() << "flush " << flush << (forever ? " and all later ones" : ""));
            open();
            snapshot(40);
            contents[ty_heap_epoch(heap) + 1] = content_of(heap);
            os::sim_set_fault(files->get(), {os::sim_op_flush, flush, forever, TY_E_IO});
            ty_status status = ty_close(heap);
            os::sim_set_fault(files->get(), {});
            if (!status) {
                heap = nullptr;
                break;
            }
            ++failures;
            begin();
            snapshot(20);
            ASSERT_OK(ty_run_background_work(heap));
            snapshot(5);
            discard();
            auto remove = [](const disk &cut) { cut.remove(journal_path); };
            auto shorten = [](const disk &cut) { cut.resize(journal_path, journal_front + page_bytes); };
            cut_everywhere(remove, true);
            cut_everywhere(shorten, true);
        }
        EXPECT_GT(failures, 3u);
    }
}

// Of a checkpoint's flushes (of the pages, of either header) one fails; the checkpoint is done again.
TEST_F(cuts_test, a_checkpoint_after_one_that_failed) {
    for (uint64_t flush : {0, 1, 2}) {
        SCOPED_TRACE(testing::Message() << "flush " << flush);
        open();
        snapshot(40);
        snapshot(20);
        begin();
        os::sim_set_fault(files->get(), {os::sim_op_flush, flush, false, TY_E_IO});
        ASSERT_EQ(TY_E_IO, ty_run_background_work(heap));
        os::sim_set_fault(files->get(), {});
        ASSERT_OK(ty_run_background_work(heap));
        snapshot(5);
        discard();
        cut_everywhere();
    }
}

// One header is damaged, and the other, which a process wrote that died, is not durable.
TEST_F(cuts_test, an_open_with_one_header_damaged) {
    for (uint64_t slot = 0; slot < header_slots; ++slot) {
        SCOPED_TRACE(testing::Message() << "slot " << slot);
        open();
        snapshot(20);
        close();
        open();
        die();
        damage_durably(heap_path, slot * image_slot_bytes);
        begin();
        open();
        EXPECT_TRUE(report.header_repaired);
        snapshot(5);
        discard();
        cut_everywhere();
    }
}

TEST_F(cuts_test, a_growth) {
    for (bool died : {false, true}) {
        open();
        snapshot(100);
        if (died)
            die();
        else
            close();
        begin();
        limit_bytes += small_limit;
        open();
        snapshot(5);
        discard();
        cut_everywhere();
    }
}

} // namespace
