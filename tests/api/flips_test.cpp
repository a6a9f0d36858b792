// Goal: no flipped bit in any field of the files' headers and page lists goes unnoticed or does harm: the heap opens
// with an acknowledged snapshot, whole, or is refused with a text that says what, where and what to do; and a refusal
// changes nothing on disk.
// Method: every byte of both header slots, of the journal's header and of each chunk's header is flipped in turn, by a
// bit that depends on the byte's place; then every 61st bit of the rest of the journal.
#include "fixture.hpp"

#include "src/store/image/files/image_layout.hpp"
#include "tests/effort.hpp"
#include <algorithm>
#include <cstring>
#include <functional>

using namespace api_test;
using namespace taiyen;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t checkpointed = 2;
constexpr uint64_t waiting = 3;

// The bits of a byte are taken in turn over the loop, so that all are seen in every field.
unsigned bit_of(uint64_t byte) {
    return static_cast<unsigned>(byte * 5 % 8);
}

class flipped_bits : public testing::Test {
protected:
    void SetUp() override {
        make_heap(path_, checkpointed, waiting);
        copy_sparse(path_, keep_.path("image"));
        copy_sparse(journal_, keep_.path("journal"));
    }

    // Opens the damaged heap; says what came of it.
    ty_status open_damaged(ty_open_mode mode) {
        ty_open_options options = small_options();
        options.mode = mode;
        ty_heap *heap = nullptr;
        ty_report report;
        const auto before = touch_times(files_.root());
        const ty_status status = ty_open(path_.c_str(), &options, &heap, &report);
        if (status) {
            EXPECT_TRUE(status == TY_E_DAMAGED || status == TY_E_FORMAT || status == TY_E_MISMATCH) << ty_error_text();
            expect_good_text(status, "atlas.ty");
        } else {
            // The epoch that it gives is whole: each snapshot of the document has its epoch's number of generations.
            EXPECT_GE(report.epoch, checkpointed);
            EXPECT_EQ(read_document(heap), report.epoch - first_epoch_ + 1);
            EXPECT_EQ(ty_heap_verify(heap, nullptr, nullptr), TY_OK) << ty_error_text();
            header_repaired_ = report.header_repaired;
            epoch_ = report.epoch;
            EXPECT_EQ(ty_discard(heap), TY_OK) << ty_error_text();
        }
        if (status || mode == TY_OPEN_READ_ONLY) {
            EXPECT_EQ(touch_times(files_.root()), before) << "files were changed";
        }
        return status;
    }

    // Flips a bit and back; some of the opens are for writing, whose changes are undone by copies.
    ty_status with_flip(const std::string &file, uint64_t byte) {
        SCOPED_TRACE(file + " at " + std::to_string(byte));
        flip_bit(file, byte, bit_of(byte));
        const bool read_only = byte % 16 != 0;
        const ty_status status = open_damaged(read_only ? TY_OPEN_READ_ONLY : TY_OPEN_EXISTING);
        if (read_only || status)
            flip_bit(file, byte, bit_of(byte));
        else
            restore();
        return status;
    }

    void restore() {
        copy_sparse(keep_.path("image"), path_);
        copy_sparse(keep_.path("journal"), journal_);
    }

    folder files_, keep_;
    const std::string path_ = files_.path("atlas.ty");
    const std::string journal_ = path_ + "-journal";
    bool header_repaired_ = false;
    uint64_t epoch_ = 0; // that the last open gave
    static constexpr uint64_t first_epoch_ = 1;
};

} // namespace

TEST_F(flipped_bits, in_one_header_slot_are_repaired_from_the_other) {
    uint64_t noticed = 0;
    for (uint64_t slot = 0; slot < header_slots; ++slot)
        for (uint64_t byte = 0; byte < sizeof(image_header); ++byte) {
            header_repaired_ = false;
            const ty_status status = with_flip(path_, slot * image_slot_bytes + byte);
            noticed += status != TY_OK || header_repaired_;
            if (HasFailure())
                return;
        }
    EXPECT_EQ(noticed, header_slots * sizeof(image_header)) << "flips of the header that nobody noticed";
}

