// Goal: a header with a valid checksum and impossible fields is refused, and nothing is written. Method: one field at a
// time of a sound heap's header gets a value that a sane program never writes; the checksum is made right again.
#include "../support.hpp"
#include "src/store/image/files/checksum.hpp"
#include "tests/files_on.hpp"

namespace taiyen::test {
namespace {

struct impossible {
    const char *what;
    void (*change)(image_header &header);
    ty_status expected;
};

constexpr impossible cases[] = {
    {"a later version", [](image_header &h) { h.version = 3; }, TY_E_FORMAT},
    {"an unknown feature", [](image_header &h) { h.features_incompatible = 1; }, TY_E_FORMAT},
    {"too many log streams", [](image_header &h) { h.log_streams = 9; }, TY_E_DAMAGED},
    {"log streams without a log", [](image_header &h) { h.log_streams = 2; }, TY_E_DAMAGED},
    {"a place in a log stream", [](image_header &h) { h.log_more[6].offset = uint64_t{1} << 63; }, TY_E_DAMAGED},
    {"an unknown feature that allows reading", [](image_header &h) { h.features_read_only = 2; }, TY_E_FORMAT},
    {"receives from nobody", [](image_header &h) { h.features_read_only = 1; }, TY_E_DAMAGED},
    {"source in no state", [](image_header &h) { h.source.state = 3; }, TY_E_DAMAGED},
    {"page size", [](image_header &h) { h.page_bytes = 8192; }, TY_E_DAMAGED},
    {"kind", [](image_header &h) { h.kind = 9; }, TY_E_DAMAGED},
    {"kind that the enumeration cannot hold", [](image_header &h) { h.kind = 0xffffff00; }, TY_E_DAMAGED},
    {"state", [](image_header &h) { h.state = 0; }, TY_E_DAMAGED},
    {"no limit", [](image_header &h) { h.limit_bytes = 0; }, TY_E_DAMAGED},
    {"limit that wraps", [](image_header &h) { h.limit_bytes = -(uint64_t{64} << 20); }, TY_E_DAMAGED},
    {"larger limit than the file", [](image_header &h) { h.limit_bytes *= 2; }, TY_E_DAMAGED},
    {"no base", [](image_header &h) { h.base = 0; }, TY_E_DAMAGED},
    {"base in the kernel's half", [](image_header &h) { h.base = uint64_t{1} << 63; }, TY_E_DAMAGED},
    {"base whose end wraps to zero", [](image_header &h) { h.base = -h.limit_bytes; }, TY_E_DAMAGED},
    {"sums within the pages", [](image_header &h) { h.sums_offset -= page_bytes; }, TY_E_DAMAGED},
    {"sums far away", [](image_header &h) { h.sums_offset = -page_bytes; }, TY_E_DAMAGED},
    {"journal position out of line", [](image_header &h) { h.journal_next += 1; }, TY_E_DAMAGED},
    {"journal position whose end wraps", [](image_header &h) { h.journal_next = -page_bytes; }, TY_E_DAMAGED},
    {"number near the end of numbers", [](image_header &h) { h.number = UINT64_MAX - 1; }, TY_E_DAMAGED},
    {"epoch near the end of numbers", [](image_header &h) { h.epoch = h.durable_epoch = UINT64_MAX; }, TY_E_DAMAGED},
    {"durable epoch beyond counting", [](image_header &h) { h.durable_epoch = counter_max + 1; }, TY_E_DAMAGED},
    {"opens beyond counting", [](image_header &h) { h.open.number = counter_max + 1; }, TY_E_DAMAGED},
    {"position in the log beyond counting", [](image_header &h) { h.log_position = counter_max + 4096; }, TY_E_DAMAGED},
    {"LSN beyond counting", [](image_header &h) { h.log_lsn = UINT64_MAX; }, TY_E_DAMAGED},
    {"epoch never acknowledged", [](image_header &h) { h.epoch = h.durable_epoch + 1; }, TY_E_DAMAGED},
    {"clearing the header", [](image_header &h) { h.clear_bytes = page_bytes; }, TY_E_DAMAGED},
    {"clearing more than there is",
     [](image_header &h) {
         h.clear_offset = image_pages_offset;
         h.clear_bytes = h.sums_offset + page_bytes; // sums_offset - clear_bytes wraps
     },
     TY_E_DAMAGED},
};

image_header read_slot(const disk &files, uint32_t slot) {
    char page[page_bytes];
    EXPECT_TRUE(files.read(heap_path, slot * image_slot_bytes, page));
    image_header header;
    memcpy(&header, page, sizeof header);
    return header;
}

TEST(hostile_test, impossible_fields_of_the_header_are_refused) {
    disk files;
    ty_open_options options = files.options();
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_NE(nullptr, ty_alloc(heap, 100000));
    ASSERT_OK(ty_close(heap));
    for (const impossible &each : cases) {
        SCOPED_TRACE(each.what);
        disk changed(files.cut(os::sim_cut::keep_all));
        for (uint32_t slot = 0; slot < header_slots; ++slot) {
            image_header header = read_slot(files, slot);
            each.change(header);
            header.checksum = header_checksum(header);
            changed.patch(heap_path, slot * image_slot_bytes, &header, sizeof header);
        }
        uint64_t events = os::sim_event_count(changed.get());
        ty_open_options again = changed.options();
        EXPECT_EQ(each.expected, ty_open(heap_path, &again, &heap, nullptr)) << ty_error_text();
        EXPECT_EQ(events, os::sim_event_count(changed.get())) << "a refusal wrote something";
    }
}

// A regression: the table of page checksums of a large heap is longer than a small raise. Its new place then overlapped
// the old one, which was cleared afterwards: checksums were lost, and after a crash in between the header was refused.
TEST(hostile_test, a_small_raise_of_a_large_heap_keeps_the_page_checksums) {
    constexpr size_t large_limit = size_t{64} << 30;
    disk files;
    ty_open_options options = files.options();
    options.limit_bytes = large_limit;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    auto *block = static_cast<char *>(ty_alloc(heap, 40960));
    ASSERT_NE(nullptr, block) << ty_error_text();
    memset(block, 7, 40960);
    ASSERT_OK(ty_close(heap));

    options.limit_bytes = large_limit + small_limit;
    ty_report report;
    ASSERT_OK(ty_open(heap_path, &options, &heap, &report));
    EXPECT_TRUE(report.grown);
    ty_heap_stats stats;
    stats.struct_size = sizeof stats;
    ASSERT_OK(ty_heap_get_stats(heap, &stats));
    auto offset = static_cast<uint64_t>(block - static_cast<char *>(stats.base));
    expect_sound(heap);
    ASSERT_OK(ty_close(heap));

    EXPECT_OK(ty_scrub(heap_path, files_on(files.storage()), nullptr, nullptr, nullptr));
    files.flip(heap_path, image_pages_offset + offset + 4096);
    EXPECT_EQ(TY_E_DAMAGED, ty_scrub(heap_path, files_on(files.storage()), nullptr, nullptr, nullptr));
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_close(heap));
}

} // namespace
} // namespace taiyen::test
