// Goal: image, journal and log are taken together only as the last open of the heap left them. Whatever is lost, cut,
// emptied, old, or another heap's: an error that changes nothing, or the right content. Method: the files of a heap are
// kept at several moments of its life; then each is put in the place of each, after a close and after a crash.
#include "../files.hpp"

#include "src/store/image/files/checksum.hpp"
#include "tests/effort.hpp"

#include <functional>
#include <optional>

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct file_copy {
    uint64_t size = 0;
    std::map<uint64_t, std::string> pages;
};

class opened_file {
public:
    opened_file(const disk &on, const char *path, uint32_t flags) : storage_(on.storage()) {
        there_ = storage_->open(storage_->context, path, flags, &file_) == TY_OK;
    }
    opened_file(const opened_file &) = delete;
    opened_file &operator=(const opened_file &) = delete;
    ~opened_file() {
        if (there_)
            storage_->close(storage_->context, file_);
    }
    bool there() const { return there_; }
    file_copy read() const {
        file_copy copy;
        EXPECT_OK(storage_->get_size(storage_->context, file_, &copy.size));
        alignas(4096) static char page[4096];
        uint64_t start = 0, end = 0;
        for (uint64_t at = 0; storage_->next_data(storage_->context, file_, at, &start, &end) == TY_OK; at = end)
            for (uint64_t offset = start / 4096 * 4096; offset < end; offset += 4096)
                if (offset + 4096 <= copy.size && !storage_->read(storage_->context, file_, offset, page, 4096))
                    copy.pages[offset] = std::string(page, 4096);
        return copy;
    }
    void write(const file_copy &copy) const {
        EXPECT_OK(storage_->set_size(storage_->context, file_, copy.size));
        alignas(4096) static char page[4096];
        for (const auto &[offset, bytes] : copy.pages) {
            memcpy(page, bytes.data(), 4096);
            EXPECT_OK(storage_->write(storage_->context, file_, offset, page, 4096));
        }
        EXPECT_OK(storage_->flush(storage_->context, file_));
    }
    void cut(uint64_t bytes) const {
        EXPECT_OK(storage_->set_size(storage_->context, file_, bytes));
        EXPECT_OK(storage_->flush(storage_->context, file_));
    }

private:
    const ty_storage *storage_;
    ty_file *file_ = nullptr;
    bool there_ = false;
};

void remove_file(const disk &on, const char *path) {
    const ty_storage *s = on.storage();
    EXPECT_OK(s->remove(s->context, path));
    EXPECT_OK(s->flush_directory(s->context, path));
}

std::optional<file_copy> keep(const disk &on, const char *path) {
    opened_file file(on, path, 0);
    return file.there() ? std::optional<file_copy>(file.read()) : std::nullopt;
}

void put(const disk &on, const char *path, const std::optional<file_copy> &copy) {
    const ty_storage *s = on.storage();
    if (keep(on, path))
        remove_file(on, path);
    if (!copy)
        return;
    opened_file(on, path, TY_FILE_WRITE | TY_FILE_CREATE).write(*copy);
    EXPECT_OK(s->flush_directory(s->context, path));
}

constexpr const char *paths[] = {heap_path, journal_path, log_path};

// All files of a heap at one moment, and what it held.
struct moment {
    std::optional<file_copy> files[3];
    int value;
};

moment moment_of(const disk &on, int value) {
    moment now{};
    for (size_t i = 0; i < 3; ++i)
        now.files[i] = keep(on, paths[i]);
    now.value = value;
    return now;
}

int value_of(ty_heap *heap) {
    auto *value = static_cast<int *>(ty_root(heap, "value"));
    return value ? *value : 0;
}

