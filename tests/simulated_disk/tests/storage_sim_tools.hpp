// What the tests of the simulated disk share: a disk with its table, and pages whose sectors carry a number each.
#pragma once

#include "tests/simulated_disk/storage_sim.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace sim_test {

using namespace taiyen::os;

inline constexpr uint64_t block = TY_STORAGE_BLOCK;

struct disk_owner {
    explicit disk_owner(sim_disk *owned = sim_create()) : disk(owned), table(sim_storage(owned)) {}
    ~disk_owner() { sim_destroy(disk); }
    disk_owner(const disk_owner &) = delete;
    disk_owner &operator=(const disk_owner &) = delete;

    ty_file *open(const char *path, uint32_t flags) const {
        ty_file *file = nullptr;
        EXPECT_EQ(table->open(table->context, path, flags, &file), TY_OK) << path;
        return file;
    }
    ty_file *create(const char *path) const { return open(path, TY_FILE_WRITE | TY_FILE_CREATE); }
    void close(ty_file *file) const { table->close(table->context, file); }
    bool exists(const char *path) const {
        ty_file *file = nullptr;
        if (table->open(table->context, path, 0, &file) != TY_OK) {
            return false;
        }
        close(file);
        return true;
    }
    ty_status flush(ty_file *file) const { return table->flush(table->context, file); }
    ty_status flush_names() const { return table->flush_directory(table->context, "/d/x"); }

    sim_disk *disk;
    const ty_storage *table;
};

struct aligned_delete {
    void operator()(char *memory) const { std::free(memory); }
};
using buffer = std::unique_ptr<char, aligned_delete>;
inline buffer make_buffer(uint64_t bytes) {
    buffer made(static_cast<char *>(std::aligned_alloc(block, bytes)));
    std::memset(made.get(), 0, bytes);
    return made;
}

// Writes pages whose sectors carry the numbers tag, tag + 1, ... in all their words.
inline ty_status write_tags(const disk_owner &on, ty_file *file, uint64_t page, uint64_t pages, uint64_t tag,
                            bool durably = false) {
    buffer data = make_buffer(pages * block);
    auto *words = reinterpret_cast<uint64_t *>(data.get());
    for (uint64_t i = 0; i < pages * block / 8; ++i) {
        words[i] = tag + i * 8 / sector_bytes;
    }
    auto write = durably ? on.table->write_durable : on.table->write;
    return write(on.table->context, file, page * block, data.get(), pages * block);
}

inline constexpr uint64_t mixed_sector = UINT64_MAX; // a sector whose words differ

inline std::vector<char> read_bytes(const disk_owner &on, const char *path) {
    ty_file *file = on.open(path, 0);
    uint64_t size = 0;
    EXPECT_EQ(on.table->get_size(on.table->context, file, &size), TY_OK);
    buffer data = make_buffer(size + block);
    EXPECT_EQ(on.table->read(on.table->context, file, 0, data.get(), size), TY_OK);
    on.close(file);
    return {data.get(), data.get() + size};
}

// The numbers of all sectors of a file.
inline std::vector<uint64_t> read_tags(const disk_owner &on, const char *path) {
    std::vector<char> data = read_bytes(on, path);
    std::vector<uint64_t> tags;
    for (uint64_t at = 0; at < data.size(); at += sector_bytes) {
        uint64_t words[sector_bytes / 8];
        std::memcpy(words, data.data() + at, sector_bytes);
        bool same = true;
        for (uint64_t word : words) {
            same = same && word == words[0];
        }
        tags.push_back(same ? words[0] : mixed_sector);
    }
    return tags;
}

} // namespace sim_test
