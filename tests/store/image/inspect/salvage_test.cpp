// Goal: of damaged files, ty_salvage gets the last good epoch, only reads them, and reports each page that is not what
// was written. Method: damage in pages, headers and batches, on a simulated disk; what was salvaged is opened and
// compared with what the heap held.
#include "../support.hpp"
#include "tests/files_on.hpp"

#include <set>
#include <taiyen/salvage.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr const char *out_path = "out.ty";
constexpr size_t block_pages = 40;

struct salvaged {
    ty_status status = TY_OK;
    ty_salvage_report report{};
    std::string problems;
    std::set<uint64_t> damaged, missing;

    static void problem(const char *text, void *context) {
        static_cast<salvaged *>(context)->problems += std::string(text) + "\n";
    }
    static void page(uint64_t page, bool missing, void *context) {
        auto &found = *static_cast<salvaged *>(context);
        (missing ? found.missing : found.damaged).insert(page);
    }
};

salvaged salvage(const disk &files) {
    const ty_open_options options = files.options();
    const std::string image = files.read_file(heap_path), journal = files.read_file(journal_path);
    salvaged found;
    found.report.struct_size = sizeof found.report;
    found.status = ty_salvage(heap_path, &options, out_path, salvaged::problem, salvaged::page, &found, &found.report);
    EXPECT_EQ(image, files.read_file(heap_path));
    EXPECT_EQ(journal, files.read_file(journal_path));
    EXPECT_EQ(found.report.damaged_pages, found.damaged.size());
    EXPECT_EQ(found.report.missing_pages, found.missing.size());
    return found;
}

content salvaged_content(const disk &files) {
    ty_open_options options = files.options();
    options.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap = nullptr;
    EXPECT_OK(ty_open(out_path, &options, &heap, nullptr));
    if (heap == nullptr)
        return {};
    EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
    content found = content_of(heap);
    EXPECT_OK(ty_close(heap));
    return found;
}

class salvage_test : public testing::Test {
protected:
    void open() {
        ty_open_options options = files.options();
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        base = static_cast<char *>(ty_heap_base(heap));
    }
    void fill(char value) {
        memset(block, value, block_pages * 4096);
        ASSERT_OK(ty_snapshot(heap));
    }
    void SetUp() override {
        open();
        block = static_cast<char *>(ty_alloc(heap, block_pages * 4096));
        ASSERT_NE(nullptr, block);
        fill('1');
    }
    void close() {
        ASSERT_OK(ty_close(heap));
        heap = nullptr;
    }
    void TearDown() override { ASSERT_OK(ty_discard(heap)); }
    uint64_t page_of(const char *address) const { return static_cast<uint64_t>(address - base) / 4096; }
    uint64_t offset_of(const char *address) const { return image_pages_offset + static_cast<uint64_t>(address - base); }
    // The image holds snapshot 2, and its headers say 1, as when a program dies while it checkpoints a batch. Where the
    // batch is in the journal.
    void die_while_applying(uint64_t *batch) {
        ASSERT_OK(ty_run_background_work(heap));
        fill('2');
        const std::string headers = files.read_file(heap_path).substr(0, header_slots * image_slot_bytes);
        ASSERT_OK(ty_run_background_work(heap));
        ASSERT_OK(ty_discard(heap));
        heap = nullptr;
        for (uint64_t slot = 0; slot < header_slots; ++slot)
            files.patch(heap_path, slot * image_slot_bytes, headers.data() + slot * image_slot_bytes, image_slot_bytes);
        const std::string journal = files.read_file(journal_path);
        chunk_header header{};
        for (*batch = 0; header.magic != chunk_magic || header.epoch != 2; *batch += 4096) {
            ASSERT_LE(*batch + sizeof header, journal.size());
            memcpy(&header, journal.data() + *batch, sizeof header);
        }
        *batch -= 4096;
    }

    disk files;
    ty_heap *heap = nullptr;
    char *base = nullptr;
    char *block = nullptr;
};

} // namespace

TEST_F(salvage_test, what_is_sound_is_the_same) {
    const content whole = content_of(heap);
    close();
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_EQ("", found.problems);
    EXPECT_TRUE(found.damaged.empty() && found.missing.empty());
    EXPECT_EQ(0u, found.report.unchecked_pages);
    EXPECT_TRUE(whole == salvaged_content(files));
    EXPECT_EQ(TY_E_EXISTS, salvage(files).status);
}