class belonging : public testing::TestWithParam<ty_kind> {
protected:
    ty_open_options options(const disk &on) const {
        ty_open_options o = with_log(on, TY_KIND_DEFAULT);
        o.limit_bytes = 0;
        o.mode = TY_OPEN_EXISTING;
        return o;
    }
    ty_heap *create(const disk &on) const {
        ty_open_options o = with_log(on, GetParam());
        ty_heap *heap = nullptr;
        EXPECT_OK(ty_open(heap_path, &o, &heap, nullptr));
        return heap;
    }
    ty_heap *open(const disk &on, ty_report *report = nullptr) const {
        ty_open_options o = options(on);
        ty_heap *heap = nullptr;
        EXPECT_OK(ty_open(heap_path, &o, &heap, report));
        return heap;
    }
    // Whatever became of the open before.
    void expect_acknowledged_stays(ty_heap *heap, const disk &on) const {
        set(heap, 2);
        disk cut(on.cut(os::sim_cut::drop_all));
        ASSERT_OK(ty_discard(heap));
        heap = open(cut);
        ASSERT_EQ(2, value_of(heap));
        ASSERT_OK(ty_discard(heap));
    }
    // Acknowledged: by a snapshot, or by a commit.
    void set(ty_heap *heap, int value) const {
        if (GetParam() == TY_SNAPSHOT) {
            auto *at = static_cast<int *>(ty_root(heap, "value"));
            if (!at) {
                at = static_cast<int *>(ty_alloc(heap, 100000));
                EXPECT_OK(ty_root_set(heap, "value", at));
            }
            *at = value;
            EXPECT_OK(ty_snapshot(heap));
            return;
        }
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap, nullptr, &txn));
        auto *at = static_cast<int *>(ty_txn_alloc(txn, 1000));
        *at = value;
        EXPECT_OK(ty_txn_root_set(txn, "value", at));
        EXPECT_OK(ty_commit(txn));
    }

    // The files as they are must be refused without a change, or be right.
    void expect_right_or_refused(const disk &on, int value, const std::string &what) {
        SCOPED_TRACE(what);
        uint64_t events = os::sim_event_count(on.get());
        ty_open_options o = options(on);
        ty_heap *heap = nullptr;
        if (ty_status status = ty_open(heap_path, &o, &heap, nullptr)) {
            EXPECT_TRUE(status == TY_E_MISMATCH || status == TY_E_DAMAGED || status == TY_E_FORMAT ||
                        status == TY_E_NOT_FOUND)
                << ty_error_text();
            EXPECT_NE(nullptr, strstr(ty_error_text(), heap_path)) << ty_error_text();
            EXPECT_EQ(events, os::sim_event_count(on.get())) << "a refusal wrote something: " << ty_error_text();
            refused += 1;
            return;
        }
        EXPECT_EQ(value, value_of(heap));
        set(heap, value + 100); // what is right is good for more
        disk later(on.cut(os::sim_cut::drop_all));
        EXPECT_OK(ty_discard(heap));
        ty_open_options again = options(later);
        ASSERT_OK(ty_open(heap_path, &again, &heap, nullptr));
        EXPECT_EQ(value + 100, value_of(heap));
        EXPECT_OK(ty_discard(heap));
        right += 1;
    }

    void try_everything(const moment &now, const std::vector<moment> &others) {
        auto with = [&](size_t changed, const std::string &what, const std::function<void(const disk &)> &change) {
            disk on;
            for (size_t i = 0; i < 3; ++i)
                put(on, paths[i], now.files[i]);
            change(on);
            expect_right_or_refused(on, now.value, std::string(paths[changed]) + " " + what);
        };
        for (size_t i = 0; i < 3; ++i) {
            if (!now.files[i])
                continue;
            with(i, "as it is", [](const disk &) {});
            with(i, "lost", [&](const disk &on) { put(on, paths[i], std::nullopt); });
            for (uint64_t bytes : {uint64_t{0}, uint64_t{4096}, uint64_t{8192}, uint64_t{12288}, now.files[i]->size / 2,
                                   now.files[i]->size - 4096})
                with(i, "cut to " + std::to_string(bytes), [&](const disk &on) {
                    opened_file(on, paths[i], TY_FILE_WRITE).cut(std::min(bytes, now.files[i]->size));
                });
            for (size_t k = 0; k < others.size(); ++k)
                with(i, "of moment " + std::to_string(k),
                     [&](const disk &on) { put(on, paths[i], others[k].files[i]); });
        }
        // Two of the three from the same other moment.
        for (size_t k = 0; k < others.size(); ++k)
            with(1, "and log of moment " + std::to_string(k), [&](const disk &on) {
                put(on, paths[1], others[k].files[1]);
                put(on, paths[2], others[k].files[2]);
            });
    }

    int refused = 0;
    int right = 0;
};

