// The source of `taiyen live`: reads the program's metrics page repeatedly, and sometimes inspects the heap itself.
#pragma once

#include "live/live_look.hpp"

#include <nlohmann/json.hpp>

namespace cli {

class live_source {
public:
    explicit live_source(heap_files files) : files_(std::move(files)) {}

    // Reads the files and the program's metrics, and inspects the heap if that is cheap. Fails if there is no such
    // heap, or it cannot be read.
    ty_status begin();
    // Reads the program's metrics again. True: there is something new to show.
    bool renew();
    // Inspects the heap; follows it, if it is in use. A failure is shown.
    void inspect_heap();

    // The document of `taiyen stat --json`, with the age of the last inspection and its failure in "view".
    json::document metrics_document() const;
    // Results of the inspection: the heap's touched part, or a part of it, as cells; extents; the blocks of a page.
    const json::document &map_document() const { return map_; }
    const heap_look &look() const { return look_; }
    // One block, with some of its bytes and what is known about it: opens the heap again, and follows it if it is in
    // use. A failure is in the document.
    json::document block_document(uint64_t offset) const;

private:
    bool take_program_metrics(uint64_t wait_ms); // whether they have changed
    ty_status look_at_files();
    bool is_cheap() const;

    heap_files files_;
    program_metrics metrics_;
    metrics found_;
    heap_look look_;
    json::document map_;
    uint64_t looked_unix_ms_ = 0;
    uint64_t tried_ns_ = 0; // when a metrics page was last looked for
    std::string why_;       // why there is no inspection
};

} // namespace cli
