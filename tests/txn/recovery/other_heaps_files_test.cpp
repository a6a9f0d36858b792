// Goal: what a heap may need is not replaced by another one, what is not needed is not made, numbers near the top are
// refused before anything counts on from them, and errors name the files that the user knows. Method: heaps on a
// simulated disk; the state is made, and each open is asked for its status, its text, and the files that it leaves.
#include "../files.hpp"

#include "src/store/image/files/checksum.hpp"
#include "src/store/log/frames/log_layout.hpp"
#include "tests/files_on.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr const char *other_path = "other.ty";
constexpr const char *shared_path = "shared-log";

ty_open_options existing(const disk &on, ty_kind kind = TY_KIND_DEFAULT) {
    ty_open_options options = with_log(on, kind);
    options.mode = TY_OPEN_EXISTING;
    options.limit_bytes = 0;
    return options;
}

ty_status commit_number(ty_heap *heap, uint64_t number) {
    auto *place = static_cast<uint64_t *>(ty_root(heap, "number"));
    if (ty_heap_kind(heap) != TY_TRANSACTIONAL) {
        *place = number;
        return ty_snapshot(heap);
    }
    ty_txn *txn = nullptr;
    if (ty_status status = ty_begin(heap, nullptr, &txn))
        return status;
    if (!place) {
        place = static_cast<uint64_t *>(ty_txn_alloc(txn, 64));
        EXPECT_OK(ty_txn_root_set(txn, "number", place));
    }
    EXPECT_OK(ty_declare(txn, place, sizeof *place));
    *place = number;
    return ty_commit(txn);
}

void make_closed(const disk &on, ty_kind kind = TY_TRANSACTIONAL, const char *path = heap_path) {
    ty_open_options options = with_log(on, kind);
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path, &options, &heap, nullptr));
    if (kind != TY_TRANSACTIONAL) {
        ASSERT_OK(ty_root_set(heap, "number", ty_alloc_zeroed(heap, 64)));
    }
    ASSERT_OK(commit_number(heap, 1));
    ASSERT_OK(ty_close(heap));
}

std::string identity_of(const disk &on) {
    char page[4096] = {};
    EXPECT_TRUE(on.read(heap_path, 0, page));
    image_header header;
    memcpy(&header, page, sizeof header);
    char text[33];
    for (size_t i = 0; i < 16; ++i)
        snprintf(text + 2 * i, 3, "%02x", header.identity[i]);
    return text;
}

// A heap that died is not opened without its log, also where nothing stands in it.
TEST(other_heaps_files, a_log_that_holds_nothing_is_not_replaced) {
    disk files;
    ty_open_options options = with_log(files);
    options.log_path = shared_path;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    disk died(files.cut(os::sim_cut::keep_all));
    ASSERT_OK(ty_discard(heap));
    options = with_log(died);
    options.log_path = shared_path;
    EXPECT_EQ(TY_E_MISMATCH, ty_open(other_path, &options, &heap, nullptr));
    EXPECT_NE(nullptr, strstr(ty_error_text(), identity_of(died).c_str())) << ty_error_text();
    EXPECT_NE(nullptr, strstr(ty_error_text(), shared_path)) << ty_error_text();
    EXPECT_EQ("(none)", died.read_file(other_path));
    options.mode = TY_OPEN_EXISTING;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(commit_number(heap, 1));
    ASSERT_OK(ty_close(heap));
}

