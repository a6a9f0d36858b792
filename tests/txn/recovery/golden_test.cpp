// Goal: heaps of format version 1 open for as long as that is the format, as they were closed or died.
// Method: files in tests/store/image/golden, put on a simulated disk. TAIYEN_MAKE_GOLDEN=1 makes those that are
// missing.
#include "../files.hpp"

#include <cstdlib>
#include <fstream>
#include <iomanip>

using namespace taiyen;
using namespace taiyen::test;

namespace {

std::string golden_path(const std::string &name) {
    return TAIYEN_GOLDEN "v1-" + name + ".hex";
}

// The file as it was: its size, and what is not zero of it, 32 bytes a line.
void put_golden(const disk &on, const std::string &name, const char *path) {
    std::ifstream text(golden_path(name));
    if (!text)
        return;
    const ty_storage *s = on.storage();
    ty_file *file = nullptr;
    ASSERT_OK(s->open(s->context, path, TY_FILE_WRITE | TY_FILE_CREATE, &file));
    std::string word, hex;
    uint64_t size = 0;
    text >> word >> size;
    ASSERT_OK(s->set_size(s->context, file, size));
    std::map<uint64_t, std::string> pages;
    while (text >> word >> hex) {
        uint64_t offset = std::stoull(word, nullptr, 16);
        std::string &page = pages.try_emplace(offset / 4096 * 4096, std::string(4096, '\0')).first->second;
        for (size_t i = 0; i < hex.size() / 2; ++i)
            page[offset % 4096 + i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    }
    alignas(4096) static char block[4096];
    for (const auto &[offset, bytes] : pages) {
        memcpy(block, bytes.data(), sizeof block);
        ASSERT_OK(s->write(s->context, file, offset, block, sizeof block));
    }
    ASSERT_OK(s->flush(s->context, file));
    s->close(s->context, file);
    ASSERT_OK(s->flush_directory(s->context, path));
}

void put_heap(const disk &on, const std::string &name) {
    put_golden(on, name, heap_path);
    put_golden(on, name + "-journal", journal_path);
    put_golden(on, name + "-log", log_path);
}

void save_golden(const disk &on, const std::string &name, const char *path) {
    const ty_storage *s = on.storage();
    ty_file *file = nullptr;
    if (s->open(s->context, path, 0, &file))
        return; // the heap has none
    uint64_t size = 0, start = 0, end = 0;
    ASSERT_OK(s->get_size(s->context, file, &size));
    std::ofstream text(golden_path(name));
    text << "size " << size << '\n' << std::hex << std::setfill('0');
    constexpr size_t line_bytes = 32;
    static constexpr char zeros[line_bytes] = {};
    alignas(4096) static char page[4096];
    for (uint64_t from = 0; s->next_data(s->context, file, from, &start, &end) == TY_OK; from = end)
        for (uint64_t at = start / sizeof page * sizeof page; at < end; at += sizeof page) {
            ASSERT_OK(s->read(s->context, file, at, page, sizeof page));
            for (size_t line = 0; line < sizeof page; line += line_bytes) {
                if (memcmp(page + line, zeros, line_bytes) == 0)
                    continue;
                text << at + line << ' ';
                for (size_t i = 0; i < line_bytes; ++i)
                    text << std::setw(2) << (unsigned(page[line + i]) & 0xff);
                text << '\n';
            }
        }
    s->close(s->context, file);
}

struct golden {
    const char *name;
    ty_kind kind;
    uint32_t streams;
    bool closed; // in order, else its process died
};
constexpr golden goldens[] = {{"archive", TY_ARCHIVE, 1, true},
                              {"snapshot", TY_SNAPSHOT, 1, true},
                              {"snapshot-died", TY_SNAPSHOT, 1, false},
                              {"transactional", TY_TRANSACTIONAL, 1, true},
                              {"transactional-died", TY_TRANSACTIONAL, 1, false},
                              {"streams", TY_TRANSACTIONAL, 3, true},
                              {"streams-died", TY_TRANSACTIONAL, 3, false}};

void set_value(ty_heap *heap, const char *value) {
    if (ty_heap_kind(heap) == TY_TRANSACTIONAL) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        auto *block = static_cast<char *>(ty_txn_alloc(txn, 64));
        ASSERT_NE(nullptr, block);
        strcpy(block, value);
        ASSERT_OK(ty_txn_root_set(txn, "r", block));
        ASSERT_OK(ty_commit(txn));
        return;
    }
    auto *block = static_cast<char *>(ty_alloc(heap, 64));
    ASSERT_NE(nullptr, block);
    strcpy(block, value);
    ASSERT_OK(ty_root_set(heap, "r", block));
    ASSERT_OK(ty_snapshot(heap));
}

void make_golden(const golden &which) {
    disk files;
    ty_open_options options = with_log(files, which.kind);
    options.log_streams = which.streams;
    options.log_bytes = TY_LOG_BYTES_MIN * which.streams;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    set_value(heap, "value 1");
    ASSERT_OK(ty_snapshot(heap)); // the journal or the image holds the first, and the log the second
    set_value(heap, "value 2");
    ASSERT_OK(which.closed ? ty_close(heap) : ty_discard(heap));
    save_golden(files, which.name, heap_path);
    save_golden(files, which.name + std::string("-journal"), journal_path);
    save_golden(files, which.name + std::string("-log"), log_path);
}

TEST(golden_heaps, open_as_they_were_closed_or_died) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer has no memory where these heaps lie";
#endif
    for (const golden &which : goldens) {
        SCOPED_TRACE(which.name);
        if (getenv("TAIYEN_MAKE_GOLDEN") && !std::ifstream(golden_path(which.name)))
            make_golden(which);
        for (const ty_open_mode mode : {TY_OPEN_READ_ONLY, TY_OPEN_EXISTING}) {
            disk files;
            put_heap(files, which.name);
            ty_open_options options = with_log(files, TY_KIND_DEFAULT);
            options.limit_bytes = 0;
            options.mode = mode;
            ty_heap *heap = nullptr;
            ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
            EXPECT_EQ(which.kind, ty_heap_kind(heap));
            const auto *value = static_cast<const char *>(ty_root(heap, "r"));
            ASSERT_NE(nullptr, value);
            EXPECT_STREQ("value 2", value);
            expect_sound(heap);
            ASSERT_OK(ty_close(heap));
        }
    }
}

} // namespace
