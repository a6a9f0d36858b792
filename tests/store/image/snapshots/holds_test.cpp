// Goal: whatever followers hold, a heap loses nothing, and is overwritten only as far as they allow (I27). Method: the
// simulated disk with holds that chance chooses, power cuts, and a look at each write of the image.
#include "../support.hpp"
#include "src/store/image/files/files.hpp"
#include "tests/effort.hpp"

#include <optional>

namespace taiyen::test {
namespace {

// The storage of a simulated disk, beside which somebody holds an epoch.
class held_storage {
public:
    explicit held_storage(const disk &files) : base_(*files.storage()), table_(base_) {
        current_ = this;
        table_.hold = [](void *, ty_file *, uint32_t mode, uint64_t first, uint64_t last, uint64_t *other) {
            held_storage &self = *current_;
            if (mode != TY_HOLD_EXCLUSIVE || !self.held || self.held < first || self.held > last)
                return TY_OK;
            *other = *self.held;
            self.refusals++;
            if (self.gives_way && self.refusals % 3 == 0)
                self.held.reset();
            return TY_E_BUSY;
        };
    }
    const ty_storage *table() const { return &table_; }

    std::optional<uint64_t> held; // a number
    bool gives_way = false;
    unsigned refusals = 0;

private:
    static inline held_storage *current_;
    const ty_storage &base_;
    ty_storage table_;
};

} // namespace

TEST(holds, the_power_fails_while_followers_are_in_the_way) {
    struct moment {
        uint64_t events; // it is durable after so many
        content has;
    };
    const uint64_t patience = std::exchange(follower_patience_ns, 2'000'000);
    disk files;
    held_storage storage(files);
    ty_open_options options = files.options();
    options.storage = storage.table();
    std::mt19937_64 random(1);
    std::vector<moment> history;
    ty_heap *heap = nullptr;
    scribbler changes(4);
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    for (int round = 0; round < 60; round++) {
        const uint64_t epoch = image_epoch(heap);
        if (random() % 4 != 0)
            storage.held = 2 + epoch - std::min(epoch, random() % 4);
        else
            storage.held.reset();
        storage.gives_way = random() % 2 != 0;
        changes.change(heap, 20);
        const content has = content_of(heap);
        ASSERT_OK(ty_snapshot(heap));
        history.push_back({os::sim_event_count(files.get()), has});
        if (random() % 3 == 0) {
            ASSERT_OK(ty_run_background_work(heap));
        }
        if (random() % 6 == 0) {
            ASSERT_OK(ty_close(heap));
            history.push_back({os::sim_event_count(files.get()), has});
            ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
            EXPECT_TRUE(content_of(heap) == has);
            changes.forget_others(heap);
        }
    }
    EXPECT_GT(storage.refusals, 10u);
    ASSERT_OK(ty_discard(heap));
    size_t last = 0;
    for (uint64_t event = history[0].events; event <= history.back().events && !testing::Test::HasFailure();
         event += 1 + random() % stride(12)) {
        while (last + 1 < history.size() && history[last + 1].events <= event)
            last++;
        const os::sim_cut how = os::sim_cuts[random() % std::size(os::sim_cuts)];
        SCOPED_TRACE("event " + std::to_string(event) + " cut " + std::to_string(int(how)));
        const disk found(os::sim_power_cut(files.get(), event, how, random()));
        const ty_open_options as_is = found.options();
        ASSERT_OK(ty_open(heap_path, &as_is, &heap, nullptr));
        const content has = content_of(heap);
        EXPECT_TRUE(has == history[last].has || (last + 1 < history.size() && has == history[last + 1].has));
        expect_sound(heap);
        ASSERT_OK(ty_discard(heap));
    }
    follower_patience_ns = patience;
}

} // namespace taiyen::test