TEST_F(flipped_bits, in_both_header_slots_are_refused) {
    for (uint64_t byte = 0; byte < sizeof(image_header); ++byte) {
        SCOPED_TRACE(byte);
        flip_bit(path_, byte, bit_of(byte));
        flip_bit(path_, image_slot_bytes + byte, bit_of(byte));
        EXPECT_NE(open_damaged(byte % 2 ? TY_OPEN_READ_ONLY : TY_OPEN_EXISTING), TY_OK);
        flip_bit(path_, byte, bit_of(byte));
        flip_bit(path_, image_slot_bytes + byte, bit_of(byte));
        if (HasFailure())
            return;
    }
}

TEST_F(flipped_bits, in_both_journal_headers_are_refused) {
    for (uint64_t byte = 0; byte < sizeof(journal_header); ++byte) {
        flip_bit(journal_, journal_slot_bytes + byte, bit_of(byte));
        EXPECT_NE(with_flip(journal_, byte), TY_OK) << byte;
        flip_bit(journal_, journal_slot_bytes + byte, bit_of(byte));
        if (HasFailure())
            return;
    }
}

// The newest batch cannot be distinguished from one that a crash left incomplete: the open goes back to the one before.
// Damage in any other is refused, since the batch after it says that it was acknowledged.
TEST_F(flipped_bits, in_the_page_lists_are_refused_or_cost_the_newest_snapshot_alone) {
    const uint64_t size = fs::file_size(journal_);
    uint64_t chunks = 0, flips = 0, noticed = 0, newest = 0;
    for (uint64_t page = journal_front; page + page_bytes <= size; page += page_bytes) {
        chunk_header header;
        memcpy(&header, read_bytes(journal_, page, sizeof header).data(), sizeof header);
        if (header.magic == chunk_magic)
            newest = std::max(newest, header.epoch);
    }
    for (uint64_t page = journal_front; page + page_bytes <= size; page += page_bytes) {
        chunk_header header;
        memcpy(&header, read_bytes(journal_, page, sizeof header).data(), sizeof header);
        if (header.magic != chunk_magic)
            continue;
        ++chunks;
        const uint64_t used = offsetof(chunk_header, entries) + header.count * sizeof(chunk_entry);
        for (uint64_t byte = 0; byte < used; ++byte, ++flips) {
            bool refused = with_flip(journal_, page + byte) != TY_OK;
            noticed += refused || (header.epoch == newest && epoch_ + 1 == newest);
            if (HasFailure())
                return;
        }
    }
    EXPECT_GE(chunks, waiting);
    EXPECT_EQ(noticed, flips) << "flips of the page lists that nobody noticed";
}

TEST_F(flipped_bits, in_pages_of_the_journal_give_a_whole_snapshot_or_a_refusal) {
    const uint64_t size = fs::file_size(journal_);
    for (uint64_t byte = journal_front; byte < size; byte += 61 * 7 * taiyen::test::stride(4)) {
        with_flip(journal_, byte);
        if (HasFailure())
            return;
    }
}

TEST_F(flipped_bits, in_pages_of_the_image_are_found_by_a_scrub) {
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(path_.c_str(), nullptr, &heap, nullptr), TY_OK);
    ASSERT_EQ(ty_close(heap), TY_OK);
    ASSERT_EQ(ty_scrub(path_.c_str(), nullptr, nullptr, nullptr, nullptr), TY_OK) << ty_error_text();
    ty_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(ty_read_info(path_.c_str(), nullptr, &info), TY_OK);
    for (uint64_t page : {0, 1, 2}) {
        SCOPED_TRACE(page);
        const uint64_t byte = image_pages_offset + page * page_bytes + 77;
        flip_bit(path_, byte, 3);
        std::vector<std::string> problems;
        const auto note = [](const char *problem, void *context) {
            static_cast<std::vector<std::string> *>(context)->emplace_back(problem);
        };
        expect_refusal(ty_scrub(path_.c_str(), nullptr, nullptr, note, &problems), TY_E_DAMAGED, "atlas.ty");
        EXPECT_EQ(problems.size(), 1u);
        for (const std::string &problem : problems)
            EXPECT_NE(problem.find(std::to_string(page)), std::string::npos) << problem;
        flip_bit(path_, byte, 3);
    }
}
