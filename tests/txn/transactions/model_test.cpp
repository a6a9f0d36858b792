// Goal: whatever transactions do, the heap's blocks, their bytes and the roots are those of a plain reference, after
// commits, rollbacks and crashes; and a crash brings back exactly the transactions up to some LSN, none that was
// durable missing.
// Method: seeded random transactions of all kinds of change on a heap and on a map; the whole heap is compared and
// verified now and then, and after each crash with the reference's state of the LSN that the open reports.
#include "tests/effort.hpp"
#include "tests/stats.hpp"
#include "tests/txn/support.hpp"

#include <memory>

namespace taiyen::test {
namespace {

constexpr uint64_t add_procedure = 7001;
constexpr const char *root_names[] = {"a", "b", "head", "a longer name of a root", "tail"};

using bytes = std::shared_ptr<const std::string>;

struct state {
    std::map<char *, bytes> blocks; // all that can be used of them
    std::map<char *, size_t> asked; // the size last asked for
    std::map<std::string, void *> roots;
};

struct add_arguments {
    uint64_t *word;
    uint64_t value;
};

ty_status add(ty_heap *, const void *arguments, size_t size, void *) {
    add_arguments a;
    if (size != sizeof a)
        return TY_E_ARGUMENT;
    memcpy(&a, arguments, sizeof a);
    *a.word += a.value;
    return TY_OK;
}

class model {
public:
    model(uint64_t seed, ty_class_table classes) : heap_(classes), random_(seed) {
        EXPECT_OK(ty_register_procedure(add_procedure, "add", add, nullptr));
        history_[0] = {};
    }

    ty_heap *heap() const { return heap_.get(); }
    uint64_t below(uint64_t n) { return random_() % n; }

    void transaction() {
        if (below(4) == 0)
            reserve_or_cancel();
        if (below(500) == 0)
            set_full(true);
        before_ = now_;
        reserved_before_ = reserved_;
        ASSERT_OK(ty_begin(heap(), nullptr, &txn_));
        for (uint64_t steps = below(12); steps > 0; steps--)
            step();
        ending();
    }

    void check() {
        expect_sound(heap());
        content found = content_of(heap());
        for (auto &[address, expected] : now_.blocks) {
            auto at = found.find(address);
            ASSERT_NE(at, found.end()) << "a block is missing";
            ASSERT_EQ(at->second.size(), expected->size());
            size_t differ = 0;
            while (differ < expected->size() && (*expected)[differ] == at->second[differ])
                differ++;
            ASSERT_EQ(differ, expected->size()) << "bytes differ in " << static_cast<void *>(address);
            found.erase(at);
        }
        for (char *address : reserved_)
            ASSERT_EQ(found.erase(address), 1u);
        for (auto &[address, left] : found)
            ASSERT_EQ(left.substr(0, 8), "Tsreserv") << "a block too many";
        for (const char *name : root_names) {
            auto at = now_.roots.find(name);
            ASSERT_EQ(ty_root(heap(), name), at == now_.roots.end() ? nullptr : at->second);
        }
    }

    void crash() {
        forced_before_ += forced_since_open();
        set_full(false);
        uint64_t durable = durable_lsn();
        uint64_t last = history_.rbegin()->first;
        if (below(3) == 0) { // in the middle of one
            ASSERT_OK(ty_begin(heap(), nullptr, &txn_));
            for (uint64_t steps = below(12); steps > 0; steps--)
                step();
            if (below(2) == 0 && prepare()) {
                durable = last = durable_lsn();
            }
        }
        const ty_report report = heap_.crash();
        const uint64_t restored = report.lsn;
        ASSERT_NE(heap(), nullptr);
        in_doubt += report.in_doubt != 0;
        ASSERT_GE(restored, durable);
        ASSERT_LE(restored, last + (report.in_doubt != 0)); // its outcome has a number, too
        auto at = --history_.upper_bound(restored);
        now_ = at->second;
        if (report.outcome == TY_OUTCOME_COMMIT) {
            now_ = prepared_.at(report.in_doubt);
        }
        reserved_.clear();
        shrunk_.clear();
        check();
        state kept = now_;
        history_.clear();
        history_[restored] = kept;
    }

