// Goal: after every undo and redo, the heap's user bytes are those of a plain reference, whatever was recorded, and
// nothing is left behind; also across closes, snapshots and discards.
// Method: seeded random transactions of all kinds of record on a heap and on a map; random walks back and forth, exits,
// cancels, and full buffers of both kinds. Bytes that need no record get none.
//
#include "tests/effort.hpp"
#include "tests/undo/support.hpp"

#include <cstdlib>
#include <deque>
#include <memory>
#include <set>

namespace taiyen::test {
namespace {

constexpr uint64_t xor_procedure = 8001;
constexpr uint64_t fill_procedure = 8002;

using bytes = std::shared_ptr<const std::string>;
using state = std::map<char *, bytes>; // what was asked for of each block

struct stretch {
    char *address;
    uint64_t count;
    uint64_t value;
};

// Its own reversal.
ty_status run_xor(ty_heap *heap, const void *arguments, size_t, void *) {
    stretch s;
    memcpy(&s, arguments, sizeof s);
    if (ty_status status = ty_undo_record_procedure(heap, xor_procedure, &s, sizeof s, TY_OK))
        return status;
    for (uint64_t i = 0; i < s.count; i++)
        s.address[i] = char(s.address[i] ^ char(s.value));
    return TY_OK;
}

// Reversed by what it records as data. Returns something of its own.
ty_status run_fill(ty_heap *heap, const void *arguments, size_t, void *) {
    stretch s;
    memcpy(&s, arguments, sizeof s);
    if (ty_status status = ty_undo_record(heap, s.address, s.count))
        return status;
    memset(s.address, int(s.value), s.count);
    return TY_E_BUSY;
}

struct setting {
    const char *name;
    bool fixed;
    bool volatile_buffers;
    size_t undo_bytes;
    size_t redo_bytes;
    size_t entries;
    size_t kept_bytes;
};

class model {
public:
    model(uint64_t seed, const setting &how) : how_(how), heap_(size_t{256} << 20), random_(seed) {
        EXPECT_OK(ty_register_procedure(xor_procedure, "xor", run_xor, nullptr));
        EXPECT_OK(ty_register_procedure(fill_procedure, "fill", run_fill, nullptr));
        EXPECT_OK(ty_undo_attach(heap_, &options_));
        states_.push_back({});
        snapshot();
    }

    void run(uint64_t operations) {
        while (done_ < operations && !testing::Test::HasFatalFailure()) {
            transaction();
            if (below(4) == 0)
                cycle();
            if (below(60) == 0)
                reopen(below(3));
            if (below(100) == 0)
                snapshot();
        }
        if (!testing::Test::HasFatalFailure())
            finish();
    }

    uint64_t undone = 0, redone = 0, refused = 0, cancelled = 0, kept_redo = 0;

private:
    uint64_t below(uint64_t n) { return random_() % n; }
    char *any() {
        auto at = now_.begin();
        std::advance(at, long(below(now_.size())));
        return at->first;
    }
    size_t random_size() {
        uint64_t kind = below(100);
        if (kind < 70)
            return 8 + below(400);
        if (kind < 95)
            return 400 + below(20000);
        return kind < 99 ? below(200000) + 4096 : below(3 << 20) + 4096;
    }
    void scribble(char *address, size_t count) {
        uint64_t value = random_();
        for (size_t i = 0; i < count; i += 8, value += 0x9e3779b97f4a7c15)
            memcpy(address + i, &value, std::min<size_t>(8, count - i));
    }
    void see(char *block, size_t size) { now_[block] = std::make_shared<std::string>(block, size); }
    size_t size_of(char *block) const { return now_.at(block)->size(); }

