// Goal: what an automatic transaction stores is found by itself: memory and recovery are those of a plain reference,
// whatever is mixed (declared ranges, blocks allocated and freed, reserved blocks that other threads fill, rollbacks);
// nothing of other threads is rolled back; and check_stores tells of every store that no transaction knows of, of no
// other.
// Method: seeded random transactions against a reference, with both trackers, with crashes; single cases for each rule
// of txn.md, "Automatic".
#include "tests/txn/support.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

constexpr ty_txn_options automatically() {
    ty_txn_options options = TY_TXN_OPTIONS_INIT;
    options.stores = TY_STORES_AUTOMATIC;
    return options;
}

struct stray {
    char *address;
    size_t bytes;
    bool in_transaction;
    char *block;
    bool operator==(const stray &) const = default;
};

std::ostream &operator<<(std::ostream &out, const stray &s) {
    return out << "{" << static_cast<void *>(s.address) << " " << s.bytes << " " << s.in_transaction << " "
               << static_cast<void *>(s.block) << "}";
}

// A heap on a simulated disk that remembers what strays were reported.
class automatic_heap {
public:
    explicit automatic_heap(ty_tracking tracking = TY_TRACK_AUTOMATIC, bool check = false, bool by_default = false) {
        options = files.options();
        options.kind = TY_TRANSACTIONAL;
        options.log_bytes = size_t{1} << 20;
        options.tracking = tracking;
        options.automatic = by_default;
        options.check_stores = check;
        options.stray_store = [](const ty_stray_store *store, void *context) {
            auto &self = *static_cast<automatic_heap *>(context);
            int at = self.stray_count.fetch_add(1);
            if (at < int(std::size(self.strays)))
                self.strays[at] = {static_cast<char *>(store->address), store->bytes, store->in_transaction,
                                   static_cast<char *>(store->block.address)};
            if (!store->in_transaction)
                self.instruction = store->instruction;
        };
        options.stray_store_context = this;
        open();
    }
    ~automatic_heap() {
        if (heap) {
            EXPECT_OK(ty_discard(heap));
        }
    }
    void open() {
        heap = nullptr;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    }
    void crash() {
        ASSERT_OK(ty_discard(heap));
        open();
    }
    ty_txn *begin() {
        ty_txn_options how = automatically();
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap, &how, &txn));
        return txn;
    }
    ty_txn *begin_declared() {
        ty_txn_options how = TY_TXN_OPTIONS_INIT;
        how.stores = TY_STORES_DECLARED;
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap, &how, &txn));
        return txn;
    }
    // A committed block under a root.
    char *block(const char *root, size_t size, int fill = 0x11) {
        ty_txn *txn = begin_declared();
        char *made = static_cast<char *>(ty_txn_alloc(txn, size));
        EXPECT_NE(nullptr, made) << ty_error_text();
        memset(made, fill, size);
        EXPECT_OK(ty_txn_root_set(txn, root, made));
        EXPECT_OK(ty_commit(txn));
        return made;
    }
    std::vector<stray> take_strays() {
        int count = stray_count.exchange(0);
        return {strays, strays + count};
    }

    disk files;
    ty_open_options options;
    ty_heap *heap = nullptr;
    std::atomic<int> stray_count{0};
    stray strays[64];
    void *volatile instruction = nullptr;
};

void put(char *at, uint64_t value) {
    *reinterpret_cast<volatile uint64_t *>(at) = value;
}
uint64_t get(const char *at) {
    return *reinterpret_cast<const volatile uint64_t *>(at);
}

class automatic : public testing::TestWithParam<ty_tracking> {
protected:
    void SetUp() override {
        if (GetParam() != TY_TRACK_KERNEL)
            return;
        disk files; // can this kernel?
        ty_open_options options = files.options();
        options.tracking = TY_TRACK_KERNEL;
        ty_heap *heap = nullptr;
        ty_status status = ty_open(heap_path, &options, &heap, nullptr);
        if (status == TY_E_UNSUPPORTED)
            GTEST_SKIP() << ty_error_text();
        ASSERT_OK(status);
        ASSERT_OK(ty_discard(heap));
    }
};

