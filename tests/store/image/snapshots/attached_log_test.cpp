// Goal: the image keeps, for a layer with a log, which log it is and where each epoch stands in it: a redo point is
// durable with its epoch, never before it and never without it.
// Method: a stand-in for that layer opens heaps on a simulated disk; each redo point says how often the heap was
// changed, and so does a block of the heap. After every crash the two must agree.
#include "../support.hpp"

#include "src/store/image/image.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr uint64_t some_log = 0x1234;

// What the layer above would get, and what it answers.
struct log_layer {
    uint64_t answer = some_log;
    bool keep = false; // answers what the header says
    ty_status refusal = TY_OK;
    image_log recorded{};
    bool created = false;
    int calls = 0, made = 0, started = 0, given_up = 0;
    ty_status start_refusal = TY_OK;

    image_open_hook hook() {
        return {this,
                [](void *context, const image_log &log, bool is_created, image_log_choice *choice) {
                    auto &self = *static_cast<log_layer *>(context);
                    self.recorded = log;
                    self.created = is_created;
                    self.calls += 1;
                    if (!self.keep)
                        *choice = {self.answer, 1};
                    if (self.refusal)
                        return ty_error_set(self.refusal, 0, "refuse for a test", "test.ty-log", UINT64_MAX, "");
                    return TY_OK;
                },
                [](void *context) {
                    static_cast<log_layer *>(context)->made += 1;
                    return TY_OK;
                },
                [](void *context, ty_heap *) {
                    auto &self = *static_cast<log_layer *>(context);
                    self.started += 1;
                    if (self.start_refusal)
                        return ty_error_set(self.start_refusal, 0, "refuse for a test", "test.ty-log", UINT64_MAX, "");
                    return TY_OK;
                },
                [](void *context) { static_cast<log_layer *>(context)->given_up += 1; },
                [](void *, const open_identity &, const open_identity &) { return TY_OK; }};
    }
};

ty_open_options log_options_of(const disk &files, ty_kind kind = TY_TRANSACTIONAL) {
    ty_open_options options = files.options();
    options.kind = kind;
    options.limit_bytes = 0;
    if (kind != TY_KIND_DEFAULT)
        options.limit_bytes = small_limit;
    return options;
}

ty_status open_with(const disk &files, log_layer &above, ty_heap **heap, ty_report *report = nullptr,
                    ty_kind kind = TY_TRANSACTIONAL) {
    image_open_hook hook = above.hook();
    return image_open(heap_path, log_options_of(files, kind), &hook, heap, report);
}

log_positions redo_point_of_one(uint64_t position, uint64_t generation, uint64_t lsn) {
    log_positions redo_point{lsn};
    redo_point.at[0] = {position, generation, lsn};
    return redo_point;
}

log_positions redo_point_number(uint64_t n) {
    return redo_point_of_one(n * 4096, n ? n + 1000 : 0, n);
}

// Changes the heap for the n-th time and takes a snapshot that says so.
ty_status change_with_redo_point(ty_heap *heap, uint64_t n) {
    auto *count = static_cast<uint64_t *>(heap_root(heap, "count"));
    if (!count) {
        count = static_cast<uint64_t *>(heap_alloc(heap, sizeof *count, 0, true));
        if (ty_status status = heap_root_set(heap, "count", count))
            return status;
    }
    *count = n;
    log_positions redo_point = redo_point_number(n);
    uint64_t epoch = 0;
    if (ty_status status = image_snapshot_start(heap, &redo_point, nullptr, &epoch))
        return status;
    return image_snapshot_wait(heap, epoch);
}

uint64_t count_of(ty_heap *heap) {
    auto *count = static_cast<uint64_t *>(heap_root(heap, "count"));
    return count ? *count : 0;
}

void expect_redo_point(const log_positions &expected, const log_positions &redo_point) {
    EXPECT_EQ(expected.lsn, redo_point.lsn);
    ASSERT_EQ(expected.count, redo_point.count);
    for (uint64_t p = 0; p < redo_point.count; ++p) {
        EXPECT_EQ(expected.at[p].offset, redo_point.at[p].offset);
        EXPECT_EQ(expected.at[p].generation, redo_point.at[p].generation);
        EXPECT_EQ(expected.at[p].lsn, redo_point.at[p].lsn);
    }
}