    // One transaction. If it does not fit: taken back, or the history is given up.
    void transaction(bool reopens = true) {
        before_ = now_;
        fresh_.clear();
        ASSERT_OK(ty_undo_begin(heap_, "model"));
        ty_status status = TY_OK;
        for (uint64_t steps = 1 + below(8); steps > 0 && !status; steps--, done_++)
            status = step();
        ASSERT_TRUE(status == TY_OK || status == TY_E_SPACE) << ty_error_text();
        if (!status && reopens && below(200) == 0)
            reopen(2 + below(2));
        if (status || below(12) == 0)
            end_otherwise(status);
        else
            commit();
        compare();
    }
    void commit() {
        uint64_t undoable = stats_of(heap_).undoable;
        ASSERT_OK(ty_undo_end(heap_));
        if (stats_of(heap_).undoable > undoable)
            states_.push_back(now_);
        else // nothing, or a block grew by bytes that it had already
            states_.back() = now_;
        forget_lost();
    }
    void end_otherwise(ty_status status) {
        refused += status != TY_OK;
        if (!status || below(2) == 0) {
            ASSERT_OK(ty_undo_cancel(heap_));
            now_ = before_;
            forget_lost();
            cancelled++;
            return;
        }
        ASSERT_EQ(ty_undo_end(heap_), TY_E_SPACE);
        ASSERT_EQ(stats_of(heap_).off, how_.fixed);
        ASSERT_EQ(stats_of(heap_).undoable, 0u);
        ASSERT_EQ(ty_undo(heap_), TY_E_NOT_FOUND);
        ASSERT_OK(ty_undo_clear(heap_));
        states_ = {now_};
    }
    // What fell off the old end.
    void forget_lost() {
        uint64_t kept = stats_of(heap_).undoable;
        ASSERT_LE(kept, states_.size() - 1);
        ASSERT_TRUE(!how_.fixed || kept == states_.size() - 1);
        while (states_.size() - 1 > kept)
            states_.pop_front();
    }

    ty_status step() {
        uint64_t what = below(16);
        if (now_.size() < 4 || (what < 3 && now_.size() < 70))
            return allocate();
        char *block = any();
        if (what == 3)
            return release(block);
        if (what < 6)
            return resize(block);
        if (what < 8)
            return call(block);
        return change(block);
    }
    ty_status allocate() {
        size_t size = random_size();
        auto *block = static_cast<char *>(below(8) ? ty_undo_alloc(heap_, size)
                                                   : ty_undo_alloc_aligned(heap_, size, size_t{8} << below(11)));
        if (!block)
            return last_status();
        EXPECT_EQ(now_.count(block), 0u);
        scribble(block, size);
        see(block, size);
        fresh_.insert(block);
        return TY_OK;
    }
    ty_status release(char *block) {
        if (ty_status status = ty_undo_free(heap_, block))
            return status;
        EXPECT_EQ(ty_undo_free(heap_, block), TY_E_ARGUMENT);
        EXPECT_EQ(ty_undo_record(heap_, block + size_of(block) - 1, 1), TY_E_ARGUMENT);
        now_.erase(block);
        return TY_OK;
    }
    ty_status resize(char *block) {
        size_t old = size_of(block), size = below(3) ? 1 + old / 2 + below(old + 16) : random_size();
        auto *made = static_cast<char *>(ty_undo_resize(heap_, block, size));
        if (!made)
            return last_status();
        EXPECT_EQ(memcmp(made, now_.at(block)->data(), std::min(old, size)), 0);
        now_.erase(block);
        if (size > old)
            scribble(made + old, size - old);
        see(made, size);
        if (made != block)
            fresh_.insert(made);
        return TY_OK;
    }
    ty_status call(char *block) {
        size_t size = size_of(block), at = below(size);
        stretch s{block + at, 1 + below(std::min<size_t>(size - at, 5000)), random_()};
        if (below(2)) {
            if (ty_status status = ty_undo_record_procedure(heap_, xor_procedure, &s, sizeof s, TY_OK))
                return status;
            for (uint64_t i = 0; i < s.count; i++)
                s.address[i] = char(s.address[i] ^ char(s.value));
        } else { // a stretch of one value becomes another one
            if (ty_status status = change_to(s.address, s.count, 7))
                return status;
            s.value = 7;
            if (ty_status status = ty_undo_record_procedure(heap_, fill_procedure, &s, sizeof s, TY_E_BUSY)) {
                see(block, size);
                return status;
            }
            memset(s.address, int(random_()), s.count);
        }
        see(block, size);
        return TY_OK;
    }
    ty_status change_to(char *address, size_t count, int value) {
        if (ty_status status = ty_undo_record(heap_, address, count))
            return status;
        memset(address, value, count);
        return TY_OK;
    }
    ty_status change(char *block) {
        size_t size = size_of(block), at = below(size), count = 1 + below(size - at);
        if (below(4))
            count = std::min<size_t>(count, 100);
        if (!fresh_.count(block) || below(2))
            if (ty_status status = ty_undo_record(heap_, block + at, count))
                return status;
        scribble(block + at, count);
        see(block, size);
        return TY_OK;
    }
    ty_status last_status() {
        ty_error error;
        ty_error_detail(&error);
        return error.status;
    }