INSTANTIATE_TEST_SUITE_P(, automatic, testing::Values(TY_TRACK_KERNEL, TY_TRACK_SIGNAL),
                         [](auto &tracking) { return tracking.param == TY_TRACK_KERNEL ? "kernel" : "signals"; });

// ---- The model

class model {
public:
    model(uint64_t seed, ty_tracking tracking, bool check) : h_(tracking, check), random_(seed) {}
    uint64_t below(uint64_t n) { return random_() % n; }

    void transaction() {
        if (below(3) == 0)
            reserve_or_cancel();
        before_ = now_;
        reserved_before_ = reserved_;
        declared_ = below(4) == 0;
        txn_ = declared_ ? h_.begin_declared() : h_.begin();
        ASSERT_NE(nullptr, txn_);
        for (uint64_t steps = below(12); steps > 0 && !testing::Test::HasFatalFailure(); steps--)
            step();
        if (below(4) == 0) {
            ASSERT_OK(ty_rollback(txn_));
            now_ = before_;
            for (char *block : published_) { // reserved again, with what it had
                ASSERT_EQ(filled_.at(block), std::string(block, ty_usable_size(block)));
            }
            reserved_ = reserved_before_;
        } else {
            ASSERT_OK(ty_commit(txn_));
            for (char *block : published_)
                filled_.erase(block);
        }
        published_.clear();
        ASSERT_EQ(std::vector<stray>{}, h_.take_strays());
    }
    void check() {
        expect_sound(h_.heap);
        content found = content_of(h_.heap);
        for (auto &[address, expected] : now_) {
            ASSERT_EQ(1u, found.count(address)) << "a block is missing";
            ASSERT_TRUE(*expected == found[address]) << "bytes differ in " << static_cast<void *>(address);
            found.erase(address);
        }
        for (char *address : reserved_) {
            ASSERT_TRUE(filled_.at(address) == found.at(address)) << "a reserved block has changed";
            found.erase(address);
        }
        for (auto &[address, left] : found) {
            ASSERT_EQ(left.substr(0, 8), "Tsreserv") << "a block too many";
        }
    }
    void crash() {
        if (below(2) == 0) { // in the middle of one
            before_ = now_;
            txn_ = h_.begin();
            declared_ = false;
            for (uint64_t steps = below(12); steps > 0; steps--)
                step();
            now_ = before_;
        }
        h_.crash();
        ASSERT_NE(nullptr, h_.heap);
        reserved_.clear();
        published_.clear();
        filled_.clear();
        check();
    }
    void snapshot() { ASSERT_OK(ty_snapshot(h_.heap)); }

private:
    using bytes = std::shared_ptr<const std::string>;
    void see(char *block) { now_[block] = std::make_shared<std::string>(block, ty_usable_size(block)); }
    char *pick() {
        if (now_.empty())
            return nullptr;
        auto at = now_.begin();
        std::advance(at, below(now_.size()));
        return at->first;
    }
    size_t random_size() {
        uint64_t kind = below(30);
        return kind == 0 ? below(60000) : kind < 3 ? below(9000) : below(300);
    }
    void step() {
        switch (below(12)) {
        case 0:
        case 1:
            if (below(100) >= now_.size())
                allocate(below(4) == 0);
            else
                release(pick());
            break;
        case 2:
            resize(pick());
            break;
        case 3:
            publish();
            break;
        case 4: // another thread, meanwhile
            std::thread([this] { reserve_or_cancel(); }).join();
            break;
        case 5:
            log_data(pick());
            break;
        default:
            write(pick());
        }
    }
    void allocate(bool and_free) {
        size_t size = random_size();
        char *block = static_cast<char *>(ty_alloc(h_.heap, size));
        ASSERT_NE(nullptr, block) << ty_error_text();
        size_t usable = ty_usable_size(block);
        ASSERT_TRUE(std::string(block, usable) == std::string(usable, '\0'));
        memset(block, int(random_()), below(usable + 1));
        if (and_free) {
            ASSERT_OK(ty_free(block));
        } else {
            see(block);
        }
    }
    void release(char *block) {
        if (!block)
            return;
        ASSERT_OK(ty_free(block));
        now_.erase(block);
    }
    void resize(char *block) {
        if (!block)
            return;
        std::string before = *now_.at(block);
        size_t size = before.size() + random_size(); // growing, so that no block waits for its commit to shrink
        char *moved = static_cast<char *>(ty_resize(block, size));
        ASSERT_NE(nullptr, moved) << ty_error_text();
        ASSERT_TRUE(before == std::string(moved, before.size()));
        now_.erase(block);
        memset(moved + before.size(), int(random_()), size - before.size());
        see(moved);
    }
    void write(char *block) {
        if (!block)
            return;
        size_t usable = now_.at(block)->size(), at = below(usable);
        size_t size = 1 + below(std::min<size_t>(usable - at, below(20) == 0 ? usable : 60));
        if (declared_ || below(3) == 0) {
            ASSERT_OK(ty_declare(txn_, block + at, size));
        }
        memset(block + at, int(random_()), size);
        if (below(3) == 0) { // after the first write
            ASSERT_OK(ty_declare(txn_, block + at, size));
            memset(block + at, int(random_()), size);
        }
        see(block);
    }
    void log_data(char *block) {
        if (!block || declared_)
            return;
        size_t usable = now_.at(block)->size(), at = below(usable), size = below(usable - at);
        memset(block + at, int(random_()), size);
        ASSERT_OK(ty_log_data(txn_, block + at, size));
        see(block);
    }
    void fill(char *block) {
        size_t usable = ty_usable_size(block);
        memset(block, int(random_()), below(usable + 1));
        filled_[block] = std::string(block, usable);
    }
    // Outside transactions, and by other threads amid them.
    void reserve_or_cancel() {
        uint64_t what = below(4);
        if (reserved_.size() < 3 || (what == 0 && reserved_.size() < 8)) {
            char *block = static_cast<char *>(ty_reserve(h_.heap, random_size()));
            ASSERT_NE(nullptr, block) << ty_error_text();
            size_t usable = ty_usable_size(block);
            ASSERT_TRUE(std::string(block, usable) == std::string(usable, '\0'));
            reserved_.push_back(block);
            reserved_before_.push_back(block);
            fill(block);
        } else if (what == 1) {
            char *block = reserved_.back();
            ASSERT_OK(ty_cancel(block));
            reserved_.pop_back();
            std::erase(reserved_before_, block);
            filled_.erase(block);
        } else {
            fill(reserved_[below(reserved_.size())]);
        }
    }
    void publish() {
        if (reserved_.empty())
            return;
        char *block = reserved_.front();
        void *one[] = {block};
        ASSERT_OK(ty_publish(txn_, one, 1));
        reserved_.erase(reserved_.begin());
        published_.push_back(block);
        if (!declared_ && below(2) == 0) // rolled back as far as it goes
            memset(block, int(random_()), below(ty_usable_size(block)));
        see(block);
    }

