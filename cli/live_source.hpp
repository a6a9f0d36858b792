// What `taiyen live` shows: the program's board again and again, and now and then a look into the heap itself.
#pragma once

#include "figures.hpp"
#include "heap_map_model.hpp"

#include <vector>

namespace cli {

// A row of pages of one use, by its offset from the heap's base.
struct shown_area {
    uint64_t offset;
    uint64_t size_bytes;
    uint64_t block_bytes;
    uint64_t block_count;
    uint64_t live_count;
    ty_area_kind kind;
};

class live_source {
public:
    explicit live_source(heap_files files) : files_(std::move(files)) {}

    // What the files say, the program's figures, and a look into the heap where that is cheap. A failure: there is no
    // such heap, or it cannot be read.
    ty_status begin();
    // The program's figures anew. True: there is something else to show.
    bool renew();
    // A look into the heap: a copy where it is in use. What fails is shown.
    void look_into_heap();

    // The document of `taiyen stat --json`, with how old its look into the heap is, and what went wrong, in "view".
    json::document figures_document() const;
    // The heap's touched part as cells.
    json::document map_document() const;
    // So many areas from an offset on, and whether there are more.
    json::document areas_document(uint64_t from) const;

    static constexpr uint64_t cells_max = 1024;
    static constexpr size_t areas_max = 200;

private:
    bool take_program_figures(uint64_t wait_ms); // whether there are other ones
    ty_status look_at_files();
    bool is_cheap() const;

    heap_files files_;
    heap_board board_;
    figures found_;
    heap_map::model map_;
    std::vector<shown_area> areas_;
    uint64_t looked_unix_ms_ = 0;
    uint64_t tried_ns_ = 0; // to find a board
    std::string why_;       // there is no look into the heap
};

} // namespace cli
