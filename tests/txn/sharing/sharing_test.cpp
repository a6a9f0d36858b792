// Goal: processes that share a heap commit one after the other, each on the newest state; nothing that was acknowledged
// is lost, whoever dies or stands still (PR1 to PR6). Method: processes that each count their own commits in a state
// with sums over all of it, and note outside the heap what they have begun and what was acknowledged.
#include "src/txn/sharing/sharing.hpp"
#include "tests/effort.hpp"
#include "tests/os/temporary_folder.hpp"
#include "tests/txn/support.hpp"
#include "tests/units.hpp"

#include <atomic>
#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <taiyen/taiyen.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

constexpr unsigned processes_max = 8;

struct node {
    node *next;
    uint64_t value;
};
struct counted {
    uint64_t number;            // of all commits
    uint64_t by[processes_max]; // of each process
    uint64_t sum;               // over words and nodes
    uint64_t nodes;
    node *list;
    uint64_t words[512];
};

const char *wrong_with(const counted &state) {
    uint64_t number = 0, sum = 0, nodes = 0;
    for (const uint64_t by : state.by)
        number += by;
    for (const uint64_t word : state.words)
        sum += word;
    for (const node *n = state.list; n != nullptr && nodes <= state.nodes; n = n->next, nodes++)
        sum += n->value;
    return nodes != state.nodes     ? "the number of nodes"
           : sum != state.sum       ? "the sum"
           : number != state.number ? "the number of commits"
                                    : nullptr;
}

// Shared by all processes, outside the heap.
struct board {
    std::atomic<uint64_t> begun[processes_max];
    std::atomic<uint64_t> acknowledged[processes_max];
    std::atomic<uint32_t> stage;
    std::atomic<bool> log_fails;
    std::atomic<bool> failed;

    void wait_for(uint32_t wanted) const {
        while (stage < wanted && !failed)
            std::this_thread::yield();
    }
};

ty_open_options shared_options() {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = 64 * mb;
    options.staging_bytes = 8 * mb;
    options.log_bytes = 4 * mb;
    options.shared = true;
    return options;
}

// In a forked process: what goes wrong ends it.
class sharer {
public:
    sharer(const std::string &path, board &with, unsigned me, uint64_t seed = 1,
           const ty_open_options &options = shared_options())
        : with_(with), me_(me), random_(seed) {
        expect(ty_open(path.c_str(), &options, &heap_, nullptr), "open");
    }

    ty_heap *heap() const { return heap_; }
    counted *state() const { return static_cast<counted *>(ty_root(heap_, "state")); }
    void expect(bool holds, const char *what) const {
        if (holds)
            return;
        fprintf(stderr, "process %u, %s: %s\n", me_, what, ty_error_text());
        with_.failed = true;
        _exit(1);
    }
    void expect(ty_status status, const char *what) const { expect(status == TY_OK, what); }

