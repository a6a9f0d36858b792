// What is missing in a heap that was made from a damaged one.
#pragma once

#include "look/reading.hpp"

#include <map>
#include <string>
#include <taiyen/detail/fault.hpp>
#include <vector>

namespace cli {

// Pages by number, as ranges: in a truncated file, all pages after the end are missing.
class page_stretches {
public:
    void add(uint64_t page);
    uint64_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    // How many of the pages from `first` up to `end`.
    uint64_t count_within(uint64_t first, uint64_t end) const;
    // The first page of each range, and the one after its last.
    const std::map<uint64_t, uint64_t> &all() const { return stretches_; }

private:
    std::map<uint64_t, uint64_t> stretches_;
    uint64_t size_ = 0;
};

struct damaged_block {
    uint64_t address;
    uint64_t size_bytes;
};

// What `taiyen repair` found and did; prints the text or document.
struct repair_report {
    uint64_t limit_bytes = 0;
    std::string kind;
    std::string made_kind;
    bool header_doubtful = false;
    bool closed = false; // properly; else damage at the end of journal or log looks like a crash during a write
    bool several_moments = false; // any page may be of another moment than the epoch: its image is, or may be, a
                                  // mixture
    uint64_t image_epoch = 0, epoch = 0, durable_epoch = 0;
    uint64_t batches = 0;
    uint64_t damaged_pages = 0, missing_pages = 0, unchecked_pages = 0;
    uint64_t later_pages = 0;          // of the damaged ones: of a later snapshot
    page_stretches pages;              // damaged and missing ones
    uint64_t damaged_tables = 0;       // of these, the heap's own: roots may be missing, and live blocks may not be
                                       // marked live
    std::vector<std::string> problems; // the first ones
    uint64_t problem_count = 0;

    uint64_t live_blocks = 0;
    uint64_t damaged_block_count = 0, damaged_block_bytes = 0;
    std::vector<damaged_block> damaged_blocks; // the first ones
    std::vector<std::string> roots, lost_roots;

    uint64_t transactions = 0;
    uint64_t first_unapplied = 0; // a transaction that was read and not done, as all after it; 0: none
    uint64_t in_doubt = 0;        // transactions that were prepared and have no outcome: not done
    uint64_t left_out = 0;
    bool log_is_damaged = false;

    // CL6: whether all is there, as far as the files show.
    bool is_whole() const {
        const bool mixed = several_moments && !taiyen::detail::fault("mixture_called_whole");
        return !mixed && problem_count == 0 && pages.empty() && first_unapplied == 0 && left_out == 0 &&
               in_doubt == 0 && epoch >= durable_epoch;
    }
};

void print_report(const heap_files &files, const std::string &out, bool as_json, const repair_report &report);

} // namespace cli