// The heap dies while it is open, with snapshots checkpointed and not, or transactions; the copies are of earlier
// opens, of another heap, and of a copy of this one that went its own way.
TEST_P(belonging, every_file_at_every_moment) {
    disk files, foreign;
    ty_heap *heap = create(foreign);
    set(heap, 77);
    moment other_heap = moment_of(foreign, 77);
    ASSERT_OK(ty_discard(heap));

    std::vector<moment> others{other_heap};
    heap = create(files);
    set(heap, 1);
    ASSERT_OK(ty_close(heap));
    others.push_back(moment_of(files, 1));
    disk copy(files.cut(os::sim_cut::keep_all));
    heap = open(copy);
    set(heap, 55);
    others.push_back(moment_of(copy, 55)); // died
    ASSERT_OK(ty_close(heap));
    others.push_back(moment_of(copy, 55));

    heap = open(files);
    set(heap, 2);
    set(heap, 3);
    moment died = moment_of(files, 3);
    ASSERT_OK(ty_discard(heap));
    moment discarded = moment_of(files, 3);
    heap = open(files);
    ASSERT_OK(ty_run_background_work(heap)); // checkpoints what was found, and takes no snapshot
    ASSERT_OK(ty_close(heap));
    moment closed = moment_of(files, 3);

    try_everything(died, others);
    others.push_back(died);
    try_everything(discarded, others);
    others.push_back(discarded);
    try_everything(closed, others);

    heap = open(files);
    set(heap, 4);
    ASSERT_OK(ty_run_background_work(heap));
    set(heap, 5);
    others.push_back(closed);
    moment again = moment_of(files, 5);
    ASSERT_OK(ty_discard(heap));
    try_everything(again, others);
    EXPECT_GT(refused, 60);
    EXPECT_GT(right, 20);
}

// I9: however short a journal is cut after a crash, it does not pass for one in which a snapshot was being written.
TEST_P(belonging, a_journal_that_was_cut_is_not_a_crash) {
    disk files;
    ty_heap *heap = create(files);
    for (int value = 1; value <= 30; ++value)
        set(heap, value);
    if (GetParam() == TY_TRANSACTIONAL) {
        ASSERT_OK(ty_snapshot(heap));
    }
    moment died = moment_of(files, 30);
    ASSERT_OK(ty_discard(heap));
    ASSERT_GT(died.files[1]->size, uint64_t{1} << 19);
    for (uint64_t bytes = 0; bytes < died.files[1]->size; bytes += 4096 * 13) {
        disk on;
        for (size_t i = 0; i < 3; ++i)
            put(on, paths[i], died.files[i]);
        opened_file(on, journal_path, TY_FILE_WRITE).cut(bytes);
        ty_open_options o = options(on);
        EXPECT_EQ(TY_E_DAMAGED, ty_open(heap_path, &o, &heap, nullptr)) << bytes;
        EXPECT_NE(nullptr, strstr(ty_error_text(), journal_path)) << ty_error_text();
    }
}

// A journal or log that was lost is made anew by an open that dies at some event; what the next one acknowledges stays.
TEST_P(belonging, made_anew_by_an_open_that_died) {
    for (const char *lost : {journal_path, log_path}) {
        if (GetParam() == TY_SNAPSHOT && lost == log_path)
            continue;
        SCOPED_TRACE(lost);
        disk files;
        ty_heap *heap = create(files);
        set(heap, 1);
        ASSERT_OK(ty_close(heap));
        remove_file(files, lost);
        uint64_t first = os::sim_event_count(files.get());
        ASSERT_OK(ty_discard(open(files)));
        for (uint64_t event = first; event <= os::sim_event_count(files.get()); ++event) {
            SCOPED_TRACE(event - first);
            disk died(os::sim_power_cut(files.get(), event, os::sim_cut::process_death, 1));
            heap = open(died);
            ASSERT_EQ(1, value_of(heap));
            expect_acknowledged_stays(heap, died);
        }
    }
}

