// What `taiyen live` shows: the program's metrics page again and again, and now and then a look into the heap itself.
#pragma once

#include "live_look.hpp"

#include <nlohmann/json.hpp>

namespace cli {

class live_source {
public:
    explicit live_source(heap_files files) : files_(std::move(files)) {}

    // What the files say, the program's metrics, and a look into the heap where that is cheap. A failure: there is no
    // such heap, or it cannot be read.
    ty_status begin();
    // The program's metrics anew. True: there is something else to show.
    bool renew();
    // A look into the heap: a copy where it is in use. What fails is shown.
    void look_into_heap();

    // The document of `taiyen stat --json`, with how old its look into the heap is, and what went wrong, in "view".
    json::document metrics_document() const;
    // What the look saw: the heap's touched part, or a part of it, as cells; extents; the blocks of a page.
    const json::document &map_document() const { return map_; }
    const heap_look &look() const { return look_; }
    // One block, with some of its bytes and what is known of it: the heap is opened once more, a copy where it is in
    // use. What fails is in it.
    json::document block_document(uint64_t offset) const;

private:
    bool take_program_metrics(uint64_t wait_ms); // whether there are other ones
    ty_status look_at_files();
    bool is_cheap() const;

    heap_files files_;
    program_metrics metrics_;
    metrics found_;
    heap_look look_;
    json::document map_;
    uint64_t looked_unix_ms_ = 0;
    uint64_t tried_ns_ = 0; // to find a metrics page
    std::string why_;       // there is no look into the heap
};

} // namespace cli