    // Back and forth, then out. The reference's place is the last state before which everything is done.
    void cycle() {
        size_t at = states_.size() - 1;
        for (uint64_t steps = 1 + below(below(4) ? 6 : 60); steps > 0; steps--) {
            bool back = below(5) < 3;
            ty_status status = back ? ty_undo(heap_) : ty_redo(heap_);
            ASSERT_TRUE(status == TY_OK || status == TY_E_NOT_FOUND) << ty_error_text();
            if (status) {
                ASSERT_EQ(back ? stats_of(heap_).undoable : stats_of(heap_).redoable, 0u);
                continue;
            }
            at = back ? at - 1 : at + 1;
            ++(back ? undone : redone);
            ASSERT_LT(at, states_.size());
            now_ = states_[at];
            compare();
            ASSERT_EQ(stats_of(heap_).undoable, at);
            ASSERT_LE(stats_of(heap_).redoable, states_.size() - 1 - at);
            ASSERT_TRUE(stats_of(heap_).cycle);
            if (below(8) == 0)
                in_between(&at);
            if (below(100) == 0) {
                position_ = at;
                reopen(below(3));
                if (::testing::Test::HasFatalFailure() || !stats_of(heap_).cycle)
                    return;
                at = position_;
            }
        }
        states_.resize(at + 1);
        if (below(2))
            transaction(false); // its end is an exit; what could be redone is not in states_ any more
        ASSERT_OK(ty_undo_exit(heap_));
        forget_lost();
    }
    // U8. A transaction in a cycle that is cancelled, or has nothing to record.
    void in_between(size_t *at) {
        const uint64_t redoable = stats_of(heap_).redoable;
        before_ = now_;
        fresh_.clear();
        position_ = *at;
        ASSERT_OK(ty_undo_begin(heap_, "in between"));
        ty_status status = TY_OK;
        const uint64_t steps = below(5);
        for (uint64_t i = 0; i < steps && !status; i++, done_++)
            status = step();
        ASSERT_TRUE(status == TY_OK || status == TY_E_SPACE) << ty_error_text();
        if (!status && !how_.volatile_buffers && stats_of(heap_).undoable == *at && stats_of(heap_).cycle &&
            below(20) == 0)
            reopen(2 + below(2));
        ASSERT_OK(steps == 0 ? ty_undo_end(heap_) : ty_undo_cancel(heap_));
        now_ = before_;
        const ty_undo_stats stats = stats_of(heap_);
        ASSERT_EQ(stats.redoable, stats.cycle ? redoable : 0);
        kept_redo += stats.cycle && redoable != 0 && steps != 0;
        for (; *at > stats.undoable; --*at)
            states_.pop_front();
        if (!stats.cycle) // it had no room besides
            states_.resize(*at + 1);
        compare();
    }

    void compare() {
        for (auto &[address, expected] : now_) {
            if (memcmp(address, expected->data(), expected->size()) == 0)
                continue;
            size_t differ = 0;
            while (address[differ] == (*expected)[differ])
                differ++;
            FAIL() << how_.name << ", after " << done_ << " operations: byte " << differ << " of " << expected->size()
                   << " at " << static_cast<void *>(address);
        }
        if (below(40) == 0) {
            expect_sound(heap_);
            ASSERT_EQ(live_blocks(heap_), now_.size() + stats_of(heap_).kept_blocks + 1);
        }
    }

