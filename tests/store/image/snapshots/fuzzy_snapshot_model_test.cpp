// Goal: threads store, allocate and free at all times while snapshots follow one another; whatever moment the power
// fails, or the process dies, the newest snapshot and the log's records after it make exactly what the log says.
// Method: a log in memory that a test keeps, with an LSN for each store, allocation and free. A cut of a simulated
// disk, or a SIGKILL, leaves the snapshot's files; the log counts as far as make_log_durable() had said that it is
// durable. The recovered heap is compared with a model that the records alone make.
#include "fuzzy_calls.hpp"
#include "tests/os/temporary_folder.hpp"

#include <mutex>
#include <set>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr size_t thread_count = 3;
constexpr size_t array_pages = 64;
constexpr size_t array_words = array_pages * page_bytes / sizeof(uint64_t);
constexpr size_t records_a_thread = 100000;
constexpr uint64_t steps_a_phase = 300;

enum class what : uint32_t { store, alloc, free };
struct record {
    uint64_t lsn;
    what kind;
    uint32_t pattern; // of a block's bytes
    uint64_t place;   // a word's index; a block's address
    uint64_t bytes;
};

// In memory that outlives the process that writes it.
struct model_log {
    std::atomic<uint64_t> clock;
    std::atomic<uint64_t> durable; // LSNs up to here count after a crash
    std::atomic<uint64_t> snapshots;
    struct part {
        std::atomic<size_t> count;
        record records[records_a_thread];
    } parts[thread_count];

    static model_log *create() {
        void *memory = mmap(nullptr, sizeof(model_log), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(MAP_FAILED, memory);
        return static_cast<model_log *>(memory); // all zeros
    }
    void destroy() { munmap(this, sizeof *this); }
    bool has_room() const {
        for (const part &each : parts)
            if (each.count.load() + 10 * steps_a_phase > records_a_thread)
                return false;
        return true;
    }
    std::vector<record> in_order() const {
        std::vector<record> all;
        for (const part &each : parts)
            all.insert(all.end(), each.records, each.records + each.count.load());
        std::sort(all.begin(), all.end(), [](const record &a, const record &b) { return a.lsn < b.lsn; });
        return all;
    }
};

struct block_content {
    uint64_t bytes;
    uint32_t pattern;
};

// What the records up to an LSN make.
struct model {
    std::vector<uint64_t> words = std::vector<uint64_t>(array_words);
    std::map<char *, block_content> blocks;

    void checkpoint(const record &r) {
        auto *block = reinterpret_cast<char *>(r.place);
        if (r.kind == what::store)
            words[r.place] = r.lsn;
        else if (r.kind == what::alloc)
            blocks[block] = {r.bytes, r.pattern};
        else
            blocks.erase(block);
    }
};

// Threads that take so many steps as they are given.
class storing_threads {
public:
    storing_threads(ty_heap *heap, model_log &log)
        : heap_(heap), log_(log), words_(static_cast<uint64_t *>(ty_root(heap, "words"))) {
        for (size_t i = 0; i < thread_count; ++i)
            threads_.emplace_back([this, i] { run(i); });
    }
    ~storing_threads() {
        stop_ = true;
        for (std::thread &each : threads_)
            each.join();
    }
    storing_threads(const storing_threads &) = delete;
    storing_threads &operator=(const storing_threads &) = delete;

    void give(uint64_t steps) { given_ += steps; }
    void await_all() const {
        for (const own &each : own_)
            while (each.taken < given_)
                std::this_thread::yield();
    }
    // All stores with LSNs up to the result are made, and no other.
    uint64_t log_durable() {
        for (own &each : own_)
            each.lock.lock();
        uint64_t lsn = log_.clock;
        for (own &each : own_)
            each.lock.unlock();
        return lsn;
    }
    // What was freed so far goes: no snapshot is being started.
    void free_all() {
        for (own &each : own_) {
            std::lock_guard guard(each.lock);
            for (char *block : each.freed)
                EXPECT_OK(ty_free(block));
            each.freed.clear();
        }
    }

private:
    struct own {
        std::mutex lock; // held from taking an LSN until what it stands for is done
        std::atomic<uint64_t> taken{0};
        std::vector<char *> blocks, freed;
    };