    void snapshot() {
        set_full(false);
        ASSERT_OK(heap_.snapshot());
        forget_older(durable_lsn());
    }

    void end() { set_full(false); }
    uint64_t forced() { return forced_before_ + forced_since_open(); }
    uint64_t forced_since_open() {
        ty_txn_stats stats = txn_stats_of(heap());
        return stats.forced_snapshots;
    }

    int refused = 0;             // commits
    int in_doubt = 0;            // at opens
    uint64_t forced_before_ = 0; // snapshots, before the last crash

private:
    void set_full(bool full) {
        full_ = full;
        heap_.set_full(full);
    }

    uint64_t durable_lsn() {
        ty_txn_stats stats = txn_stats_of(heap());
        return stats.durable_lsn;
    }

    void forget_older(uint64_t lsn) {
        auto at = history_.upper_bound(lsn);
        if (at != history_.begin())
            history_.erase(history_.begin(), --at);
    }

    void step() {
        switch (below(20)) {
        case 0:
        case 1:
        case 2:
            if (below(100) >= now_.blocks.size()) // about fifty
                allocate();
            else
                release(pick());
            break;
        case 3:
            allocate();
            if (below(2) != 0)
                write(newest_);
            release(newest_);
            break;
        case 4:
            resize(pick());
            break;
        case 5: // up, down and up again
            if (char *block = pick())
                for (uint64_t times = 1 + below(4); times > 0 && block != nullptr; times--)
                    block = resize(block);
            break;
        case 6:
            set_root();
            break;
        case 7:
            publish();
            break;
        case 8:
            classic(pick());
            break;
        case 9:
            procedure(pick());
            break;
        case 10:
            wrong_use();
            break;
        default:
            write(pick());
        }
    }

    // Until its end is known, a coin decides for a recovery what becomes of it.
    bool prepare() {
        const ty_status status = ty_prepare(txn_, "model", 5);
        if (status != TY_OK) {
            EXPECT_EQ(TY_E_SPACE, status) << ty_error_text();
            return false;
        }
        EXPECT_EQ(nullptr, ty_current_txn(heap()));
        EXPECT_EQ(TY_E_ARGUMENT, ty_txn_root_set(txn_, "a", nullptr));
        const uint64_t lsn = last_lsn();
        EXPECT_EQ(lsn, durable_lsn());
        prepared_[lsn] = now_;
        heap_.outcomes[lsn] = below(2) != 0 ? TY_OUTCOME_COMMIT : TY_OUTCOME_ROLLBACK;
        return true;
    }

    void ending() {
        const bool prepared = !full_ && below(4) == 0 && prepare();
        const bool taken_back = below(5) == 0;
        if (prepared)
            heap_.outcomes[last_lsn()] = taken_back ? TY_OUTCOME_ROLLBACK : TY_OUTCOME_COMMIT;
        if (prepared && below(8) == 0)
            set_full(true);
        if (taken_back) {
            ASSERT_OK(ty_rollback(txn_));
            now_ = before_;
            reserved_ = reserved_before_;
            shrunk_.clear();
            if (prepared)
                history_[last_lsn()] = now_;
            return;
        }
        uint64_t lsn = 0;
        bool wait = below(full_ ? 2000 : 8) == 0; // while the disk is full, mostly until the log is too
        ty_status status = wait ? ty_commit(txn_) : ty_commit_async(txn_, &lsn);
        if (prepared && status != TY_OK) { // prepared as before, or over and not durable
            set_full(false);
            status = status == TY_E_IN_DOUBT ? ty_commit(txn_) : ty_durable(heap(), 0, true, nullptr);
            lsn = last_lsn();
        }
        if (status == TY_E_SPACE && ty_current_txn(heap()) == txn_) { // X6: still under way
            refused++;
            step();
            set_full(false);
            if (below(2) != 0) {
                ASSERT_OK(ty_rollback(txn_));
                now_ = before_;
                reserved_ = reserved_before_;
                shrunk_.clear();
                return;
            }
            status = wait ? ty_commit(txn_) : ty_commit_async(txn_, &lsn);
        } else if (status == TY_E_SPACE) { // over, and not durable
            bool durable = false;
            set_full(false);
            status = ty_durable(heap(), 0, true, &durable);
            ASSERT_TRUE(durable);
        }
        ASSERT_OK(status);
        ASSERT_EQ(ty_current_txn(heap()), nullptr);
        for (auto [block, size] : std::exchange(shrunk_, {})) { // by a snapshot in place of a record, too
            ASSERT_EQ(size, ty_usable_size(block));
        }
        if (wait) {
            lsn = last_lsn();
            ASSERT_GE(durable_lsn(), lsn);
            forget_older(lsn);
        }
        history_[lsn] = now_;
    }

