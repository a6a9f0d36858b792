#include "fixture.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace api_test {

namespace fs = std::filesystem;

folder::folder() {
    char name[] = "/tmp/taiyen-api-XXXXXX";
    if (!mkdtemp(name))
        std::abort();
    path_ = name;
}

folder::~folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

namespace {

// Calls back with each stretch of a file that may hold data.
void each_data_range(int file, const std::function<void(uint64_t offset, uint64_t bytes)> &call) {
    off_t end = 0;
    for (off_t start = lseek(file, 0, SEEK_DATA); start >= 0; start = lseek(file, end, SEEK_DATA)) {
        end = lseek(file, start, SEEK_HOLE);
        if (end < 0)
            break;
        call(static_cast<uint64_t>(start), static_cast<uint64_t>(end - start));
    }
}

void read_whole(int file, void *buffer, size_t bytes, uint64_t offset) {
    auto *to = static_cast<char *>(buffer);
    while (bytes) {
        const ssize_t got = pread(file, to, bytes, static_cast<off_t>(offset));
        ASSERT_GT(got, 0);
        to += got;
        offset += static_cast<uint64_t>(got);
        bytes -= static_cast<size_t>(got);
    }
}

constexpr size_t block = 4096;

// Zero blocks count as holes: what matters is what would be read.
uint64_t hash_file(const std::string &path) {
    uint64_t hash = 0;
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_GE(file, 0) << path;
    std::vector<char> bytes(block);
    const std::vector<char> zeros(block);
    each_data_range(file, [&](uint64_t start, uint64_t length) {
        for (uint64_t at = start; at < start + length; at += block) {
            const size_t size = std::min<uint64_t>(block, start + length - at);
            read_whole(file, bytes.data(), size, at);
            if (memcmp(bytes.data(), zeros.data(), size) != 0)
                hash = hash * 31 + std::hash<std::string_view>{}({bytes.data(), size}) + at;
        }
    });
    close(file);
    return hash;
}

} // namespace

disk_state look_at_disk(const std::string &folder) {
    disk_state state;
    for (const auto &entry : fs::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file())
            continue;
        state.sizes[entry.path()] = entry.file_size();
        state.content_hashes[entry.path()] = hash_file(entry.path());
    }
    return state;
}

std::map<std::string, std::vector<int64_t>> touch_times(const std::string &folder) {
    std::map<std::string, std::vector<int64_t>> times;
    for (const auto &entry : fs::recursive_directory_iterator(folder)) {
        struct stat s {};
        EXPECT_EQ(stat(entry.path().c_str(), &s), 0);
        times[entry.path()] = {s.st_size, s.st_blocks, s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
    }
    return times;
}

std::vector<unsigned char> read_bytes(const std::string &path, uint64_t offset, size_t bytes) {
    std::vector<unsigned char> content(bytes);
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_GE(file, 0) << path;
    read_whole(file, content.data(), bytes, offset);
    close(file);
    return content;
}

void write_bytes(const std::string &path, uint64_t offset, const std::vector<unsigned char> &bytes) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0) << path;
    ASSERT_EQ(pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)), static_cast<ssize_t>(bytes.size()));
    close(file);
}

void flip_bit(const std::string &path, uint64_t byte, unsigned bit) {
    std::vector<unsigned char> bytes = read_bytes(path, byte, 1);
    bytes[0] = static_cast<unsigned char>(bytes[0] ^ 1u << bit);
    write_bytes(path, byte, bytes);
}

void copy_sparse(const std::string &from, const std::string &to) {
    const int source = open(from.c_str(), O_RDONLY | O_CLOEXEC);
    const int target = open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_GE(source, 0) << from;
    ASSERT_GE(target, 0) << to;
    each_data_range(source, [&](uint64_t start, uint64_t length) {
        std::vector<char> bytes(length);
        read_whole(source, bytes.data(), length, start);
        ASSERT_EQ(pwrite(target, bytes.data(), length, static_cast<off_t>(start)), static_cast<ssize_t>(length));
    });
    ASSERT_EQ(ftruncate(target, static_cast<off_t>(fs::file_size(from))), 0);
    close(source);
    close(target);
}