// The same where one operation of that open fails, once.
TEST_P(belonging, made_anew_by_an_open_that_failed) {
    for (const char *lost : {journal_path, log_path})
        for (uint32_t operations : {os::sim_op_flush, os::sim_op_names, os::sim_op_write, os::sim_op_write_durable})
            for (uint64_t after = 0; after < 8; ++after) {
                if (GetParam() == TY_SNAPSHOT && lost == log_path)
                    continue;
                SCOPED_TRACE(testing::Message() << lost << " operation " << operations << " after " << after);
                disk files;
                ty_heap *heap = create(files);
                set(heap, 1);
                ASSERT_OK(ty_close(heap));
                remove_file(files, lost);
                os::sim_set_fault(files.get(), {operations, after, false, TY_E_IO});
                ty_open_options o = options(files);
                if (!ty_open(heap_path, &o, &heap, nullptr)) {
                    os::sim_set_fault(files.get(), {});
                    ASSERT_OK(ty_discard(heap));
                }
                os::sim_set_fault(files.get(), {});
                heap = open(files);
                expect_acknowledged_stays(heap, files);
            }
}

// I8: a snapshot is acknowledged only when the image says durably that the heap is open. Else, after a power cut, a
// lost journal would seem not to be needed.
TEST_P(belonging, a_lost_journal_after_a_power_cut) {
    for (bool created : {true, false}) {
        disk files;
        ty_heap *heap = create(files);
        if (!created) {
            set(heap, 1);
            ASSERT_OK(ty_close(heap));
            heap = open(files);
        }
        set(heap, 2);
        disk cut(files.cut(os::sim_cut::drop_all));
        ASSERT_OK(ty_discard(heap));
        remove_file(cut, journal_path);
        ty_open_options o = options(cut);
        EXPECT_EQ(TY_E_MISMATCH, ty_open(heap_path, &o, &heap, nullptr));
    }
}

// Power cuts at each event of an open, of its first snapshot or commit, and of a close: nothing is refused.
TEST_P(belonging, cuts_while_the_open_is_named) {
    disk files;
    ty_heap *heap = create(files);
    set(heap, 1);
    ASSERT_OK(ty_close(heap));
    const uint64_t first = os::sim_event_count(files.get());
    heap = open(files);
    set(heap, 2);
    const uint64_t acknowledged = os::sim_event_count(files.get());
    ASSERT_OK(ty_close(heap));
    const uint64_t last = os::sim_event_count(files.get());
    for (uint64_t event = first; event <= last; ++event)
        for (auto how : {os::sim_cut::drop_all, os::sim_cut::keep_all, os::sim_cut::trash, os::sim_cut::prefix}) {
            SCOPED_TRACE(testing::Message() << "event " << event - first << " cut " << int(how));
            disk cut(os::sim_power_cut(files.get(), event, how, event));
            heap = open(cut);
            ASSERT_NE(nullptr, heap);
            int value = value_of(heap);
            EXPECT_TRUE(value == 2 || (value == 1 && event < acknowledged)) << value;
            set(heap, 3);
            disk later(cut.cut(how, event + 7));
            ASSERT_OK(ty_discard(heap));
            heap = open(later);
            ASSERT_NE(nullptr, heap);
            EXPECT_EQ(3, value_of(heap));
            ASSERT_OK(ty_discard(heap));
        }
}

