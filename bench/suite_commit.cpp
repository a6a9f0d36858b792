// The cost of a transaction: taiyen, other stores, and the limits of the machine.
//
// Words: a transaction adds 1 to each of 6 random words of 8 bytes, of as many as 1 GB holds. In taiyen's heap, in
// libpmemobj's pool and in raw memory the words are adjacent; the other stores keep one record per word, in up to 3.5
// GB. In async-1-small all have an eighth as many: fewer levels of a tree, and better cached. Churn: a transaction
// removes a record of 16 to 256 bytes, adds another, and looks up a third, among 100,000. kill-reopen: a process
// commits words without waiting for the disk and is killed in the middle of it; the reopen is timed until its first
// transaction is committed, and lost transactions are counted.
//
// Why the comparison is fair: every turn of a subject is a process of its own that opens the store, warms it up,
// measures, and closes it; then its files are flushed, so that no writeback disturbs the next subject. Subjects take
// turns. Each peer is set up as its documentation recommends for this job (commit_NAME.cpp says how), and unclear cases
// are decided in the peer's favour. raw writes one block per transaction, as taiyen does. In the relaxed cases every
// 32nd transaction is timed, so that the cost of clocks does not count.
#include "churn_cases.hpp"
#include "commit_store.hpp"
#include "files.hpp"
#include "kernel_probe.hpp"
#include "laps.hpp"
#include "process.hpp"

#include <algorithm>
#include <filesystem>
#include <semaphore>
#include <utility>

namespace bench {

namespace {

constexpr size_t live_records = 100000;
constexpr size_t kill_transactions = 100000;
constexpr double record_bytes = 16; // of a word, as address and value

enum class who { all, self_only };

struct word_case {
    const char *name;
    size_t threads;
    bool sync;
    who subjects = who::all;
    bool automatic = false;
    bool pairs = false; // two words per page: three pages per transaction
    table_values values = table_values::counters;
    size_t words = gigabyte_words;
    double seconds = 2;
    size_t turns = 3;
};
constexpr word_case word_cases[] = {
    // The disk's rate drifts by a third between turns: so many turns where the results are close to each other.
    {.name = "sync-1", .threads = 1, .sync = true, .turns = 11},
    {"sync-4", 4, true},
    {.name = "sync-16", .threads = 16, .sync = true, .turns = 11},
    {"async-1", 1, false},
    {.name = "async-1-small", .threads = 1, .sync = false, .words = small_words},
    {"async-4", 4, false},
    // Long enough for snapshots to fall due.
    {.name = "sustained-1", .threads = 1, .sync = false, .subjects = who::self_only, .seconds = 8},
    {"auto-1", 1, false, who::self_only, true, true},
    {"declared-1", 1, false, who::self_only, false, true},
    {"bytes-counter", 1, false, who::self_only},
    {"bytes-random", 1, false, who::self_only, false, false, table_values::random},
};

std::vector<std::string> case_names() {
    std::vector<std::string> names = names_of(word_cases);
    names.insert(names.end(), {"churn-sync", "churn-async", "kill-reopen"});
    return names;
}

bool is_about_bytes(const word_case &which) {
    return std::string(which.name).starts_with("bytes-");
}

// Draws words from a thread's part of the table.
class word_picker {
public:
    word_picker(size_t words, size_t shares, size_t share, bool pairs)
        : random_(share + 1), first_(words / shares * share), words_(words / shares), pairs_(pairs) {}