    automatic_heap h_;
    std::mt19937_64 random_;
    ty_txn *txn_ = nullptr;
    bool declared_ = false;
    std::map<char *, bytes> now_, before_;
    std::vector<char *> reserved_, reserved_before_, published_;
    std::map<char *, std::string> filled_;
};

void run(uint64_t seed, ty_tracking tracking, bool check, int transactions) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    model m(seed, tracking, check);
    for (int i = 1; i <= transactions && !testing::Test::HasFatalFailure(); i++) {
        m.transaction();
        if (m.below(50) == 0)
            m.check();
        if (m.below(60) == 0)
            m.crash();
        if (m.below(100) == 0)
            m.snapshot();
    }
    m.check();
}

TEST_P(automatic, plain_stores_of_all_kinds) {
    for (uint64_t seed = 1; seed <= 4 && !HasFatalFailure(); seed++)
        run(seed, GetParam(), false, 700);
}

TEST_P(automatic, the_same_with_stores_checked) {
    for (uint64_t seed = 11; seed <= 13 && !HasFatalFailure(); seed++)
        run(seed, GetParam(), true, 700);
}

// ---- Single cases

TEST_P(automatic, stores_are_logged_and_rolled_back) {
    automatic_heap h(GetParam());
    char *block = h.block("b", 20000);
    ty_txn *txn = h.begin();
    put(block, 1);
    put(block + 8000, 2);
    put(block + 19992, 3);
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ(0x1111111111111111u, get(block));
    EXPECT_EQ(0x1111111111111111u, get(block + 8000));
    txn = h.begin();
    put(block, 4);
    put(block + 19992, 5);
    ASSERT_OK(ty_commit(txn));
    txn = h.begin(); // the pages are protected again
    put(block, 6);
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(6u, get(block));
    EXPECT_EQ(0x1111111111111111u, get(block + 8000));
    EXPECT_EQ(5u, get(block + 19992));
}