    uint64_t last_lsn() { return txn_stats_of(heap()).lsn; }

    char *pick() {
        if (now_.blocks.empty())
            return nullptr;
        auto at = now_.blocks.begin();
        std::advance(at, below(now_.blocks.size()));
        return at->first;
    }

    // The reference takes over what memory holds there.
    void see(char *block) {
        auto limit = shrunk_.find(block);
        size_t usable = ty_usable_size(block);
        if (limit != shrunk_.end())
            usable = limit->second;
        now_.blocks[block] = std::make_shared<std::string>(block, usable);
    }

    void scribble(char *at, size_t size) {
        uint64_t value = random_();
        if (below(4) == 0) { // as it is
        } else if (below(3) == 0 || size != 8) {
            for (size_t i = 0; i < size; i++)
                at[i] = char(value >> i % 8 * 8);
        } else {
            uint64_t word;
            memcpy(&word, at, 8);
            word += value % 100;
            memcpy(at, &word, 8);
        }
    }

    void write(char *block) {
        if (block == nullptr)
            return;
        size_t usable = now_.blocks.at(block)->size();
        size_t at = below(usable), size = 1 + below(usable - at < 100 ? usable - at : 100);
        if (below(3) != 0) {
            at = at / 8 * 8;
            size = 8;
        } else if (below(20) == 0) {
            at = 0;
            size = usable;
        }
        ASSERT_OK(ty_declare(txn_, block + at, size));
        scribble(block + at, size);
        if (below(3) == 0) { // again, and over its edge
            size_t more = at + size + 16 < usable ? 16 : 0;
            ASSERT_OK(ty_declare(txn_, block + at, size + more));
            scribble(block + at, size + more);
        }
        see(block);
    }

    size_t random_size() {
        if (below(300) == 0) // too much for a record: a snapshot in place of it
            return size_t{300} << 10 | below(size_t{1} << 19);
        switch (below(30)) {
        case 0:
            return below(60000);
        case 1:
        case 2:
            return below(9000);
        case 3:
            return 0;
        default:
            return below(300);
        }
    }

    void allocate() {
        size_t size = random_size();
        char *block = nullptr;
        switch (below(4)) {
        case 0:
            block = static_cast<char *>(ty_txn_alloc_aligned(txn_, size, size_t{8} << below(11)));
            break;
        case 1:
            block = static_cast<char *>(ty_alloc(heap(), size));
            break;
        default:
            block = static_cast<char *>(ty_txn_alloc(txn_, size));
        }
        ASSERT_NE(block, nullptr) << ty_error_text();
        ASSERT_EQ(now_.blocks.count(block), 0u);
        size_t usable = ty_usable_size(block);
        ASSERT_GE(usable, size);
        ASSERT_TRUE(std::string(block, usable) == std::string(usable, '\0'));
        if (below(8) != 0)
            scribble(block, below(usable + 1));
        see(block);
        now_.asked[block] = size;
        newest_ = block;
    }

    void release(char *block) {
        if (block == nullptr)
            return;
        ASSERT_OK(below(2) != 0 ? ty_free(block) : ty_txn_free(txn_, block));
        forget(block);
        remove_roots_to(block);
        ASSERT_EQ(ty_txn_free(txn_, block), TY_E_ARGUMENT);
    }