    word_set pick() {
        word_set words;
        for (size_t at = 0; at < words.size(); at++)
            words[at] = pairs_ && at % 2 == 1 ? words[at - 1] ^ (1 + random_.below(page_words - 1))
                                              : first_ + random_.below(words_);
        return words;
    }

private:
    static constexpr size_t page_words = page_bytes / sizeof(uint64_t);
    random_source random_;
    size_t first_, words_;
    bool pairs_;
};

size_t stride_of(bool sync) {
    return sync ? 1 : 32;
}

// Transactions of all threads, in parallel.
lap run_threads(commit_store &store, const word_case &which, size_t words, double ns) {
    std::vector<lap> laps(which.threads);
    run_side_by_side(which.threads, [&](size_t index, const stopwatch &watch) {
        word_picker picker(words, which.threads, index, which.pairs);
        laps[index] = run_until(ns, watch, stride_of(which.sync), [&] { store.add_one(picker.pick()); });
    });
    lap all;
    for (const lap &each : laps)
        all.add(each);
    return all;
}

struct figures {
    double per_s = 0, p50_us = 0, p99_us = 0, log_bytes = 0;
};

figures figures_of(lap lap, double log_bytes) {
    double transactions = static_cast<double>(lap.transactions);
    return {.per_s = transactions / lap.ns * 1e9,
            .p50_us = quantile(lap.us, 0.5),
            .p99_us = quantile(lap.us, 0.99),
            .log_bytes = log_bytes / transactions};
}

class stage {
public:
    explicit stage(session &session) : session_(session) {}

    void run_words(const store_kind &kind, const word_case &which) {
        store_settings settings = prepare_words(kind, which.words);
        settings.sync = which.sync;
        settings.automatic = which.automatic;
        settings.values = which.values;
        auto transact = [&](commit_store &store, double ns) { return run_threads(store, which, settings.count, ns); };
        add(which.name, kind.name, is_about_bytes(which), measure(kind, settings, transact, which.seconds));
    }

    void run_churn(const store_kind &kind, const char *name, bool sync) {
        store_settings settings = prepare(kind, "records", table_content::records, live_records);
        settings.sync = sync;
        std::vector<uint64_t> keys;
        add(name, kind.name, false, measure(kind, settings, [&](commit_store &store, double ns) {
                if (keys.empty())
                    keys = live_keys(store, settings.count);
                return run_churn_until(ns, store, keys, stride_of(sync));
            }));
    }

    void run_kill(const store_kind &kind) {
        store_settings settings = prepare_words(kind, gigabyte_words);
        settings.sync = false;
        write_file(session_.path("kill-counts"), page_bytes);
        mapping shared = mapping::of_file(session_.path("kill-counts"), 0, page_bytes, true);
        auto *counts = new (shared.data()) kill_counts;
        size_t target = session_.work(kill_transactions);
        target += random_source(++kills_).below(target / 4 + 1);
        in_killed_child([&] { commit_until_killed(kind, settings, *counts, target); });
        std::vector<double> seen = in_child([&] { return reopen(kind, settings); });
        flush_folder(settings.path);
        double committed = static_cast<double>(counts->before + counts->committed.load());
        if (seen.at(1) > committed + 1)
            throw std::runtime_error(std::string(kind.name) + " has more transactions than were committed");
        session_.out().add("kill-reopen", kind.name, "reopen_ms", "ms", seen.at(0));
        session_.out().add("kill-reopen", kind.name, "lost_txn", "count", std::max(committed - seen.at(1), 0.0));
    }

private:
    struct kill_counts {
        uint64_t before = 0;                // word 0 when the process began
        std::atomic<uint64_t> committed{0}; // written by the process that is killed, read after its death
    };

    store_settings prepare_words(const store_kind &kind, size_t words) {
        return prepare(kind, words == small_words ? "words-small" : "words", table_content::words, words);
    }

    // Creates and fills the table on its first use.
    store_settings prepare(const store_kind &kind, const std::string &table, table_content content, size_t count) {
        store_settings settings = {.path = session_.path(std::string(kind.name) + "-" + table),
                                   .content = content,
                                   .count = session_.scaled(count),
                                   .sync = false};
        if (std::filesystem::exists(settings.path))
            return settings;
        std::filesystem::create_directory(settings.path);
        in_child([&] {
            std::unique_ptr<commit_store> store = kind.make(settings);
            store->open();
            store->fill();
            store->close();
            return std::vector<double>();
        });
        flush_folder(settings.path);
        return settings;
    }

    double measured_ns(double full_s) const {
        return full_s * 1e9 / (session_.options().quick ? 5 : 1) / static_cast<double>(session_.options().divisor);
    }

