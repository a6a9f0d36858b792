// Goal: the report on a heap in use is of a moment of the reading, never of one before. Method: a storage that takes
// a snapshot before one of the reads, each of them in turn, while the journal is small and used again.
#include "../support.hpp"

#include "src/store/image/image.hpp"

#include <functional>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// A reader's storage: the same files, and something that happens before a read.
struct watched_storage {
    explicit watched_storage(const ty_storage *over) : below(over), table(*over) {
        table.context = this;
        table.open = [](void *context, const char *path, uint32_t flags, ty_file **file) {
            const ty_storage *s = static_cast<watched_storage *>(context)->below;
            return s->open(s->context, path, flags, file);
        };
        table.close = [](void *context, ty_file *file) {
            const ty_storage *s = static_cast<watched_storage *>(context)->below;
            s->close(s->context, file);
        };
        table.get_size = [](void *context, ty_file *file, uint64_t *bytes) {
            const ty_storage *s = static_cast<watched_storage *>(context)->below;
            return s->get_size(s->context, file, bytes);
        };
        table.next_data = [](void *context, ty_file *file, uint64_t offset, uint64_t *start, uint64_t *end) {
            const ty_storage *s = static_cast<watched_storage *>(context)->below;
            return s->next_data(s->context, file, offset, start, end);
        };
        table.lock = [](void *, ty_file *, bool) { return TY_E_PERMISSION; }; // an open meanwhile would be refused
        table.check_lock = [](void *context, ty_file *file) {
            const ty_storage *s = static_cast<watched_storage *>(context)->below;
            return s->check_lock(s->context, file);
        };
        table.read = [](void *context, ty_file *file, uint64_t offset, void *buffer, size_t bytes) {
            auto &self = *static_cast<watched_storage *>(context);
            if (self.number++ == self.at)
                self.happen();
            return self.below->read(self.below->context, file, offset, buffer, bytes);
        };
    }
    const ty_storage *below;
    ty_storage table;
    unsigned number = 0, at = UINT32_MAX;
    std::function<void()> happen;
};

TEST(info_in_use_test, it_is_never_after_what_was_durable_before) {
    disk files;
    ty_open_options options = files.options();
    options.kind = TY_SNAPSHOT;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    std::mt19937_64 random(3);
    char *block = static_cast<char *>(ty_alloc(heap, size_t{1} << 20));
    const auto snapshot = [&](int count) {
        for (int i = 0; i < count; ++i) {
            for (int n = 0; n < 40; ++n)
                block[random() % (size_t{1} << 20)] += 1;
            EXPECT_OK(ty_snapshot(heap));
            if (i % 2) {
                EXPECT_OK(
                    ty_run_background_work(heap)); // batches are checkpointed, and the journal's space is used again
            }
        }
    };
    snapshot(3);
    for (int count : {1, 2, 5})
        for (unsigned at = 0; at < 40; ++at) {
            SCOPED_TRACE(testing::Message() << count << " snapshots before read " << at);
            watched_storage watched(files.storage());
            watched.at = at;
            watched.happen = [&] { snapshot(count); };
            const uint64_t before = ty_heap_epoch(heap);
            ty_info info{};
            image_log log{};
            ASSERT_OK(image_read_info(heap_path, watched.table, &info, &log));
            EXPECT_LE(before, info.epoch);
            EXPECT_GE(ty_heap_epoch(heap), info.epoch);
            if (watched.number <= at || HasFailure())
                break;
        }
    ASSERT_OK(ty_close(heap));
}

TEST(info_in_use_test, what_opens_and_closes_meanwhile_is_not_refused_and_seen_whole) {
    disk files;
    ty_open_options options = files.options();
    options.kind = TY_SNAPSHOT;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    char *block = static_cast<char *>(ty_alloc(heap, 4096));
    ASSERT_OK(ty_close(heap));
    for (const bool closes : {false, true})
        for (unsigned at = 0;; ++at) {
            SCOPED_TRACE(testing::Message() << (closes ? "opened and closed" : "opened") << " before read " << at);
            watched_storage watched(files.storage());
            watched.at = at;
            watched.happen = [&] {
                ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
                block[0] += 1;
                ASSERT_OK(ty_snapshot(heap));
                ASSERT_EQ(closes ? ty_close(heap) : TY_OK, TY_OK);
            };
            heap = nullptr;
            ty_info info{}, after{};
            ty_error refusal{};
            ASSERT_OK(image_read_info(heap_path, watched.table, &info, nullptr, nullptr, &refusal));
            EXPECT_EQ(refusal.status, TY_OK) << info.open_text;
            ASSERT_OK(image_read_info(heap_path, *files.storage(), &after, nullptr));
            EXPECT_EQ(info.in_use, heap && !closes);
            EXPECT_EQ(info.epoch, after.epoch);
            EXPECT_EQ(info.found, after.found);
            EXPECT_EQ(memcmp(&info, &after, offsetof(ty_info, open_text)), 0);
            ASSERT_EQ(heap && !closes ? ty_close(heap) : TY_OK, TY_OK);
            if (!heap || HasFailure())
                break;
        }
}

} // namespace
