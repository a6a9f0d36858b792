// What the API tests share: a temporary folder, fingerprints of what is on disk, and what a good refusal looks like.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <taiyen/taiyen.h>
#include <vector>

namespace api_test {

// A folder of the test's own, gone when the test ends.
class folder {
public:
    folder();
    ~folder();
    folder(const folder &) = delete;
    folder &operator=(const folder &) = delete;

    std::string path(const std::string &name) const { return path_ + "/" + name; }
    const std::string &root() const { return path_; }

private:
    std::string path_;
};

// All files below a folder, byte for byte (holes are not read), with their sizes.
struct disk_state {
    std::map<std::string, uint64_t> sizes;
    std::map<std::string, uint64_t> content_hashes;
    bool operator==(const disk_state &) const = default;
};
disk_state look_at_disk(const std::string &folder);

// The cheap variant for long loops: names, sizes, times of change, blocks.
std::map<std::string, std::vector<int64_t>> touch_times(const std::string &folder);

std::vector<unsigned char> read_bytes(const std::string &path, uint64_t offset, size_t bytes);
void write_bytes(const std::string &path, uint64_t offset, const std::vector<unsigned char> &bytes);
void flip_bit(const std::string &path, uint64_t byte, unsigned bit);
void copy_sparse(const std::string &from, const std::string &to);

// A refusal says what could not be done, where (`where` is part of the path or of the text; empty: nowhere) and what to
// do about it.
void expect_refusal(ty_status status, ty_status expected, const std::string &where = "");
void expect_good_text(ty_status status, const std::string &where = "");

// Runs in a child process and returns its exit code (0 if body returned true); 128 + n for a signal.
int in_child(const std::function<bool()> &body);

// Small options: a limit of 64 MiB, background work by calls, so that tests decide when batches are checkpointed.
ty_open_options small_options();

// A document of which any two snapshots differ, and of which each can be checked whether it is whole: a chain of blocks
// whose sum is kept in the root.
void grow_document(ty_heap *heap, uint64_t generation);
// The generation, if the document is whole; a test failure and 0 otherwise.
uint64_t read_document(ty_heap *heap);

// Makes PATH with `checkpointed` snapshots in the image and `waiting` ones in the journal only. closed: closed in order
// with batches left; else as a process that died leaves it.
void make_heap(const std::string &path, uint64_t checkpointed, uint64_t waiting);

} // namespace api_test