// The redo point that a new open gets is the one of what the heap then holds.
void expect_agreement(const disk &files, uint64_t least) {
    log_layer above;
    above.keep = true;
    ty_heap *heap = nullptr;
    ASSERT_OK(open_with(files, above, &heap, nullptr, TY_KIND_DEFAULT));
    uint64_t count = count_of(heap);
    EXPECT_GE(count, least);
    EXPECT_EQ(some_log, above.recorded.log_identity);
    if (count)
        expect_redo_point(redo_point_number(count), above.recorded.redo_point);
    else
        expect_redo_point({}, above.recorded.redo_point);
    expect_sound(heap);
    ASSERT_OK(image_discard(heap));
}

class attached_log_test : public testing::Test {
protected:
    disk files;
    log_layer above;
    ty_heap *heap = nullptr;
};

TEST_F(attached_log_test, created_with_a_log) {
    ty_report report{};
    ASSERT_OK(open_with(files, above, &heap, &report));
    EXPECT_TRUE(above.created);
    EXPECT_EQ(1, above.calls);
    EXPECT_EQ(TY_TRANSACTIONAL, image_kind(heap));
    EXPECT_EQ(TY_TRANSACTIONAL, report.kind);
    ty_info info{};
    ASSERT_OK(image_read_info(heap_path, *files.storage(), &info, nullptr));
    EXPECT_EQ(TY_TRANSACTIONAL, info.kind);
    EXPECT_EQ(some_log, info.log_identity);
    EXPECT_EQ(0, memcmp(info.identity, above.recorded.heap_identity, sizeof info.identity));
    ASSERT_OK(image_discard(heap));
}

TEST_F(attached_log_test, a_redo_point_is_that_of_its_epoch) {
    ASSERT_OK(open_with(files, above, &heap));
    ASSERT_OK(change_with_redo_point(heap, 1));
    ASSERT_OK(change_with_redo_point(heap, 2));
    disk in_journal(files.cut(os::sim_cut::drop_all));
    ASSERT_OK(image_work(heap));
    disk in_header(files.cut(os::sim_cut::drop_all));
    ASSERT_OK(change_with_redo_point(heap, 3));
    log_positions last = redo_point_number(3);
    ASSERT_OK(image_close(heap, &last));
    image_log log{};
    ty_info info{};
    ASSERT_OK(image_read_info(heap_path, *in_journal.storage(), &info, &log));
    expect_redo_point(redo_point_number(2), log.redo_point);
    EXPECT_EQ(redo_point_number(2).at[0].offset, info.log_position);
    EXPECT_EQ(2u, info.log_lsn);
    expect_agreement(in_journal, 2);
    expect_agreement(in_header, 2);
    expect_agreement(files, 3);
}

// Nothing dirty, but the log has gone on: the redo point alone is a batch of no pages.
TEST_F(attached_log_test, a_redo_point_alone_is_durable) {
    ASSERT_OK(open_with(files, above, &heap));
    ASSERT_OK(change_with_redo_point(heap, 1));
    log_positions redo_point = redo_point_number(7);
    uint64_t epoch = 0, again = 0;
    ASSERT_OK(image_snapshot_start(heap, &redo_point, nullptr, &epoch));
    ASSERT_OK(image_snapshot_wait(heap, epoch));
    ASSERT_OK(image_snapshot_start(heap, &redo_point, nullptr, &again)); // nothing changed at all
    EXPECT_EQ(epoch, again);
    ASSERT_OK(image_snapshot_start(heap, nullptr, nullptr, &again));
    EXPECT_EQ(epoch, again);
    disk in_journal(files.cut(os::sim_cut::drop_all));
    ASSERT_OK(image_work(heap));
    disk in_header(files.cut(os::sim_cut::drop_all));
    ASSERT_OK(image_discard(heap));
    for (const disk *copy : {&in_journal, &in_header}) {
        log_layer reader;
        reader.keep = true;
        ASSERT_OK(open_with(*copy, reader, &heap));
        expect_redo_point(redo_point, reader.recorded.redo_point);
        EXPECT_EQ(1u, count_of(heap));
        ASSERT_OK(image_discard(heap));
    }
}

