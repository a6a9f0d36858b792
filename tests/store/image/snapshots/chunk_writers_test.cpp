// Goal: chunks are checksummed while the disk writes others: so many threads write at a time as chunk_writers says, no
// more, the rest checksum ahead, and nothing is left behind. Method: writes of the journal are held back in the storage
// until as many are under way as there may be and every other chunk of the batch has its checksums.
#include "../support.hpp"
#include "src/store/image/snapshots/image_runtime.hpp"

#include <condition_variable>
#include <mutex>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr size_t block_bytes = size_t{12} << 20; // chunks enough for all writers and then some
constexpr size_t staging_bytes = size_t{32} << 20;

class held_writes {
public:
    held_writes() {
        current = this;
        storage_ = *disk_.storage();
        real_write = storage_.write;
        storage_.write = [](void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
            held_writes &held = *current;
            bool chunk = held.hold(bytes);
            ty_status status = real_write(context, file, offset, buffer, bytes);
            if (chunk)
                held.ended();
            return status;
        };
    }

    ty_open_options options() const {
        ty_open_options o = disk_.options();
        o.storage = &storage_;
        o.background = TY_BACKGROUND_THREAD;
        o.staging_bytes = staging_bytes;
        return o;
    }
    // From here on.
    void begin(image *im) {
        std::lock_guard guard(lock_);
        im_ = im;
    }
    uint32_t most_at_once() const {
        std::lock_guard guard(lock_);
        return most_;
    }
    uint32_t summed_ahead() const {
        std::lock_guard guard(lock_);
        return summed_ahead_;
    }

private:
    bool hold(size_t bytes) {
        std::unique_lock guard(lock_);
        if (!im_ || bytes < chunk_bytes(1))
            return false;
        most_ = std::max(most_, ++under_way_);
        if (under_way_ == chunk_writers && !released_) {
            summed_ahead_ = wait_for_sums();
            released_ = true;
            changed_.notify_all();
        }
        changed_.wait(guard, [&] { return released_; });
        return true;
    }
    void ended() {
        std::lock_guard guard(lock_);
        --under_way_;
    }
    // Every chunk is handed on, and either written now or summed. How many are summed.
    uint32_t wait_for_sums() const {
        os::lock_guard guard(im_->work);
        const batch_writer &writer = im_->writer;
        while (!writer.sealed || writer.ring.filled.first != staging::none || writer.active != writer.writing)
            im_->changed.wait(im_->work);
        uint32_t summed = 0;
        for (uint32_t slot = writer.ring.summed.first; slot != staging::none; slot = writer.ring.slots[slot].next)
            ++summed;
        return summed;
    }

    static inline held_writes *current;
    static inline decltype(ty_storage::write) real_write;
    disk disk_;
    ty_storage storage_;
    mutable std::mutex lock_;
    std::condition_variable changed_;
    image *im_ = nullptr;
    bool released_ = false;
    uint32_t under_way_ = 0, most_ = 0, summed_ahead_ = 0;
};

TEST(chunk_writers, the_others_checksum_ahead) {
    held_writes held;
    ty_open_options options = held.options();
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    auto *block = static_cast<char *>(ty_alloc(heap, block_bytes));
    ASSERT_NE(nullptr, block);
    memset(block, 0x37, block_bytes);
    ASSERT_OK(ty_root_set(heap, "block", block));
    held.begin(image_of(heap));
    ASSERT_OK(ty_snapshot(heap));
    EXPECT_EQ(chunk_writers, held.most_at_once());
    uint64_t chunks = (block_bytes / page_bytes + chunk_pages_max - 1) / chunk_pages_max;
    EXPECT_GE(held.summed_ahead(), chunks - chunk_writers);

    ASSERT_OK(ty_discard(heap));
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    block = static_cast<char *>(ty_root(heap, "block"));
    ASSERT_NE(nullptr, block);
    EXPECT_EQ(std::string(block_bytes, 0x37), std::string(block, block_bytes));
    ASSERT_OK(ty_close(heap));
}

} // namespace
