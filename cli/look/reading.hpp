// A heap that is open for reading, and what commands read from one.
#pragma once

#include "commands.hpp"
#include "common/json.hpp"

#include <string>
#include <vector>

namespace cli {

// Closes the heap at its end. If another process has it open, this follows it, and shows one state.
class read_heap {
public:
    read_heap() = default;
    ~read_heap();
    read_heap(const read_heap &) = delete;

    // The report may be NULL.
    ty_status open(const heap_files &files, ty_report *report = nullptr);
    ty_status close();
    operator ty_heap *() const { return heap_; }

private:
    ty_heap *heap_ = nullptr;
    bool follows_ = false;
};

struct named_root {
    std::string name;
    void *address;
    ty_block block;   // that it leads into; size 0: none
    std::string type; // from the heap's type descriptors; empty: they do not have it
};

// By name. Invalid type descriptors in the heap are ignored.
ty_status roots_of(ty_heap *heap, std::vector<named_root> &roots);

// Blocks of the library in the heap.
struct internal_blocks {
    uint64_t count = 0;
    uint64_t bytes = 0;
};
ty_status internal_blocks_of(ty_heap *heap, internal_blocks &own);

// The metrics of an open heap, as a document.
struct heap_metrics {
    ty_heap_stats stats{};
    std::vector<ty_class_stats> classes;
    uint64_t waiting_pages = 0; // that the journal has and the image does not yet

    ty_status read(ty_heap *heap);
    void add_to(json::document &one) const;
    double page_efficiency() const; // live bytes by bytes of the pages that blocks lie in
};

json::document document_of(const std::string &path, const ty_info &info);
json::document document_of(const std::string &path, const ty_log_info &info);
json::document document_of(const named_root &root);

// For people: the output of `taiyen info`, and the memory by block size.
void print_info(const heap_files &files, const ty_info &info);
void print_classes(const std::vector<ty_class_stats> &classes);
void print_roots(const std::vector<named_root> &roots);
void print_line(const char *label, const std::string &value);

uint64_t used_log_bytes(const ty_log_info &info);

} // namespace cli