    void append(size_t self, what kind, uint32_t pattern, uint64_t place, uint64_t bytes) {
        model_log::part &part = log_.parts[self];
        size_t at = part.count.load();
        part.records[at] = {++log_.clock, kind, pattern, place, bytes};
        part.count.store(at + 1);
    }
    void store(size_t self, std::mt19937_64 &random) {
        uint64_t word = random() % array_words / thread_count * thread_count + self;
        if (word >= array_words)
            return;
        std::lock_guard guard(own_[self].lock);
        append(self, what::store, 0, word, 0);
        word_at(words_, word)
            .store(log_.parts[self].records[log_.parts[self].count - 1].lsn, std::memory_order_relaxed);
    }
    void allocate(size_t self, std::mt19937_64 &random) {
        size_t size = random() % 8 ? 16 + random() % 700 : page_bytes * (1 + random() % 6);
        auto *block = static_cast<char *>(ty_alloc(heap_, size));
        ASSERT_NE(nullptr, block) << ty_error_text();
        size_t bytes = ty_usable_size(block);
        auto pattern = uint32_t(random() % 255 + 1);
        memset(block, int(pattern), bytes);
        std::lock_guard guard(own_[self].lock);
        append(self, what::alloc, pattern, reinterpret_cast<uint64_t>(block), bytes);
        own_[self].blocks.push_back(block);
    }
    void free_one(size_t self, std::mt19937_64 &random) {
        own &mine = own_[self];
        if (mine.blocks.empty())
            return;
        std::lock_guard guard(mine.lock);
        std::swap(mine.blocks[random() % mine.blocks.size()], mine.blocks.back());
        append(self, what::free, 0, reinterpret_cast<uint64_t>(mine.blocks.back()), 0);
        mine.freed.push_back(mine.blocks.back());
        mine.blocks.pop_back();
    }
    void run(size_t self) {
        std::mt19937_64 random(self);
        while (!stop_) {
            if (own_[self].taken == given_) {
                std::this_thread::yield();
                continue;
            }
            uint64_t choice = random() % 16;
            if (choice == 0)
                allocate(self, random);
            else if (choice == 1)
                free_one(self, random);
            else
                store(self, random);
            ++own_[self].taken;
        }
    }

