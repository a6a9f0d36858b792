// The metrics of a heap for `taiyen stat` and `taiyen live`: of its files, of its content, and of the program that has
// it open. One function makes the document of both.
#pragma once

#include "look/reading.hpp"

#include <array>
#include <memory>
#include <taiyen/metrics.h>

namespace cli {

// The metrics of the program that has the heap open (taiyen/metrics.h).
struct live_metrics {
    ty_metrics now{};
    std::vector<ty_class_stats> classes;
    std::vector<ty_metrics_snapshot> snapshots;
    std::array<std::array<uint64_t, TY_METRICS_BUCKETS>, 2> times{};
    std::vector<uint32_t> dirty; // pages of each cell
};

class program_metrics {
public:
    // False: there is none; why() has the reason.
    bool open(const heap_files &files);
    // False: nothing new since the last read; or the program has gone, and the page is closed.
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
    ty_log_info log{}; // log streams 0: there is no log, or it cannot be read; info says which
    bool opened = false;
    heap_metrics heap;
    std::vector<named_root> roots;
    internal_blocks own;
    ty_undo_stats undo{};
    bool has_undo = false;
    std::string damage; // of undo's buffers
    bool is_live = false;
    live_metrics live;

    // Reads what the files say, without an open.
    ty_status look_at_files(const heap_files &files);
    // Reads the content of the heap that is open here: roots, blocks, undo.
    ty_status look_into(ty_heap *heap);
    void look_at_program(const heap_files &files);
};

json::document document_of(const heap_files &files, const metrics &found);
json::document document_of(const live_metrics &live);

} // namespace cli
