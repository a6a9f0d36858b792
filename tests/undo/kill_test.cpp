// Goal: whenever a process is killed, the history is that of the snapshot that the heap goes back to, and fits its
// content: in the middle of a transaction or a cycle, too.
// Method: a child changes a heap by transactions of which the n-th depends on n alone, with undo, redo and snapshots in
// between, and says after each snapshot which epoch is durable; it is killed at random. The heap says how many
// transactions it holds; it is compared with a plain reference at that one, and on the way back and forth.
#include "tests/os/temporary_folder.hpp"
#include "tests/undo/support.hpp"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace taiyen::test {
namespace {

constexpr size_t slot_count = 24;

// What the heap holds: a root block.
struct table {
    uint64_t transactions;
    struct {
        char *block;
        uint64_t size;
    } slots[slot_count];
};
using reference = std::vector<std::string>;

// One step of the n-th transaction, the same for heap and reference.
struct change {
    size_t slot;
    bool frees;
    size_t size, at, count;
    char value;
};
std::vector<change> changes_of(uint64_t n) {
    std::mt19937_64 random(n);
    std::vector<change> all;
    for (uint64_t steps = 1 + random() % 5; steps > 0; steps--) {
        size_t size = random() % 8 ? 1 + random() % 600 : 1 + random() % 40000;
        size_t at = random() % size;
        all.push_back({random() % slot_count, random() % 4 == 0, size, at, 1 + random() % (size - at), char(random())});
    }
    return all;
}

void change_reference(reference &state, const change &c) {
    std::string &slot = state[c.slot];
    if (c.frees && !slot.empty()) {
        slot.clear();
        return;
    }
    size_t old = slot.size();
    slot.resize(c.size);
    for (size_t i = old; i < c.size; i++)
        slot[i] = char(~c.value);
    memset(slot.data() + c.at, c.value, c.count);
}

ty_status change_heap(ty_heap *heap, table &t, const change &c) {
    auto &slot = t.slots[c.slot];
    if (ty_status status = ty_undo_record(heap, &slot, sizeof slot))
        return status;
    if (c.frees && slot.block) {
        ty_status status = ty_undo_free(heap, slot.block);
        slot = {};
        return status;
    }
    size_t old = slot.size;
    void *made = slot.block ? ty_undo_resize(heap, slot.block, c.size) : ty_undo_alloc(heap, c.size);
    if (!made)
        return TY_E_MEMORY;
    slot = {static_cast<char *>(made), c.size};
    if (old < c.size)
        memset(slot.block + old, ~c.value, c.size - old);
    if (ty_status status = ty_undo_record(heap, slot.block + c.at, c.count))
        return status;
    memset(slot.block + c.at, c.value, c.count);
    return TY_OK;
}

class child {
public:
    child(ty_heap *heap, uint64_t seed, int pipe) : heap_(heap), random_(seed), pipe_(pipe) {}

    // Until it is killed; returns where something is not as it should be.
    int run() {
        t_ = static_cast<table *>(ty_root(heap_, "table"));
        if ((stats_of(heap_).open && ty_undo_cancel(heap_)) || ty_undo_exit(heap_))
            return 1;
        for (;;) {
            if (!transaction() || (random_() % 5 == 0 && !cycle()))
                return 1;
        }
    }

private:
    bool transaction() {
        if (ty_undo_begin(heap_, "transaction") || ty_undo_record(heap_, &t_->transactions, 8))
            return false;
        uint64_t n = ++t_->transactions;
        for (const change &c : changes_of(n))
            if (change_heap(heap_, *t_, c) || !maybe_snapshot())
                return false;
        if (random_() % 16 == 0)
            return ty_undo_cancel(heap_) == TY_OK;
        return ty_undo_end(heap_) == TY_OK && maybe_snapshot();
    }
    bool cycle() {
        for (uint64_t steps = random_() % 20; steps > 0; steps--) {
            ty_status status = random_() % 5 < 3 ? ty_undo(heap_) : ty_redo(heap_);
            if ((status && status != TY_E_NOT_FOUND) || !maybe_snapshot())
                return false;
        }
        return ty_undo_exit(heap_) == TY_OK && maybe_snapshot();
    }
    bool maybe_snapshot() {
        if (random_() % 12)
            return true;
        if (ty_snapshot(heap_))
            return false;
        uint64_t epoch = ty_heap_epoch(heap_);
        return write(pipe_, &epoch, sizeof epoch) == sizeof epoch;
    }