TEST_P(automatic, the_content_at_the_begin_counts_whenever_a_range_is_declared) {
    automatic_heap h(GetParam());
    char *block = h.block("b", 64);
    for (bool declared_first : {true, false}) {
        ty_txn *txn = h.begin();
        if (declared_first) {
            ASSERT_OK(ty_declare(txn, block, 16));
        }
        put(block, 7);
        ASSERT_OK(ty_declare(txn, block, 16));
        put(block + 8, 8);
        ASSERT_OK(ty_rollback(txn));
        EXPECT_EQ(0x1111111111111111u, get(block));
        EXPECT_EQ(0x1111111111111111u, get(block + 8));
    }
}

TEST_P(automatic, unchanged_content_is_not_logged) {
    automatic_heap h(GetParam());
    char *block = h.block("b", 64);
    ty_txn_stats before{}, after{};
    before.struct_size = after.struct_size = sizeof before;
    ASSERT_OK(ty_get_txn_stats(h.heap, &before));
    ty_txn *txn = h.begin();
    put(block, 5);
    put(block, 0x1111111111111111u);
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_get_txn_stats(h.heap, &after));
    EXPECT_EQ(before.sequence, after.sequence);
}

// Stores that no transaction did are neither logged nor taken back by the next one; what it changes beside them is.
TEST_P(automatic, stores_outside_of_transactions_stay_outside) {
    automatic_heap h(GetParam());
    char *block = h.block("b", 64);
    ASSERT_OK(ty_commit(h.begin())); // armed
    put(block, 70);
    ty_txn *txn = h.begin_declared();
    ASSERT_OK(ty_declare(txn, block + 16, 8));
    put(block + 16, 72);
    ASSERT_OK(ty_commit(txn));
    txn = h.begin();
    put(block + 8, 71);
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ(70u, get(block));
    EXPECT_EQ(72u, get(block + 16));
    EXPECT_EQ(0x1111111111111111u, get(block + 8));
    txn = h.begin();
    put(block + 8, 73);
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(0x1111111111111111u, get(block));
    EXPECT_EQ(73u, get(block + 8));
    EXPECT_EQ(72u, get(block + 16));
}

// What was stored outside is logged when a transaction says so, though it differs from no twin.
TEST_P(automatic, log_data_goes_before_twins) {
    automatic_heap h(GetParam());
    char *block = h.block("b", 20000);
    ASSERT_OK(ty_commit(h.begin()));
    put(block, 80);
    ty_txn *txn = h.begin();
    put(block + 8, 81);
    ASSERT_OK(ty_log_data(txn, block, 8));
    ASSERT_OK(ty_commit(txn));
    put(block + 12000, 82);
    txn = h.begin();
    put(block + 24, 83);
    ASSERT_OK(ty_log_data(txn, block + 12000, 8)); // in a page behind all that differ
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(80u, get(block));
    EXPECT_EQ(81u, get(block + 8));
    EXPECT_EQ(82u, get(block + 12000));
    EXPECT_EQ(83u, get(block + 24));
}

TEST_P(automatic, is_the_default_where_the_open_says_so) {
    automatic_heap h(GetParam(), false, true);
    char *block = h.block("b", 64);
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(h.heap, nullptr, &txn));
    put(block, 9);
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(9u, get(block));
}