    void commit(bool durable) {
        ty_txn *txn = nullptr;
        expect(ty_begin(heap_, nullptr, &txn), "begin");
        const uint64_t mine = change(txn);
        uint64_t lsn = 0;
        const ty_status status = durable ? ty_commit(txn) : ty_commit_async(txn, &lsn);
        if (status == TY_E_EXPIRED) {
            expect(ty_rollback(txn), "roll back");
            return;
        }
        expect(status, "commit");
        if (durable)
            with_.acknowledged[me_] = mine;
        done_ = mine;
    }
    void roll_back() {
        ty_txn *txn = nullptr;
        expect(ty_begin(heap_, nullptr, &txn), "begin");
        change(txn);
        expect(ty_rollback(txn), "roll back");
    }
    void read() const {
        expect(ty_read_begin(heap_), "begin to read");
        const char *wrong = wrong_with(*state());
        const uint64_t mine = state()->by[me_];
        const ty_status status = ty_read_end(heap_);
        expect(status == TY_E_EXPIRED || (status == TY_OK && wrong == nullptr && mine >= done_), "read");
    }
    void run(int count) {
        for (int i = 0; i != count; i++) {
            if (random_() % 40 == 0)
                roll_back();
            commit(random_() % 4 == 0);
            if (random_() % 8 == 0)
                read();
            if (random_() % 50 == 0) { // for who writes the log
                const ty_status status = ty_snapshot(heap_);
                expect(status == TY_OK || status == TY_E_UNSUPPORTED, "take a snapshot");
            }
        }
    }
    void close() { expect(ty_close(heap_), "close"); }

private:
    uint64_t change(ty_txn *txn) {
        counted *s = state();
        if (s == nullptr) {
            s = static_cast<counted *>(ty_txn_alloc(txn, sizeof *s));
            expect(s != nullptr, "allocate");
            expect(ty_txn_root_set(txn, "state", s), "set the root");
        }
        expect(ty_declare(txn, s, sizeof *s), "declare");
        const char *wrong = wrong_with(*s);
        expect(wrong == nullptr, wrong);
        expect(s->by[me_] >= with_.acknowledged[me_] && s->by[me_] <= with_.begun[me_] && s->by[me_] >= done_,
               "what was acknowledged is there, and no more than was begun");
        const uint64_t mine = s->by[me_] + 1;
        with_.begun[me_] = mine;
        s->by[me_]++;
        s->number++;
        uint64_t &word = s->words[random_() % std::size(s->words)];
        const uint64_t value = random_() % 1000;
        s->sum += value - word;
        word = value;
        if (s->nodes > 100 || (s->nodes != 0 && random_() % 2 != 0)) {
            node *first = s->list;
            s->list = first->next;
            s->sum -= first->value;
            s->nodes--;
            expect(ty_txn_free(txn, first), "free");
        } else {
            auto *made = static_cast<node *>(ty_txn_alloc(txn, sizeof(node) + random_() % 3000));
            expect(made != nullptr, "allocate");
            *made = {s->list, random_() % 1000};
            s->list = made;
            s->sum += made->value;
            s->nodes++;
        }
        return mine;
    }

    board &with_;
    unsigned me_;
    std::mt19937_64 random_;
    ty_heap *heap_ = nullptr;
    uint64_t done_ = 0;
};

class sharing_test : public testing::Test {
protected:
    void SetUp() override {
        void *memory = mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, memory);
        with_ = new (memory) board{};
    }
    void TearDown() override {
        for (pid_t &child : children_)
            kill(child);
        munmap(with_, sizeof(board));
    }
    std::string path() const { return folder_.file("heap.ty"); }

    // In a process of its own.
    size_t start(const std::function<void()> &what) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(300);
            what();
            _exit(0);
        }
        children_.push_back(child);
        return children_.size() - 1;
    }
    void wait(size_t n) {
        int status = -1;
        EXPECT_EQ(children_[n], waitpid(children_[n], &status, 0));
        EXPECT_EQ(0, status);
        children_[n] = 0;
    }
    template <class Read>
    void stop_a_reader(const ty_open_options &options, Read &&read);
    void wait_all() {
        for (size_t n = 0; n < children_.size(); n++)
            if (children_[n] != 0)
                wait(n);
    }
    static void kill(pid_t &child) {
        if (child == 0)
            return;
        ::kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        child = 0;
    }
    // What the files have, when nobody has the heap.
    void expect_files_have(uint64_t number) {
        ty_open_options options = shared_options();
        options.shared = false;
        ty_heap *heap = nullptr;
        ASSERT_OK(ty_open(path().c_str(), &options, &heap, nullptr));
        const auto *state = static_cast<const counted *>(ty_root(heap, "state"));
        ASSERT_NE(nullptr, state);
        EXPECT_EQ(nullptr, wrong_with(*state));
        for (unsigned n = 0; n < processes_max; n++) {
            EXPECT_GE(state->by[n], with_->acknowledged[n]);
            EXPECT_LE(state->by[n], with_->begun[n]);
        }
        EXPECT_TRUE(number == 0 || number == state->number) << state->number;
        expect_sound(heap);
        EXPECT_OK(ty_close(heap));
    }

    temporary_folder folder_;
    board *with_ = nullptr;
    std::vector<pid_t> children_;
};

