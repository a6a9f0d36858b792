// Fencing: what a heap remembers of its publishing, and whether an engine may be written to with it.
// docs/design/standby.md, "What a heap remembers".
#pragma once

#include "engine_io.hpp"

#include <mutex>
#include <taiyen/note.h>

namespace taiyen::standby {

// The last message of the records' log that a heap knows to be acknowledged: of its own, or, of a standby, one that it
// has taken. A note in the heap's file (note.h).
struct memory_1 {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved;
    uint64_t replication; // 0: it has none
    uint64_t term;        // the highest that it has seen
    uint8_t owner[16];    // of that term: this heap, or, of a standby, the one that it follows
    uint64_t number;
    uint64_t checksum;
    uint64_t at;  // the engine's position
    uint64_t lsn; // behind the message's last record
};
inline constexpr uint64_t memory_magic_1 = 0x65636e656679'6174; // "tayfence"
inline constexpr uint32_t memory_version_1 = 1;
static_assert(sizeof(memory_1) == 80);

// That another heap has taken this one's place. The other note; it is never taken back.
struct superseded_1 {
    uint64_t magic;
    uint32_t version;
    uint32_t is_held; // the engine's log held what was acknowledged to this heap
    uint64_t replication;
    uint64_t term;
    uint8_t by[16];
    uint64_t lsn; // up to which transaction was acknowledged to this heap
};
static_assert(sizeof(superseded_1) == 56);

memory_1 memory_of(const message_header_1 &header, uint64_t at);

// How an engine's log stands to what a heap remembers.
enum class standing {
    begins,     // both are empty
    goes_on,    // it holds what the heap remembers, whose primary is the present one; or the heap has never published
    superseded, // another heap is the primary of a higher term
    behind,     // it lacks what the heap remembers
    split,      // two heaps are the primary of one term
    foreign     // it is another replication's; or the heap has never published, and another one is the primary
};
struct finding {
    standing is = standing::begins;
    bool held = false; // the log holds what the heap remembers, and so has the present primary
};
// ST21. found: the log has a message that counts, which is at->newest.
ty_status compare(const ty_engine &engine, const memory_1 &memory, const uint8_t *identity, const place &at, bool found,
                  finding *is);

// Of one heap. Thread-safe.
class heap_memory {
public:
    heap_memory(const std::string &path, const ty_engine &engine) : path_(path), engine_(engine) {}
    heap_memory(const heap_memory &) = delete;
    heap_memory &operator=(const heap_memory &) = delete;
    ~heap_memory() { ty_notes_close(notes_); }
    ty_status open(const ty_open_options *open);
    // What the heap's file says now. ST20: TY_E_MISMATCH if the heap was superseded, whatever the engine says.
    ty_status read(const char *call);
    memory_1 known();
    // ST22: durable if the replication or the term is another one than was known, else within a second.
    // ST22: it never goes back, whichever process writes it. TY_E_BUSY: another one has begun a term.
    ty_status keep(memory_1 now);
    // Why the engine is not to be written to, by what compare() found; TY_OK for begins and goes_on.
    // ST20: that the heap was superseded is durable before it is reported.
    ty_status refuse(const char *call, const finding &found, const message_header_1 &newest);

private:
    ty_status read_notes();
    bool begins(const memory_1 &now) const; // a term, or the replication
    ty_status write_memory(const memory_1 &now);
    ty_status note_superseded(const finding &found, const message_header_1 &newest);
    ty_status refuse_superseded(const char *call) const;
    std::string engine_name() const;

    std::string path_;
    const ty_engine &engine_;
    std::mutex lock_;
    ty_notes *notes_ = nullptr;
    memory_1 known_{};
    superseded_1 superseded_{};
    uint64_t durable_ms_ = 0;
};

// Begins a term with a heap that is a primary already, and that the engine is behind.
ty_status begin_new_term(const char *heap_path, const ty_engine &engine, const ty_open_options *open, uint64_t *term);

} // namespace taiyen::standby