TEST_P(automatic, no_procedures) {
    automatic_heap h(GetParam());
    ASSERT_OK(ty_register_procedure(
        7100, "nothing", [](ty_heap *, const void *, size_t, void *) { return TY_OK; }, nullptr));
    ty_txn *txn = h.begin();
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_log_procedure(txn, 7100, nullptr, 0));
    EXPECT_OK(ty_rollback(txn));
    ASSERT_OK(ty_register_procedure(7100, nullptr, nullptr, nullptr));
}

// X6: what a failed commit leaves under way can go on, and be rolled back to its begin. The record is too long for the
// log, and the snapshot in its place fails.
TEST_P(automatic, goes_on_after_a_failed_commit) {
    constexpr size_t size = size_t{3} << 20;
    for (bool commit : {false, true}) {
        automatic_heap h(GetParam());
        char *block = h.block("b", size);
        std::mt19937_64 random(3);
        ty_txn *txn = h.begin();
        for (size_t at = 0; at < size; at += 8)
            put(block + at, random());
        os::sim_fault fault;
        fault.operations = os::sim_op_write | os::sim_op_write_durable | os::sim_op_map;
        fault.forever = true;
        os::sim_set_fault(h.files.get(), fault);
        ASSERT_NE(TY_OK, ty_commit(txn));
        ASSERT_EQ(txn, ty_current_txn(h.heap));
        os::sim_set_fault(h.files.get(), {});
        put(block + 8, 77);
        if (commit) {
            ASSERT_OK(ty_commit(txn));
            h.crash();
            EXPECT_EQ(77u, get(block + 8));
            continue;
        }
        ASSERT_OK(ty_rollback(txn));
        EXPECT_TRUE(std::string(block, size) == std::string(size, 0x11));
    }
}

// A system call does not fault; a declared range, and a block of the transaction, can be read into.
TEST_P(automatic, system_calls_write_what_is_declared) {
    automatic_heap h(GetParam());
    char *block = h.block("b", 20000);
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    std::string text(9000, 'x');
    ty_txn *txn = h.begin();
    ASSERT_EQ(ssize_t(text.size()), write(ends[1], text.data(), text.size()));
    EXPECT_EQ(-1, read(ends[0], block, text.size()));
    EXPECT_EQ(EFAULT, errno);
    ASSERT_OK(ty_declare(txn, block, text.size()));
    EXPECT_EQ(ssize_t(text.size()), read(ends[0], block, text.size()));
    char *own = static_cast<char *>(ty_txn_alloc(txn, 1 << 16));
    ASSERT_EQ(ssize_t(text.size()), write(ends[1], text.data(), text.size()));
    EXPECT_EQ(ssize_t(text.size()), read(ends[0], own + 5000, text.size()));
    ASSERT_OK(ty_txn_root_set(txn, "own", own));
    ASSERT_OK(ty_commit(txn));
    close(ends[0]);
    close(ends[1]);
    h.crash();
    EXPECT_EQ(text, std::string(block, text.size()));
    EXPECT_EQ(text, std::string(own + 5000, text.size()));
}

// Of a large block of the transaction itself no page needs a twin, nor a fault; beyond what is kept, twins go.
TEST_P(automatic, large_transactions) {
    automatic_heap h(GetParam());
    constexpr size_t size = size_t{24} << 20;
    char *block = h.block("b", size);
    for (bool commit : {false, true}) {
        ty_txn *txn = h.begin();
        memset(block, 0x22, size);
        char *own = static_cast<char *>(ty_txn_alloc(txn, size / 4));
        memset(own, 0x33, size / 4);
        ASSERT_OK(ty_txn_root_set(txn, "own", own));
        ASSERT_OK(commit ? ty_commit(txn) : ty_rollback(txn));
        if (!commit) {
            EXPECT_TRUE(std::string(block, size) == std::string(size, 0x11));
        }
    }
    h.crash();
    EXPECT_TRUE(std::string(block, size) == std::string(size, 0x22));
    EXPECT_TRUE(std::string(static_cast<char *>(ty_root(h.heap, "own")), size / 4) == std::string(size / 4, 0x33));
}