// The power fails at each event of an open, and once more at each event of the open that follows: whatever the first
// cut left in a header slot, the other slot serves where the second one tears what is written (I10, L7).
TEST_P(belonging, cuts_again_while_the_next_open_is_named) {
    const auto seeds = static_cast<uint64_t>(effort(12)); // one of 32 has garbage in a given sector that is in doubt
    constexpr uint64_t naming = 8;                        // events, before those of a batch or a commit
    disk files;
    ty_heap *heap = create(files);
    set(heap, 1);
    ASSERT_OK(ty_close(heap));
    const uint64_t first = os::sim_event_count(files.get());
    heap = open(files);
    set(heap, 2);
    const uint64_t last = os::sim_event_count(files.get());
    ASSERT_OK(ty_discard(heap));
    for (uint64_t event = first; event <= last; ++event)
        for (auto how : {os::sim_cut::drop_all, os::sim_cut::keep_all}) {
            disk cut(os::sim_power_cut(files.get(), event, how, event));
            heap = open(cut);
            ASSERT_NE(nullptr, heap);
            set(heap, 3);
            const uint64_t acknowledged = os::sim_event_count(cut.get());
            ASSERT_OK(ty_discard(heap));
            for (uint64_t again = 0; again <= naming; ++again)
                for (uint64_t seed = 1; seed <= seeds; ++seed) {
                    SCOPED_TRACE(testing::Message() << "event " << event - first << " cut " << int(how) << ", again at "
                                                    << again << " seed " << seed);
                    disk later(os::sim_power_cut(cut.get(), again, os::sim_cut::trash, seed));
                    heap = open(later);
                    ASSERT_NE(nullptr, heap);
                    int value = value_of(heap);
                    EXPECT_TRUE(value == 3 || (again < acknowledged && (value == 1 || value == 2))) << value;
                    ASSERT_OK(ty_discard(heap));
                }
        }
}

// An image from before the log was attached would be opened without it, and its commits were gone. Found by
// taiyen-crash, which puts older files back.
TEST(attached_log, an_image_from_before_its_log_is_refused) {
    disk files;
    ty_open_options o = with_log(files, TY_SNAPSHOT);
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &o, &heap, nullptr));
    ASSERT_OK(ty_close(heap));
    const std::optional<file_copy> before = keep(files, heap_path);
    o = with_log(files, TY_TRANSACTIONAL);
    ASSERT_OK(ty_open(heap_path, &o, &heap, nullptr));
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    ASSERT_OK(ty_txn_root_set(txn, "value", ty_txn_alloc(txn, 100)));
    ASSERT_OK(ty_commit(txn));
    disk died(files.cut(os::sim_cut::keep_all));
    ASSERT_OK(ty_discard(heap));
    put(died, heap_path, before);
    o = with_log(died, TY_KIND_DEFAULT);
    EXPECT_EQ(TY_E_MISMATCH, ty_open(heap_path, &o, &heap, nullptr));
    EXPECT_NE(nullptr, strstr(ty_error_text(), journal_path)) << ty_error_text();
}

// A new heap is not made beside the journal of one whose image is lost.
TEST_P(belonging, a_lost_image_is_not_made_anew) {
    disk files;
    ty_heap *heap = create(files);
    set(heap, 1);
    ASSERT_OK(ty_close(heap));
    remove_file(files, heap_path);
    ty_open_options o = with_log(files, GetParam());
    EXPECT_EQ(TY_E_MISMATCH, ty_open(heap_path, &o, &heap, nullptr));
    const char *asked_first = GetParam() == TY_TRANSACTIONAL ? "test.ty-log" : journal_path;
    EXPECT_NE(nullptr, strstr(ty_error_text(), asked_first)) << ty_error_text();
}

// Image and journal of before the heap had its log, beside that log: a later open's, with a commit in it.
TEST(files_that_belong, an_image_of_before_its_log) {
    for (ty_kind kind : {TY_KIND_DEFAULT, TY_TRANSACTIONAL}) {
        disk files;
        ty_open_options o = with_log(files, TY_SNAPSHOT);
        ty_heap *heap = nullptr;
        ASSERT_OK(ty_open(heap_path, &o, &heap, nullptr));
        ASSERT_OK(ty_root_set(heap, "r", ty_alloc(heap, 64)));
        ASSERT_OK(ty_close(heap));
        const file_copy image = opened_file(files, heap_path, 0).read();
        const file_copy journal = opened_file(files, journal_path, 0).read();
        o = with_log(files);
        ASSERT_OK(ty_open(heap_path, &o, &heap, nullptr));
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        ASSERT_OK(ty_txn_root_set(txn, "s", ty_root(heap, "r")));
        ASSERT_OK(ty_commit(txn));
        ASSERT_OK(ty_discard(heap));
        const file_copy newest = opened_file(files, heap_path, 0).read();
        const file_copy newest_journal = opened_file(files, journal_path, 0).read();
        opened_file(files, heap_path, TY_FILE_WRITE).write(image);
        opened_file(files, journal_path, TY_FILE_WRITE).write(journal);
        o = with_log(files, kind);
        EXPECT_EQ(TY_E_MISMATCH, ty_open(heap_path, &o, &heap, nullptr));
        opened_file(files, heap_path, TY_FILE_WRITE).write(newest);
        opened_file(files, journal_path, TY_FILE_WRITE).write(newest_journal);
        o = with_log(files);
        ASSERT_OK(ty_open(heap_path, &o, &heap, nullptr));
        EXPECT_NE(nullptr, ty_root(heap, "s"));
        ASSERT_OK(ty_discard(heap));
    }
}

