// Goal: the second program of the design (a document that saves itself) works as printed: what was made durable is
// found again, by raw pointers, and what was not is gone. Method: through the public API alone, over several runs.
#include "fixture.hpp"
#include "tests/stats.hpp"

#include <cstring>

using namespace api_test;

namespace {

struct city {
    const char *name;
    double latitude, longitude;
    city *next;
};

struct atlas {
    city *first;
    size_t cities;
};

atlas *new_atlas(ty_heap *heap) {
    return static_cast<atlas *>(ty_alloc_zeroed(heap, sizeof(atlas)));
}

void add_city(atlas *atlas, const char *name, double latitude, double longitude) {
    ty_heap *heap = ty_heap_of(atlas);
    auto *text = static_cast<char *>(ty_alloc(heap, strlen(name) + 1));
    auto *c = static_cast<city *>(ty_alloc(heap, sizeof(city)));
    ASSERT_TRUE(text && c) << ty_error_text();
    strcpy(text, name);
    *c = {text, latitude, longitude, atlas->first};
    atlas->first = c;
    ++atlas->cities;
}

// One run of the program on the design's first page.
size_t run_program(const std::string &path, const char *name) {
    ty_heap *heap = nullptr;
    ty_report report;
    EXPECT_EQ(ty_open(path.c_str(), nullptr, &heap, &report), TY_OK) << ty_error_text();
    auto *document = static_cast<atlas *>(ty_root(heap, "atlas"));
    EXPECT_EQ(document == nullptr, report.created);
    if (!document) {
        document = new_atlas(heap);
        EXPECT_EQ(ty_root_set(heap, "atlas", document), TY_OK);
    }
    add_city(document, name, 38.72, -9.14);
    EXPECT_EQ(ty_snapshot(heap), TY_OK) << ty_error_text();
    const size_t cities = document->cities;
    EXPECT_EQ(ty_close(heap), TY_OK) << ty_error_text();
    return cities;
}

} // namespace

TEST(document, saves_itself) {
    folder files;
    const std::string path = files.path("atlas.ty");
    EXPECT_EQ(run_program(path, "Lisbon"), 1u);
    EXPECT_EQ(run_program(path, "Porto"), 2u);
    EXPECT_EQ(run_program(path, "Faro"), 3u);

    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap = nullptr;
    ty_report report;
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, &report), TY_OK) << ty_error_text();
    EXPECT_EQ(report.found, TY_RECOVERY_CLOSED);
    EXPECT_STRNE(report.text, "");
    const auto *document = static_cast<const atlas *>(ty_root(heap, "atlas"));
    ASSERT_NE(document, nullptr);
    std::vector<std::string> names;
    for (const city *c = document->first; c; c = c->next)
        names.emplace_back(c->name);
    EXPECT_EQ(names, (std::vector<std::string>{"Faro", "Porto", "Lisbon"}));
    EXPECT_EQ(ty_close(heap), TY_OK);
}