TEST_F(sharing_test, processes_commit_in_turns) {
    const int commits = effort(300);
    for (unsigned n = 0; n < 4; n++)
        start([&, n] {
            sharer own(path(), *with_, n, n);
            own.run(commits);
            own.close();
        });
    wait_all();
    expect_files_have(uint64_t(commits) * 4);
}

// PR1: also what only the log buffer had.
TEST_F(sharing_test, any_of_them_dies_at_any_instant) {
    std::mt19937_64 random(7);
    auto run = [&](unsigned n) {
        const uint64_t seed = random();
        return start([&, n, seed] {
            sharer own(path(), *with_, n, seed);
            own.run(int(seed % 300));
            if (seed % 4 == 0) { // others close it, perhaps while they take over the log
                own.close();
                _exit(0);
            }
            own.run(-1);
        });
    };
    size_t at[4];
    for (unsigned n = 0; n < 4; n++)
        at[n] = run(n);
    for (int i = 0; i < effort(60) && !with_->failed; i++) {
        usleep(static_cast<useconds_t>(random() % 30000)); // the instant
        const unsigned n = random() % 4;
        const bool all = random() % 15 == 0;
        for (unsigned each = 0; each < 4; each++)
            if (each == n || all)
                kill(children_[at[each]]);
        for (unsigned each = 0; each < 4; each++)
            if (each == n || all)
                at[each] = run(each);
    }
    EXPECT_FALSE(with_->failed);
    for (pid_t &child : children_)
        kill(child);
    expect_files_have(0);
}

TEST_F(sharing_test, one_that_stands_still_goes_on) {
    size_t at[3];
    for (unsigned n = 0; n < 3; n++)
        at[n] = start([&, n] {
            sharer own(path(), *with_, n, n);
            for (int i = 0; with_->stage == 0; i++) {
                own.commit(i % 4 == 0);
                if (i % 8 == 0)
                    own.read();
                if (i % 100 == 0) // by who may
                    static_cast<void>(ty_snapshot(own.heap()) == TY_OK);
                if (i % 300 == 0 && ty_run_background_work(own.heap()) != TY_OK)
                    own.expect(false, "checkpoint");
            }
            own.close();
        });
    for (unsigned i = 0; i < 3; i++) {
        for (const uint64_t before = with_->acknowledged[i]; with_->acknowledged[i] < before + 100 && !with_->failed;)
            std::this_thread::yield(); // it has something to lose
        ::kill(children_[at[i]], SIGSTOP);
        usleep(1'500'000); // longer than it is waited for
        ::kill(children_[at[i]], SIGCONT);
    }
    with_->stage = 1;
    wait_all();
    EXPECT_FALSE(with_->failed);
    expect_files_have(0);
}