    template <typename Work>
    figures measure(const store_kind &kind, const store_settings &settings, Work work, double seconds = 2) {
        std::vector<double> all = in_child([&] {
            std::unique_ptr<commit_store> store = kind.make(settings);
            store->open();
            store->warm_up();
            work(*store, measured_ns(0.5));
            double before = store->log_bytes();
            lap lap = work(*store, measured_ns(seconds));
            figures got = figures_of(std::move(lap), store->log_bytes() - before);
            store->close();
            return std::vector<double>{got.per_s, got.p50_us, got.p99_us, got.log_bytes};
        });
        flush_folder(settings.path);
        return {all.at(0), all.at(1), all.at(2), all.at(3)};
    }

    void add(const std::string &name, const char *subject, bool bytes_only, const figures &figures) {
        results &out = session_.out();
        if (!bytes_only) {
            out.add(name, subject, "txn_per_s", "1/s", figures.per_s);
            out.add(name, subject, "p50_us", "us", figures.p50_us);
            out.add(name, subject, "p99_us", "us", figures.p99_us);
        }
        if (!std::isnan(figures.log_bytes))
            out.add(name, subject, "log_bytes_per_txn", "bytes", figures.log_bytes);
    }

    // The record in slot n has the key n or n + count: its replacement takes the other.
    static std::vector<uint64_t> live_keys(commit_store &store, size_t count) {
        std::vector<uint64_t> keys(count);
        char copy[most_record_bytes];
        for (uint64_t slot = 0; slot < count; slot++)
            keys[slot] = store.read(slot, copy) > 0 ? slot : slot + count;
        return keys;
    }

    static lap run_churn_until(double ns, commit_store &store, std::vector<uint64_t> &keys, size_t stride) {
        random_source random(1);
        size_table sizes(least_record_bytes, most_record_bytes, 2);
        return run_until(ns, stopwatch(), stride, [&] {
            size_t slot = random.below(keys.size());
            size_t other = (slot + 1 + random.below(keys.size() - 1)) % keys.size();
            uint64_t made = keys[slot] < keys.size() ? keys[slot] + keys.size() : keys[slot] - keys.size();
            uint64_t removed = std::exchange(keys[slot], made);
            store.churn({.remove = removed, .insert = made, .look_up = keys[other], .bytes = sizes.pick(random)});
        });
    }

    // Returns when enough is committed, while another thread continues to commit: so the kill comes at any point.
    static void commit_until_killed(const store_kind &kind, const store_settings &settings, kill_counts &counts,
                                    size_t target) {
        commit_store *store = kind.make(settings).release(); // it is never closed
        store->open();
        store->read(0, {reinterpret_cast<char *>(&counts.before), sizeof counts.before});
        static std::binary_semaphore enough(0);
        std::thread([&counts, store, target, words = settings.count] {
            word_picker picker(words, 1, 0, false);
            for (;;) {
                word_set chosen = picker.pick();
                for (uint64_t &each : chosen)
                    each = std::max<uint64_t>(each, 1);
                chosen[0] = 0; // this word counts the transactions, so each of them has it once
                store->add_one(chosen);
                // Relaxed: the reader waits for the death of this process.
                if (counts.committed.fetch_add(1, std::memory_order_relaxed) + 1 == target)
                    enough.release();
            }
        }).detach();
        enough.acquire();
    }

    // Milliseconds, and the value of word 0.
    static std::vector<double> reopen(const store_kind &kind, const store_settings &settings) {
        std::unique_ptr<commit_store> store = kind.make(settings);
        stopwatch watch;
        store->open();
        store->add_one({0, 1, 2, 3, 4, 5});
        double ms = watch.ms();
        uint64_t count = 0;
        store->read(0, {reinterpret_cast<char *>(&count), sizeof count});
        store->close();
        return {ms, static_cast<double>(count - 1)};
    }

