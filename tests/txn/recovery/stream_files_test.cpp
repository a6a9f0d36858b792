// Goal: whatever the files of a heap with several log streams hold, an open gives what was acknowledged or a status;
// and a power cut while the log gets another number of log streams leaves a heap that opens. Method: flips all over the
// files; images whose checksums are right and whose marks are not; a cut at each event.
#include "stamped_heap.hpp"

#include "src/store/image/files/files.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

// Words 1 to n hold their own number, each by a commit of its own that was waited for.
struct died_with_streams {
    stamped_heap h{3};
    uint64_t count = 0;

    died_with_streams() {
        for (uint64_t n = 1; n <= 12; ++n) {
            h.store(static_cast<uint32_t>(n * n % 3), n, n);
            EXPECT_OK(log_wait(h.log(), h.clock, static_cast<uint32_t>(n * n % 3)));
            if (n == 5) {
                EXPECT_OK(ty_snapshot(h.heap));
            }
        }
        count = 12;
        EXPECT_OK(ty_discard(h.heap));
        h.heap = nullptr;
    }
};

uint64_t committed(ty_heap *heap) {
    const auto *block = static_cast<uint64_t *>(ty_root(heap, "words"));
    uint64_t n = 0;
    while (block[n + 1] == n + 1)
        ++n;
    for (uint64_t i = n + 1; i < 20; ++i)
        EXPECT_EQ(0u, block[i]) << i << " without what is before it";
    return n;
}

// The very last frame may be gone: nothing shows that it had been written whole.
void flip_and_open(const died_with_streams &before, const char *path, uint64_t from, uint64_t bytes, uint64_t step) {
    for (uint64_t at = from; at < from + bytes; at += step) {
        SCOPED_TRACE(testing::Message() << path << " at " << at);
        disk copy(before.h.files.cut(os::sim_cut::keep_all));
        copy.flip(path, at);
        const std::string image = copy.read_file(heap_path), log = copy.read_file(log_path);
        ty_open_options options = with_streams(copy, 0, TY_KIND_DEFAULT);
        ty_heap *heap = nullptr;
        if (ty_open(heap_path, &options, &heap, nullptr)) {
            ASSERT_TRUE(image == copy.read_file(heap_path) && log == copy.read_file(log_path)) << "was changed";
            continue;
        }
        ASSERT_GE(committed(heap), before.count - 1);
        ASSERT_OK(ty_discard(heap));
    }
}

TEST(stream_files, flips_in_the_log) {
    died_with_streams before;
    log_header header{};
    const std::string bytes = before.h.files.read_file(log_path);
    memcpy(&header, bytes.data(), sizeof header);
    flip_and_open(before, log_path, 0, 8192, 97);
    for (uint32_t p = 0; p < 3; ++p)
        flip_and_open(before, log_path, geometry_of(header, p).offset, 32 << 10, 193);
}
TEST(stream_files, flips_in_the_journal) {
    flip_and_open(died_with_streams(), journal_path, 0, 40 << 10, 193);
}
TEST(stream_files, flips_in_the_image_s_headers) {
    flip_and_open(died_with_streams(), heap_path, 0, 8192, 31);
}

void expect_refused(const disk &files, const ty_open_options &options, ty_status expected) {
    ty_heap *heap = nullptr;
    const uint64_t events = os::sim_event_count(files.get());
    EXPECT_EQ(expected, ty_open(heap_path, &options, &heap, nullptr)) << ty_error_text();
    EXPECT_EQ(events, os::sim_event_count(files.get())) << "a refusal wrote something";
}

