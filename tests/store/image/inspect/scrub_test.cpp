// Goal: scrub checks every structure of the files, and says which one is wrong and where; nothing crashes.
// Method: damage planted in each field of each structure, on a simulated disk: as a failing disk does it (the checksum
// is wrong then), as a hostile writer does it (the checksum is right), and as holes.
#include "../support.hpp"
#include "src/store/image/files/checksum.hpp"
#include "tests/files_on.hpp"

#include <algorithm>
#include <cstddef>

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct scrubbed {
    ty_status status;
    std::string problems;
};

scrubbed scrub(const disk &files) {
    scrubbed found{};
    found.status = ty_scrub(
        heap_path, files_on(files.storage()), nullptr,
        [](const char *text, void *context) { *static_cast<std::string *>(context) += std::string(text) + "\n"; },
        &found.problems);
    if (found.status)
        found.problems += ty_error_text();
    return found;
}

void expect_names(const disk &files, const std::string &words) {
    scrubbed found = scrub(files);
    EXPECT_EQ(TY_E_DAMAGED, found.status) << found.problems;
    EXPECT_NE(std::string::npos, found.problems.find(words)) << "not in: " << found.problems;
}

void expect_clean(const disk &files) {
    scrubbed found = scrub(files);
    EXPECT_EQ(TY_OK, found.status) << found.problems;
}

void punch(const disk &files, const char *path, uint64_t offset, uint64_t bytes) {
    const ty_storage *s = files.storage();
    ty_file *file = nullptr;
    ASSERT_OK(s->open(s->context, path, TY_FILE_WRITE, &file));
    EXPECT_OK(s->punch(s->context, file, offset, bytes));
    EXPECT_OK(s->flush(s->context, file));
    s->close(s->context, file);
}

uint64_t offset_of(const ty_heap *, const char *base, const void *address) {
    uint64_t page = uint64_t(static_cast<const char *>(address) - base) / page_bytes;
    return image_pages_offset + page * page_bytes;
}

class scrub_test : public testing::Test {
protected:
    void open() {
        ty_open_options options = files.options();
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        base = static_cast<char *>(ty_heap_base(heap));
    }
    // A block of 40 pages, in the image, closed in order.
    void make() {
        open();
        block = static_cast<char *>(ty_alloc(heap, 40 * page_bytes));
        ASSERT_NE(nullptr, block);
        memset(block, 'x', 40 * page_bytes);
        ASSERT_OK(ty_root_set(heap, "block", block));
        ASSERT_OK(ty_close(heap));
        at = offset_of(heap, base, block);
        expect_clean(files);
    }
    // The newest snapshot stands in the journal alone.
    void snapshot_and_discard() {
        open();
        memset(block, 'y', 10 * page_bytes);
        ASSERT_OK(ty_snapshot(heap));
        ASSERT_OK(ty_discard(heap));
        expect_clean(files);
    }
    std::string page_text(uint64_t offset) { return std::to_string((offset - image_pages_offset) / page_bytes); }

    disk files;
    ty_heap *heap = nullptr;
    char *base = nullptr;
    char *block = nullptr;
    uint64_t at = 0; // of the block in the image
};

TEST_F(scrub_test, names_live_pages_that_are_missing) {
    make();
    punch(files, heap_path, at + 3 * page_bytes, 2 * page_bytes);
    expect_names(files, "pages " + page_text(at + 3 * page_bytes) + " to " + page_text(at + 4 * page_bytes) +
                            " at offset " + std::to_string(at + 3 * page_bytes) + " are missing");
    punch(files, heap_path, at, 40 * page_bytes);
    expect_names(files, "pages " + page_text(at) + " to " + page_text(at + 39 * page_bytes));
}

TEST_F(scrub_test, names_all_pages_where_all_are_missing) {
    make();
    punch(files, heap_path, image_pages_offset, small_limit);
    expect_names(files, "pages 0 to " + page_text(at + 39 * page_bytes) + " at offset"); // header, roots, the block
}

