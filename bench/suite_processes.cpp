// Several processes on one heap or one database.
//
// Turns: so many processes each commit as fast as they can, one transaction at a time over all of them: a transaction
// adds 1 to each of 6 random words of 100,000. Durable (sync) or not (async). `least` is the slowest process's part of
// an equal share. follow-rate: commits that wait for nothing, alone and with 8 followers that refresh 20 times a
// second; processor time of the writer's process. follow-lag: 10,000 commits a second; how old what a follower shows
// is, just after a refresh. follow-refresh: a refresh after 100 scattered pages of 1 GB have changed; what the
// follower's memory has grown by, after it has read the whole heap and before the first change.
//
// Why the comparison is fair: each process of a peer has the database open as its documentation recommends for several
// processes (commit_NAME.cpp says how), and all words are counted afterwards: a transaction that is lost or doubled
// ends the suite. All begin at the same moment; subjects take turns.
#include "commit_store.hpp"
#include "files.hpp"
#include "laps.hpp"
#include "process.hpp"

#include <atomic>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <sys/mman.h>
#include <taiyen/follow.h>

namespace bench {

namespace {

constexpr size_t turn_words = 100000;
constexpr size_t follower_count = 8;
constexpr size_t changed_pages = 100;
constexpr std::chrono::milliseconds refresh_interval{50};
constexpr double paced_per_s = 10000;
constexpr int64_t burst_ns = 1'000'000; // paced commits are made up for this often
constexpr const char *alone = "alone";

struct turn_case {
    const char *name;
    size_t processes;
    bool sync;
};
constexpr turn_case turn_cases[] = {
    {"turns-sync-1", 1, true},   {"turns-sync-2", 2, true},   {"turns-sync-4", 4, true},   {"turns-sync-8", 8, true},
    {"turns-async-1", 1, false}, {"turns-async-2", 2, false}, {"turns-async-4", 4, false}, {"turns-async-8", 8, false},
};

std::vector<std::string> case_names() {
    std::vector<std::string> names = names_of(turn_cases);
    names.insert(names.end(), {"follow-rate", "follow-lag", "follow-refresh"});
    return names;
}

double clock_ns(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

word_set pick(random_source &random, size_t words) {
    word_set picked;
    for (uint64_t &each : picked)
        each = random.below(words);
    return picked;
}

uint64_t sum_of(commit_store &store, size_t words) {
    uint64_t sum = 0;
    for (uint64_t key = 0, value = 0; key < words; key++) {
        store.read(key, {reinterpret_cast<char *>(&value), sizeof value});
        sum += value;
    }
    return sum;
}

void take_turns(session &session, const store_kind &kind, const turn_case &which, double ns) {
    store_settings settings = {.path = session.path(std::string(kind.name) + "-turns"),
                               .content = table_content::words,
                               .count = session.scaled(turn_words),
                               .sync = which.sync,
                               .shared = true};
    std::filesystem::create_directory(settings.path);
    in_child([&] {
        std::unique_ptr<commit_store> store = kind.make(settings);
        store->open();
        store->fill();
        store->close();
        return std::vector<double>();
    });
    flush_folder(settings.path);
    auto each = [&](size_t index, const std::function<void()> &start) {
        std::unique_ptr<commit_store> store = kind.make(settings);
        random_source random(index + 1);
        store->open();
        start();
        lap lap = run_until(ns, stopwatch(), 1, [&] { store->add_one(pick(random, settings.count)); });
        store->close();
        return std::vector<double>{static_cast<double>(lap.transactions), lap.ns};
    };
    double all = 0, least = std::numeric_limits<double>::infinity(), longest_ns = 0;
    for (const std::vector<double> &lap : in_children(which.processes, each)) {
        all += lap.at(0);
        least = std::min(least, lap.at(0));
        longest_ns = std::max(longest_ns, lap.at(1));
    }
    double counted = in_child([&] {
                         std::unique_ptr<commit_store> store = kind.make(settings);
                         store->open();
                         std::vector<double> sum = {static_cast<double>(sum_of(*store, settings.count))};
                         store->close();
                         return sum;
                     }).at(0);
    if (counted != all * static_cast<double>(std::tuple_size_v<word_set>))
        throw std::runtime_error(std::string(kind.name) + " has other transactions than were committed");
    std::filesystem::remove_all(settings.path);
    session.out().add(which.name, kind.name, "txn_per_s", "1/s", all / longest_ns * 1e9);
    session.out().add(which.name, kind.name, "least", "1", least * static_cast<double>(which.processes) / all);
}

// What the processes of a case share: this lies in memory that all of them map.
struct signs {
    std::atomic<bool> ended;
    std::atomic<size_t> changes, refreshes;
};

class followed_heap {
public:
    followed_heap(std::string path, size_t bytes) : path_(std::move(path)), bytes_(bytes) {
        void *page = mmap(nullptr, sizeof(signs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
            fail_system("cannot map a page");
        signs_ = new (page) signs{};
        in_child([&] { return make(); });
        flush_folder(std::filesystem::path(path_).parent_path());
    }
    followed_heap(const followed_heap &) = delete;
    ~followed_heap() {
        munmap(signs_, sizeof(signs));
        remove_heap(path_);
    }

    ty_heap *open(ty_open_mode mode) const {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = bytes_ + (size_t{64} << 20);
        options.mode = mode;
        ty_heap *heap = nullptr;
        check(ty_open(path_.c_str(), &options, &heap, nullptr), "cannot open the heap");
        return heap;
    }

    // The first word is the time of the last commit.
    static uint64_t *words(ty_heap *heap) { return static_cast<uint64_t *>(ty_root(heap, "words")); }

    size_t bytes() const { return bytes_; }
    signs &seen_by_all() const { return *signs_; }

private:
    std::vector<double> make() {
        ty_heap *heap = open(TY_OPEN_OR_CREATE);
        ty_txn *txn = nullptr;
        check(ty_begin(heap, nullptr, &txn), "cannot begin");
        void *words = ty_txn_alloc(txn, bytes_);
        check(ty_txn_root_set(txn, "words", words), "cannot set a root");
        check(ty_commit(txn), "cannot commit");
        std::memset(words, 1, bytes_); // so that the image has all of it
        check(ty_snapshot(heap), "cannot take a snapshot");
        check(ty_close(heap), "cannot close the heap");
        return {};
    }

    std::string path_;
    size_t bytes_;
    signs *signs_;
};

// Commits that wait for nothing until `ns`, at most so many a second (0: as many as it can): how many a second, and
// nanoseconds of the process's processor time for each.
std::vector<double> commit_until(double ns, double per_s, const followed_heap &heap,
                                 const std::function<void()> &start) {
    ty_heap *handle = heap.open(TY_OPEN_OR_CREATE);
    uint64_t *words = heap.words(handle);
    random_source random(1);
    start();
    double before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    stopwatch watch;
    size_t commits = 0;
    for (; watch.ns() < ns; commits++) {
        if (const double due_ns = per_s > 0 ? static_cast<double>(commits) / per_s * 1e9 - watch.ns() : 0; due_ns > 0)
            std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<int64_t>(due_ns) + burst_ns));
        ty_txn *txn = nullptr;
        check(ty_begin(handle, nullptr, &txn), "cannot begin");
        uint64_t *word = words + 1 + random.below(heap.bytes() / sizeof *words - 1);
        for (uint64_t *each : {words, word})
            check(ty_declare(txn, each, sizeof *each), "cannot declare");
        ++*word;
        *words = static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC));
        check(ty_commit_async(txn, nullptr), "cannot commit");
    }
    std::vector<double> figures = {static_cast<double>(commits) / watch.ns() * 1e9,
                                   (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / static_cast<double>(commits)};
    heap.seen_by_all().ended = true;
    check(ty_close(handle), "cannot close the heap");
    return figures;
}

// How old what is shown after a refresh is, in the median: milliseconds.
std::vector<double> follow_until_end(const followed_heap &heap, const std::function<void()> &start) {
    ty_heap *handle = heap.open(TY_OPEN_FOLLOW);
    start();
    std::vector<double> lags = {};
    do {
        std::this_thread::sleep_for(refresh_interval);
        bool changed = false;
        check(ty_refresh(handle, 0, &changed), "cannot refresh");
        if (changed)
            lags.push_back((clock_ns(CLOCK_MONOTONIC) - static_cast<double>(*heap.words(handle))) / 1e6);
    } while (!heap.seen_by_all().ended);
    check(ty_close(handle), "cannot close the heap");
    return {lags.empty() ? std::numeric_limits<double>::quiet_NaN() : quantile(lags, 0.5)};
}

void follow(session &session, const char *name, const char *subject, double ns, double per_s) {
    followed_heap heap(session.path("followed.ty"), session.scaled(size_t{1} << 20));
    size_t followers = subject == std::string(alone) ? 0 : follower_count;
    std::vector<std::vector<double>> figures =
        in_children(1 + followers, [&](size_t index, const std::function<void()> &start) {
            return index == 0 ? commit_until(ns, per_s, heap, start) : follow_until_end(heap, start);
        });
    session.out().add(name, subject, "txn_per_s", "1/s", figures.at(0).at(0));
    session.out().add(name, subject, "ns_per_txn", "ns", figures.at(0).at(1));
    for (size_t index = 1; index < figures.size(); index++)
        session.out().add(name, subject, "lag_ms", "ms", figures.at(index).at(0));
}

void wait_until(const std::atomic<size_t> &count, size_t least) {
    while (count < least)
        std::this_thread::yield();
}

// After each refresh of the follower it changes some pages.
std::vector<double> change_pages(const followed_heap &heap, size_t rounds) {
    ty_heap *handle = heap.open(TY_OPEN_OR_CREATE);
    for (size_t round = 1; round <= rounds; round++) {
        wait_until(heap.seen_by_all().refreshes, round);
        ty_txn *txn = nullptr;
        check(ty_begin(handle, nullptr, &txn), "cannot begin");
        for (uint32_t page : random_pages(changed_pages, heap.bytes() / page_bytes, round)) {
            uint64_t *word = heap.words(handle) + page * (page_bytes / sizeof *word);
            check(ty_declare(txn, word, sizeof *word), "cannot declare");
            ++*word;
        }
        check(ty_commit(txn), "cannot commit");
        heap.seen_by_all().changes = round;
    }
    wait_until(heap.seen_by_all().refreshes, rounds + 1);
    check(ty_close(handle), "cannot close the heap");
    return {};
}

// Milliseconds of a refresh, and the bytes of its own that reading the whole heap took.
std::vector<double> refresh_pages(const followed_heap &heap, size_t rounds) {
    ty_heap *handle = heap.open(TY_OPEN_FOLLOW);
    auto *bytes = reinterpret_cast<const volatile char *>(heap.words(handle));
    double before = private_bytes();
    for (size_t at = 0; at < heap.bytes(); at += page_bytes)
        bytes[at];
    double own = private_bytes() - before;
    std::vector<double> times;
    for (size_t round = 1; round <= rounds; round++) {
        heap.seen_by_all().refreshes = round;
        wait_until(heap.seen_by_all().changes, round);
        stopwatch watch;
        bool changed = false;
        check(ty_refresh(handle, 0, &changed), "cannot refresh");
        times.push_back(watch.ms());
        if (!changed)
            throw std::runtime_error("a refresh does not show what was committed");
    }
    heap.seen_by_all().refreshes = rounds + 1;
    check(ty_close(handle), "cannot close the heap");
    return {quantile(times, 0.5), own};
}

void refresh(session &session, size_t rounds) {
    followed_heap heap(session.path("refreshed.ty"), session.scaled(size_t{1} << 30));
    std::vector<double> figures = in_children(2, [&](size_t index, const std::function<void()> &) {
                                      return index == 0 ? change_pages(heap, rounds) : refresh_pages(heap, rounds);
                                  }).at(1);
    session.out().add("follow-refresh", self, "refresh_ms", "ms", figures.at(0));
    session.out().add("follow-refresh", self, "own_bytes", "bytes", figures.at(1));
}

void run(session &session) {
    auto ns = [&](double full_s) {
        return full_s * 1e9 / (session.options().quick ? 4 : 1) / static_cast<double>(session.options().divisor);
    };
    std::vector<store_kind> stores;
    for (const store_kind &kind : store_kinds())
        for (const char *taking_turns : {self, "lmdb", "sqlite"})
            if (std::string(kind.name) == taking_turns)
                stores.push_back(kind);
    for (const turn_case &which : turn_cases) {
        std::vector<session::subject> subjects;
        for (const store_kind &kind : stores)
            subjects.push_back({kind.name, [&session, &kind, &which, ns] { take_turns(session, kind, which, ns(2)); }});
        session.interleave(which.name, session.repetitions(5), std::move(subjects));
    }
    for (const char *name : {"follow-rate", "follow-lag"}) {
        double per_s = name == std::string("follow-lag") ? paced_per_s : 0;
        auto followed_by = [&session, name, per_s, ns](const char *subject) {
            return session::subject{subject, [=, &session] { follow(session, name, subject, ns(3), per_s); }};
        };
        session.interleave(name, session.repetitions(9), {followed_by(self), followed_by(alone)});
    }
    session.interleave("follow-refresh", session.repetitions(3),
                       {{self, [&] { refresh(session, session.work(200)); }}});
    session.out().note("turns: 6 of 100,000 words a transaction; least: the slowest process's part of an equal share. "
                       "follow: taiyen has 8 followers that refresh 20 times a second, alone has none.");
}

void evaluate(session &session) {
    results &out = session.out();
    for (const turn_case &which : turn_cases)
        for (const char *peer : {"lmdb", "sqlite"})
            out.bar_at_least(std::string(which.name) + ": rate over " + peer,
                             out.ratio(which.name, "txn_per_s", self, peer), which.sync ? 1 : 3);
    out.bar("follow-lag: processor time of a commit over alone", out.ratio("follow-lag", "ns_per_txn", self, alone),
            1.05);
    out.bar("follow-lag: milliseconds", out.median("follow-lag", self, "lag_ms"), 20);
    out.bar("follow-refresh: milliseconds", out.median("follow-refresh", self, "refresh_ms"), 1);
    out.bar("follow-refresh: MB of its own", out.median("follow-refresh", self, "own_bytes") / 1e6, 10);
}

} // namespace

extern const suite processes_suite;
const suite processes_suite = {"processes", "processes that write in turns, and followers, beside databases",
                               case_names, run, evaluate};

} // namespace bench
