// What the image tests share: a heap on a simulated disk, filled with blocks whose content a plain model remembers.
#pragma once

#include "src/store/image/files/image_layout.hpp"
#include "tests/simulated_disk/storage_sim.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>
#include <taiyen/taiyen.h>
#include <vector>

namespace taiyen::test {

inline constexpr const char *heap_path = "test.ty";
inline constexpr const char *journal_path = "test.ty-journal";
inline constexpr size_t small_limit = size_t{64} << 20;

#define ASSERT_OK(call) ASSERT_EQ(TY_OK, call) << ty_error_text()
#define EXPECT_OK(call) EXPECT_EQ(TY_OK, call) << ty_error_text()

// The content of a heap as a test knows it: for each live block, its bytes.
using content = std::map<char *, std::string>;

// What is really there.
inline content content_of(ty_heap *heap) {
    content found;
    ty_each_block(
        heap,
        [](const ty_block *block, void *context) {
            auto *address = static_cast<char *>(block->address);
            (*static_cast<content *>(context))[address] = std::string(address, block->size_bytes);
            return true;
        },
        &found);
    return found;
}

// For a heap in real files.
inline ty_open_options options_of(ty_kind kind) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = kind;
    options.limit_bytes = small_limit;
    options.log_bytes = 1 << 20;
    options.background = TY_BACKGROUND_CALLS;
    options.staging_bytes = 8 << 20;
    return options;
}

class disk {
public:
    disk() : disk_(os::sim_create()) {}
    explicit disk(os::sim_disk *taken) : disk_(taken) {}
    disk(const disk &) = delete;
    disk &operator=(const disk &) = delete;
    ~disk() { os::sim_destroy(disk_); }

    os::sim_disk *get() const { return disk_; }
    const ty_storage *storage() const { return os::sim_storage(disk_); }
    os::sim_disk *cut(os::sim_cut how, uint64_t seed = 1) const {
        return os::sim_power_cut(disk_, os::sim_event_count(disk_), how, seed);
    }

    ty_open_options options() const {
        ty_open_options o = TY_OPEN_OPTIONS_INIT;
        o.limit_bytes = small_limit;
        o.storage = storage();
        o.background = TY_BACKGROUND_CALLS;
        o.staging_bytes = size_t{8} << 20;
        return o;
    }

    std::string read_file(const char *path) const {
        const ty_storage *s = storage();
        ty_file *file = nullptr;
        if (s->open(s->context, path, 0, &file))
            return "(none)";
        std::string bytes;
        uint64_t start = 0, end = 0;
        for (uint64_t at = 0; s->next_data(s->context, file, at, &start, &end) == TY_OK; at = end) {
            start = start / 4096 * 4096;
            end = (end + 4095) / 4096 * 4096;
            alignas(4096) static char block[4096];
            for (uint64_t offset = start; offset < end; offset += sizeof block) {
                EXPECT_OK(s->read(s->context, file, offset, block, sizeof block));
                bytes.append(block, sizeof block);
            }
        }
        s->close(s->context, file);
        return bytes;
    }

    // One page of a file; false: there is none.
    bool read(const char *path, uint64_t offset, void *page) const {
        const ty_storage *s = storage();
        ty_file *file = nullptr;
        alignas(4096) static char block[4096];
        bool there = s->open(s->context, path, 0, &file) == TY_OK &&
                     s->read(s->context, file, offset, block, sizeof block) == TY_OK;
        if (file)
            s->close(s->context, file);
        memcpy(page, block, sizeof block);
        return there;
    }

    // Changes bytes of a file as a failing disk would.
    void patch(const char *path, uint64_t offset, const void *bytes, size_t count) const {
        const ty_storage *s = storage();
        ty_file *file = nullptr;
        ASSERT_OK(s->open(s->context, path, TY_FILE_WRITE, &file));
        alignas(4096) static char block[4096];
        uint64_t at = offset / 4096 * 4096;
        ASSERT_OK(s->read(s->context, file, at, block, sizeof block));
        memcpy(block + (offset - at), bytes, count);
        ASSERT_OK(s->write(s->context, file, at, block, sizeof block));
        ASSERT_OK(s->flush(s->context, file));
        s->close(s->context, file);
    }
    void flip(const char *path, uint64_t offset) const {
        const ty_storage *s = storage();
        ty_file *file = nullptr;
        ASSERT_OK(s->open(s->context, path, 0, &file));
        alignas(4096) static char block[4096];
        ASSERT_OK(s->read(s->context, file, offset / 4096 * 4096, block, sizeof block));
        s->close(s->context, file);
        char changed = char(block[offset % 4096] ^ 0x40);
        patch(path, offset, &changed, 1);
    }
    void rename(const char *from, const char *to) const {
        const ty_storage *s = storage();
        ASSERT_OK(s->rename(s->context, from, to));
    }
    void remove(const char *path) const {
        const ty_storage *s = storage();
        ASSERT_OK(s->remove(s->context, path));
    }
    void resize(const char *path, uint64_t bytes) const {
        const ty_storage *s = storage();
        ty_file *file = nullptr;
        ASSERT_OK(s->open(s->context, path, TY_FILE_WRITE, &file));
        ASSERT_OK(s->set_size(s->context, file, bytes));
        ASSERT_OK(s->flush(s->context, file));
        s->close(s->context, file);
    }

private:
    os::sim_disk *disk_;
};

// Random changes of a heap.
class scribbler {
public:
    explicit scribbler(uint64_t seed) : random_(seed) {}

    void change(ty_heap *heap, int count) {
        for (int i = 0; i < count; ++i) {
            uint64_t what = random_() % 8;
            if (blocks_.empty() || what < 3)
                add(heap);
            else if (what < 4)
                remove();
            else
                write(blocks_[random_() % blocks_.size()]);
        }
    }
    // After a reopen: only blocks that are live.
    void forget_others(ty_heap *heap) {
        blocks_.clear();
        for (auto &[address, bytes] : content_of(heap))
            blocks_.push_back(address);
    }

private:
    void add(ty_heap *heap) {
        size_t size = random_() % 10 ? 1 + random_() % 3000 : 4096 * (1 + random_() % 12);
        auto *block = static_cast<char *>(ty_alloc(heap, size));
        ASSERT_NE(nullptr, block) << ty_error_text();
        memset(block, int(random_()), ty_usable_size(block));
        blocks_.push_back(block);
    }
    void remove() {
        size_t i = random_() % blocks_.size();
        ASSERT_OK(ty_free(blocks_[i]));
        blocks_[i] = blocks_.back();
        blocks_.pop_back();
    }
    void write(char *block) {
        size_t size = ty_usable_size(block), at = random_() % size;
        memset(block + at, int(random_()), std::min<size_t>(size - at, 64));
    }

    std::mt19937_64 random_;
    std::vector<char *> blocks_;
};

inline void expect_sound(ty_heap *heap) {
    EXPECT_OK(ty_heap_verify(
        heap, [](const char *problem, void *) { ADD_FAILURE() << problem; }, nullptr));
}

} // namespace taiyen::test