// PR5: its pages are overwritten while it stands still, amid what `read` does. read(own, all): until with.stage is 4.
template <class Read>
void sharing_test::stop_a_reader(const ty_open_options &options, Read &&read) {
    constexpr size_t words = 64 * 512; // in many pages
    start([&] {
        sharer own(path(), *with_, 0);
        own.commit(true);
        for (uint64_t value : {1, 2}) {
            ty_txn *txn = nullptr;
            own.expect(ty_begin(own.heap(), nullptr, &txn), "begin");
            auto *all = static_cast<uint64_t *>(ty_root(own.heap(), "all"));
            if (all == nullptr) {
                all = static_cast<uint64_t *>(ty_txn_alloc(txn, words * 8));
                own.expect(all != nullptr && ty_txn_root_set(txn, "all", all) == TY_OK, "allocate");
            }
            own.expect(ty_declare(txn, all, words * 8), "declare");
            std::fill(all, all + words, value);
            own.expect(ty_commit(txn), "commit");
            own.expect(ty_snapshot(own.heap()), "take a snapshot");
            own.expect(ty_run_background_work(own.heap()), "checkpoint"); // waits for the other one for a second
            with_->stage = value == 1 ? 1 : 4;
            with_->wait_for(value == 1 ? 3 : 5);
        }
        own.close();
    });
    const size_t second = start([&] {
        with_->wait_for(1);
        sharer own(path(), *with_, 1, 1, options);
        read(own);
        own.commit(true);
        with_->stage = 5;
        own.close();
    });
    with_->wait_for(2);
    ::kill(children_[second], SIGSTOP);
    with_->stage = 3;
    with_->wait_for(4);
    ::kill(children_[second], SIGCONT);
    wait_all();
    expect_files_have(2);
}

TEST_F(sharing_test, what_a_stopped_process_has_read_does_not_count) {
    stop_a_reader(shared_options(), [&](sharer &own) {
        own.expect(ty_read_begin(own.heap()), "begin to read");
        const auto *all = static_cast<const volatile uint64_t *>(ty_root(own.heap(), "all"));
        own.expect(all[0] == 1, "the state from before");
        with_->stage = 2;
        with_->wait_for(4);
        own.expect(all[64 * 512 - 1] == 2, "its pages were overwritten");
        own.expect(ty_read_end(own.heap()) == TY_E_EXPIRED, "learn that");
        own.expect(ty_read_begin(own.heap()), "read again");
        own.expect(all[0] == 2, "the newest state");
        own.expect(ty_read_end(own.heap()), "end it");
    });
}

// PR5: no read section ends that could report it.
TEST_F(sharing_test, what_was_read_with_the_programs_lock_does_not_count) {
    struct programs_lock {
        std::recursive_mutex mutex;
        unsigned depth = 0, changes = 0;
    } its;
    const ty_reader_lock lock = {[](void *context) {
                                     auto &own = *static_cast<programs_lock *>(context);
                                     own.mutex.lock();
                                     ++own.depth;
                                     ++own.changes;
                                 },
                                 [](void *context) {
                                     auto &own = *static_cast<programs_lock *>(context);
                                     --own.depth;
                                     own.mutex.unlock();
                                 },
                                 &its};
    ty_open_options options = shared_options();
    options.reader_lock = &lock;
    stop_a_reader(options, [&](sharer &own) {
        const auto *all = static_cast<const volatile uint64_t *>(ty_root(own.heap(), "all"));
        {
            const std::lock_guard reads(its.mutex);
            own.expect(ty_shows_newest(own.heap()) && all[0] == 1, "the state from before");
        }
        const unsigned changes = its.changes;
        with_->stage = 2;
        with_->wait_for(4);
        own.expect(!ty_shows_newest(own.heap()), "know that there is a newer state");
        ty_txn *txn = nullptr;
        own.expect(ty_begin(own.heap(), nullptr, &txn) == TY_E_EXPIRED, "learn that what was read does not count");
        own.expect(its.changes > changes && its.depth == 0, "change memory under the lock");
        own.expect(ty_begin(own.heap(), nullptr, &txn), "begin again");
        own.expect(all[0] == 2, "the newest state");
        bool changed = true;
        own.expect(ty_refresh(own.heap(), 0, &changed) == TY_E_ARGUMENT, "refresh within a transaction");
        own.expect(ty_rollback(txn), "roll back");
        own.expect(ty_refresh(own.heap(), 0, &changed), "refresh");
        own.expect(!changed, "show the newest already");
    });
}

