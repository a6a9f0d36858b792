// The parts of the simulated disk: what happened (events), what is durable and what is unflushed at a moment (replay),
// and the files as the program sees them now (live_file).
//
// The event list is authoritative. `replay` is derived from it: at event n it knows, for each file, the content of the
// last flush and the events since, so that a power cut at n only has to decide about those.
//
// D1: `names`, `live` and each `live_file::now` are the result of all events.
// D2: a replay at n is the result of the first n events alone; moving it forward gives the same as rebuilding it.
// D3: a write that a failed flush covered stays unflushed for ever, whatever flush succeeds later (the kernel forgets
//     that the page was dirty), unless a later flushed write lies over it.
#pragma once

#include "src/os/os.hpp"
#include "storage_sim.hpp"
#include "storage_sim_content.hpp"

#include <map>
#include <string>
#include <vector>

namespace taiyen::os::sim {

using file_number = uint32_t;

enum class event_kind : uint8_t {
    create,
    rename,
    remove,
    flush_directory, // names
    write,
    size,
    allocate,
    punch,         // content
    flush,         // of a file: all its content so far is durable
    failed_flush,  // of a file: see D3
    broken_flush,  // the canaries: returned TY_OK and did nothing
    durable_write, // of one write: see S2
    failed_durable_write,
};

struct event {
    event_kind kind;
    file_number file = 0;
    uint64_t offset = 0; // size: the new size; durable_write: the number of the write's event
    uint64_t bytes = 0;
    std::vector<page_ref> pages; // write
    std::string path;            // names: the path concerned; rename: the source
    std::string target;          // rename
};

// Changes `to` as the event says; write, size, allocate and punch only.
void apply_event(const event &what, content &to);

std::string folder_of(const std::string &path);
using name_map = std::map<std::string, file_number>;
void apply_name(const event &what, name_map &names);

// An unflushed event.
struct unflushed_write {
    uint64_t event;
    bool forgotten = false;          // by a failed flush (D3)
    std::vector<uint8_t> superseded; // a byte a page, a bit a sector: overwritten by durable content. Empty: none
    bool size_superseded = false;    // a later size is durable: this write does not grow the file any more
};

struct replayed_file {
    content durable;
    std::vector<unflushed_write> unflushed; // in order of time
};

struct replay {
    uint64_t next_event = 0;
    name_map durable_names;
    std::vector<uint64_t> unflushed_names; // in order of time
    std::map<file_number, replayed_file> files;

    void step(const std::vector<event> &events);
};

struct mapping {
    char *address;
    uint64_t bytes;
    uint64_t offset;
    bool shared;
};

// A file as the program sees it. Once it has been mapped, a memfd mirrors it, and is authoritative for what a shared
// mapping has written.
struct handle;

// Numbers that an open file holds.
struct held {
    const handle *by;
    bool exclusive;
    uint64_t first, last;
};

struct live_file {
    content now;
    int memory_fd = -1;
    std::vector<mapping> mappings;
    std::vector<held> holds;
    uint32_t handles = 0;
    uint32_t shared_locks = 0;
    bool exclusive_lock = false;
    bool named = true;
    std::string path; // for error texts

    ~live_file();
};

// The object behind a ty_file of the simulated storage.
struct handle {
    file_number file;
    live_file *live;
    bool writable;
    enum class lock_state : uint8_t { none, shared, exclusive } lock = lock_state::none;
};

} // namespace taiyen::os::sim

namespace taiyen::os {

struct sim_disk {
    mutable mutex lock{lock_rank::storage}; // guards all that follows
    std::vector<sim::event> events;
    sim::replay start; // at event 0
    mutable sim::replay cursor;
    mutable std::map<uint64_t, sim::replay> checkpoints; // by event

    sim::name_map names;
    std::map<sim::file_number, std::unique_ptr<sim::live_file>> live;
    sim::file_number next_file = 1;

    ty_storage table{};
    sim_fault fault;
    uint64_t fault_passed = 0; // operations of the fault's kinds that succeeded
    bool fault_fired = false;
    std::array<uint64_t, 11> operations{}; // by bit number of sim_operation
    uint64_t capacity = UINT64_MAX;
    bool broken_flush = false;
    bool broken_durable_write = false;
    sim_write_hook *write_hook = nullptr; // constant while writes are under way
    void *write_hook_context = nullptr;
};

} // namespace taiyen::os