// I22.
TEST_F(salvage_test, damaged_and_missing_pages_are_reported) {
    close();
    files.flip(heap_path, offset_of(block) + 3 * 4096 + 77);
    const ty_storage *s = files.storage();
    ty_file *file = nullptr;
    ASSERT_OK(s->open(s->context, heap_path, TY_FILE_WRITE, &file));
    ASSERT_OK(s->punch(s->context, file, offset_of(block) + 16 * 4096, 4096));
    s->close(s->context, file);
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_EQ(std::set<uint64_t>{page_of(block) + 3}, found.damaged);
    EXPECT_EQ(std::set<uint64_t>{page_of(block) + 16}, found.missing);
    std::string expected(block_pages * 4096, '1');
    expected[3 * 4096 + 77] ^= 0x40;
    expected.replace(16 * 4096, 4096, 4096, '\0');
    EXPECT_EQ(expected, salvaged_content(files)[block]);
}

TEST_F(salvage_test, a_damaged_batch_ends_at_the_one_before) {
    fill('2');
    fill('3');
    ASSERT_OK(ty_discard(heap));
    heap = nullptr;
    ty_open_options options = files.options();
    options.mode = TY_OPEN_READ_ONLY;
    ty_info info{};
    info.struct_size = sizeof info;
    ASSERT_OK(ty_read_info(heap_path, files_on(files.storage()), &info));
    ASSERT_EQ(3u, info.batches) << info.open_text;
    files.flip(journal_path, journal_front + (block_pages + 8) * 4096 + 20); // in the second batch
    ASSERT_NE(TY_OK, ty_open(heap_path, &options, &heap, nullptr));
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_EQ(1u, found.report.epoch);
    EXPECT_EQ(1u, found.report.batches);
    EXPECT_NE(std::string::npos, found.problems.find("restore epoch 2")) << found.problems;
    EXPECT_TRUE(found.damaged.empty());
    EXPECT_EQ(std::string(block_pages * 4096, '1'), salvaged_content(files)[block]);
}

// I22: pages of a batch that was being checkpointed, and is damaged: in a page, in its header.
TEST_F(salvage_test, pages_of_a_later_snapshot_are_reported) {
    uint64_t batch = 0;
    die_while_applying(&batch);
    ASSERT_FALSE(HasFatalFailure());
    for (const uint64_t damage : {4096 + 100, 20}) {
        files.flip(journal_path, batch + damage);
        const salvaged found = salvage(files);
        ASSERT_EQ(TY_OK, found.status) << ty_error_text();
        EXPECT_EQ(1u, found.report.epoch);
        EXPECT_TRUE(found.report.several_moments);
        for (uint64_t page = 0; page < block_pages; ++page)
            EXPECT_TRUE(found.damaged.count(page_of(block) + page)) << page;
        EXPECT_EQ(found.damaged.size(), found.report.later_pages);
        ASSERT_OK(files.storage()->remove(files.storage()->context, out_path));
        files.flip(journal_path, batch + damage);
    }
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_EQ(2u, found.report.epoch);
    EXPECT_FALSE(found.report.several_moments);
    EXPECT_TRUE(found.damaged.empty());
    EXPECT_EQ(std::string(block_pages * 4096, '2'), salvaged_content(files)[block]);
}

// I22.
TEST_F(salvage_test, without_its_journal_pages_may_be_of_several_moments) {
    uint64_t batch = 0;
    die_while_applying(&batch);
    ASSERT_FALSE(HasFatalFailure());
    files.remove(journal_path);
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_EQ(1u, found.report.epoch);
    EXPECT_TRUE(found.report.several_moments);
    EXPECT_FALSE(found.report.closed);
}

TEST_F(salvage_test, a_closed_heap_without_its_journal_is_of_one_moment) {
    close();
    files.remove(journal_path);
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_FALSE(found.report.several_moments);
    EXPECT_TRUE(found.report.closed);
    EXPECT_EQ(0u, found.report.problems);
}

TEST_F(salvage_test, one_damaged_header_is_reported) {
    const content whole = content_of(heap);
    close();
    files.flip(heap_path, offsetof(image_header, checksum));
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_FALSE(found.report.header_doubtful);
    EXPECT_NE(std::string::npos, found.problems.find("one of the image's two headers is damaged")) << found.problems;
    EXPECT_TRUE(whole == salvaged_content(files));
}

TEST_F(salvage_test, without_a_sound_header) {
    const content whole = content_of(heap);
    close();
    for (uint64_t slot = 0; slot < header_slots; ++slot)
        files.flip(heap_path, slot * image_slot_bytes + offsetof(image_header, checksum));
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_TRUE(found.report.header_doubtful);
    EXPECT_TRUE(whole == salvaged_content(files));
    for (uint64_t slot = 0; slot < header_slots; ++slot)
        files.flip(heap_path, slot * image_slot_bytes + offsetof(image_header, base));
    ASSERT_OK(files.storage()->remove(files.storage()->context, out_path));
    EXPECT_EQ(TY_E_DAMAGED, salvage(files).status);
    EXPECT_EQ("(none)", files.read_file(out_path));
}

