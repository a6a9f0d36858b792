// Goal: flipped bits in image, journal and log, and a log whose checksums are right but whose records are not, give
// what was acknowledged or a status; never undefined behaviour, and a refusal changes nothing. Method: flip bits all
// over the files of a heap that died; and write logs by the log layer with records of one's own.
#include "../files.hpp"

#include "src/store/log/log.hpp"
#include "src/txn/recovery/open_steps.hpp"
#include "src/txn/recovery/replay_steps.hpp"
#include "tests/files_on.hpp"

#include <optional>

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct died {
    disk files;
    ledger book{8};
    uint64_t count = 0;

    died() {
        ty_heap *heap = nullptr;
        ty_open_options options = with_log(files);
        EXPECT_OK(ty_open(heap_path, &options, &heap, nullptr));
        for (int i = 0; i < 12; ++i) {
            EXPECT_OK(book.run(heap));
            if (i == 5) {
                EXPECT_OK(ty_snapshot(heap));
            }
        }
        count = ledger::count(heap);
        EXPECT_OK(ty_discard(heap));
    }
};

// A flip in the very last frame looks as if it had been in flight: it alone may be gone.
void flip_and_open(const char *path, uint64_t bytes, uint64_t step) {
    died before;
    for (uint64_t at = 0; at < bytes; at += step) {
        SCOPED_TRACE(testing::Message() << path << " at " << at);
        disk copy(before.files.cut(os::sim_cut::keep_all));
        copy.flip(path, at);
        std::string image = copy.read_file(heap_path), log = copy.read_file(log_path);
        ty_open_options options = with_log(copy, TY_KIND_DEFAULT);
        ty_heap *heap = nullptr;
        ty_status status = ty_open(heap_path, &options, &heap, nullptr);
        if (status) {
            EXPECT_TRUE(image == copy.read_file(heap_path) && log == copy.read_file(log_path)) << "was changed";
            continue;
        }
        before.book.check(heap, before.count - 1);
        ASSERT_OK(ty_discard(heap));
        if (testing::Test::HasFailure())
            return;
    }
}

TEST(hostile_test, flips_in_the_log) {
    flip_and_open(log_path, 64 << 10, 193);
}
TEST(hostile_test, flips_in_the_journal) {
    flip_and_open(journal_path, 64 << 10, 331);
}
TEST(hostile_test, flips_in_the_image_s_headers) {
    flip_and_open(heap_path, 8192, 61);
}

// Appends one record of any bytes to the log, as the library would; the checksums are right.
void append_record(const disk &files, const std::vector<uint8_t> &bytes) {
    ty_log_info info{};
    info.struct_size = sizeof info;
    ty_info heap{};
    heap.struct_size = sizeof heap;
    ASSERT_OK(ty_log_read(nullptr, files_on(files.storage(), log_path), &info, nullptr, nullptr));
    ASSERT_OK(ty_read_info(heap_path, files_on(files.storage()), &heap));
    ASSERT_EQ(0u, heap.log_lsn) << "the log is read from its beginning";
    log_identity identity{};
    memcpy(identity.heap, info.heap_identity, sizeof identity.heap);
    identity.log = info.log_identity;
    ty_log_sink *sink = nullptr;
    ASSERT_OK(file_sink_open(log_path, true, *files.storage(), &sink));
    log_contents contents{};
    ASSERT_OK(log_scan(*sink, log_path, identity, {}, {}, &contents));
    taiyen::log_options options{};
    options.sink = sink;
    options.name = log_path;
    options.identity = identity;
    options.end = contents.end;
    options.tail = contents.tail;
    taiyen::log *l = nullptr;
    ASSERT_OK(log_start(options, &l));
    uint8_t *place = nullptr;
    ASSERT_OK(log_append_begin(l, bytes.size(), &place));
    memcpy(place, bytes.data(), bytes.size());
    uint64_t lsn = log_append_end(l, bytes.size());
    ASSERT_OK(log_wait(l, lsn));
    log_stop(l);
    sink_destroy(sink);
}

std::vector<uint8_t> record_of(const record_operation *operations, size_t count, const word_range *ranges,
                               size_t range_count) {
    record_part part{operations, count, ranges, range_count};
    std::vector<uint8_t> bytes(record_bound(part) + 64);
    bytes.resize(record_encode(part, true, bytes.data()));
    return bytes;
}

void make_heap(const disk &files) {
    ty_heap *heap = nullptr;
    ledger book(8);
    ty_open_options options = with_log(files);
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    for (int i = 0; i < 5; ++i)
        ASSERT_OK(book.run(heap));
    ASSERT_OK(ty_discard(heap));
}

constexpr uint64_t first_block_word = 2 * 512;
constexpr uint64_t limit_words = small_limit / 8;