    ty_heap *heap_;
    std::mt19937_64 random_;
    int pipe_;
    table *t_ = nullptr;
};

class kill_test : public testing::Test {
protected:
    void open() {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.limit_bytes = small_limit;
        ty_undo_options buffers = TY_UNDO_OPTIONS_INIT;
        buffers.undo_bytes = 400000;
        ASSERT_OK(ty_open(path_.c_str(), &options, &heap_, nullptr));
        if (!ty_root(heap_, "table")) {
            auto *made = static_cast<table *>(ty_alloc_zeroed(heap_, sizeof(table)));
            ASSERT_OK(ty_root_set(heap_, "table", made));
        }
        ASSERT_OK(ty_undo_attach(heap_, &buffers));
        table_ = static_cast<table *>(ty_root(heap_, "table"));
    }

    // Runs a child until it has said so many epochs, and then for a random while longer; gives the last one.
    uint64_t run_and_kill(uint64_t seed, uint64_t epochs) {
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
            close(ends[0]);
            open();
            _exit(HasFatalFailure() ? 2 : child(heap_, seed, ends[1]).run());
        }
        close(ends[1]);
        uint64_t epoch = 0, last = 0;
        for (uint64_t i = 0; i < epochs && read(ends[0], &epoch, sizeof epoch) == sizeof epoch; i++)
            last = epoch;
        volatile uint64_t spin = (seed * 0x9e3779b97f4a7c15) >> 44;
        while (spin > 0)
            spin = spin - 1;
        EXPECT_EQ(kill(pid, SIGKILL), 0);
        while (read(ends[0], &epoch, sizeof epoch) == sizeof epoch)
            last = epoch;
        close(ends[0]);
        int state = 0;
        EXPECT_EQ(waitpid(pid, &state, 0), pid);
        EXPECT_TRUE(WIFSIGNALED(state)) << "the child found something wrong, and ended by itself: "
                                        << WEXITSTATUS(state);
        return last;
    }

    const reference &state_of(uint64_t n) {
        if (states_.empty())
            states_.push_back(reference(slot_count));
        while (states_.size() <= n) {
            reference next = states_.back();
            for (const change &c : changes_of(states_.size()))
                change_reference(next, c);
            states_.push_back(next);
        }
        return states_[n];
    }
    void compare(uint64_t n) {
        ASSERT_EQ(table_->transactions, n);
        const reference &expected = state_of(n);
        uint64_t blocks = 2 + stats_of(heap_).kept_blocks; // the table, the buffers
        for (size_t i = 0; i < slot_count; i++) {
            ASSERT_EQ(table_->slots[i].size, expected[i].size());
            if (expected[i].empty())
                continue;
            ASSERT_EQ(memcmp(table_->slots[i].block, expected[i].data(), expected[i].size()), 0) << "slot " << i;
            blocks++;
        }
        if (n % 32 == 0) {
            ASSERT_EQ(live_blocks(heap_), blocks);
        }
    }

    temporary_folder folder_;
    std::string path_ = folder_.file("heap.ty");
    ty_heap *heap_ = nullptr;
    table *table_ = nullptr;
    std::vector<reference> states_;
};

TEST_F(kill_test, the_history_fits_the_content_whenever_a_process_is_killed) {
    int open_found = 0, cycle_found = 0;
    for (uint64_t round = 1; round <= 25 && !HasFatalFailure(); round++) {
        SCOPED_TRACE("round " + std::to_string(round));
        uint64_t epoch = run_and_kill(round, 1 + round % 9);
        open();
        ASSERT_FALSE(HasFatalFailure());
        EXPECT_GE(ty_heap_epoch(heap_), epoch) << "a snapshot that was acknowledged is gone";
        ty_undo_stats s = stats_of(heap_);
        open_found += s.open, cycle_found += s.cycle;
        if (s.open) {
            ASSERT_OK(ty_undo_cancel(heap_));
        }
        uint64_t n = table_->transactions;
        compare(n);
        for (uint64_t i = 0; i < s.redoable; i++) {
            ASSERT_OK(ty_redo(heap_));
            compare(++n);
        }
        for (uint64_t i = 0; i < s.undoable + s.redoable; i++) {
            ASSERT_OK(ty_undo(heap_));
            compare(--n);
        }
        EXPECT_EQ(ty_undo(heap_), TY_E_NOT_FOUND);
        expect_sound(heap_);
        ASSERT_OK(ty_discard(heap_)); // the next child goes on from the same snapshot
        heap_ = nullptr;
    }
    EXPECT_GT(open_found, 0);
    EXPECT_GT(cycle_found, 0);
}

} // namespace
} // namespace taiyen::test