// PR6
TEST_F(sharing_test, another_one_writes_the_log_when_its_writer_closes) {
    start([&] {
        sharer own(path(), *with_, 0);
        own.commit(true);
        with_->stage = 1;
        with_->wait_for(2);
        own.commit(false);
        own.close();
        with_->stage = 3;
    });
    start([&] {
        with_->wait_for(1);
        sharer own(path(), *with_, 1);
        own.commit(false);
        with_->stage = 2;
        with_->wait_for(3);
        own.commit(true);
        own.expect(own.state()->number == 4, "the state of all");
        own.close();
    });
    wait_all();
    expect_files_have(4);
}

// A commit beyond that is refused, and the transaction goes on.
TEST_F(sharing_test, a_transaction_that_is_too_large_is_refused) {
    for (unsigned n = 0; n < 2; n++)
        start([&, n] {
            with_->wait_for(n);
            sharer own(path(), *with_, n);
            own.commit(true);
            ty_txn *txn = nullptr;
            own.expect(ty_begin(own.heap(), nullptr, &txn), "begin");
            constexpr size_t bytes = 3 * mb;
            auto *block = static_cast<uint64_t *>(ty_txn_alloc(txn, bytes));
            own.expect(block != nullptr, "allocate");
            for (size_t i = 0; i < bytes / 8; i++)
                block[i] = i * 0x9e3779b97f4a7c15;
            own.expect(ty_commit(txn) == TY_E_SPACE, "refuse");
            own.expect(ty_txn_free(txn, block), "free");
            own.expect(ty_commit(txn), "commit the rest");
            with_->stage = n + 1;
            with_->wait_for(2);
            own.commit(false);
            own.close();
        });
    wait_all();
    expect_files_have(4);
}

// The last one to close has what others committed without waiting, and died before anybody wrote it.
TEST_F(sharing_test, the_last_one_to_close_writes_what_others_committed) {
    size_t at[3];
    for (unsigned n = 0; n < 3; n++)
        at[n] = start([&, n] {
            with_->wait_for(n == 0 ? 0 : n == 1 ? 1 : 2);
            sharer own(path(), *with_, n);
            own.commit(true);
            with_->stage = n + 1;
            if (n == 2) {
                with_->wait_for(11);
                own.close();
                _exit(0);
            }
            with_->wait_for(3);
            if (n == 1) {
                ::kill(children_[0], SIGSTOP); // so that it does not write the log
                for (int i = 0; i < 20; i++)
                    own.commit(false);
                with_->stage = 10;
            }
            pause();
        });
    with_->wait_for(10);
    kill(children_[at[0]]);
    kill(children_[at[1]]);
    with_->stage = 11;
    wait(at[2]);
    expect_files_have(23);
}

// The processes that wait get the failure, and go on when the disk does.
TEST_F(sharing_test, the_log_cannot_be_written_for_a_while) {
    start([&] {
        static const ty_storage *const plain = ty_storage_default();
        static board *with;
        with = with_;
        ty_storage storage = *plain;
        storage.write_durable = [](void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
            return with->log_fails ? ty_error_set(TY_E_SPACE, 0, "write", nullptr, UINT64_MAX, nullptr)
                                   : plain->write_durable(context, file, offset, buffer, bytes);
        };
        storage.write = [](void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
            return with->log_fails ? ty_error_set(TY_E_SPACE, 0, "write", nullptr, UINT64_MAX, nullptr)
                                   : plain->write(context, file, offset, buffer, bytes);
        };
        storage.write_many = nullptr;
        ty_open_options options = shared_options();
        options.storage = &storage;
        sharer own(path(), *with_, 0, 1, options);
        own.commit(true);
        with_->stage = 1;
        with_->wait_for(2);
        own.close();
    });
    start([&] {
        with_->wait_for(1);
        sharer own(path(), *with_, 1);
        own.commit(true);
        with_->log_fails = true;
        ty_txn *txn = nullptr;
        own.expect(ty_begin(own.heap(), nullptr, &txn), "begin");
        own.expect(ty_declare(txn, own.state()->words, 8), "declare");
        own.state()->words[0]++;
        own.state()->sum++;
        own.expect(ty_declare(txn, &own.state()->sum, 8), "declare");
        own.expect(ty_commit(txn) == TY_E_SPACE, "fail to commit durably");
        with_->log_fails = false;
        own.commit(true);
        own.close();
        with_->stage = 2;
    });
    wait_all();
    expect_files_have(3);
}