// Recovery has no memory where only cancelled reservations, or blocks freed at once, ever were: no record names it.
TEST_P(automatic, free_memory_is_not_logged) {
    automatic_heap h(GetParam());
    char *block = h.block("b", 64);
    ty_txn *txn = h.begin();
    put(block, 1);
    std::thread([&] {
        char *reserved = static_cast<char *>(ty_reserve(h.heap, 300000));
        memset(reserved, 0x44, 300000);
        EXPECT_OK(ty_cancel(reserved));
    }).join();
    char *own = static_cast<char *>(ty_txn_alloc(txn, 600000));
    memset(own, 0x55, 600000);
    ASSERT_OK(ty_txn_free(txn, own));
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_discard(h.heap));
    h.open();
    ASSERT_NE(nullptr, h.heap);
    EXPECT_EQ(1u, get(block));
    expect_sound(h.heap);
}

// Threads fill reserved blocks beside the transaction's words, in the same pages, all the time.
TEST_P(automatic, other_threads_fill_reserved_blocks) {
    automatic_heap h(GetParam(), true);
    char *block = h.block("b", 64);
    std::atomic<bool> done{false};
    constexpr int threads = 2;
    std::atomic<char *> handed[threads] = {};
    std::vector<std::thread> fillers;
    for (int t = 0; t < threads; t++)
        fillers.emplace_back([&, t] {
            for (uint64_t n = 1; !done; n++) {
                char *mine = static_cast<char *>(ty_reserve(h.heap, 64));
                ASSERT_NE(nullptr, mine) << ty_error_text();
                for (int i = 0; i < 64; i += 8)
                    put(mine + i, n);
                for (int i = 0; i < 64; i += 8) {
                    ASSERT_EQ(n, get(mine + i)) << "rolled back by another thread's transaction";
                }
                if (n % 2 != 0) {
                    ASSERT_OK(ty_cancel(mine));
                    continue;
                }
                char *none = nullptr;
                while (!handed[t].compare_exchange_weak(none, mine) && !done) {
                    none = nullptr;
                    std::this_thread::yield();
                }
            }
        });
    uint64_t last = 0x1111111111111111u;
    std::vector<std::pair<char *, uint64_t>> published;
    for (uint64_t i = 1; i <= 400 && !HasFatalFailure(); i++) {
        ty_txn *txn = h.begin();
        put(block + 8 * (i % 8), i);
        char *given = handed[i % threads].exchange(nullptr);
        uint64_t value = 0;
        if (given) {
            value = get(given);
            void *one[] = {given};
            ASSERT_OK(ty_publish(txn, one, 1));
        }
        if (i % 3 == 0) {
            put(given ? given : block, 12345);
            ASSERT_OK(ty_rollback(txn));
            if (given) {
                ASSERT_EQ(value, get(given));
                ASSERT_OK(ty_cancel(given));
            }
            continue;
        }
        last = i;
        ASSERT_OK(ty_commit(txn));
        if (given)
            published.push_back({given, value});
    }
    done = true;
    for (auto &filler : fillers)
        filler.join();
    EXPECT_EQ(last, get(block + 8 * (last % 8)));
    EXPECT_EQ(std::vector<stray>{}, h.take_strays());
    h.crash();
    EXPECT_EQ(last, get(block + 8 * (last % 8)));
    for (auto [address, value] : published)
        for (int i = 0; i < 64; i += 8) {
            ASSERT_EQ(value, get(address + i));
        }
    expect_sound(h.heap);
}