// Replays by two threads, in batches of so many steps, with pages copied before the log is known to be sound.
class two_threads {
public:
    explicit two_threads(size_t steps) {
        replay_helper_min_bytes = 0;
        step_batch::steps_max = steps;
        step_batch::others_max = 2;
        page_copier::early_min_pages = 1;
    }
    ~two_threads() {
        replay_helper_min_bytes = min_bytes_;
        step_batch::steps_max = steps_max_;
        step_batch::others_max = others_max_;
        page_copier::early_min_pages = early_min_pages_;
    }

private:
    const uint64_t min_bytes_ = replay_helper_min_bytes;
    const size_t steps_max_ = step_batch::steps_max;
    const size_t others_max_ = step_batch::others_max;
    const uint64_t early_min_pages_ = page_copier::early_min_pages;
};

// rows: what follows the record are rows of words, each a step of its own kind; else words alone, which two threads
// share once all before them is done.
void expect_damaged_before(bool rows, const std::vector<uint8_t> &record, ty_status expected) {
    disk files;
    make_heap(files);
    append_record(files, record);
    const uint64_t now[2] = {1, 2};
    for (uint64_t i = 0; i < 10; ++i) { // more batches than there are after it
        word_range range{first_block_word + 2 * i, rows ? 2u : 1u, rows, nullptr, now};
        append_record(files, record_of(nullptr, 0, &range, 1));
    }
    for (size_t steps : {0, 2, 1000}) { // the refusal leaves it as it is
        std::optional<two_threads> form;
        ty_open_options options = with_log(files, TY_KIND_DEFAULT);
        if (steps) {
            form.emplace(steps);
            options.background = TY_BACKGROUND_THREAD;
        }
        ty_heap *heap = nullptr;
        ASSERT_EQ(expected, ty_open(heap_path, &options, &heap, nullptr)) << ty_error_text();
    }
}

void expect_damaged(const std::vector<uint8_t> &record, ty_status expected = TY_E_DAMAGED) {
    for (bool rows : {true, false})
        expect_damaged_before(rows, record, expected);
}

TEST(hostile_test, words_in_the_heap_s_own_tables) {
    uint64_t now[2] = {7, 9};
    for (uint64_t word : {uint64_t{0}, uint64_t{6}, uint64_t{511}, uint64_t{600}, first_block_word - 1,
                          limit_words - 100, limit_words - 150000, limit_words - 2}) {
        SCOPED_TRACE(word);
        word_range range{word, 2, true, nullptr, now};
        expect_damaged(record_of(nullptr, 0, &range, 1));
    }
}

// A program that declares memory outside of its blocks must not make its heap impossible to open: such words are left
// out, and the pages stay as if never used (H7, which the verification checks).
TEST(hostile_test, words_in_pages_that_were_never_used) {
    constexpr uint64_t count = 3000;
    for (uint64_t length : {uint64_t{1}, count})
        for (bool zeros : {false, true}) {
            SCOPED_TRACE(length);
            std::vector<uint64_t> bytes(count, zeros ? 0 : 7);
            word_range range{limit_words / 2, uint32_t(length), true, nullptr, bytes.data()};
            disk files;
            make_heap(files);
            append_record(files, record_of(nullptr, 0, &range, 1));
            ty_open_options options = with_log(files, TY_KIND_DEFAULT);
            ty_heap *heap = nullptr;
            ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
            EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
            const auto *words = static_cast<const uint64_t *>(ty_heap_base(heap)) + limit_words / 2;
            EXPECT_EQ(0u, words[0]);
            EXPECT_EQ(0u, words[count - 1]);
            ASSERT_OK(ty_discard(heap));
        }
}

TEST(hostile_test, operations_that_cannot_be) {
    auto operation = [](operation_kind kind, uint64_t word, uint64_t size) {
        record_operation o{};
        o.kind = kind;
        o.word = word;
        o.size = size;
        return o;
    };
    const record_operation bad[] = {
        operation(operation_kind::alloc, first_block_word, 64),                // taken
        operation(operation_kind::alloc, limit_words / 2 + 1, 5 << 12),        // no run starts there
        operation(operation_kind::free, limit_words / 2, 0),                   // not a block
        operation(operation_kind::free, first_block_word + 3, 0),              // nor that
        operation(operation_kind::resize, limit_words / 2, 4096),              // nor that
        operation(operation_kind::alloc, limit_words - 4096, size_t{1} << 14), // tables
    };
    for (const record_operation &o : bad) {
        SCOPED_TRACE(int(o.kind));
        expect_damaged(record_of(&o, 1, nullptr, 0));
    }
    record_operation root = operation(operation_kind::root, first_block_word, 0);
    std::string name(TY_ROOT_NAME_MAX + 5, 'x');
    root.bytes = name.data();
    root.byte_count = uint32_t(name.size());
    expect_damaged(record_of(&root, 1, nullptr, 0));
}