TEST(document, loses_what_was_not_made_durable_and_nothing_else) {
    folder files;
    const std::string path = files.path("doc.ty");
    const auto child = [&] {
        const ty_open_options options = small_options();
        ty_heap *heap = nullptr;
        if (ty_open(path.c_str(), &options, &heap, nullptr))
            return false;
        grow_document(heap, 1);
        if (ty_snapshot(heap))
            return false;
        grow_document(heap, 2); // and the process ends
        return true;
    };
    ASSERT_EQ(in_child(child), 0);
    ty_heap *heap = nullptr;
    ty_report report;
    ASSERT_EQ(ty_open(path.c_str(), nullptr, &heap, &report), TY_OK) << ty_error_text();
    EXPECT_EQ(read_document(heap), 1u);
    EXPECT_FALSE(report.created);
    EXPECT_NE(report.found, TY_RECOVERY_CLOSED);
    EXPECT_EQ(ty_heap_verify(heap, nullptr, nullptr), TY_OK);
    grow_document(heap, 2);
    ASSERT_EQ(ty_snapshot(heap), TY_OK);
    EXPECT_EQ(ty_discard(heap), TY_OK);

    ASSERT_EQ(ty_open(path.c_str(), nullptr, &heap, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(read_document(heap), 2u);
    EXPECT_EQ(ty_close(heap), TY_OK);
}

TEST(document, a_snapshot_in_two_steps) {
    folder files;
    const ty_open_options options = small_options();
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(files.path("doc.ty").c_str(), &options, &heap, nullptr), TY_OK);
    grow_document(heap, 1);
    uint64_t dirty = 0, epoch = 0;
    ASSERT_EQ(ty_dirty_count(heap, &dirty), TY_OK);
    EXPECT_GT(dirty, 0u);
    std::vector<uint64_t> bitmap((options.limit_bytes / 4096 + 63) / 64);
    ASSERT_EQ(ty_dirty_bitmap(heap, 0, options.limit_bytes / 4096, bitmap.data()), TY_OK);
    uint64_t bits = 0;
    for (uint64_t word : bitmap)
        bits += static_cast<uint64_t>(__builtin_popcountll(word));
    EXPECT_EQ(bits, dirty);
    expect_refusal(ty_dirty_bitmap(heap, 1, options.limit_bytes / 4096, bitmap.data()), TY_E_ARGUMENT, "pages");

    ASSERT_EQ(ty_snapshot_start(heap, &epoch), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_snapshot_wait(heap, epoch), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_heap_epoch(heap), epoch);
    uint64_t again = 0;
    ASSERT_EQ(ty_snapshot_start(heap, &again), TY_OK); // nothing changed
    EXPECT_EQ(again, epoch);
    EXPECT_EQ(ty_write_back_early(heap, 0), TY_OK) << ty_error_text();
    ty_snapshot_stats stats = taiyen::test::snapshot_stats_of(heap);
    EXPECT_EQ(stats.pending_batches, 1u);
    EXPECT_EQ(ty_run_background_work(heap), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_background_work_status(heap), TY_OK);
    ASSERT_EQ(ty_get_snapshot_stats(heap, &stats), TY_OK);
    EXPECT_EQ(stats.pending_batches, 0u);
    EXPECT_EQ(ty_heap_purge(heap, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(read_document(heap), 1u);
    EXPECT_EQ(ty_heap_kind(heap), TY_SNAPSHOT);
    EXPECT_EQ(ty_close(heap), TY_OK);
}

TEST(document, an_archive_becomes_a_snapshot_heap_and_grows) {
    folder files;
    const std::string path = files.path("doc.ty");
    ty_open_options options = small_options();
    options.kind = TY_ARCHIVE;
    ty_heap *heap = nullptr;
    ty_report report;
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, &report), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_heap_kind(heap), TY_ARCHIVE);
    uint64_t dirty = 0;
    expect_refusal(ty_dirty_count(heap, &dirty), TY_E_UNSUPPORTED, "archive");
    expect_refusal(ty_write_back_early(heap, 0), TY_E_UNSUPPORTED, "archive");
    grow_document(heap, 1);
    ASSERT_EQ(ty_snapshot(heap), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_close(heap), TY_OK) << ty_error_text();

    options.kind = TY_SNAPSHOT;
    options.limit_bytes *= 2;
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, &report), TY_OK) << ty_error_text();
    EXPECT_TRUE(report.attached);
    EXPECT_TRUE(report.grown);
    EXPECT_EQ(ty_heap_kind(heap), TY_SNAPSHOT);
    EXPECT_EQ(read_document(heap), 1u);
    grow_document(heap, 2);
    EXPECT_EQ(ty_heap_verify(heap, nullptr, nullptr), TY_OK);
    ASSERT_EQ(ty_close(heap), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_scrub(path.c_str(), nullptr, nullptr, nullptr, nullptr), TY_OK) << ty_error_text();
    ty_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(ty_read_info(path.c_str(), nullptr, &info), TY_OK);
    EXPECT_EQ(info.limit_bytes, options.limit_bytes);
    EXPECT_TRUE(info.closed);
    EXPECT_FALSE(info.in_use);
}

TEST(document, wrong_pointers_are_refused_in_persistent_heaps_too) {
    folder files;
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT}) {
        ty_open_options options = small_options();
        options.kind = kind;
        ty_heap *heap = nullptr;
        ASSERT_EQ(ty_open(files.path(kind == TY_ARCHIVE ? "a.ty" : "s.ty").c_str(), &options, &heap, nullptr), TY_OK)
            << ty_error_text();
        for (size_t size : {size_t{24}, size_t{5000}}) {
            auto *block = static_cast<char *>(ty_alloc(heap, size));
            ASSERT_NE(block, nullptr) << ty_error_text();
            expect_refusal(ty_free(block + 8), TY_E_ARGUMENT);
            ASSERT_EQ(ty_free(block), TY_OK);
            expect_refusal(ty_free(block), TY_E_ARGUMENT);
        }
        expect_refusal(ty_heap_destroy(heap), TY_E_ARGUMENT, "ty_close");
        EXPECT_EQ(ty_heap_verify(heap, nullptr, nullptr), TY_OK);
        EXPECT_EQ(ty_close(heap), TY_OK);
    }
}