TEST_F(attached_log_test, closed_only_when_nothing_stands_after_the_redo_point) {
    auto said_closed = [&] {
        log_layer reader;
        reader.keep = true;
        EXPECT_OK(open_with(files, reader, &heap));
        return reader.recorded.closed;
    };
    ASSERT_OK(open_with(files, above, &heap));
    ASSERT_OK(change_with_redo_point(heap, 1));
    ASSERT_OK(image_discard(heap)); // in order for the image, but not for the log
    EXPECT_FALSE(said_closed());
    log_positions redo_point = redo_point_number(1);
    ASSERT_OK(image_close(heap, &redo_point));
    EXPECT_TRUE(said_closed());
    { // an open is durable before anybody can commit
        disk copy(files.cut(os::sim_cut::drop_all));
        image_log log{};
        ty_info info{};
        ASSERT_OK(image_read_info(heap_path, *copy.storage(), &info, &log));
        EXPECT_FALSE(log.closed);
    }
    ASSERT_OK(image_discard(heap));
}

TEST_F(attached_log_test, attached_and_detached) {
    above.keep = true;
    ASSERT_OK(open_with(files, above, &heap, nullptr, TY_SNAPSHOT));
    EXPECT_EQ(0, above.calls) << "a heap that is made without a log";
    ASSERT_OK(image_close(heap, nullptr));
    above.keep = false;
    ASSERT_OK(open_with(files, above, &heap));
    EXPECT_EQ(0u, above.recorded.log_identity);
    EXPECT_EQ(TY_TRANSACTIONAL, image_kind(heap));
    disk with_log(files.cut(os::sim_cut::drop_all));
    ASSERT_OK(change_with_redo_point(heap, 1));
    ASSERT_OK(image_detach_log(heap));
    EXPECT_EQ(TY_SNAPSHOT, image_kind(heap));
    ASSERT_OK(change_with_redo_point(heap, 0)); // it is a snapshot heap like others
    disk copy(files.cut(os::sim_cut::drop_all));
    ASSERT_OK(image_discard(heap));
    ASSERT_OK(image_open(heap_path, log_options_of(copy, TY_KIND_DEFAULT), nullptr, &heap, nullptr));
    EXPECT_EQ(TY_SNAPSHOT, image_kind(heap));
    ASSERT_OK(image_close(heap, nullptr));
    expect_agreement(with_log, 0);
}

TEST_F(attached_log_test, an_archive_heap_gets_journal_and_log) {
    above.keep = true;
    ASSERT_OK(open_with(files, above, &heap, nullptr, TY_ARCHIVE));
    ASSERT_OK(image_close(heap, nullptr));
    above.keep = false;
    ty_report report{};
    ASSERT_OK(open_with(files, above, &heap, &report));
    EXPECT_TRUE(report.attached);
    EXPECT_EQ(TY_TRANSACTIONAL, image_kind(heap));
    ASSERT_OK(change_with_redo_point(heap, 1));
    ASSERT_OK(image_discard(heap));
    expect_agreement(files, 1);
}

// Another log begins at its position 0, and the numbers of transactions go on.
TEST_F(attached_log_test, another_log_begins_with_the_lsn) {
    ASSERT_OK(open_with(files, above, &heap));
    ASSERT_OK(change_with_redo_point(heap, 5));
    log_positions redo_point = redo_point_number(5);
    ASSERT_OK(image_close(heap, &redo_point));
    above.answer = some_log + 1;
    ASSERT_OK(open_with(files, above, &heap));
    disk copy(files.cut(os::sim_cut::drop_all));
    image_log log{};
    ty_info info{};
    ASSERT_OK(image_read_info(heap_path, *copy.storage(), &info, &log));
    EXPECT_EQ(some_log + 1, log.log_identity);
    expect_redo_point(redo_point_of_one(0, 0, 5), log.redo_point);
    ASSERT_OK(image_discard(heap));
}

void expect_untouched(const disk &files, ty_status expected, const image_open_hook *hook, ty_kind kind) {
    std::string image = files.read_file(heap_path), journal = files.read_file(journal_path);
    ty_heap *heap = nullptr;
    uint64_t events = os::sim_event_count(files.get());
    EXPECT_EQ(expected, image_open(heap_path, log_options_of(files, kind), hook, &heap, nullptr)) << ty_error_text();
    EXPECT_EQ(events, os::sim_event_count(files.get())) << "written to, if with the same bytes"; // I7
    EXPECT_TRUE(image == files.read_file(heap_path)) << "the image was changed";
    EXPECT_TRUE(journal == files.read_file(journal_path)) << "the journal was changed";
    ASSERT_OK(ty_discard(heap));
}