// What the journal holds, and what reads as zeros rightly, is not missing.
TEST_F(scrub_test, takes_holes_that_need_no_page_for_sound) {
    make();
    snapshot_and_discard();
    punch(files, heap_path, at, 10 * page_bytes);
    expect_clean(files);
    punch(files, heap_path, at, 11 * page_bytes);
    expect_names(files, "page " + page_text(at + 10 * page_bytes) + " at offset " +
                            std::to_string(at + 10 * page_bytes) + " is missing");
    expect_names(files, "sound: 1 problem: ");
}

TEST_F(scrub_test, takes_a_hole_for_zeros) {
    open();
    block = static_cast<char *>(ty_alloc(heap, 40 * page_bytes));
    memset(block, 'x', 40 * page_bytes);
    ASSERT_OK(ty_snapshot(heap));
    memset(block, 0, 40 * page_bytes);
    ASSERT_OK(ty_root_set(heap, "block", block));
    ASSERT_OK(ty_close(heap));
    punch(files, heap_path, offset_of(heap, base, block), 40 * page_bytes);
    expect_clean(files);
}

TEST_F(scrub_test, names_a_page_that_is_not_what_was_written) {
    make();
    files.flip(heap_path, at + 7 * page_bytes + 9);
    expect_names(files, "page " + page_text(at + 7 * page_bytes) + " at offset");
}

TEST_F(scrub_test, names_damaged_checksums_of_pages) {
    make();
    const uint64_t sums = image_pages_offset + small_limit;
    const uint64_t sector = (at - image_pages_offset) / page_bytes / sums_per_sector;
    const std::string place = "at offset " + std::to_string(sums + sector * sums_sector_bytes);
    for (uint64_t byte : {uint64_t{0}, sums_sector_bytes - 1}) {
        files.flip(heap_path, sums + sector * sums_sector_bytes + byte);
        expect_names(files, place);
        files.flip(heap_path, sums + sector * sums_sector_bytes + byte);
    }
    expect_clean(files);
}

// A process that died may leave them torn. That is no damage, and whoever closes the heap next repairs it.
TEST_F(scrub_test, takes_checksums_that_a_crash_tore_for_sound) {
    make();
    open();
    disk died(files.cut(os::sim_cut::keep_all));
    ASSERT_OK(ty_discard(heap));
    const uint64_t sums = image_pages_offset + small_limit;
    died.flip(heap_path, sums + 8);
    expect_clean(died);
    for (bool close : {true, false}) {
        disk copy(died.cut(os::sim_cut::keep_all));
        ty_open_options options = copy.options();
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        ASSERT_OK(close ? ty_close(heap) : ty_discard(heap));
        expect_clean(copy);
        scrubbed found = scrub(copy);
        EXPECT_EQ("", found.problems);
    }
}

// ---- Headers: bytes that a disk lost

TEST_F(scrub_test, names_each_byte_of_a_header_of_the_image) {
    make();
    for (uint64_t slot : {0u, 4096u}) {
        for (uint64_t byte = 0; byte < sizeof(image_header); byte += byte < 16 ? 1 : 8) {
            SCOPED_TRACE(std::to_string(slot) + " + " + std::to_string(byte));
            files.flip(heap_path, slot + byte);
            expect_names(files, "at offset " + std::to_string(slot));
            files.flip(heap_path, slot + byte);
        }
    }
    files.flip(heap_path, 40);
    files.flip(heap_path, 4096 + 40);
    expect_names(files, "both are damaged");
}

TEST_F(scrub_test, names_each_byte_of_a_header_of_the_journal) {
    make();
    snapshot_and_discard();
    for (uint64_t slot : {0u, 4096u}) {
        for (uint64_t byte = 0; byte < sizeof(journal_header); byte += byte < 16 ? 1 : 8) {
            SCOPED_TRACE(std::to_string(slot) + " + " + std::to_string(byte));
            files.flip(journal_path, slot + byte);
            expect_names(files, "journal");
            files.flip(journal_path, slot + byte);
        }
    }
    expect_clean(files);
    files.flip(journal_path, 40);
    files.flip(journal_path, 4096 + 40);
    expect_names(files, "test.ty-journal");
}