    session &session_;
    uint64_t kills_ = 0;
};

template <typename Run>
std::vector<session::subject> subjects_of(const std::vector<store_kind> &kinds, Run run) {
    std::vector<session::subject> subjects;
    for (const store_kind &kind : kinds)
        subjects.push_back({kind.name, [run, &kind] { run(kind); }});
    return subjects;
}

void run(session &session) {
    stage stage(session);
    std::vector<store_kind> stores = store_kinds(), durable = stores, relaxed = stores, own;
    durable.insert(durable.begin(), raw_kind);
    relaxed.insert(relaxed.begin(), {raw_kind, raw_huge_kind});
    std::copy_if(stores.begin(), stores.end(), std::back_inserter(own),
                 [](const store_kind &kind) { return std::string(kind.name) == self; });
    for (const word_case &which : word_cases)
        session.interleave(which.name, session.repetitions(which.turns),
                           subjects_of(which.subjects == who::self_only ? own
                                       : which.sync                     ? durable
                                                                        : relaxed,
                                       [&](const store_kind &kind) { stage.run_words(kind, which); }));
    for (const char *name : {"bytes-counter", "bytes-random"})
        if (session.is_wanted(name))
            session.out().add(name, "records", "log_bytes_per_txn", "bytes", record_bytes * std::size(word_set()));
    size_t times = session.repetitions(3);
    for (bool sync : {true, false}) {
        const char *name = sync ? "churn-sync" : "churn-async";
        session.interleave(name, times, subjects_of(stores, [&stage, name, sync](const store_kind &kind) {
                               stage.run_churn(kind, name, sync);
                           }));
    }
    session.interleave("kill-reopen", times,
                       subjects_of(stores, [&](const store_kind &kind) { stage.run_kill(kind); }));
    session.out().note("6 random 8-byte words a transaction. raw: direct synchronous overwrites of one block; relaxed: "
                       "the same words in plain memory, in pages of 4 KB as the heap's are; raw-huge: in huge pages, "
                       "which no file's mapping has. records: 16 bytes a word, address and value.");
    session.out().note("Relaxed, libpmemobj flushes processor caches only; the others write to the page cache. "
                       "log_bytes_per_txn is what each says that it has written to its log.");
}

// The highest rate of these in a case; NaN if there is none.
double best(const results &out, const std::string &name, std::initializer_list<const char *> subjects) {
    double best = std::numeric_limits<double>::quiet_NaN();
    for (const char *subject : subjects)
        best = std::fmax(best, out.median(name, subject, "txn_per_s")); // fmax ignores a NaN
    return best;
}

void evaluate(session &session) {
    results &out = session.out();
    auto rate = [&](const char *name) { return out.median(name, self, "txn_per_s"); };
    auto over_peers = [&](const char *name) {
        return rate(name) / best(out, name, {"lmdb", "sqlite", "rocksdb", "bdb", "libpmemobj"});
    };
    out.bar_at_least("sync-1: rate over raw", out.ratio("sync-1", "txn_per_s", self, "raw"), 0.92);
    out.bar_at_least("sync-1: rate over the best peer", over_peers("sync-1"), 1.2);
    out.bar_at_least("sync-16: rate over sync-1", rate("sync-16") / rate("sync-1"), 10);
    out.bar_at_least("sync-16: rate over the best peer", over_peers("sync-16"), 3);
    out.bar_at_least("async-1: rate over raw", out.ratio("async-1", "txn_per_s", self, "raw"), 0.3);
    for (std::string name : {"async-1", "async-1-small"})
        out.bar_at_least(name + ": rate over the best of lmdb, bdb, rocksdb",
                         rate(name.c_str()) / best(out, name, {"lmdb", "bdb", "rocksdb"}), 20);
    out.bar_at_least("async-1: rate over libpmemobj", out.ratio("async-1", "txn_per_s", self, "libpmemobj"), 5);
    out.bar("bytes-counter: log bytes over records", out.ratio("bytes-counter", "log_bytes_per_txn", self, "records"),
            0.45);
    out.bar("bytes-random: log bytes over records", out.ratio("bytes-random", "log_bytes_per_txn", self, "records"),
            0.75);
    out.bar("auto-1: microseconds more than declared-1",
            out.median("auto-1", self, "p50_us") - out.median("declared-1", self, "p50_us"), 60);
}

} // namespace

extern const suite commit_suite;
const suite commit_suite = {"commit", "transactions of 6 words, churn, and a kill, beside other stores", case_names,
                            run, evaluate};

} // namespace bench