// A forked child has memory of its own, and goes its own way.
TEST_P(automatic, a_forked_child_is_apart) {
    automatic_heap h(GetParam());
    char *block = h.block("b", 64);
    ty_txn *txn = h.begin();
    put(block, 1);
    pid_t child = fork();
    if (child == 0) {
        put(block + 8, 2);
        ty_txn *second = nullptr;
        bool refused = ty_begin(h.heap, nullptr, &second) == TY_E_FORKED;
        _exit(refused && get(block + 8) == 2 && ty_discard(h.heap) == TY_OK ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_EQ(0x1111111111111111u, get(block + 8));
    ASSERT_OK(ty_commit(txn));
    h.crash();
    EXPECT_EQ(1u, get(block));
}

// Armed memory goes with the heap: closed, rebuilt, discarded amid a transaction.
TEST_P(automatic, heaps_end_armed) {
    automatic_heap h(GetParam());
    char *block = h.block("b", 64);
    ty_txn *txn = h.begin();
    put(block, 1);
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_close(h.heap));
    h.open();
    EXPECT_EQ(1u, get(block));
    txn = h.begin();
    put(block, 2);
    ASSERT_OK(ty_commit(txn));
    put(block, 3);
    ASSERT_OK(ty_rebuild(&h.heap, &h.options, nullptr));
    EXPECT_EQ(2u, get(block));
    txn = h.begin();
    put(block, 4);
    h.crash();
    EXPECT_EQ(2u, get(block));
}

TEST_P(automatic, snapshots_hold_what_was_stored) {
    automatic_heap h(GetParam());
    char *block = h.block("b", 40000);
    for (uint64_t i = 1; i <= 20; i++) {
        ty_txn *txn = h.begin();
        for (size_t at = 0; at < 40000; at += 4000)
            put(block + at, i);
        ASSERT_OK(ty_commit(txn));
        if (i % 2 != 0) {
            ASSERT_OK(ty_snapshot(h.heap));
        }
    }
    ASSERT_OK(ty_snapshot(h.heap));
    h.crash();
    for (size_t at = 0; at < 40000; at += 4000) {
        EXPECT_EQ(20u, get(block + at));
    }
}

// ---- The detector

TEST_P(automatic, strays_in_transactions_are_told_exactly) {
    automatic_heap h(GetParam(), true);
    char *first = h.block("a", 20000), *second = h.block("b", 100);
    EXPECT_EQ(std::vector<stray>{}, h.take_strays());
    ty_txn *txn = h.begin_declared();
    ASSERT_OK(ty_declare(txn, first + 8, 16));
    ASSERT_OK(ty_declare(txn, first + 100, 1)); // covers its word
    memset(first, 0x22, 40);                    // [0, 8) and [24, 40) are not declared
    first[103] = 1;
    first[9001] = 1;
    first[19999] = 1;
    second[50] = 1;
    char *own = static_cast<char *>(ty_txn_alloc(txn, 5000));
    memset(own, 0x66, 5000);
    ASSERT_OK(ty_txn_root_set(txn, "own", own));
    ASSERT_OK(ty_commit(txn));
    std::vector<stray> expected{{first, 8, true, first},
                                {first + 24, 16, true, first},
                                {first + 9001, 1, true, first},
                                {first + 19999, 1, true, first},
                                {second + 50, 1, true, second}};
    auto told = h.take_strays();
    auto by_address = [](const stray &a, const stray &b) { return a.address < b.address; };
    std::sort(expected.begin(), expected.end(), by_address);
    EXPECT_EQ(expected, told);
    txn = h.begin_declared(); // a rollback tells, too
    first[5000] = 2;
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ((std::vector<stray>{{first + 5000, 1, true, first}}), h.take_strays());
}

TEST_P(automatic, known_stores_are_no_strays) {
    automatic_heap h(GetParam(), true);
    char *block = h.block("b", 20000);
    ty_txn *txn = h.begin_declared();
    memset(block, 0x22, 100);
    ASSERT_OK(ty_log_data(txn, block, 100));
    char *grown = static_cast<char *>(ty_txn_resize(txn, block, 40000));
    ASSERT_NE(nullptr, grown) << ty_error_text();
    memset(grown + 20480, 0x23, 19000);
    char *gone = static_cast<char *>(ty_txn_alloc(txn, 64));
    memset(gone, 1, 64);
    ASSERT_OK(ty_txn_free(txn, gone));
    ASSERT_OK(ty_txn_root_set(txn, "b", grown));
    ASSERT_OK(ty_commit(txn));
    txn = h.begin_declared(); // freed: nobody sees it
    memset(grown, 0x24, 64);
    ASSERT_OK(ty_txn_root_set(txn, "b", nullptr));
    ASSERT_OK(ty_txn_free(txn, grown));
    ASSERT_OK(ty_commit(txn));
    txn = h.begin(); // automatic: all is known
    char *made = static_cast<char *>(ty_txn_alloc(txn, 64));
    put(made, 1);
    ASSERT_OK(ty_commit(txn));
    EXPECT_EQ(std::vector<stray>{}, h.take_strays());
}

// What a procedure does it does by plain stores.
TEST_P(automatic, procedures_are_no_strays) {
    automatic_heap h(GetParam(), true);
    char *block = h.block("b", 64);
    auto set = [](ty_heap *, const void *arguments, size_t, void *) {
        char *place;
        memcpy(&place, arguments, sizeof place);
        put(place, 5);
        return TY_OK;
    };
    ASSERT_OK(ty_register_procedure(7101, "set", set, nullptr));
    ty_txn *txn = h.begin_declared();
    ASSERT_OK(ty_log_procedure(txn, 7101, &block, sizeof block));
    ASSERT_EQ(TY_OK, set(h.heap, &block, sizeof block, nullptr));
    ASSERT_OK(ty_commit(txn));
    EXPECT_EQ(std::vector<stray>{}, h.take_strays());
    h.crash();
    EXPECT_EQ(5u, get(block));
    ASSERT_OK(ty_register_procedure(7101, nullptr, nullptr, nullptr));
}

// Blocks that were reserved before memory was armed can be filled after.
TEST_P(automatic, blocks_reserved_before_are_no_strays) {
    automatic_heap h(GetParam(), true);
    char *reserved = static_cast<char *>(ty_reserve(h.heap, 9000));
    ASSERT_OK(ty_commit(h.begin_declared()));
    memset(reserved, 1, 9000);
    EXPECT_EQ(std::vector<stray>{}, h.take_strays());
    ASSERT_OK(ty_cancel(reserved));
    char *stale = reserved + 4096; // the page is nobody's now
    ASSERT_OK(ty_commit(h.begin_declared()));
    put(stale, 1);
    EXPECT_EQ((std::vector<stray>{{stale, 0, false, nullptr}}), h.take_strays());
}

TEST_P(automatic, strays_outside_are_told_once_a_page) {
    automatic_heap h(GetParam(), true);
    char *block = h.block("b", 20000);
    char *page = block + (4096 - reinterpret_cast<uintptr_t>(block) % 4096);
    h.take_strays();
    put(page + 16, 1);
    put(page + 24, 2);
    put(page + 8192, 3);
    EXPECT_EQ((std::vector<stray>{{page + 16, 0, false, nullptr}, {page + 8192, 0, false, nullptr}}), h.take_strays());
#if defined(__x86_64__)
    EXPECT_NE(nullptr, h.instruction);
#endif
    ASSERT_OK(ty_commit(h.begin_declared()));
    put(page + 16, 3);
    EXPECT_EQ((std::vector<stray>{{page + 16, 0, false, nullptr}}), h.take_strays());
    char *reserved = static_cast<char *>(ty_reserve(h.heap, 100)); // and filling it is right
    memset(reserved, 1, 100);
    ASSERT_OK(ty_commit(h.begin_declared()));
    memset(reserved, 2, 100);
    ASSERT_OK(ty_cancel(reserved));
    EXPECT_EQ(std::vector<stray>{}, h.take_strays());
}

TEST_P(automatic, strays_without_a_callback_are_printed) {
    automatic_heap h(GetParam(), true);
    ASSERT_OK(ty_close(h.heap));
    h.options.stray_store = nullptr;
    h.open();
    char *block = h.block("b", 64);
    testing::internal::CaptureStderr();
    ty_txn *txn = h.begin_declared();
    block[3] = 1;
    ASSERT_OK(ty_commit(txn));
    put(block, 1);
    std::string text = testing::internal::GetCapturedStderr();
    EXPECT_NE(std::string::npos, text.find("changed 1 bytes and did not declare them")) << text;
    EXPECT_NE(std::string::npos, text.find("outside of any transaction")) << text;
}

} // namespace
} // namespace taiyen::test