// What is prepared has an outcome after it and nothing else; an outcome has what is prepared before it.
TEST(hostile_test, prepared_records_and_outcomes_that_cannot_be) {
    for (const std::vector<uint8_t> &record : std::initializer_list<std::vector<uint8_t>>{
             {0xf8, 1},            // the outcome of nothing
             {0xf8, 2},            // no outcome
             {0xf9},               // pending, and another transaction follows
             {0xf8},               // cut
             {0xf8, 1, 0},         // something after it
             {0xf7, 0},            // prepared, and another transaction follows
             {0xf7, 3, 'a'},       // a description that is cut
             {0xf7, 0x80},         // a length that is cut
             {0xf7, 0x81, 8},      // too long a description
             {0x11, 0x40, 1, 0xf7} // not at the beginning
         }) {
        SCOPED_TRACE(testing::PrintToString(record));
        expect_damaged(record);
    }
    disk files;
    make_heap(files);
    std::vector<uint8_t> record{0xf7, 0};
    record_operation o{};
    o.kind = operation_kind::free;
    o.word = limit_words / 2;
    const std::vector<uint8_t> parts = record_of(&o, 1, nullptr, 0);
    record.insert(record.end(), parts.begin(), parts.end());
    append_record(files, record);
    ty_open_options options = with_log(files, TY_KIND_DEFAULT);
    ty_heap *heap = nullptr;
    EXPECT_EQ(TY_E_IN_DOUBT, ty_open(heap_path, &options, &heap, nullptr));
    options.outcome = [](const ty_in_doubt_txn *, void *) { return TY_OUTCOME_COMMIT; };
    EXPECT_EQ(TY_E_DAMAGED, ty_open(heap_path, &options, &heap, nullptr)) << "a block that is none";
    options.outcome = [](const ty_in_doubt_txn *, void *) { return TY_OUTCOME_ROLLBACK; };
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr)) << "it does not count, and nothing of it was done";
    expect_sound(heap);
    ASSERT_OK(ty_discard(heap));
}

// Pending records count with the prepared one after them, and only so many may wait for one.
TEST(hostile_test, pending_records) {
    using records = std::vector<std::vector<uint8_t>>;
    const std::vector<uint8_t> pending{0xf9}, prepared{0xf7, 0}, commit{0xf8, 1}, rollback{0xf8, 0};
    records most(record_pending_max, pending), too_many = most;
    most.push_back(prepared);
    most.push_back(commit);
    too_many.push_back(pending);
    const struct {
        records all;
        ty_status status;
    } cases[] = {
        {{pending, commit}, TY_E_DAMAGED},
        {{pending, pending, commit}, TY_E_DAMAGED},
        {{prepared, pending}, TY_E_DAMAGED},
        {{prepared, prepared}, TY_E_DAMAGED},
        {{pending, prepared, pending}, TY_E_DAMAGED},
        {{pending, rollback, rollback}, TY_E_DAMAGED},
        {{pending, prepared, commit, commit}, TY_E_DAMAGED},
        {too_many, TY_E_DAMAGED},
        {most, TY_OK},
        {{pending}, TY_OK}, // an open rolls it back
        {{pending, pending}, TY_OK},
        {{pending, rollback}, TY_OK},
        {{pending, prepared, rollback, prepared, commit}, TY_OK},
        {{pending, prepared}, TY_E_IN_DOUBT},
    };
    for (const auto &one : cases) {
        SCOPED_TRACE(testing::PrintToString(one.all));
        disk files;
        make_heap(files);
        for (const std::vector<uint8_t> &record : one.all)
            append_record(files, record);
        ty_open_options options = with_log(files, TY_KIND_DEFAULT);
        for (int i = 0; i < 2; ++i) {
            ty_heap *heap = nullptr;
            ASSERT_EQ(one.status, ty_open(heap_path, &options, &heap, nullptr)) << ty_error_text();
            if (!heap)
                continue;
            expect_sound(heap);
            ty_txn *txn = nullptr; // what follows is read the next time
            ASSERT_OK(ty_begin(heap, nullptr, &txn));
            ASSERT_OK(ty_txn_root_set(txn, "next", ty_txn_alloc(txn, 64)));
            ASSERT_OK(ty_commit(txn));
            ASSERT_OK(ty_discard(heap));
        }
    }
}

TEST(hostile_test, a_procedure_that_nobody_registered) {
    record_operation o{};
    o.kind = operation_kind::procedure;
    o.procedure = 0x1234567;
    expect_damaged(record_of(&o, 1, nullptr, 0), TY_E_NOT_FOUND);
}

TEST(hostile_test, records_of_any_bytes) {
    std::mt19937_64 random(77);
    for (int i = 0; i < 300; ++i) {
        SCOPED_TRACE(i);
        disk files;
        make_heap(files);
        std::vector<uint8_t> bytes(1 + random() % 60);
        for (uint8_t &byte : bytes)
            byte = uint8_t(random());
        append_record(files, bytes);
        ty_open_options options = with_log(files, TY_KIND_DEFAULT);
        ty_heap *heap = nullptr;
        if (ty_open(heap_path, &options, &heap, nullptr))
            continue;
        expect_sound(heap);
        ASSERT_OK(ty_discard(heap));
        if (HasFailure())
            return;
    }
}

} // namespace
