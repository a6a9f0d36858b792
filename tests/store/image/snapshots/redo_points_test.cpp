// Goal: the image keeps a redo point in each log stream with its epoch, whatever the batch's last chunk holds.
// Method: snapshots of page counts around what a chunk takes, from one log stream to eight; opens after a death and
// after a close.
#include "src/store/image/image.hpp"
#include "tests/store/image/support.hpp"

#include "src/store/image/files/files.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct layer {
    uint32_t streams;
    image_log recorded{};

    image_open_hook hook() {
        return {this,
                [](void *context, const image_log &log, bool, image_log_choice *choice) {
                    auto &self = *static_cast<layer *>(context);
                    self.recorded = log;
                    *choice = {4711, self.streams};
                    return TY_OK;
                },
                [](void *) { return TY_OK; },
                [](void *, ty_heap *) { return TY_OK; },
                [](void *) {},
                [](void *, const open_identity &, const open_identity &) { return TY_OK; }};
    }
    ty_status open(const disk &files, ty_heap **heap) {
        ty_open_options options = files.options();
        options.kind = TY_TRANSACTIONAL;
        image_open_hook given = hook();
        return image_open(heap_path, options, &given, heap, nullptr);
    }
};

log_positions redo_point_number(uint64_t n, uint64_t streams) {
    log_positions redo_point{100 * n, streams};
    for (uint64_t p = 0; p < streams; ++p)
        redo_point.at[p] = {(n + p) * 4096, n + p + 1000, 100 * n - (streams > 1 ? p : 0)};
    return redo_point;
}

bool same(const log_positions &a, const log_positions &b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

class redo_points_test : public testing::TestWithParam<uint32_t> {};

TEST_P(redo_points_test, stand_in_the_last_chunk_beside_any_number_of_pages) {
    for (uint64_t pages : {1, 230, 231, 232, 233, 234, 235, 236, 240, 245, 246, 247, 248, 466, 467, 470, 472, 500}) {
        SCOPED_TRACE(testing::Message() << pages << " pages");
        disk files;
        layer above{GetParam()};
        ty_heap *heap = nullptr;
        ASSERT_OK(above.open(files, &heap));
        auto *block = static_cast<char *>(heap_alloc(heap, size_t{600} * 4096, 4096, false));
        ASSERT_NE(nullptr, block);
        ASSERT_OK(heap_root_set(heap, "block", block));
        log_positions redo_point = redo_point_number(1, GetParam());
        uint64_t epoch = 0;
        ASSERT_OK(image_snapshot_start(heap, &redo_point, nullptr, &epoch));
        ASSERT_OK(image_snapshot_wait(heap, epoch));
        for (uint64_t i = 0; i < pages; ++i)
            block[i * 4096] = static_cast<char>(i + 1);
        redo_point = redo_point_number(2, GetParam());
        ASSERT_OK(image_snapshot_start(heap, &redo_point, nullptr, &epoch));
        ASSERT_OK(image_snapshot_wait(heap, epoch));
        ASSERT_OK(image_discard(heap));
        for (int round = 0; round < 2; ++round) { // from the batch, then from the header
            ASSERT_OK(above.open(files, &heap));
            EXPECT_TRUE(same(redo_point, above.recorded.redo_point)) << round;
            block = static_cast<char *>(heap_root(heap, "block"));
            for (uint64_t i = 0; i < pages; ++i)
                ASSERT_EQ(static_cast<char>(i + 1), block[i * 4096]) << i;
            expect_sound(heap);
            ASSERT_OK(image_close(heap, &redo_point));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(counts, redo_points_test, testing::Values(1u, 2u, 8u));

// A heap that gets a log while batches of its time without one wait to be checkpointed: these say nothing of the log.
TEST(log_positions, of_a_heap_that_gets_a_log) {
    disk files;
    ty_open_options options = files.options();
    ty_heap *heap = nullptr;
    ASSERT_OK(image_open(heap_path, options, nullptr, &heap, nullptr));
    ASSERT_NE(nullptr, heap_alloc(heap, 100000, 0, false));
    uint64_t epoch = 0;
    ASSERT_OK(image_snapshot_start(heap, nullptr, nullptr, &epoch));
    ASSERT_OK(image_snapshot_wait(heap, epoch));
    ASSERT_OK(image_discard(heap)); // the batch waits in the journal
    layer above{3};
    ASSERT_OK(above.open(files, &heap));
    ASSERT_OK(image_discard(heap));
    ASSERT_OK(above.open(files, &heap));
    EXPECT_TRUE(same(positions_at_begin(0, 3), above.recorded.redo_point));
    ASSERT_OK(image_discard(heap));
    image_header header{};
    const std::string bytes = files.read_file(heap_path);
    memcpy(&header, bytes.data(), sizeof header);
    EXPECT_EQ(3u, header.log_streams);
}

// With right checksums, in the place of the batch that an open would restore.
TEST(log_positions, that_cannot_be_are_refused) {
    disk files;
    layer above{3};
    ty_heap *heap = nullptr;
    ASSERT_OK(above.open(files, &heap));
    ASSERT_NE(nullptr, heap_alloc(heap, 100000, 0, false));
    const log_positions redo_point = redo_point_number(1, 3);
    uint64_t epoch = 0;
    ASSERT_OK(image_snapshot_start(heap, &redo_point, nullptr, &epoch));
    ASSERT_OK(image_snapshot_wait(heap, epoch));
    ASSERT_OK(image_discard(heap));
    struct {
        const char *what;
        void (*change)(chunk_header &, chunk_streams &);
    } cases[] = {{"too many log streams", [](chunk_header &, chunk_streams &m) { m.streams = 9; }},
                 {"no end of log streams", [](chunk_header &, chunk_streams &m) { m.streams = UINT64_MAX; }},
                 {"a position", [](chunk_header &, chunk_streams &m) { m.more[6].offset = UINT64_MAX; }},
                 {"an LSN", [](chunk_header &, chunk_streams &m) { m.more[0].lsn = UINT64_MAX; }},
                 {"the first LSN", [](chunk_header &, chunk_streams &m) { m.first_lsn = UINT64_MAX; }}};
    for (const auto &one : cases) {
        SCOPED_TRACE(one.what);
        disk copy(files.cut(os::sim_cut::keep_all));
        chunk_header header;
        ASSERT_TRUE(copy.read(journal_path, journal_front, &header));
        ASSERT_TRUE(header.flags & chunk_has_streams);
        chunk_streams redo_points;
        memcpy(&redo_points, &header.entries[chunk_pages_max_with_streams], sizeof redo_points);
        EXPECT_EQ(3u, redo_points.streams);
        one.change(header, redo_points);
        memcpy(&header.entries[chunk_pages_max_with_streams], &redo_points, sizeof redo_points);
        header.checksum = header_checksum(header);
        copy.patch(journal_path, journal_front, &header, sizeof header);
        const uint64_t events = os::sim_event_count(copy.get());
        EXPECT_EQ(TY_E_DAMAGED, above.open(copy, &heap)) << ty_error_text();
        EXPECT_EQ(events, os::sim_event_count(copy.get())) << "a refusal wrote something";
    }
}

} // namespace
