// The file of a heap's durable marks, HEAP-marks: [header][header][pages]... Each page is a copy of a page of the heap,
// or a part of a table. docs/design/marks.md, "The file of durable marks".
//
// MK7: What counts is what the newest header leads to. It is written after all that it leads to is durable, to one slot
//      after the other, so that both have it once it counts; nothing is written to pages that it leads to before the
//      next one is in both (shadow paging).
// MK9: It is believed only beside an image that each writing open since has known it with.
#pragma once

#include "headers.hpp"
#include "src/marks/marks.hpp"

namespace taiyen {

inline constexpr uint64_t marks_magic = 0x6b6d6e6579696154; // "Taiyenmk"

struct marks_header {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved;
    uint8_t identity[16]; // of the heap
    uint64_t number;      // of headers; the valid slot with the higher number counts
    open_identity open;
    open_identity previous; // the image may still name this one; number 0: it may not
    uint64_t limit_bytes;   // of the heap
    stored_entries table;   // a marks_table, its nodes, and its runs
    uint64_t checksum;      // of all bytes before it
};
static_assert(sizeof(marks_header) == 112);

struct marks_table {
    uint32_t nodes; // each after its parent
    uint32_t base_runs;
    uint32_t current; // 1: the first node; 0: the base
    uint32_t reserved;
};
struct marks_node {
    char name[TY_MARK_NAME_MAX + 1]; // zeros after the name; empty: it was dropped, and its children need its copies
    uint32_t parent;                 // as current
    uint32_t reserved;
    uint64_t time_ns;
    uint64_t used_pages;
    uint64_t session;
    stored_entries entries; // of marks_entry, by page
};
static_assert(sizeof(marks_node) == 120);
struct marks_entry {
    uint32_t page;
    uint32_t slot; // page of the file, or page_store::zeros
    uint64_t sum;  // of the copy
};

inline constexpr size_t marks_base_runs_max = 64;       // then they become one
inline constexpr uint64_t marks_pages_max = UINT32_MAX; // of the file

inline uint64_t marks_checksum(const marks_header &header) {
    return checksum(&header, offsetof(marks_header, checksum));
}
// Of a run, which has one at least.
constexpr uint64_t pages_of(uint64_t bytes) {
    return bytes == 0 ? 1 : (bytes + page_bytes - 1) / page_bytes;
}

class marks_file final : public page_store {
public:
    // A page of the heap, and its copy.
    struct place {
        uint64_t page;
        uint32_t slot;
    };

    marks_file() = default;
    ~marks_file();
    marks_file(const marks_file &) = delete;
    marks_file &operator=(const marks_file &) = delete;

    // A new file, under its final name once it has a header. Expected: TY_E_EXISTS, TY_E_SPACE.
    ty_status create(const storage_file &image, const char *path, const image_header &heap);
    // Expected: TY_E_NOT_FOUND; TY_E_MISMATCH: it is another heap's, or an earlier state's.
    ty_status open(const ty_storage &storage, const char *path, const image_header &heap, bool writes);
    // The tree is new. Checks all that it reads. Expected: TY_E_DAMAGED.
    ty_status load(mark_tree &tree);
    // It has no marks, durably.
    ty_status remove();

    ty_status keep(const char *page, uint32_t *slot) override;
    void release(uint32_t slot) override;
    void release_entries(const stored_entries &entries) override;

    // The copy of a page of the base; none: the image has it.
    uint32_t base_slot(uint64_t page) const { return base_.get(page); }
    // Makes all durable: the tree as it is, and these copies besides those of the base. After a failure the file is as
    // before, or as it was to be. named: both headers of the image name this open, and no other one is accepted from
    // now on. Expected: TY_E_SPACE, TY_E_IO (also: no name leads to the file any more, N3).
    ty_status save(mark_tree &tree, os::array<marks_entry> &more_base, bool named);
    // The same marks belong to another open, too. Durable when it returns.
    ty_status name_open(const open_identity &previous, const open_identity &open);
    // What the header says is durable, though the process that wrote it may not have seen that. They belong to the open
    // that the image names.
    ty_status make_durable(const open_identity &open);
    // Reads copies, one after the other. Expected: TY_E_DAMAGED.
    ty_status read(const place *places, size_t count, char *to) const;
    // Reads all copies, and calls back for what is damaged.
    ty_status check_copies(mark_tree &tree, void (*problem)(void *context, const char *text), void *context) const;
    marks_entry entry_of(uint64_t page, uint32_t slot) const;
    template <class Function>
    void each_base_page(Function &&function) const {
        for (const uint32_t page : base_pages_)
            function(page);
    }
    // Whether its headers are as they were when it was opened: then all that was read is of one moment.
    bool is_unchanged() const;
    ty_status get_size(uint64_t *bytes) const { return file_.get_size(bytes); }
    uint64_t used_pages() const { return used_count_; }
    void close() { file_.close(); }
    bool is_slot_damaged() const { return slot_damaged_; } // the other one serves

private:
    struct run {
        uint64_t first;
        uint64_t count;
    };

    ty_status take(uint64_t count, uint64_t *first);
    ty_status use(uint64_t first, uint64_t count); // while loading. TY_E_DAMAGED: a page is used twice
    void free_run(const run &given);
    ty_status write_staged();
    ty_status write_run(const void *bytes, size_t count, stored_entries *stored);
    ty_status read_run(const stored_entries &stored, os::array<char> &bytes) const;
    ty_status write_entries(mark_tree::node &mark);
    ty_status write_base(os::array<marks_entry> &more);
    ty_status write_table(mark_tree &tree, stored_entries *table);
    ty_status write_all(mark_tree &tree, os::array<marks_entry> &more_base, stored_entries *table);
    ty_status write_header(marks_header next);
    ty_status read_slots(marks_header (&slots)[header_slots]) const;
    ty_status read_header(const image_header &heap);
    ty_status check_belongs(const image_header &heap) const;
    ty_status load_run(const stored_entries &stored, os::array<char> &bytes);
    ty_status load_mark(mark_tree &tree, const marks_node &stored, const os::array<uint32_t> &numbers, uint32_t *made);
    ty_status load_base(const stored_entries &stored);
    ty_status damaged(const char *what, uint64_t offset) const;

    storage_file file_{};
    char *path_ = nullptr;
    marks_header header_{};              // durable
    marks_header slots_[header_slots]{}; // as they were read
    uint64_t page_count_ = 0;            // of the heap
    uint64_t file_pages_ = 0;            // as it was read
    bool slot_damaged_ = false;
    os::array<uint64_t> used_; // pages of the file, a bit each
    uint64_t used_count_ = 0;
    uint64_t end_ = 0;                     // there are none that are used from there on
    uint64_t lowest_ = 0;                  // there are none that are free before
    os::array<uint64_t> sums_;             // of copies, by page of the file
    os::array<run> released_;              // free once a header is durable
    os::array<run> written_;               // since the last header
    os::array<mark_tree::node *> unsaved_; // whose entries were written since
    page_slots base_;
    os::array<uint32_t> base_pages_;
    os::array<stored_entries> base_runs_;
    io_buffer staged_;
    uint64_t staged_first_ = 0, staged_count_ = 0;
};

inline constexpr const char *marks_suffix = "-marks";

} // namespace taiyen