TEST_F(sharing_test, a_follower_shows_what_all_of_them_commit) {
    for (unsigned n = 0; n < 2; n++)
        start([&, n] {
            sharer own(path(), *with_, n, n);
            own.run(effort(200));
            with_->stage++;
            with_->wait_for(3);
            own.close();
        });
    with_->wait_for(2);
    start([&] {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = TY_OPEN_FOLLOW;
        ty_heap *heap = nullptr;
        const bool opened = ty_open(path().c_str(), &options, &heap, nullptr) == TY_OK;
        for (int i = 0; opened && i < 10; i++) {
            bool changed = false;
            if (ty_refresh(heap, 10, &changed) != TY_OK)
                _exit(2);
        }
        const auto *state = opened ? static_cast<const counted *>(ty_root(heap, "state")) : nullptr;
        const bool right = state != nullptr && wrong_with(*state) == nullptr &&
                           state->by[0] >= with_->acknowledged[0] && state->by[1] >= with_->acknowledged[1];
        with_->stage = 3;
        _exit(right && ty_close(heap) == TY_OK ? 0 : 1);
    });
    wait_all();
}

TEST_F(sharing_test, what_a_shared_heap_refuses) {
    start([&] { // in another process
        with_->wait_for(1);
        sharer own(path(), *with_, 1);
        own.commit(true);
        own.expect(ty_snapshot(own.heap()) == TY_E_UNSUPPORTED, "refuse a snapshot");
        ty_open_options alone = shared_options();
        alone.shared = false;
        ty_heap *second = nullptr;
        own.expect(ty_open(path().c_str(), &alone, &second, nullptr) == TY_E_BUSY, "refuse an open alone");
        own.close();
    });
    ty_open_options options = shared_options();
    ty_heap *heap = nullptr;
    options.kind = TY_SNAPSHOT;
    EXPECT_EQ(TY_E_ARGUMENT, ty_open(path().c_str(), &options, &heap, nullptr));
    for (int n = 0; n < 5; n++) {
        options = shared_options();
        options.concurrent = n == 0;
        options.check_stores = n == 1;
        options.log_streams = n == 2 ? 2 : 0;
        options.background = n == 3 ? TY_BACKGROUND_CALLS : TY_BACKGROUND_THREAD;
        options.code = n == 4 ? TY_CODE_MAPPED : TY_CODE_DEFAULT;
        EXPECT_EQ(TY_E_UNSUPPORTED, ty_open(path().c_str(), &options, &heap, nullptr)) << n;
    }
    options = shared_options();
    ASSERT_OK(ty_open(path().c_str(), &options, &heap, nullptr));
    EXPECT_EQ(nullptr, ty_reserve(heap, 64));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_object_read_begin(heap, heap));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_mark(heap, "one", nullptr));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_return_to(heap, "one", nullptr));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_branch(heap, folder_.file("other.ty").c_str()));
    ty_heap *rebuilt = heap;
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_rebuild(&rebuilt, nullptr, nullptr));
    EXPECT_OK(ty_snapshot(heap));
    with_->stage = 1;
    wait_all();
    EXPECT_OK(ty_close(heap));
}