    // A root that leads to no block is a finding of verify.
    void remove_roots_to(char *block) {
        for (auto at = now_.roots.begin(); at != now_.roots.end();) {
            const bool dangles = at->second == block;
            if (dangles) {
                ASSERT_OK(ty_txn_root_set(txn_, at->first.c_str(), nullptr));
            }
            at = dangles ? now_.roots.erase(at) : std::next(at);
        }
    }

    void forget(char *block) {
        now_.blocks.erase(block);
        now_.asked.erase(block);
        shrunk_.erase(block);
    }

    // Often within what it can use, or in the pages next to it.
    size_t size_near(char *block) {
        size_t usable = now_.blocks.at(block)->size();
        switch (below(4)) {
        case 0:
            return below(usable + 1);
        case 1:
            return usable + below(3 * 4096);
        case 2:
            return now_.asked.at(block) + below(64);
        default:
            return random_size();
        }
    }

    // What a block gets by a resize is written without being declared: all that could be used and was not asked for.
    char *resize(char *block) {
        if (block == nullptr)
            return nullptr;
        const std::string before = *now_.blocks.at(block);
        const size_t size = size_near(block), asked = now_.asked.at(block);
        char *moved = resize_somehow(block, size, before.size());
        if (moved == nullptr)
            return block; // refused: not in place
        forget(block);
        if (moved != block)
            remove_roots_to(block);
        size_t pages = size == 0 ? 1 : (size + 4095) / 4096;
        if (heap_.is_run(moved) && pages * 4096 < ty_usable_size(moved)) // it is as large as before until the commit
            shrunk_[moved] = pages * 4096;
        now_.asked[moved] = size;
        see(moved);
        const std::string after = *now_.blocks.at(moved);
        const size_t kept = std::min(size, before.size());
        EXPECT_TRUE(before.substr(0, kept) == after.substr(0, kept));
        EXPECT_TRUE(after.substr(kept) == std::string(after.size() - kept, '\0')) << "what it got is not zero";
        if (below(4) != 0) {
            size_t from = std::min(asked, size) + (below(2) != 0 ? 0 : below(after.size() - std::min(asked, size) + 1));
            memset(moved + from, int(random_()), after.size() - from);
            see(moved);
        }
        return moved;
    }

    char *resize_somehow(char *block, size_t size, size_t usable) {
        if (below(4) == 0) {
            ty_status status = ty_resize_in_place(block, size);
            EXPECT_TRUE(status == TY_OK || (status == TY_E_MEMORY && size > usable)) << ty_error_text();
            return status == TY_OK ? block : nullptr;
        }
        char *moved = static_cast<char *>(below(2) != 0 ? ty_txn_resize(txn_, block, size) : ty_resize(block, size));
        EXPECT_NE(moved, nullptr) << ty_error_text();
        return moved;
    }

    void set_root() {
        const char *name = root_names[below(std::size(root_names))];
        char *block = below(3) != 0 ? pick() : nullptr;
        ASSERT_OK(below(2) != 0 ? ty_txn_root_set(txn_, name, block) : ty_root_set(heap(), name, block));
        if (block == nullptr)
            now_.roots.erase(name);
        else
            now_.roots[name] = block;
    }

    void reserve_or_cancel() {
        if (reserved_.size() < 6) {
            size_t size = random_size();
            char *block = static_cast<char *>(ty_reserve(heap(), size));
            ASSERT_NE(block, nullptr) << ty_error_text();
            reserved_size_[block] = size;
            size_t usable = ty_usable_size(block);
            ASSERT_TRUE(std::string(block, usable) == std::string(usable, '\0'));
            scribble(block, below(usable + 1));
            reserved_.push_back(block);
            return;
        }
        ASSERT_OK(ty_cancel(reserved_.back()));
        ASSERT_EQ(ty_cancel(reserved_.back()), TY_E_ARGUMENT);
        reserved_.pop_back();
    }

    void publish() {
        size_t count = below(reserved_.size() + 1);
        std::vector<void *> blocks(reserved_.begin(), reserved_.begin() + ptrdiff_t(count));
        ASSERT_OK(ty_publish(txn_, blocks.data(), count));
        reserved_.erase(reserved_.begin(), reserved_.begin() + ptrdiff_t(count));
        for (void *block : blocks) {
            see(static_cast<char *>(block));
            now_.asked[static_cast<char *>(block)] = reserved_size_.at(static_cast<char *>(block));
        }
    }