// What a creation that failed leaves after a power cut, while it removes its files, is no heap's.
TEST_P(belonging, a_creation_that_failed_can_be_done_again) {
    constexpr uint64_t removals = 8; // the last events
    uint64_t failures = 0;
    bool fired = true;
    for (uint64_t failed = 0; fired; ++failed) {
        disk files;
        ty_heap *heap = nullptr;
        ty_open_options o = with_log(files, GetParam());
        os::sim_set_fault(files.get(), {os::sim_op_any, failed, false, TY_E_IO});
        ty_status status = ty_open(heap_path, &o, &heap, nullptr);
        fired = os::sim_operation_count(files.get(), os::sim_op_any) > failed;
        failures += status != TY_OK;
        const uint64_t last = os::sim_event_count(files.get());
        for (uint64_t event = last > removals ? last - removals : 0; status && event <= last; ++event) {
            SCOPED_TRACE(testing::Message()
                         << "operation " << failed << " fails, cut " << last - event << " from the end");
            disk cut(os::sim_power_cut(files.get(), event, os::sim_cut::keep_all, event));
            o = with_log(cut, GetParam());
            ASSERT_OK(ty_open(heap_path, &o, &heap, nullptr));
            ASSERT_OK(ty_discard(heap));
        }
        if (!status) {
            os::sim_set_fault(files.get(), {});
            ASSERT_OK(ty_discard(heap));
        }
    }
    EXPECT_GT(failures, 20u);
}

// A chunk of a version that this library does not know, where one that counts would be: refused, not taken for the end.
TEST_P(belonging, a_snapshot_of_another_version) {
    disk files;
    ty_heap *heap = create(files);
    set(heap, 1);
    ASSERT_OK(ty_snapshot(heap));
    moment died = moment_of(files, 1);
    ASSERT_OK(ty_discard(heap));
    struct {
        const char *what;
        void (*change)(chunk_header &);
        ty_status expected;
    } cases[] = {{"version", [](chunk_header &h) { h.version += 1; }, TY_E_FORMAT},
                 {"version 0", [](chunk_header &h) { h.version = 0; }, TY_E_FORMAT},
                 {"attempt", [](chunk_header &h) { h.attempt = UINT64_MAX; }, TY_E_DAMAGED},
                 {"lsn", [](chunk_header &h) { h.log_lsn = UINT64_MAX - 1; }, TY_E_DAMAGED},
                 {"position", [](chunk_header &h) { h.log_position = UINT64_MAX - 4095; }, TY_E_DAMAGED}};
    for (const auto &each : cases) {
        SCOPED_TRACE(each.what);
        disk on;
        for (size_t i = 0; i < 3; ++i)
            put(on, paths[i], died.files[i]);
        chunk_header header;
        ASSERT_TRUE(on.read(journal_path, journal_front, &header));
        ASSERT_EQ(chunk_magic, header.magic);
        each.change(header);
        header.checksum = header_checksum(header);
        on.patch(journal_path, journal_front, &header, sizeof header);
        uint64_t events = os::sim_event_count(on.get());
        ty_open_options o = options(on);
        EXPECT_EQ(each.expected, ty_open(heap_path, &o, &heap, nullptr)) << ty_error_text();
        EXPECT_EQ(events, os::sim_event_count(on.get()));
    }
}

INSTANTIATE_TEST_SUITE_P(kinds, belonging, testing::Values(TY_SNAPSHOT, TY_TRANSACTIONAL), [](const auto &kind) {
    return std::string(kind.param == TY_SNAPSHOT ? "snapshot" : "transactional");
});

} // namespace