// I23: also where another table of size classes could be one.
TEST_F(salvage_test, another_table_of_size_classes) {
    for (char *small : {static_cast<char *>(ty_alloc(heap, 8)), static_cast<char *>(ty_alloc(heap, 16))}) {
        ASSERT_NE(nullptr, small);
        *small = 'a';
    }
    ASSERT_OK(ty_snapshot(heap));
    const content whole = content_of(heap);
    close();
    const uint32_t size = 24; // of the second one, which has 16, before one of 32
    files.patch(heap_path, image_pages_offset + 512 + 8, &size, sizeof size);
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_EQ(std::set<uint64_t>{0}, found.damaged);
    EXPECT_TRUE(whole == salvaged_content(files));
}

TEST_F(salvage_test, a_damaged_heap_header_is_put_back) {
    const content whole = content_of(heap);
    close();
    for (uint64_t at = 0; at < 1700; at += 13) {
        SCOPED_TRACE(at);
        files.flip(heap_path, image_pages_offset + at);
        const salvaged found = salvage(files);
        ASSERT_EQ(TY_OK, found.status) << ty_error_text();
        EXPECT_EQ(std::set<uint64_t>{0}, found.damaged);
        ty_open_options options = files.options();
        options.mode = TY_OPEN_READ_ONLY;
        ty_heap *made = nullptr;
        ASSERT_OK(ty_open(out_path, &options, &made, nullptr));
        const bool is_top = at / 8 == 6; // another end of what is used may leave out what is after it
        EXPECT_TRUE(is_top || whole == content_of(made));
        ASSERT_OK(ty_close(made));
        ASSERT_OK(files.storage()->remove(files.storage()->context, out_path));
        files.flip(heap_path, image_pages_offset + at);
    }
}

TEST_F(salvage_test, without_a_heap_header) {
    const content whole = content_of(heap);
    close();
    for (const char value : {'\0', '\xff', 'Z'}) {
        const std::string trash(4096, value);
        files.patch(heap_path, image_pages_offset, trash.data(), trash.size());
        const salvaged found = salvage(files);
        ASSERT_EQ(TY_OK, found.status) << ty_error_text();
        EXPECT_NE(std::string::npos, found.problems.find("header")) << found.problems;
        EXPECT_EQ(std::set<uint64_t>{0}, found.damaged);
        ty_open_options options = files.options();
        options.mode = TY_OPEN_READ_ONLY;
        ty_heap *made = nullptr;
        ASSERT_OK(ty_open(out_path, &options, &made, nullptr));
        EXPECT_TRUE(whole == content_of(made));
        ASSERT_OK(ty_close(made));
        ASSERT_OK(files.storage()->remove(files.storage()->context, out_path));
    }
}

// I22.
TEST_F(salvage_test, pages_after_the_end_of_a_file_are_missing) {
    close();
    files.resize(heap_path, offset_of(block) + 5 * 4096);
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    for (uint64_t page = 0; page < block_pages; ++page)
        EXPECT_EQ(page >= 5, found.missing.count(page_of(block) + page) == 1) << page;
    EXPECT_TRUE(found.missing.count(small_limit / 4096 - 1)) << "the tables";
}

// I23: a header of another version is not believed, either, where its checksum is lost with the file's end.
TEST_F(salvage_test, a_header_of_another_version_with_any_numbers) {
    close();
    struct {
        uint32_t version = 2, page_bytes = 4096;
        uint64_t limit = 0, tables[3] = {1, 2, 3}, top = uint64_t{1} << 60;
    } header;
    files.patch(heap_path, image_pages_offset + 8, &header, sizeof header);
    files.resize(heap_path, offset_of(block) + 5 * 4096);
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_TRUE(found.missing.empty());
    EXPECT_NE(std::string::npos, found.problems.find("cut short")) << found.problems;
}

// I22.
TEST_F(salvage_test, damaged_checksums_are_reported) {
    close();
    files.flip(heap_path, image_pages_offset + small_limit + 100);
    const salvaged found = salvage(files);
    ASSERT_EQ(TY_OK, found.status) << ty_error_text();
    EXPECT_NE(std::string::npos, found.problems.find("checksums of pages 0 to 62")) << found.problems;
    EXPECT_TRUE(found.damaged.empty() && found.missing.empty());
}

TEST_F(salvage_test, an_open_heap_is_left_alone) {
    EXPECT_EQ(TY_E_BUSY, salvage(files).status);
    EXPECT_EQ("(none)", files.read_file(out_path));
}