// The next open repairs a header that was torn.
TEST_F(scrub_test, finds_a_torn_header_of_the_journal_repaired) {
    make();
    snapshot_and_discard();
    for (uint64_t slot : {0u, 4096u}) {
        files.flip(journal_path, slot + 40);
        scrubbed found = scrub(files);
        if (found.problems.find("two headers is damaged") == std::string::npos) {
            files.flip(journal_path, slot + 40); // the newer one: without it the journal was cut, or is another's
            continue;
        }
        open();
        ASSERT_OK(ty_discard(heap));
        expect_clean(files);
    }
}

TEST_F(scrub_test, names_each_byte_of_a_chunk) {
    make();
    snapshot_and_discard();
    chunk_header chunk;
    uint64_t place = journal_front;
    ASSERT_TRUE(files.read(journal_path, place, &chunk));
    ASSERT_EQ(chunk_magic, chunk.magic);
    for (uint64_t byte = 0; byte < offsetof(chunk_header, entries) + chunk.count * sizeof(chunk_entry); byte += 8) {
        SCOPED_TRACE(byte);
        files.flip(journal_path, place + byte);
        expect_names(files, "test.ty-journal");
        files.flip(journal_path, place + byte);
    }
    for (uint32_t page = 0; page < chunk.count; ++page) {
        files.flip(journal_path, place + (1 + page) * page_bytes + 77);
        expect_names(files, "at offset " + std::to_string(place + (1 + page) * page_bytes));
        files.flip(journal_path, place + (1 + page) * page_bytes + 77);
    }
    punch(files, journal_path, place, page_bytes);
    expect_names(files, "test.ty-journal");
}

// ---- Headers: numbers that a hostile writer made

struct planted {
    const char *name; // in what scrub says
    size_t offset;
    size_t bytes;
    uint64_t value;
};
#define FIELD(structure, field) offsetof(structure, field), sizeof(structure::field)

// Both slots, or one of them.
void plant(const disk &files, const planted &one, uint32_t first, uint32_t count) {
    for (uint32_t slot = first; slot < first + count; ++slot) {
        char page[page_bytes];
        ASSERT_TRUE(files.read(heap_path, slot * page_bytes, page));
        memcpy(page + one.offset, &one.value, std::min(one.bytes, sizeof one.value));
        image_header header;
        memcpy(&header, page, sizeof header);
        header.checksum = header_checksum(header);
        files.patch(heap_path, slot * page_bytes, &header, sizeof header);
    }
}