TEST(stream_files, marks_that_cannot_be_are_refused) {
    stamped_heap h(3);
    h.store(1, 1, 1);
    ASSERT_OK(ty_close(h.heap));
    h.open();
    ASSERT_OK(ty_discard(h.heap));
    h.heap = nullptr;
    struct {
        const char *what;
        void (*change)(image_header &);
        ty_status expected;
    } cases[] = {
        {"more log streams than the log", [](image_header &i) { i.log_streams = 4; }, TY_E_MISMATCH},
        {"fewer log streams than the log", [](image_header &i) { i.log_streams = 2; }, TY_E_MISMATCH},
        {"far too many", [](image_header &i) { i.log_streams = 0x80000003; }, TY_E_DAMAGED},
        {"one", [](image_header &i) { i.log_streams = 1; }, TY_E_DAMAGED},
        {"none", [](image_header &i) { i.log_streams = 0; }, TY_E_MISMATCH},
        {"a position out of line", [](image_header &i) { i.log_more[1].offset += 8; }, TY_E_DAMAGED},
        {"a position that wraps", [](image_header &i) { i.log_more[1].offset = -uint64_t{4096}; }, TY_E_DAMAGED},
        {"an LSN that wraps", [](image_header &i) { i.log_more[0].lsn = UINT64_MAX; }, TY_E_DAMAGED},
        {"a first LSN that wraps", [](image_header &i) { i.log_first_lsn = UINT64_MAX; }, TY_E_DAMAGED},
        {"an LSN near the top", [](image_header &i) { i.log_more[0].lsn = counter_max; }, TY_E_DAMAGED},
    };
    for (const auto &one : cases) {
        SCOPED_TRACE(one.what);
        disk copy(h.files.cut(os::sim_cut::keep_all));
        for (uint64_t slot : {uint64_t{0}, image_slot_bytes}) {
            image_header header{};
            const std::string bytes = copy.read_file(heap_path);
            memcpy(&header, bytes.data() + slot, sizeof header);
            one.change(header);
            header.checksum = header_checksum(header);
            copy.patch(heap_path, slot, &header, sizeof header);
        }
        expect_refused(copy, with_streams(copy, 0, TY_KIND_DEFAULT), one.expected);
    }
}

// X21: what is asked for without need must not be done half.
TEST(stream_files, a_number_that_cannot_be_had_changes_nothing) {
    died_with_streams before;
    expect_refused(before.h.files, with_streams(before.h.files, 2), TY_E_UNSUPPORTED);
    ty_heap *heap = nullptr;
    ty_open_options options = with_streams(before.h.files, 3);
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    EXPECT_EQ(12u, committed(heap));
    ASSERT_OK(ty_discard(heap));
}

TEST(stream_files, a_cut_while_their_number_changes) {
    stamped_heap h(2);
    h.store(1, 1, 1);
    h.store(0, 2, 2);
    ASSERT_OK(ty_close(h.heap));
    h.heap = nullptr;
    const uint64_t begun = os::sim_event_count(h.files.get());
    ty_open_options options = with_streams(h.files, 3);
    ASSERT_OK(ty_open(heap_path, &options, &h.heap, nullptr));
    h.block = static_cast<uint64_t *>(ty_root(h.heap, "words"));
    h.clock = log_last(h.log());
    const uint64_t changed = os::sim_event_count(h.files.get());
    h.store(2, 3, 3);
    ASSERT_OK(log_wait(h.log(), h.clock));
    const uint64_t committed_event = os::sim_event_count(h.files.get());
    ASSERT_OK(ty_discard(h.heap));
    h.heap = nullptr;
    for (uint64_t event = begun; event <= os::sim_event_count(h.files.get()); ++event)
        for (os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random, os::sim_cut::trash})
            for (uint32_t wanted : {0u, 2u, 3u}) {
                if (wanted == 2 && event >= changed) // the heap was not closed
                    continue;
                SCOPED_TRACE(testing::Message() << "event " << event << " cut " << int(how) << " then " << wanted);
                disk copy(os::sim_power_cut(h.files.get(), event, how, event * 31 + 7));
                ty_open_options again = with_streams(copy, wanted);
                ty_heap *heap = nullptr;
                const ty_status status = ty_open(heap_path, &again, &heap, nullptr);
                if (status == TY_E_UNSUPPORTED) { // the cut-off open had said that the heap is open
                    EXPECT_NE(0u, wanted);
                    again.log_streams = 0;
                    ASSERT_OK(ty_open(heap_path, &again, &heap, nullptr));
                } else {
                    ASSERT_OK(status);
                }
                EXPECT_GE(committed(heap), event >= committed_event ? 3u : 2u);
                ASSERT_OK(ty_close(heap));
            }
}

// An LSN that was taken and is not needed is filled by a record that does nothing.
TEST(stream_files, a_record_that_does_nothing_fills_a_gap) {
    stamped_heap h(2);
    h.store(0, 1, 1);
    uint8_t *place = nullptr;
    ASSERT_OK(log_append_begin(h.log(), 1, 1, &place));
    *place = 0xf0;
    log_append_end(h.log(), 1, 1, ++h.clock);
    h.store(0, 2, 2);
    ASSERT_OK(log_wait(h.log(), h.clock));
    h.crash();
    EXPECT_EQ(2u, committed(h.heap));
    EXPECT_EQ(3u, h.report.replayed_transactions);
    EXPECT_EQ(nullptr, strstr(h.report.text, "left out"));
}

} // namespace