    struct picture {
        state now, before;
        std::deque<state> states;
        bool open, cycle, history;
        size_t position;
    };
    picture take() {
        ty_undo_stats s = stats_of(heap_);
        return {now_, before_, states_, s.open, s.cycle, s.open || s.undoable + s.redoable != 0, position_};
    }
    void snapshot() {
        ASSERT_OK(ty_snapshot(heap_));
        saved_ = take();
    }
    // 0: closed and opened; 1: what happened since the last snapshot is lost; 2: closed, in a transaction or cycle;
    // 3: a snapshot, and what follows is lost.
    void reopen(uint64_t how) {
        const bool in_transaction = stats_of(heap_).open, in_cycle = stats_of(heap_).cycle;
        if (how == 3)
            snapshot();
        picture kept = how == 1 || how == 3 ? saved_ : take();
        bool loses = how == 1 || how == 3;
        if (loses)
            heap_.discard();
        else
            heap_.close();
        heap_.open();
        ASSERT_NE(heap_.heap, nullptr);
        ASSERT_OK(ty_undo_attach(heap_, nullptr));
        now_ = kept.now, before_ = kept.before, states_ = kept.states, position_ = kept.position;
        ASSERT_TRUE(stats_of(heap_).reattached);
        if (how_.volatile_buffers) {
            ASSERT_EQ(stats_of(heap_).lost_volatile, loses && kept.history);
            ASSERT_EQ(stats_of(heap_).undoable + stats_of(heap_).redoable, 0u);
            states_ = {now_};
            before_ = now_;
            fresh_.clear();
        } else {
            ASSERT_EQ(stats_of(heap_).open, kept.open);
            ASSERT_EQ(stats_of(heap_).cycle, kept.cycle);
        }
        saved_ = loses ? saved_ : take();
        if (how_.volatile_buffers && in_transaction) { // the test's transaction goes on as a new one
            ASSERT_OK(ty_undo_begin(heap_, nullptr));
        }
        compare();
        if (!in_transaction && stats_of(heap_).open) {
            ASSERT_OK(ty_undo_cancel(heap_));
            now_ = before_;
        }
        if (!in_cycle && stats_of(heap_).cycle) {
            ASSERT_OK(ty_undo_exit(heap_));
            states_.resize(position_ + 1);
        }
        compare();
    }

    void finish() {
        std::deque<state> all = states_;
        while (ty_undo(heap_) == TY_OK) {
            all.pop_back();
            now_ = all.back();
            compare();
        }
        ASSERT_EQ(all.size(), 1u);
        while (ty_redo(heap_) == TY_OK) {
            all.push_back(states_[all.size()]);
            now_ = all.back();
            compare();
        }
        ASSERT_OK(ty_undo_detach(heap_, false));
        ASSERT_EQ(live_blocks(heap_), now_.size());
        expect_sound(heap_);
    }

    setting how_;
    undo_heap heap_;
    std::mt19937_64 random_;
    ty_undo_options options_{sizeof(ty_undo_options), how_.undo_bytes,       how_.redo_bytes, how_.entries,
                             how_.kept_bytes,         how_.volatile_buffers, how_.fixed};
    uint64_t done_ = 0;
    state now_, before_;       // at the beginning of the transaction
    std::deque<state> states_; // before the first one that can be undone, and after each
    std::set<char *> fresh_;   // allocated by the transaction
    size_t position_ = 0;      // in a cycle: in states_
    picture saved_;
};

constexpr setting settings[] = {
    {"roomy", false, false, size_t{32} << 20, 0, 100000, 0},
    {"circular", false, false, 100000, 60000, 300, size_t{4} << 20},
    {"fixed", true, false, 200000, 100000, 500, size_t{16} << 20},
    {"volatile", false, true, 400000, 400000, 1000, 0},
};

class model_of : public testing::TestWithParam<setting> {};

TEST_P(model_of, random_walks) {
    const bool roomy = strcmp(GetParam().name, "roomy") == 0;
    const auto runs = static_cast<uint64_t>(effort(3));
    uint64_t refused = 0, cancelled = 0, undone = 0, redone = 0, kept_redo = 0;
    for (uint64_t seed = 1; seed <= runs && !HasFatalFailure(); seed++) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        model m(seed, GetParam());
        m.run(7000); // a history grows with its run, and each reopen goes through all of it
        refused += m.refused, cancelled += m.cancelled, undone += m.undone, redone += m.redone;
        kept_redo += m.kept_redo;
    }
    EXPECT_GT(undone, 30 * runs);
    EXPECT_GT(redone, 15 * runs);
    EXPECT_GT(cancelled, 15 * runs);
    EXPECT_GT(kept_redo, 6 * runs);
    EXPECT_TRUE(roomy || refused > runs) << "no transaction met a full buffer";
}

INSTANTIATE_TEST_SUITE_P(undo, model_of, testing::ValuesIn(settings),
                         [](const testing::TestParamInfo<setting> &run) { return std::string(run.param.name); });

} // namespace
} // namespace taiyen::test
