// Goal: heaps of format version 1 open. Those that were closed in order are upgraded in place, whatever happens
// meanwhile; the others are refused, untouched, with what to do. Method: files that version 1 of the library wrote
// (tests/store/image/golden), on a simulated disk that fails at every event.
#include "../files.hpp"

#include <fstream>
#include <sstream>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// The file as it was: its size, and what is not zero of it, 32 bytes a line.
void put_golden(const disk &on, const std::string &name, const char *path) {
    std::ifstream text(TAIYEN_GOLDEN "v1-" + name + ".hex");
    if (!text)
        return;
    const ty_storage *s = on.storage();
    ty_file *file = nullptr;
    ASSERT_OK(s->open(s->context, path, TY_OPEN_WRITE | TY_OPEN_CREATE, &file));
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

ty_status open_golden(const disk &on, ty_heap **heap, ty_report *report, ty_open_mode mode = TY_OPEN_EXISTING) {
    ty_open_options o = with_log(on, TY_KIND_DEFAULT);
    o.limit_bytes = 0;
    o.mode = mode;
    *heap = nullptr;
    return ty_open(heap_path, &o, heap, report);
}

uint32_t version_of(const disk &on) {
    ty_info info{};
    info.struct_size = sizeof info;
    EXPECT_OK(ty_read_info(heap_path, on.storage(), &info));
    return info.format_version;
}

void expect_value(ty_heap *heap) {
    auto *value = static_cast<const char *>(ty_root(heap, "r"));
    ASSERT_NE(nullptr, value);
    EXPECT_STREQ("value 2", value);
    expect_sound(heap);
}

#if defined(__SANITIZE_THREAD__)
#define SKIP_WITHOUT_THE_ADDRESSES GTEST_SKIP() << "ThreadSanitizer has no memory where these heaps lie"
#else
#define SKIP_WITHOUT_THE_ADDRESSES static_cast<void>(0)
#endif

constexpr const char *closed[] = {"archive", "snapshot", "transactional"};

TEST(versions, version_1_that_was_closed_is_upgraded) {
    SKIP_WITHOUT_THE_ADDRESSES;
    for (const char *name : closed) {
        SCOPED_TRACE(name);
        disk files;
        put_heap(files, name);
        EXPECT_EQ(1u, version_of(files));
        ty_heap *heap = nullptr;
        ty_report report{};
        report.struct_size = sizeof report;
        uint64_t events = os::sim_event_count(files.get());
        ASSERT_OK(open_golden(files, &heap, &report, TY_OPEN_READ_ONLY)); // as it is
        expect_value(heap);
        ASSERT_OK(ty_close(heap));
        EXPECT_EQ(events, os::sim_event_count(files.get()));
        ASSERT_OK(open_golden(files, &heap, &report));
        EXPECT_NE(nullptr, strstr(report.text, "upgraded from format version 1")) << report.text;
        expect_value(heap);
        ASSERT_OK(ty_close(heap));
        EXPECT_EQ(2u, version_of(files));
        ASSERT_OK(open_golden(files, &heap, &report));
        EXPECT_EQ(nullptr, strstr(report.text, "upgraded")) << report.text;
        expect_value(heap);
        ASSERT_OK(ty_close(heap));
    }
}

TEST(versions, an_upgrade_that_is_cut_can_be_done_again) {
    SKIP_WITHOUT_THE_ADDRESSES;
    for (const char *name : closed) {
        disk files;
        put_heap(files, name);
        uint64_t first = os::sim_event_count(files.get());
        ty_heap *heap = nullptr;
        ASSERT_OK(open_golden(files, &heap, nullptr));
        ASSERT_OK(ty_close(heap));
        uint64_t last = os::sim_event_count(files.get());
        for (uint64_t event = first; event <= last; ++event)
            for (auto how : {os::sim_cut::drop_all, os::sim_cut::keep_all, os::sim_cut::trash}) {
                SCOPED_TRACE(testing::Message() << name << " event " << event - first << " cut " << int(how));
                disk cut(os::sim_power_cut(files.get(), event, how, event));
                ASSERT_OK(open_golden(cut, &heap, nullptr));
                expect_value(heap);
                ASSERT_OK(ty_close(heap));
                EXPECT_EQ(2u, version_of(cut));
            }
    }
}

TEST(versions, version_1_that_died_is_refused_untouched) {
    for (const char *name : {"snapshot-died", "transactional-died"}) {
        SCOPED_TRACE(name);
        disk files;
        put_heap(files, name);
        uint64_t events = os::sim_event_count(files.get());
        ty_heap *heap = nullptr;
        for (ty_open_mode mode : {TY_OPEN_EXISTING, TY_OPEN_READ_ONLY}) {
            EXPECT_EQ(TY_E_FORMAT, open_golden(files, &heap, nullptr, mode));
            EXPECT_NE(nullptr, strstr(ty_error_text(), "version of the library that wrote it")) << ty_error_text();
        }
        EXPECT_EQ(events, os::sim_event_count(files.get()));
    }
}

// A copy from before the upgrade is older than the journal, once that holds what the copy does not.
TEST(versions, a_copy_from_before_the_upgrade_is_refused) {
    SKIP_WITHOUT_THE_ADDRESSES;
    disk files, old;
    put_heap(files, "snapshot");
    put_heap(old, "snapshot");
    ty_heap *heap = nullptr;
    ASSERT_OK(open_golden(files, &heap, nullptr));
    ASSERT_NE(nullptr, ty_alloc(heap, 1000));
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_close(heap));
    files.remove(heap_path);
    put_golden(files, "snapshot", heap_path);
    EXPECT_EQ(TY_E_MISMATCH, open_golden(files, &heap, nullptr));
    EXPECT_NE(nullptr, strstr(ty_error_text(), "older than its journal")) << ty_error_text();
}

} // namespace