void expect_good_text(ty_status status, const std::string &where) {
    ty_error error{};
    ty_error_detail(&error);
    const std::string text = ty_error_text();
    EXPECT_EQ(error.status, status) << text;
    EXPECT_STRNE(error.operation, "") << text;
    EXPECT_STRNE(error.remedy, "") << "no remedy in: " << text;
    EXPECT_NE(text.find(error.operation), std::string::npos) << text;
    EXPECT_NE(text.find(error.remedy), std::string::npos) << text;
    EXPECT_NE(text.find(where), std::string::npos) << "'" << where << "' is not named in: " << text;
}

void expect_refusal(ty_status status, ty_status expected, const std::string &where) {
    ASSERT_EQ(status, expected) << ty_status_name(status) << " instead of " << ty_status_name(expected) << ": "
                                << ty_error_text();
    expect_good_text(expected, where);
}

int in_child(const std::function<bool()> &body) {
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0)
        _exit(body() && !testing::Test::HasFailure() ? 0 : 1);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

ty_open_options small_options() {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.limit_bytes = size_t{64} << 20;
    options.background = TY_BACKGROUND_CALLS;
    options.staging_bytes = size_t{8} << 20;
    return options;
}

namespace {

struct link {
    link *next;
    uint64_t value;
    char text[240];
};

struct document {
    link *first;
    uint64_t generation;
    uint64_t length;
    uint64_t sum;
};

constexpr uint64_t links_a_generation = 40;

} // namespace

void grow_document(ty_heap *heap, uint64_t generation) {
    auto *doc = static_cast<document *>(ty_root(heap, "document"));
    if (!doc) {
        doc = static_cast<document *>(ty_alloc_zeroed(heap, sizeof(document)));
        ASSERT_NE(doc, nullptr) << ty_error_text();
        ASSERT_EQ(ty_root_set(heap, "document", doc), TY_OK);
    }
    for (uint64_t i = 0; i < links_a_generation; ++i) {
        auto *l = static_cast<link *>(ty_alloc_zeroed(heap, sizeof(link)));
        ASSERT_NE(l, nullptr) << ty_error_text();
        l->value = generation * 1000 + i;
        snprintf(l->text, sizeof l->text, "link %llu", static_cast<unsigned long long>(l->value));
        l->next = doc->first;
        doc->first = l;
        ++doc->length;
        doc->sum += l->value;
    }
    doc->generation = generation;
}

uint64_t read_document(ty_heap *heap) {
    const auto *doc = static_cast<const document *>(ty_root(heap, "document"));
    if (!doc)
        return 0;
    uint64_t length = 0, sum = 0;
    for (const link *l = doc->first; l && length <= doc->length; l = l->next) {
        ++length;
        sum += l->value;
        char text[240];
        snprintf(text, sizeof text, "link %llu", static_cast<unsigned long long>(l->value));
        EXPECT_STREQ(l->text, text);
    }
    EXPECT_EQ(length, doc->length);
    EXPECT_EQ(sum, doc->sum);
    EXPECT_EQ(length, doc->generation * links_a_generation);
    return doc->generation;
}

void make_heap(const std::string &path, uint64_t checkpointed, uint64_t waiting) {
    const auto work = [&] {
        const ty_open_options options = small_options();
        ty_heap *heap = nullptr;
        if (ty_open(path.c_str(), &options, &heap, nullptr))
            return false;
        for (uint64_t generation = 1; generation <= checkpointed + waiting; ++generation) {
            grow_document(heap, generation);
            if (ty_snapshot(heap) || (generation == checkpointed && ty_run_background_work(heap)))
                return false;
        }
        return waiting || ty_close(heap) == TY_OK; // with batches waiting, the process dies here
    };
    ASSERT_EQ(in_child(work), 0);
}

} // namespace api_test