TEST_F(attached_log_test, refused_without_a_layer_that_knows_logs) {
    {
        ty_open_options options = log_options_of(files);
        EXPECT_EQ(TY_E_UNSUPPORTED, image_open(heap_path, options, nullptr, &heap, nullptr));
        EXPECT_EQ("(none)", files.read_file(heap_path));
    }
    ASSERT_OK(open_with(files, above, &heap));
    ASSERT_OK(change_with_redo_point(heap, 1));
    ASSERT_OK(image_discard(heap));
    expect_untouched(files, TY_E_UNSUPPORTED, nullptr, TY_KIND_DEFAULT);
    expect_untouched(files, TY_E_UNSUPPORTED, nullptr, TY_SNAPSHOT);
}

TEST_F(attached_log_test, a_refusal_of_the_layer_changes_nothing) {
    above.refusal = TY_E_DAMAGED;
    EXPECT_EQ(TY_E_DAMAGED, open_with(files, above, &heap));
    EXPECT_EQ("(none)", files.read_file(heap_path));
    EXPECT_EQ(0, above.made);
    above.refusal = TY_OK;
    ASSERT_OK(open_with(files, above, &heap));
    EXPECT_EQ(1, above.made);
    ASSERT_OK(change_with_redo_point(heap, 1));
    ASSERT_OK(image_discard(heap));
    above.refusal = TY_E_DAMAGED;
    image_open_hook hook = above.hook();
    expect_untouched(files, TY_E_DAMAGED, &hook, TY_KIND_DEFAULT);
    // A growth and an attach come after it, too.
    ty_open_options options = log_options_of(files);
    options.limit_bytes = 2 * small_limit;
    std::string image = files.read_file(heap_path);
    EXPECT_EQ(TY_E_DAMAGED, image_open(heap_path, options, &hook, &heap, nullptr));
    EXPECT_TRUE(image == files.read_file(heap_path));
    EXPECT_EQ(1, above.made);
}

TEST_F(attached_log_test, a_raise_keeps_the_redo_point) {
    ASSERT_OK(open_with(files, above, &heap));
    ASSERT_OK(change_with_redo_point(heap, 3));
    ASSERT_OK(image_discard(heap));
    above.keep = true;
    image_open_hook hook = above.hook();
    ty_open_options options = log_options_of(files);
    options.limit_bytes = 2 * small_limit;
    ty_report report{};
    ASSERT_OK(image_open(heap_path, options, &hook, &heap, &report));
    EXPECT_TRUE(report.grown);
    ASSERT_OK(image_discard(heap));
    expect_agreement(files, 3);
}

// ---- Batches that memory has no room for are checkpointed while the heap is opened

// A heap with a log, of which three batches wait in the journal, and options with which they are too many.
struct too_many_batches {
    disk files;
    log_layer above;
    ty_open_options options;

    explicit too_many_batches(ty_kind kind = TY_TRANSACTIONAL) : options(log_options_of(files, TY_KIND_DEFAULT)) {
        ty_heap *heap = nullptr;
        above.answer = kind == TY_TRANSACTIONAL ? some_log : 0;
        EXPECT_OK(open_with(files, above, &heap, nullptr, kind));
        for (uint64_t n = 1; n <= 3; ++n)
            EXPECT_OK(change_with_redo_point(heap, n));
        EXPECT_OK(image_discard(heap));
        options.memory_bytes = 4096;
        above.keep = true;
    }
    std::string pages() const { return files.read_file(heap_path).substr(header_slots * 4096); }
};

TEST_F(attached_log_test, a_refusal_changes_nothing_where_batches_exceed_memory) {
    too_many_batches is;
    is.above.refusal = TY_E_DAMAGED;
    const std::string image = is.files.read_file(heap_path), journal = is.files.read_file(journal_path);
    for (size_t limit : {size_t{0}, 2 * small_limit}) {
        is.options.limit_bytes = limit;
        image_open_hook hook = is.above.hook();
        uint64_t events = os::sim_event_count(is.files.get());
        EXPECT_EQ(TY_E_DAMAGED, image_open(heap_path, is.options, &hook, &heap, nullptr));
        EXPECT_EQ(events, os::sim_event_count(is.files.get())) << "written to, if with the same bytes"; // I7
        EXPECT_TRUE(image == is.files.read_file(heap_path)) << "the image was changed";
        EXPECT_TRUE(journal == is.files.read_file(journal_path)) << "the journal was changed";
    }
    expect_agreement(is.files, 3);
}