TEST_F(scrub_test, names_impossible_fields_of_the_images_header) {
    make();
    const planted fields[] = {
        {"version", FIELD(image_header, version), 9},
        {"page size", FIELD(image_header, page_bytes), 512},
        {"features", FIELD(image_header, features_incompatible), 2},
        {"number", FIELD(image_header, number), UINT64_MAX},
        {"number", FIELD(image_header, number), counter_max + 1},
        {"base", FIELD(image_header, base), 0},
        {"base", FIELD(image_header, base), uint64_t{1} << 60},
        {"limit", FIELD(image_header, limit_bytes), 4096},
        {"limit", FIELD(image_header, limit_bytes), UINT64_MAX},
        {"kind", FIELD(image_header, kind), 9},
        {"log", FIELD(image_header, kind), TY_TRANSACTIONAL},
        {"state", FIELD(image_header, state), 0},
        {"state", FIELD(image_header, state), 3},
        {"size classes", FIELD(image_header, classes), 77},
        {"redo point in the log", FIELD(image_header, log_empty_after_redo_point), 2},
        {"epoch", FIELD(image_header, epoch), UINT64_MAX},
        {"epoch", FIELD(image_header, durable_epoch), UINT64_MAX},
        {"place in the journal", FIELD(image_header, journal_next), 4096},
        {"place in the journal", FIELD(image_header, journal_next), UINT64_MAX},
        {"page checksums", FIELD(image_header, sums_offset), 0},
        {"page checksums", FIELD(image_header, sums_offset), UINT64_MAX / 4096 * 4096},
        {"clear", FIELD(image_header, clear_bytes), UINT64_MAX / 4096 * 4096},
        {"clear", FIELD(image_header, clear_offset), 1},
        {"position", FIELD(image_header, log_position), UINT64_MAX},
        {"log", FIELD(image_header, log_identity), 1},
        {"lsn", FIELD(image_header, log_lsn), UINT64_MAX},
        {"opens", FIELD(image_header, open), 0},
        {"opens", FIELD(image_header, open), UINT64_MAX},
    };
    for (const planted &one : fields) {
        SCOPED_TRACE(std::string(one.name) + " " + std::to_string(one.offset) + ": " + std::to_string(one.value));
        disk copy(files.cut(os::sim_cut::keep_all));
        plant(copy, one, 0, 2);
        scrubbed found = scrub(copy);
        EXPECT_TRUE(found.status == TY_E_DAMAGED || found.status == TY_E_FORMAT) << found.problems;
        EXPECT_NE(std::string::npos, found.problems.find(one.name)) << found.problems;
        EXPECT_NE(std::string::npos, found.problems.find("test.ty")) << found.problems;
        // In one alone, whichever counts.
        for (uint32_t slot : {0u, 1u}) {
            disk half(files.cut(os::sim_cut::keep_all));
            plant(half, one, slot, 1);
            EXPECT_NE(TY_OK, scrub(half).status) << "in slot " << slot;
        }
    }
}

TEST_F(scrub_test, names_what_the_images_headers_contradict_each_other_in) {
    make();
    const planted fields[] = {
        {"identity", FIELD(image_header, identity[3]), 1},
        {"base", FIELD(image_header, base), uint64_t{64} << 20},
        {"size classes", FIELD(image_header, classes), TY_CLASSES_DENSE},
        {"time of creation", FIELD(image_header, created_unix_s), 7},
        {"fields are set", FIELD(image_header, reserved[0]), 1},
        {"fields are set", FIELD(image_header, reserved[39]), 1},
        {"fields are set", FIELD(image_header, log_more[0].generation), 1},
        {"fields are set", FIELD(image_header, log_first_lsn), 1},
        {"number is of the other slot", FIELD(image_header, number), 0},
    };
    for (const planted &one : fields) {
        SCOPED_TRACE(one.name);
        image_header headers[2];
        char page[page_bytes];
        for (uint32_t slot : {0u, 1u}) {
            ASSERT_TRUE(files.read(heap_path, slot * page_bytes, page));
            memcpy(&headers[slot], page, sizeof headers[slot]);
        }
        const uint32_t older = headers[0].number < headers[1].number ? 0 : 1;
        disk copy(files.cut(os::sim_cut::keep_all));
        planted with = one;
        if (with.offset == offsetof(image_header, number))
            with.value = 1 - older;
        if (with.offset == offsetof(image_header, identity[3])) // random: another one
            with.value = headers[older].identity[3] ^ 1;
        plant(copy, with, older, 1);
        expect_names(copy, one.name);
    }
}

TEST_F(scrub_test, refuses_an_image_that_was_cut) {
    make();
    for (uint64_t size : {uint64_t{0}, uint64_t{4096}, image_pages_offset, at, image_pages_offset + small_limit}) {
        disk copy(files.cut(os::sim_cut::keep_all));
        copy.resize(heap_path, size);
        scrubbed found = scrub(copy);
        EXPECT_NE(TY_OK, found.status) << size;
        EXPECT_NE(std::string::npos, found.problems.find("test.ty")) << found.problems;
    }
}

} // namespace