// A snapshot heap that died before its first batch is not opened without its journal either. Also an archive heap does
// not take it.
TEST(other_heaps_files, a_journal_that_was_not_used_is_not_replaced) {
    disk files;
    ty_open_options options = with_log(files, TY_SNAPSHOT);
    options.journal_path = "shared-journal";
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    disk died(files.cut(os::sim_cut::keep_all));
    ASSERT_OK(ty_discard(heap));
    make_closed(died, TY_ARCHIVE, "archive.ty");
    for (ty_kind kind : {TY_SNAPSHOT, TY_TRANSACTIONAL})
        for (const char *path : {other_path, "archive.ty"}) {
            SCOPED_TRACE(std::string(path) + ", " + std::to_string(kind));
            options = with_log(died, kind);
            options.journal_path = "shared-journal";
            EXPECT_EQ(TY_E_MISMATCH, ty_open(path, &options, &heap, nullptr));
            EXPECT_NE(nullptr, strstr(ty_error_text(), identity_of(died).c_str())) << ty_error_text();
            EXPECT_NE(nullptr, strstr(ty_error_text(), "shared-journal")) << ty_error_text();
        }
    EXPECT_EQ("(none)", died.read_file(other_path));
    options = existing(died);
    options.journal_path = "shared-journal";
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_root_set(heap, "number", ty_alloc_zeroed(heap, 64)));
    ASSERT_OK(commit_number(heap, 1));
    ASSERT_OK(ty_close(heap));
}

// The attach of an archive heap died: the journal is its own.
TEST(other_heaps_files, a_journal_of_its_own_is_replaced) {
    disk files;
    make_closed(files, TY_ARCHIVE);
    ty_open_options options = with_log(files, TY_SNAPSHOT);
    options.journal_path = "shared-journal";
    ty_heap *heap = nullptr;
    const uint64_t begin = os::sim_event_count(files.get());
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    const uint64_t end = os::sim_event_count(files.get());
    ASSERT_OK(ty_discard(heap));
    int left = 0;
    for (uint64_t event = begin; event <= end; ++event) {
        SCOPED_TRACE(event);
        disk cut(os::sim_power_cut(files.get(), event, os::sim_cut::keep_all, 1));
        options.storage = cut.storage();
        ty_info info{};
        info.struct_size = sizeof info;
        ASSERT_OK(ty_read_info(heap_path, files_on(cut.storage()), &info));
        left += info.kind == TY_ARCHIVE && cut.read_file("shared-journal") != "(none)";
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        ASSERT_OK(commit_number(heap, 2));
        ASSERT_OK(ty_close(heap));
    }
    EXPECT_GT(left, 0);
}

// What a creation that died left at the default name is of no heap, and in nobody's way.
void expect_leftover_is_replaced(ty_kind kind, const char *leftover) {
    disk files;
    ty_open_options options = with_log(files, kind);
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    const uint64_t end = os::sim_event_count(files.get());
    ASSERT_OK(ty_discard(heap));
    int left = 0;
    for (uint64_t event = 0; event <= end; ++event) {
        SCOPED_TRACE(event);
        disk cut(os::sim_power_cut(files.get(), event, os::sim_cut::keep_all, 1));
        left += cut.read_file(heap_path) == "(none)" && cut.read_file(leftover) != "(none)";
        options = with_log(cut, kind);
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        if (kind == TY_SNAPSHOT) {
            ASSERT_OK(ty_root_set(heap, "number", ty_alloc_zeroed(heap, 64)));
        }
        ASSERT_OK(commit_number(heap, 1));
        ASSERT_OK(ty_close(heap));
    }
    EXPECT_GT(left, 0);
}

TEST(other_heaps_files, a_journal_that_a_creation_left_is_replaced) {
    expect_leftover_is_replaced(TY_SNAPSHOT, journal_path);
}

TEST(other_heaps_files, a_log_that_a_creation_left_is_replaced) {
    expect_leftover_is_replaced(TY_TRANSACTIONAL, log_path);
}

TEST(other_heaps_files, a_log_is_not_made_to_be_taken_away) {
    disk files;
    make_closed(files);
    ty_open_options options = existing(files, TY_TRANSACTIONAL);
    ty_heap *heap = nullptr;
    ty_report report{};
    report.struct_size = sizeof report;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    ASSERT_OK(ty_close(heap));
    const uint64_t lsn = report.lsn;
    EXPECT_GT(lsn, 0u);
    files.remove(log_path);
    options.kind = TY_SNAPSHOT;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_TRUE(report.log_detached);
    EXPECT_FALSE(report.log_recreated);
    EXPECT_EQ(lsn, report.lsn);
    EXPECT_EQ(TY_SNAPSHOT, report.kind);
    EXPECT_EQ(TY_SNAPSHOT, ty_heap_kind(heap));
    EXPECT_EQ("(none)", files.read_file(log_path));
    ASSERT_OK(commit_number(heap, 2));
    ASSERT_OK(ty_close(heap));
    options.kind = TY_KIND_DEFAULT;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_EQ(TY_SNAPSHOT, report.kind);
    EXPECT_EQ(2u, *static_cast<uint64_t *>(ty_root(heap, "number")));
    ASSERT_OK(ty_close(heap));
}

