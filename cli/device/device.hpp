// Measurements of `taiyen device`: writes of several sizes, ways to make them durable, and threads; a load on a heap.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <taiyen/taiyen.h>
#include <vector>

namespace cli::device {

// Why something cannot be done: the arguments of ty_error_set.
struct refusal {
    ty_status status;
    int system_error;
    std::string operation, path, remedy;
};
refusal last_refusal(); // the library's last one in this thread

// ---- The place.

// A folder of its own in the given one. A second process creates it, and removes it with all that this program wrote
// there once this object is gone, or this program has ended, however it ended.
class work_folder {
public:
    explicit work_folder(const std::string &folder); // throws refusal
    ~work_folder();
    work_folder(const work_folder &) = delete;
    work_folder &operator=(const work_folder &) = delete;

    std::string disk_path() const { return path_ + "/disk"; }     // for overwrites
    std::string append_path() const { return path_ + "/append"; } // for appends
    std::string heap_path() const { return path_ + "/heap.ty"; }

private:
    int guard_ = -1; // a socket that the other process reads until it is closed
    int guard_id_ = -1;
    std::string path_;
};

// What the system reports about a folder's disk.
struct place {
    std::string file_system, device, model, write_cache; // empty: not known
    std::optional<bool> rotational, fua;
    bool in_memory = false; // nothing of it survives a power cut
    std::vector<std::string> notes;
};
place look_at(const std::string &folder);
void require_free(const std::string &folder, uint64_t bytes); // throws refusal

// ---- Writes.

enum way : unsigned { // how writes become durable
    way_fdatasync,
    way_dsync,
    way_direct_fdatasync,
    way_direct_dsync,
    way_log,    // as the library writes its log
    way_stream, // as the library writes its journal: one flush after all writes
    way_count
};
struct way_facts {
    const char *name, *text;
    int flags;             // of open(), in addition
    bool direct;           // bypasses the page cache
    bool flush_each, mark; // fdatasync after each write; RWF_DSYNC with each write
};
const way_facts &facts_of(way how);

inline constexpr std::array<uint32_t, 6> write_sizes{4096, 16384, 65536, 262144, 1048576, 4194304};
inline constexpr unsigned threads_max = 8;

// The library's defaults for a heap.
inline constexpr uint64_t default_log_bytes = 256 << 20, default_journal_bytes = 1 << 30;

// One kind of write, and its results. Several rounds add up.
struct cell {
    way how;
    unsigned threads;
    uint32_t write_bytes;
    bool append = false;
    bool beside_stream = false; // while four threads write as snapshots do
    bool scattered = false;     // as batches are checkpointed to the image: the storage's write_many, and a flush
    uint64_t writes = 0;
    uint64_t ns = 0;
    std::vector<uint32_t> each_ns{};   // the durations of the first writes
    std::vector<double> round_rates{}; // writes per second, for each round

    double writes_per_s() const { return ns ? double(writes) * 1e9 / double(ns) : 0; }
    double bytes_per_s() const { return writes_per_s() * write_bytes; }
    double us(double share) const; // the duration that this share of the writes did not exceed
};

struct profile {
    uint64_t size_bytes = 0;
    double seconds = 0;
    place where;
    std::vector<cell> cells;
    std::array<int, way_count> refused{}; // errno: this way is not available here

    // NULL: not measured.
    const cell *find(way how, unsigned threads, uint32_t write_bytes, bool append = false) const;
    const cell *beside_stream() const;
    const cell *scattered() const;
    double spread() const; // the ratio between rounds, in the median cell; 1: only one round
    double best_bytes_per_s(way how, unsigned threads) const; // of any size; 0: not measured
};

// Measures all cells for about all.seconds, at most a quarter longer plus the last write; throws refusal. `progress` is
// called with the share that is done.
void measure(const work_folder &folder, profile &all, void (*progress)(double share));

// ---- A load on a transactional heap.

struct load {
    uint64_t commit_bytes = 0; // that a transaction changes
    uint64_t pages = 0;        // in so many pages
    uint64_t set_pages = 0;    // out of so many
};
struct load_result {
    bool durable;           // each commit waits for the disk
    double alone_per_s;     // Ts: transactions, with the log alone
    double snapshot_bytes;  // Ss: per second
    double dirty_bytes;     // DPPL: written by snapshots for each transaction
    double predicted_per_s; // 1 / (1/Ts + DPPL/Ss)
    double measured_per_s;
    uint64_t transactions, snapshots;
};
// "BYTES,PAGES" or "BYTES,PAGES,SET". False: it is not valid; the error was printed.
bool read_load(const std::string &text, uint64_t size_bytes, load *asked);
// Throws refusal.
std::vector<load_result> run(const work_folder &folder, const load &asked, uint64_t size_bytes, double seconds,
                             void (*progress)(double share));

// ---- Advice.

struct advice {
    std::string option, value, why;
};
std::vector<advice> advise(const profile &all);

// Draws both curves. Errors: TY_OK, or the error detail is set.
ty_status draw(const profile &all, const std::string &folder, const std::string &picture_path);

} // namespace cli::device
