// A simulated disk behind the storage table. Files live in memory (memfd, so that they can be mapped). What is written
// stays unflushed, sector by sector, until the file is flushed; a power cut then keeps, drops, tears, reorders or
// trashes it. Every change is recorded as an event, so that an explorer can cut the power at any of them afterwards.
//
// S1: after a cut, a sector that was flushed and not written since holds its flushed bytes.
// S2: an unflushed sector holds its bytes of the last flush, of any write since, or (trash) arbitrary bytes. What a
//     failed flush covered stays unflushed whatever flush succeeds later, until it is written again. write_durable is
//     two events, an unflushed write and making it durable: a cut between the two may tear it. The durable write counts
//     as flushed, and with it older changes of the file's size and space; other writes stay unflushed.
// S3: names, sizes, allocations and unflushed punches may each survive or not; names of a folder in their order. A file
//     whose name does not survive is gone, whatever was flushed.
// S4: the same events and the same seed give the same disk.
#pragma once

#include <cstdint>
#include <taiyen/storage.h>

namespace taiyen::os {

inline constexpr uint32_t sector_bytes = 512;

struct sim_disk; // opaque; one disk with many files

sim_disk *sim_create();
void sim_destroy(sim_disk *disk);
const ty_storage *sim_storage(sim_disk *disk); // valid until sim_destroy

// Operations that change the disk (and flushes, also failed ones), counted from 0 since sim_create.
uint64_t sim_event_count(const sim_disk *disk);

// What an event changed, so that an explorer can cut the power before events of each kind as often as it likes.
enum class sim_event : uint8_t { names, page_write, long_write, space, flush, durable_write };
inline constexpr uint32_t sim_event_kinds = 6;
sim_event sim_event_at(const sim_disk *disk, uint64_t event);

// What a cut does with what is unflushed.
enum class sim_cut {
    keep_all, // everything unflushed reached the disk
    drop_all, // nothing did
    random,   // a coin toss for each sector and each change of names, sizes and space (reorders)
    prefix,   // a random prefix in order of time, the last write torn
    trash,    // as random, but some sectors that were unflushed hold garbage
    // No cut: only the process died. Everything is there, what was unflushed still is, and the events continue from
    // here.
    process_death,
};
inline constexpr sim_cut sim_cuts[] = {sim_cut::keep_all, sim_cut::drop_all, sim_cut::random,
                                       sim_cut::prefix,   sim_cut::trash,    sim_cut::process_death};

// A new disk that holds what would be found after the power fails just before event number `event` (all events: at the
// end). The source is not changed and need not be idle. On the new disk no file is locked or open.
sim_disk *sim_power_cut(const sim_disk *disk, uint64_t event, sim_cut cut, uint64_t seed);

// Which operation fails, and how. Counts calls of the table's functions of the kinds in `operations`, from
// sim_set_fault on. next_data is a read; unmap never fails, write_back is a map; rename, remove and flush_directory are
// names; write_durable is an operation of its own. A write that fails may have written a part.
enum sim_operation : uint32_t {
    sim_op_open = 1,
    sim_op_read = 2,
    sim_op_write = 4,
    sim_op_flush = 8,
    sim_op_size = 16,
    sim_op_allocate = 32,
    sim_op_punch = 64,
    sim_op_map = 128,
    sim_op_lock = 256,
    sim_op_names = 512,
    sim_op_write_durable = 1024,
    sim_op_any = 2047,
};
struct sim_fault {
    uint32_t operations = 0; // 0: none fails
    uint64_t after = 0;      // so many succeed first
    bool forever = false;    // else just one fails
    ty_status status = TY_E_IO;
};
void sim_set_fault(sim_disk *disk, sim_fault fault);
uint64_t sim_operation_count(const sim_disk *disk, uint32_t operations);

// A full disk: writes and allocations that would need more than so many bytes in all files together fail with
// TY_E_SPACE; a write then writes the part that fits. A hole takes no space.
void sim_set_capacity(sim_disk *disk, uint64_t bytes);
uint64_t sim_used_bytes(const sim_disk *disk);

// Called by the writing thread before each durable write and after it (done), without the disk's lock: so a test can
// delay one until another has overtaken it. NULL: none. Must not change while a write is under way.
using sim_write_hook = void(void *context, bool done);
void sim_set_write_hook(sim_disk *disk, sim_write_hook *hook, void *context);

// The canaries: flushes, or durable writes, return TY_OK and make nothing durable.
void sim_set_broken_flush(sim_disk *disk, bool broken);
void sim_set_broken_durable_write(sim_disk *disk, bool broken);

} // namespace taiyen::os