// I8: all files name the open before a page of the image is changed.
TEST_F(attached_log_test, an_open_is_named_before_it_checkpoints_what_exceeds_memory) {
    too_many_batches is;
    struct watching {
        too_many_batches &is;
        const std::string before;
        int named;
    } watcher{is, is.pages(), 0};
    image_open_hook hook{&watcher,
                         [](void *, const image_log &recorded, bool, image_log_choice *) {
                             expect_redo_point(redo_point_number(3), recorded.redo_point);
                             EXPECT_EQ(nullptr, recorded.heap);
                             return TY_OK;
                         },
                         [](void *) { return TY_OK; },
                         [](void *, ty_heap *) { return TY_OK; },
                         [](void *) {},
                         [](void *context, const open_identity &previous, const open_identity &open) {
                             auto &self = *static_cast<watching *>(context);
                             self.named += 1;
                             EXPECT_GT(open.number, previous.number);
                             EXPECT_TRUE(self.before == self.is.pages());
                             return TY_OK;
                         }};
    ty_report report{};
    ASSERT_OK(image_open(heap_path, is.options, &hook, &heap, &report));
    EXPECT_EQ(1, watcher.named);
    EXPECT_FALSE(watcher.before == is.pages());
    EXPECT_EQ(3u, report.batches_restored);
    EXPECT_EQ(TY_RECOVERY_CLOSED_BATCHES, report.found);
    EXPECT_EQ(3u, count_of(heap));
    ASSERT_OK(change_with_redo_point(heap, 4));
    ASSERT_OK(image_discard(heap));
    expect_agreement(is.files, 4);
}

// The log is attached, or the limit raised, by the same open.
TEST_F(attached_log_test, what_exceeds_memory_is_checkpointed_before_a_log_is_attached_and_before_a_growth) {
    for (bool raises : {false, true}) {
        too_many_batches is(TY_SNAPSHOT);
        is.options.kind = TY_TRANSACTIONAL;
        is.options.limit_bytes = raises ? 2 * small_limit : 0;
        is.above.keep = false;
        is.above.answer = some_log;
        image_open_hook hook = is.above.hook();
        ty_report report{};
        ASSERT_OK(image_open(heap_path, is.options, &hook, &heap, &report));
        EXPECT_EQ(TY_TRANSACTIONAL, image_kind(heap));
        EXPECT_EQ(raises, report.grown);
        EXPECT_EQ(3u, count_of(heap));
        ASSERT_OK(change_with_redo_point(heap, 4));
        ASSERT_OK(image_discard(heap));
        expect_agreement(is.files, 4);
    }
}

TEST_F(attached_log_test, power_may_fail_while_what_exceeds_memory_is_checkpointed) {
    for (size_t limit : {size_t{0}, 2 * small_limit}) {
        too_many_batches is;
        is.options.limit_bytes = limit;
        uint64_t first = os::sim_event_count(is.files.get());
        image_open_hook hook = is.above.hook();
        ASSERT_OK(image_open(heap_path, is.options, &hook, &heap, nullptr));
        uint64_t last = os::sim_event_count(is.files.get());
        ASSERT_OK(image_discard(heap));
        for (uint64_t event = first; event <= last; ++event)
            for (os::sim_cut how :
                 {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random, os::sim_cut::trash}) {
                SCOPED_TRACE(testing::Message() << "event " << event << ", cut " << int(how));
                disk copy(os::sim_power_cut(is.files.get(), event, how, event));
                expect_agreement(copy, 3);
                if (HasFailure())
                    return;
            }
    }
}

// What a log's replay needs of a heap that is open for reading only.
TEST_F(attached_log_test, read_only_can_be_written_until_it_is_frozen) {
    ASSERT_OK(open_with(files, above, &heap));
    ASSERT_OK(change_with_redo_point(heap, 3));
    ASSERT_OK(image_discard(heap));
    std::string image = files.read_file(heap_path), journal = files.read_file(journal_path);
    above.keep = true;
    image_open_hook hook = above.hook();
    ty_open_options options = log_options_of(files, TY_KIND_DEFAULT);
    options.mode = TY_OPEN_READ_ONLY;
    ASSERT_OK(image_open(heap_path, options, &hook, &heap, nullptr));
    EXPECT_EQ(1, above.made); // when the heap was
    void *block = heap_alloc(heap, 100, 0, true);
    ASSERT_NE(nullptr, block);
    ASSERT_OK(heap_root_set(heap, "more", block));
    ASSERT_OK(image_freeze(&heap));
    EXPECT_EQ(block, heap_root(heap, "more"));
    EXPECT_EQ(3u, count_of(heap));
    expect_sound(heap);
    EXPECT_EQ(nullptr, ty_alloc(heap, 100));
    uint64_t epoch = 0;
    EXPECT_EQ(TY_E_PERMISSION, image_snapshot_start(heap, nullptr, nullptr, &epoch));
    ASSERT_OK(image_close(heap, nullptr));
    EXPECT_TRUE(image == files.read_file(heap_path) && journal == files.read_file(journal_path));
}

