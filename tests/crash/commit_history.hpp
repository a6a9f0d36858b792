// What the threads of a run have committed: the words that each commit stored, the blocks that it made and freed, its
// lsn, and from when on it must survive. From it follows what a heap may hold after a power cut.
//
// C1: What is found of the commits, but for those of TY_COMMIT_STREAM, are all up to some lsn; and whatever of
//     them is found comes with all with a lower LSN.
// C2: What was acknowledged before the cut is found.
// C3: The words and blocks are those that the commits that are found give, done in the order of their LSNs.
#pragma once

#include "session.hpp"

namespace crash {

inline constexpr unsigned threads_max = 4;
inline constexpr const char *counters_root = "counters";

// In the heap: each commit counts itself, so that the heap shows which ones it holds.
struct alignas(64) commit_counters {
    uint64_t ordinary;
    uint64_t ordinary_rest[7];
    uint64_t independent; // those of TY_COMMIT_STREAM
    uint64_t vouched_words[7];
};

struct effects {
    struct word {
        uintptr_t address;
        uint64_t value;
    };
    struct block {
        uintptr_t address;
        size_t bytes;
    };
    std::vector<word> stores;
    std::vector<block> made;
    std::vector<uintptr_t> freed;
};

struct recorded_commit {
    uint64_t lsn = 0;
    unsigned thread = 0;
    bool independent = false;
    uint64_t ordinal = 0; // among those of its thread and sort; the first is 1
    effects what = {};
    uint64_t acknowledged = point::never; // by itself
};

class commit_history {
public:
    void add(recorded_commit commit) { commits_.push_back(std::move(commit)); }
    // All up to the lsn are durable, as was acknowledged at that event.
    void acknowledge(uint64_t lsn, uint64_t event) { acknowledged_.push_back({lsn, event}); }
    // What all of it begins with, in an empty heap.
    void begin(const effects &what, uint64_t event);
    bool must_exist(uint64_t event) const;
    uint64_t next_ordinal(unsigned thread, bool independent) const;
    uint64_t last_lsn() const;

    // Holds what the heap has against C1 to C3 after a cut just before the event, and forgets the commits that are not
    // there. all_durable: what is there now, no power cut takes.
    finding match(ty_heap *heap, uint64_t event, bool all_durable);
    // C2 alone.
    finding match_acknowledged(ty_heap *heap, uint64_t event) const;

private:
    struct acknowledged_commit {
        uint64_t lsn;
        uint64_t event;
    };
    finding missing_acknowledged(const commit_counters *counters, uint64_t event) const;
    uint64_t durable_lsn(uint64_t event) const; // the greatest that was acknowledged by then; 0: none
    finding choose(const commit_counters *counters, uint64_t event);
    finding compare(ty_heap *heap) const;

    effects beginning_;
    uint64_t begun_ = point::never;
    std::vector<recorded_commit> commits_;
    std::vector<acknowledged_commit> acknowledged_;
};

} // namespace crash
