// The pages that a replay will write to. The first write to a page copies it, each in a fault of its own, which costs
// more than the rest of a replay. Copying long rows of pages, by two threads, costs much less, and can start before all
// pages are known.
#pragma once

#include "src/os/os.hpp"

#include <atomic>

namespace taiyen {

// Used by one thread.
class page_copier {
public:
    // Tests lower these.
    static inline uint64_t copied_min_pages = 256;     // fewer are not worth a thread
    static inline uint64_t early_min_pages = 16 * 256; // nor are fewer, while more are being found

    page_copier() = default;
    page_copier(const page_copier &) = delete;
    page_copier &operator=(const page_copier &) = delete;
    ~page_copier();

    // threads: whether a thread may help. early_pages: this many, from `memory` on, can be copied before finish; not if
    // more than most_pages are noted.
    ty_status create(uint64_t page_count, bool threads, char *memory, uint64_t early_pages,
                     uint64_t most_pages = UINT64_MAX);

    void note(uint64_t page) {
        if (noted_.contains(page))
            return;
        noted_.insert(page);
        if (page >= early_pages_)
            return;
        waiting_.insert(page);
        if (waiting_.count() >= early_min_pages)
            copy_early();
    }
    const os::page_set &noted() const { return noted_; }
    // Forgets what was noted. Not for use where pages are copied.
    void forget() { noted_.clear(); }
    // Ends early copying; no thread works when it returns. Pages can still be noted.
    void stop();
    // Copies the rest, if it is many.
    void finish(char *memory);

private:
    static constexpr uint64_t piece_pages = 512; // covered by one page table: what a thread takes at once

    static void *run(void *context);
    void copy_early();
    bool start(const os::page_set &pages);
    void copy_pieces();
    bool take_piece(uint64_t *from);
    void copy(uint64_t from, uint64_t end);

    bool threads_ = false;
    char *memory_ = nullptr;
    uint64_t early_pages_ = 0;
    uint64_t most_pages_ = UINT64_MAX;
    os::page_set noted_;
    os::page_set waiting_; // noted, to be copied early, not yet taken
    os::page_set taken_;   // by the thread

    os::thread thread_;
    bool started_ = false;
    std::atomic<bool> done_{false};
    const os::page_set *pages_ = nullptr; // being copied; constant meanwhile
    std::atomic<uint64_t> next_{0};       // the first of them that may be in a piece not yet taken
};

} // namespace taiyen