    void classic(char *block) {
        if (block == nullptr)
            return;
        size_t usable = now_.blocks.at(block)->size();
        size_t at = below(usable), size = below(usable - at);
        std::string old(block + at, size);
        ASSERT_OK(ty_on_rollback_data(txn_, block + at, old.data(), size));
        scribble(block + at, size);
        ASSERT_OK(ty_log_data(txn_, block + at, size));
        see(block);
    }

    void procedure(char *block) {
        if (block == nullptr)
            return;
        add_arguments forth{reinterpret_cast<uint64_t *>(block), random_()};
        add_arguments back{forth.word, 0 - forth.value};
        ASSERT_OK(ty_on_rollback_procedure(txn_, add_procedure, &back, sizeof back));
        ASSERT_OK(ty_log_procedure(txn_, add_procedure, &forth, sizeof forth));
        ASSERT_OK(add(heap(), &forth, sizeof forth, nullptr));
        see(block);
    }

    void wrong_use() {
        int outside = 0;
        EXPECT_EQ(ty_declare(txn_, &outside, sizeof outside), TY_E_ARGUMENT);
        EXPECT_EQ(ty_txn_free(txn_, &outside), TY_E_ARGUMENT);
        EXPECT_EQ(ty_log_procedure(txn_, 99, nullptr, 0), TY_E_ARGUMENT);
        if (!reserved_.empty()) {
            EXPECT_EQ(ty_txn_free(txn_, reserved_.back()), TY_E_ARGUMENT);
            void *twice[] = {reserved_.back(), reserved_.back()};
            EXPECT_EQ(ty_publish(txn_, twice, 2), TY_E_ARGUMENT);
        }
        ty_txn *second;
        EXPECT_EQ(ty_begin(heap(), nullptr, &second), TY_E_ARGUMENT);
    }

    test_heap heap_;
    std::mt19937_64 random_;
    ty_txn *txn_ = nullptr;
    state now_, before_;
    std::vector<char *> reserved_, reserved_before_;
    std::map<char *, size_t> reserved_size_; // that was asked for
    std::map<char *, size_t> shrunk_;        // in the transaction under way: to so many bytes
    char *newest_ = nullptr;
    bool full_ = false;                  // the disk
    std::map<uint64_t, state> history_;  // by the last LSN that it holds
    std::map<uint64_t, state> prepared_; // what they hold once they are committed, by the LSNs of their records
};

int refused;     // commits, of all runs
int in_doubt;    // opens, of all runs
uint64_t forced; // snapshots, of all runs

void run(uint64_t seed, ty_class_table classes, int transactions, int crash_every) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    model m(seed, classes);
    for (int i = 1; i <= transactions && !testing::Test::HasFatalFailure(); i++) {
        m.transaction();
        if (i % 199 == 0)
            m.check();
        if (crash_every != 0 && m.below(uint64_t(crash_every)) == 0)
            m.crash();
        if (m.below(700) == 0)
            m.snapshot();
    }
    m.check();
    refused += m.refused;
    in_doubt += m.in_doubt;
    forced += m.forced();
    m.end();
}

TEST(model, transactions_of_all_kinds) {
    for (uint64_t seed = 1; seed <= 4 && !HasFatalFailure(); seed++)
        run(seed, seed % 2 != 0 ? TY_CLASSES_CACHE_LINE : TY_CLASSES_DENSE, effort(25000), 0);
    EXPECT_GT(refused, 0) << "no commit met a full disk and a full log";
}

TEST(model, crashes_at_random_points) {
    for (uint64_t seed = 1; seed <= uint64_t(effort(5)) && !HasFatalFailure(); seed++)
        run(100 + seed, seed % 2 != 0 ? TY_CLASSES_CACHE_LINE : TY_CLASSES_DENSE, 4000, 60);
    EXPECT_GT(forced, 2u);
    EXPECT_GT(in_doubt, 2);
}

} // namespace
} // namespace taiyen::test