// A life of a heap with a log, beside a reference: the last change whose snapshot had returned.
struct step {
    uint64_t event;
    uint64_t durable;
};
std::vector<step> live(const disk &files) {
    std::vector<step> steps;
    log_layer above;
    ty_heap *heap = nullptr;
    uint64_t n = 0;
    auto note = [&] { steps.push_back({os::sim_event_count(files.get()), n}); };
    EXPECT_OK(open_with(files, above, &heap));
    note();
    auto change = [&] {
        EXPECT_OK(change_with_redo_point(heap, n + 1));
        ++n;
        note();
    };
    change();
    change();
    EXPECT_OK(image_work(heap));
    change();
    log_positions redo_point = redo_point_number(n);
    EXPECT_OK(image_close(heap, &redo_point));
    above.keep = true;
    EXPECT_OK(open_with(files, above, &heap));
    change();
    redo_point = redo_point_number(n);
    EXPECT_OK(image_write_back_early(heap, 0));
    change();
    EXPECT_OK(image_discard(heap));
    return steps;
}

TEST_F(attached_log_test, redo_point_and_content_agree_after_every_power_cut) {
    std::vector<step> steps = live(files);
    uint64_t events = os::sim_event_count(files.get());
    for (uint64_t event = steps.front().event; event <= events; ++event)
        for (os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random, os::sim_cut::prefix,
                                os::sim_cut::trash}) {
            uint64_t least = 0;
            for (const step &s : steps)
                least = s.event <= event ? s.durable : least;
            SCOPED_TRACE(testing::Message() << "event " << event << " cut " << int(how));
            disk copy(os::sim_power_cut(files.get(), event, how, event));
            expect_agreement(copy, least);
            if (HasFailure())
                return;
        }
}

// Attaching and detaching: at any instant it is a heap with the log or without one, with all of its content.
TEST_F(attached_log_test, attach_and_detach_at_every_power_cut) {
    above.keep = true;
    ASSERT_OK(open_with(files, above, &heap, nullptr, TY_SNAPSHOT));
    ASSERT_OK(change_with_redo_point(heap, 0));
    ASSERT_OK(image_close(heap, nullptr));
    uint64_t first = os::sim_event_count(files.get());
    above.keep = false;
    ASSERT_OK(open_with(files, above, &heap));
    uint64_t attached = os::sim_event_count(files.get());
    ASSERT_OK(change_with_redo_point(heap, 9));
    uint64_t marked = os::sim_event_count(files.get());
    ASSERT_OK(image_detach_log(heap));
    uint64_t detached = os::sim_event_count(files.get());
    ASSERT_OK(image_discard(heap));
    for (uint64_t event = first; event <= detached; ++event)
        for (os::sim_cut how :
             {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random, os::sim_cut::trash}) {
            SCOPED_TRACE(testing::Message() << "event " << event << " cut " << int(how));
            disk copy(os::sim_power_cut(files.get(), event, how, event));
            log_layer reader;
            reader.keep = true;
            ASSERT_OK(open_with(copy, reader, &heap, nullptr, TY_KIND_DEFAULT));
            uint64_t count = count_of(heap);
            if (event >= attached && event <= marked) {
                EXPECT_EQ(some_log, reader.recorded.log_identity);
            }
            if (event == detached) {
                EXPECT_EQ(0u, reader.recorded.log_identity);
            }
            if (event >= marked) {
                EXPECT_EQ(9u, count);
            }
            if (reader.recorded.log_identity)
                expect_redo_point(count ? redo_point_number(count) : log_positions{}, reader.recorded.redo_point);
            else
                expect_redo_point({}, reader.recorded.redo_point);
            ASSERT_OK(image_discard(heap));
            if (HasFailure())
                return;
        }
}

} // namespace