    ty_heap *heap_;
    model_log &log_;
    uint64_t *words_;
    own own_[thread_count];
    std::atomic<uint64_t> given_{0};
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
};

ty_status make_heap(const char *path, const ty_open_options &options, ty_heap **heap) {
    if (ty_status status = ty_open(path, &options, heap, nullptr))
        return status;
    void *words = ty_alloc_zeroed(*heap, array_words * sizeof(uint64_t));
    void *note = ty_alloc_zeroed(*heap, page_bytes);
    EXPECT_OK(ty_root_set(*heap, "words", words));
    EXPECT_OK(ty_root_set(*heap, "note", note));
    return ty_snapshot(*heap);
}

// Takes one snapshot while the threads go on. log_durable is called once the log's durable LSN is set; it may fail.
ty_status snapshot_among(ty_heap *heap, storing_threads &threads, model_log &log,
                         std::function<ty_status()> log_durable) {
    auto *note = static_cast<uint64_t *>(ty_root(heap, "note"));
    fuzzy_calls calls;
    calls.tables = [&](os::page_set &stored) {
        threads.give(steps_a_phase);
        *note = threads.log_durable();
        stored.insert(page_of(heap, note));
        return TY_OK;
    };
    calls.resumed = [&] {
        *note = UINT64_MAX; // what the note says later is nothing to a recovery
        threads.give(steps_a_phase);
    };
    calls.make_log_durable = [&] {
        threads.give(steps_a_phase);
        threads.await_all();      // also stores after all copies
        write_all_there_is(heap); // it must not be whole
        log.durable = threads.log_durable();
        return log_durable();
    };
    threads.give(steps_a_phase);
    image_fuzzy_callbacks running = calls.running();
    uint64_t epoch = 0;
    ty_status status = image_snapshot_start(heap, nullptr, &running, &epoch);
    threads.free_all();
    if (status)
        return status;
    if (status = image_snapshot_wait(heap, epoch); status)
        return status;
    log.snapshots += 1;
    return TY_OK;
}

// What the heap holds beside words and note.
std::set<char *> blocks_in(ty_heap *heap) {
    std::set<char *> blocks;
    for (const auto &[address, bytes] : content_of(heap))
        if (address != ty_root(heap, "words") && address != ty_root(heap, "note"))
            blocks.insert(address);
    return blocks;
}

void replay(ty_heap *heap, uint64_t *words, const record &r) {
    auto *block = reinterpret_cast<char *>(r.place);
    if (r.kind == what::store) {
        words[r.place] = r.lsn;
    } else if (r.kind == what::alloc) {
        ASSERT_OK(ty_alloc_at(heap, block, r.bytes));
        memset(block, int(r.pattern), r.bytes);
    } else {
        ASSERT_OK(ty_free(block));
    }
}

// Does the log again on what the snapshot holds, and compares.
void recover_and_compare(ty_heap *heap, const std::vector<record> &records, uint64_t durable) {
    auto *words = static_cast<uint64_t *>(ty_root(heap, "words"));
    const uint64_t snapshot = *static_cast<uint64_t *>(ty_root(heap, "note"));
    ASSERT_LE(snapshot, durable);
    model expected;
    auto next = records.begin();
    for (; next != records.end() && next->lsn <= snapshot; ++next)
        expected.checkpoint(*next);
    std::set<char *> found = blocks_in(heap);
    for (const auto &[block, bytes] : expected.blocks)
        ASSERT_TRUE(found.contains(block)) << static_cast<void *>(block) << " of before " << snapshot;
    for (char *block : found) // allocated for nobody yet, or freed and still there
        if (!expected.blocks.contains(block)) {
            ASSERT_OK(ty_free(block));
        }
    for (; next != records.end() && next->lsn <= durable; ++next) {
        expected.checkpoint(*next);
        ASSERT_NO_FATAL_FAILURE(replay(heap, words, *next)) << "record " << next->lsn;
    }
    for (size_t i = 0; i < array_words; ++i)
        ASSERT_EQ(expected.words[i], words[i]) << "word " << i << ", snapshot " << snapshot << ", durable " << durable;
    ASSERT_EQ(expected.blocks.size(), blocks_in(heap).size());
    for (const auto &[block, is] : expected.blocks)
        ASSERT_EQ(std::string(is.bytes, char(is.pattern)), std::string(block, is.bytes));
    expect_sound(heap);
}

struct model_case {
    const char *name;
    ty_tracking tracking;
    ty_background background;
};

void PrintTo(const model_case &what, std::ostream *stream) {
    *stream << what.name;
}

class fuzzy_model : public testing::TestWithParam<model_case> {};

INSTANTIATE_TEST_SUITE_P(all, fuzzy_model,
                         testing::Values(model_case{"kernel", TY_TRACK_KERNEL, TY_BACKGROUND_THREAD},
                                         model_case{"kernel_in_calls", TY_TRACK_KERNEL, TY_BACKGROUND_CALLS},
                                         model_case{"signal", TY_TRACK_SIGNAL, TY_BACKGROUND_THREAD}),
                         [](const auto &what) { return what.param.name; });

TEST_P(fuzzy_model, after_power_cuts) {
    constexpr int snapshots = 15;
    int failures = 0;
    std::mt19937_64 random(1);
    disk files;
    ty_open_options options = files.options();
    options.tracking = GetParam().tracking;
    options.background = GetParam().background;
    ty_heap *heap = nullptr;
    ty_status status = make_heap(heap_path, options, &heap);
    if (status == TY_E_UNSUPPORTED)
        GTEST_SKIP() << ty_error_text();
    ASSERT_OK(status);
    model_log *log = model_log::create();
    struct moment {
        uint64_t event;
        uint64_t durable;
    };
    std::vector<moment> moments{{os::sim_event_count(files.get()), 0}};
    {
        storing_threads threads(heap, *log);
        for (int i = 0; i < snapshots; ++i) {
            ASSERT_TRUE(log->has_room());
            // Now and then something fails: then the next snapshot has what this one had, and more.
            uint64_t fails = i % 3 == 2 ? random() % 8 : UINT64_MAX;
            if (fails < 6)
                os::sim_set_fault(files.get(), {fails % 2 ? os::sim_op_flush : os::sim_op_write, fails / 2});
            ty_status taken = snapshot_among(heap, threads, *log, [&] {
                moments.push_back({os::sim_event_count(files.get()), log->durable});
                return fails < UINT64_MAX && fails >= 6 ? refuse("make a log durable for a test") : TY_OK;
            });
            os::sim_set_fault(files.get(), {});
            if (fails == UINT64_MAX) {
                ASSERT_OK(taken);
            }
            failures += taken != TY_OK;
            if (i % 4 == 3) {
                ASSERT_OK(ty_run_background_work(heap));
            }
        }
    }
    const uint64_t first = moments.front().event, end = os::sim_event_count(files.get());
    ASSERT_OK(ty_discard(heap));
    const std::vector<record> records = log->in_order();
    log->destroy();

    EXPECT_GT(failures, 0);
    std::vector<uint64_t> cuts{end};
    for (const moment &each : moments) // also right before the log is durable
        for (uint64_t event = each.event - std::min<uint64_t>(each.event - first, 2); event <= each.event + 2; ++event)
            cuts.push_back(std::min(event, end));
    for (int i = 0; i < 30; ++i)
        cuts.push_back(first + random() % (end - first + 1));
    constexpr os::sim_cut kinds[] = {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random,
                                     os::sim_cut::prefix, os::sim_cut::trash};
    std::set<uint64_t> epochs;
    for (size_t i = 0; i < cuts.size(); ++i) {
        SCOPED_TRACE(testing::Message() << "event " << cuts[i] << " of " << end << ", kind " << i % std::size(kinds));
        uint64_t durable = 0;
        for (const moment &each : moments)
            if (each.event <= cuts[i])
                durable = each.durable;
        disk left(os::sim_power_cut(files.get(), cuts[i], kinds[i % std::size(kinds)], i));
        ty_open_options again = left.options();
        again.limit_bytes = 0;
        ASSERT_OK(ty_open(heap_path, &again, &heap, nullptr));
        epochs.insert(ty_heap_epoch(heap));
        recover_and_compare(heap, records, durable);
        EXPECT_OK(ty_discard(heap));
        if (testing::Test::HasFailure())
            return;
    }
    EXPECT_GT(epochs.size(), size_t{snapshots} / 2); // the cuts met many snapshots
}

// Ends when it is killed; or with a status that says what went wrong.
[[noreturn]] void store_until_killed(const char *path, const ty_open_options &options, model_log &log) {
    ty_heap *heap = nullptr;
    if (make_heap(path, options, &heap))
        _exit(2);
    storing_threads threads(heap, log);
    while (log.has_room())
        if (snapshot_among(heap, threads, log, [] { return TY_OK; }))
            _exit(3);
    for (;;)
        pause();
}

TEST_P(fuzzy_model, after_a_kill) {
    constexpr uint64_t rounds = 6;
    for (uint64_t round = 0; round < rounds; ++round) {
        temporary_folder folder;
        const std::string path = folder.file("heap.ty");
        ty_open_options options = options_of(TY_SNAPSHOT);
        options.tracking = GetParam().tracking;
        options.background = GetParam().background;
        model_log *log = model_log::create();
        pid_t child = fork();
        if (child == 0)
            store_until_killed(path.c_str(), options, *log);
        ASSERT_GT(child, 0);
        siginfo_t ended{};
        while (log->snapshots < 2 + round && !ended.si_pid)
            ASSERT_EQ(0, waitid(P_PID, id_t(child), &ended, WEXITED | WNOHANG | WNOWAIT));
        for (uint64_t spin = (round * 0x9e3779b97f4a7c15) >> 43; spin > 0; --spin)
            asm volatile("");
        ASSERT_EQ(0, kill(child, SIGKILL));
        int state = 0;
        ASSERT_EQ(child, waitpid(child, &state, 0));
        if (WIFEXITED(state) && WEXITSTATUS(state) == 2)
            GTEST_SKIP() << "this kernel has not got the method";
        ASSERT_TRUE(WIFSIGNALED(state)) << "the child ended by itself: " << WEXITSTATUS(state);
        options.limit_bytes = 0;
        ty_heap *heap = nullptr;
        ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
        recover_and_compare(heap, log->in_order(), log->durable);
        EXPECT_OK(ty_discard(heap));
        log->destroy();
        if (testing::Test::HasFailure())
            return;
    }
}

} // namespace