template <class Header, class Change>
void change_headers(const disk &on, const char *path, Change change) {
    for (uint64_t slot : {0, 1}) {
        char page[4096];
        ASSERT_TRUE(on.read(path, slot * 4096, page));
        Header header;
        memcpy(&header, page, sizeof header);
        change(header);
        header.checksum = checksum(&header, offsetof(Header, checksum));
        on.patch(path, slot * 4096, &header, sizeof header);
    }
}

// What is written after an open must be readable again.
TEST(other_heaps_files, numbers_near_the_top) {
    constexpr uint64_t top = uint64_t{1} << 62;
    for (ty_kind kind : {TY_SNAPSHOT, TY_TRANSACTIONAL})
        for (uint64_t number : {top, top - 1, top - 2, top - 4096, top / 2 + 1, top / 2 - 5000})
            for (int field = 0; field < (kind == TY_TRANSACTIONAL ? 5 : 4); ++field) {
                SCOPED_TRACE(std::to_string(kind) + ", " + std::to_string(number) + ", " + std::to_string(field));
                disk files;
                make_closed(files, kind);
                if (field < 3)
                    change_headers<image_header>(files, heap_path, [&](image_header &header) {
                        if (field == 0)
                            header.number = number / 2 * 2 + header.number % 2;
                        else if (field == 1)
                            header.epoch = header.durable_epoch = number;
                        else
                            header.log_lsn = number;
                    });
                else if (field == 3)
                    change_headers<journal_header>(files, journal_path, [&](auto &header) { header.number = number; });
                else
                    change_headers<log_header>(files, log_path, [&](auto &header) { header.number = number; });
                const bool refused = number > top / 2;
                ty_open_options options = existing(files);
                ty_heap *heap = nullptr;
                const uint64_t events = os::sim_event_count(files.get());
                ASSERT_EQ(refused ? TY_E_DAMAGED : TY_OK, ty_open(heap_path, &options, &heap, nullptr))
                    << ty_error_text();
                if (refused) {
                    EXPECT_EQ(events, os::sim_event_count(files.get()));
                    continue;
                }
                ASSERT_OK(commit_number(heap, 2));
                ASSERT_OK(ty_close(heap));
                ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
                EXPECT_EQ(2u, *static_cast<uint64_t *>(ty_root(heap, "number")));
                ASSERT_OK(ty_discard(heap));
            }
}

// Not the ones that are gone by the time that the error is read.
TEST(other_heaps_files, errors_of_a_creation_name_the_heaps_files) {
    int failures = 0;
    for (uint64_t n = 0; n < 60; ++n)
        for (uint32_t what : {uint32_t{os::sim_op_write}, uint32_t{os::sim_op_any}}) {
            SCOPED_TRACE(n);
            disk files;
            ty_open_options options = with_log(files);
            os::sim_set_fault(files.get(), {what, n, true, TY_E_SPACE});
            ty_heap *heap = nullptr;
            if (ty_open(heap_path, &options, &heap, nullptr) == TY_OK) {
                ASSERT_OK(ty_discard(heap));
                continue;
            }
            ty_error error;
            ty_error_detail(&error);
            os::sim_set_fault(files.get(), {});
            failures += 1;
            if (strstr(error.path, "-creating")) {
                EXPECT_NE("(none)", files.read_file(error.path)) << ty_error_text();
            } else {
                EXPECT_NE(nullptr, strstr(error.path, heap_path)) << ty_error_text();
            }
        }
    EXPECT_GT(failures, 10);
}

} // namespace