// Also while its writer is dead and no other one has taken its place.
TEST_F(sharing_test, nobody_has_it_alone_or_raises_its_limit_while_others_share_it) {
    ty_open_options alone = shared_options(), higher = shared_options();
    alone.shared = false;
    higher.limit_bytes = 2 * alone.limit_bytes;
    auto expect_refused = [&] {
        ty_heap *heap = nullptr;
        EXPECT_EQ(TY_E_BUSY, ty_open(path().c_str(), &alone, &heap, nullptr)) << ty_error_text();
        EXPECT_EQ(TY_E_UNSUPPORTED, ty_open(path().c_str(), &higher, &heap, nullptr)) << ty_error_text();
    };
    const size_t first = start([&] {
        sharer own(path(), *with_, 0);
        own.commit(true);
        with_->stage = 1;
        own.run(-1);
    });
    const size_t second = start([&] {
        with_->wait_for(1);
        sharer own(path(), *with_, 1);
        own.commit(false);
        with_->stage = 2;
        with_->wait_for(3);
        own.commit(true);
        own.close();
    });
    with_->wait_for(2);
    expect_refused();
    int status = 0;
    ::kill(children_[second], SIGSTOP);
    ASSERT_EQ(children_[second], waitpid(children_[second], &status, WUNTRACED));
    kill(children_[first]);
    expect_refused();
    ::kill(children_[second], SIGCONT);
    with_->stage = 3;
    wait_all();
    expect_files_have(0);
}

// Threads of one process, beside another one.
TEST_F(sharing_test, threads_commit_and_read) {
    start([&] {
        sharer own(path(), *with_, 0);
        own.run(effort(200));
        own.close();
    });
    ty_open_options options = shared_options();
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path().c_str(), &options, &heap, nullptr));
    std::atomic<bool> wrong{false};
    std::atomic<int> writing{2};
    auto write = [&](unsigned n) {
        for (int i = 0; i < effort(200); i++) {
            ty_txn *txn = nullptr;
            uint64_t lsn = 0;
            if (ty_begin(heap, nullptr, &txn) != TY_OK) {
                wrong = true;
                break;
            }
            auto *state = static_cast<counted *>(ty_root(heap, "state"));
            if (state != nullptr) {
                wrong = wrong || ty_declare(txn, state, sizeof *state) != TY_OK || wrong_with(*state) != nullptr;
                with_->begun[n]++;
                state->by[n]++;
                state->number++;
            }
            wrong = wrong || (i % 8 == 0 ? ty_commit(txn) : ty_commit_async(txn, &lsn)) != TY_OK;
        }
        writing--;
    };
    auto read = [&] {
        while (writing != 0 && !wrong) {
            if (ty_read_begin(heap) != TY_OK) {
                wrong = true;
                break;
            }
            const auto *state = static_cast<const counted *>(ty_root(heap, "state"));
            const bool right = state == nullptr || wrong_with(*state) == nullptr;
            const ty_status status = ty_read_end(heap);
            wrong = wrong || (status == TY_OK && !right);
        }
    };
    std::thread threads[] = {std::thread(write, 1), std::thread(write, 2), std::thread(read), std::thread(read)};
    for (std::thread &each : threads)
        each.join();
    EXPECT_FALSE(wrong);
    wait_all();
    EXPECT_OK(ty_close(heap));
    expect_files_have(0);
}

TEST_F(sharing_test, processes_that_create_it_at_once_share_one) {
    for (int i = 0; i < effort(10); i++) {
        const std::string name = folder_.file(("heap" + std::to_string(i)).c_str());
        with_->~board();
        new (with_) board{};
        for (unsigned n = 0; n < processes_max; n++)
            start([&, n] {
                with_->stage++;
                with_->wait_for(processes_max);
                sharer own(name, *with_, n, n, shared_options());
                own.commit(false);
                own.close();
            });
        wait_all();
        children_.clear();
        ty_open_options options = shared_options();
        ty_heap *heap = nullptr;
        ASSERT_OK(ty_open(name.c_str(), &options, &heap, nullptr));
        EXPECT_EQ(processes_max, static_cast<const counted *>(ty_root(heap, "state"))->number);
        EXPECT_OK(ty_close(heap));
    }
}

} // namespace
} // namespace taiyen::test
