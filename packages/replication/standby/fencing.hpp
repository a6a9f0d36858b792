// Fencing: what a heap remembers of its publishing, and whether a publisher of it may write to an engine.
// docs/design/standby.md, "What a heap remembers".
#pragma once

#include "engine_io.hpp"

#include <mutex>
#include <taiyen/side_record.h>

namespace taiyen::standby {

// The last message of the records' log that a heap knows to be acknowledged: one of its own, or, for a standby, one
// that it has taken. A side record in the heap's file (side_record.h).
struct fencing_record {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved;
    uint64_t replication; // 0: none
    uint64_t term;        // the highest that the heap has seen
    uint8_t owner[16];    // of that term: this heap, or, for a standby, the heap that it follows
    uint64_t number;
    uint64_t checksum;
    uint64_t at;  // the engine's position
    uint64_t lsn; // of the message's last record
};
inline constexpr uint64_t fencing_magic = 0x65636e656679'6174; // "tayfence"
inline constexpr uint32_t fencing_version = 1;
static_assert(sizeof(fencing_record) == 80);

// Says that another heap has taken this heap's place, as long as this one has no higher term. The second side record.
struct superseded_content {
    uint64_t magic;
    uint32_t version;
    uint32_t is_held; // the engine's log held what was acknowledged to this heap
    uint64_t replication;
    uint64_t term;
    uint8_t by[16];
    uint64_t lsn; // up to here transactions were acknowledged to this heap
};
static_assert(sizeof(superseded_content) == 56);

// The base of the heap's change feed, and whether it receives another heap's transactions.
ty_status heap_base(const char *heap_path, const ty_open_options *open, ty_feed_position *base, bool *receives);
fencing_record fencing_record_of(const message_header &header, uint64_t at);

// How an engine's log relates to what a heap remembers.
enum class log_relation {
    both_empty,
    current,    // the log holds what the heap remembers, and the heap's primary is the present one; or the heap has
                // never published
    superseded, // another heap is the primary of a higher term
    behind,     // the log lacks what the heap remembers
    split,      // two heaps are the primary of one term
    foreign     // the log is another replication's; or the heap has never published, and another one is the primary
};
struct log_comparison {
    log_relation relation = log_relation::both_empty;
    bool held = false; // the log holds what the heap remembers, and so has the present primary
};
// ST21: whether the engine holds what the heap knows was acknowledged. found: the log has a message that counts, which
// is at->newest.
ty_status compare(const ty_engine &engine, const fencing_record &record, const uint8_t *identity, const records_end &at,
                  bool found, log_comparison *is);

// The side records of one heap. Thread-safe.
class fencing_state {
public:
    fencing_state(const std::string &path, const ty_engine &engine) : path_(path), engine_(engine) {}
    fencing_state(const fencing_state &) = delete;
    fencing_state &operator=(const fencing_state &) = delete;
    ~fencing_state() { ty_side_records_close(side_records_); }
    ty_status open(const ty_open_options *open);
    // Reads the heap's file. ST20: TY_E_MISMATCH if the heap was superseded, whatever the engine says.
    ty_status read(const char *call);
    fencing_record known();
    superseded_content superseded(); // by what was read last; replication 0: it is not
    // ST22: what is reported as acknowledged is remembered before, and never goes back, whichever process writes it.
    // Durable at once if the replication or the term changes, else within a second. TY_E_BUSY: another process has
    // begun a term.
    ty_status keep(fencing_record now);
    // Why the engine must not be written to, by what compare() found; TY_OK for both_empty and current. ST20: that the
    // heap was superseded is durable before it is reported.
    ty_status refuse(const char *call, const log_comparison &found, const message_header &newest);
    ty_status refuse_superseded(const char *call, const log_comparison &found, const message_header &newest);
    // ST21: the same where messages among those that count are missing, or damaged (why).
    ty_status refuse_broken(const char *call, ty_status why);

private:
    ty_status read_side_records();
    bool begins(const fencing_record &now) const; // a term, or the replication
    ty_status write_record(const fencing_record &now);
    ty_status record_superseded(const log_comparison &found, const message_header &newest);
    bool is_superseded() const;
    ty_status report_superseded(const char *call) const;
    std::string engine_name() const;
    std::string keep_and_go_on() const;

    std::string path_;
    const ty_engine &engine_;
    std::mutex lock_;
    ty_side_records *side_records_ = nullptr;
    fencing_record known_{};
    superseded_content superseded_{};
    uint64_t durable_ms_ = 0;
};

// Begins a term with a heap that is a primary already, where the engine lacks what the heap has, or lost messages
// (new_term.cpp).
ty_status begin_new_term(const char *heap_path, const ty_engine &engine, const ty_open_options *open, bool takes_back,
                         uint64_t *term);

} // namespace taiyen::standby
