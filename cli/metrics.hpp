// The metrics of a heap as `taiyen stat` and `taiyen live` show them: of its files, of what lies in it, and of the
// program that has it open. One function makes the document of both.
#pragma once

#include "reading.hpp"

#include <array>
#include <memory>
#include <taiyen/metrics.h>

namespace cli {

// What the program that has the heap open tells (taiyen/metrics.h).
struct live_metrics {
    ty_metrics now{};
    std::vector<ty_class_stats> classes;
    std::vector<ty_metrics_snapshot> snapshots;
    std::array<std::array<uint64_t, TY_METRICS_BUCKETS>, 2> times{};
    std::vector<uint32_t> dirty; // pages of each cell
};

class program_metrics {
public:
    // False: there is none, and why() says so.
    bool open(const heap_files &files);
    // False: there are none but those that were read before; or the program has gone, and it is not open any more.
    bool read(uint64_t wait_ms, live_metrics *metrics);
    bool is_open() const { return metrics_ != nullptr; }
    const std::string &why() const { return why_; }

private:
    struct closer {
        void operator()(ty_metrics_page *page) const { ty_metrics_close(page); }
    };
    bool keep_failure();
    std::unique_ptr<ty_metrics_page, closer> metrics_;
    std::string why_;
};

struct metrics {
    ty_info info{};
    ty_log_info log{}; // log streams 0: there is none, or it cannot be read, which info says
    bool opened = false;
    heap_metrics heap;
    std::vector<named_root> roots;
    own_blocks own;
    ty_undo_stats undo{};
    bool has_undo = false;
    std::string damage; // of undo's buffers
    bool is_live = false;
    live_metrics live;

    // What the files say; needs no open.
    ty_status look_at_files(const heap_files &files);
    // What lies in the heap that is open here: roots, blocks, undo.
    ty_status look_into(ty_heap *heap);
    void look_at_program(const heap_files &files);
};

json::document document_of(const heap_files &files, const metrics &found);
json::document document_of(const live_metrics &live);

} // namespace cli
