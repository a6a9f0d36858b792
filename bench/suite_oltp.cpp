// What transactions cost where many threads run them on one heap: taiyen's concurrent heaps, a mutex, GCC's
// transactional memory, and plain memory without any of it.
//
// Words: a transaction reads and writes 6 random words of 8 bytes, of as many as 1 GB (or 4 GB) holds. All threads draw
// from all of the words: conflicts are few, but there are some. A case is MODE-THREADS, and says what is not so:
// words-64 and words-512 have so many words a transaction, bytes-6, -64 and -512 one range of so many bytes that is
// read and written whole, and snapshots are taken one after the other while a -snapshots case runs.
//
// Modes: none is in memory; the others have a transactional heap. sync: a transaction is durable when the call returns.
// async: it becomes so later. partition: its own partition of the log is durable. split: async, and every 64
// transactions the thread waits until those before the last 64 are durable. sync-100: the 100th of a thread's
// transactions is sync, the others async, and so on.
//
// Why the comparison is fair: in memory all subjects do the same work on words that lie side by side, with huge pages
// asked for. Every turn of a subject is a process of its own that makes the table or opens it, warms it up, measures,
// and closes it in order; files are flushed then. taiyen's hint call asks for the words of a transaction ahead; others
// have no such call, but a processor's instruction does the same: taiyen-unhinted goes without, libitm-hinted and
// mutex-hinted have it. After each turn the words must add up to what all transactions together have added, and when a
// file is opened again they must still: else the run fails.
//
// One of 31 transactions is timed by itself, so that clocks do not count. longest_ms is as exact as that: those between
// two that are timed count as one.
#include "files.hpp"
#include "laps.hpp"
#include "oltp_store.hpp"
#include "process.hpp"

#include <array>
#include <atomic>
#include <filesystem>
#include <map>

namespace bench {

namespace {

constexpr size_t gigabyte_words = (size_t{1} << 30) / sizeof(uint64_t);
constexpr size_t log_bytes = size_t{1} << 30; // no snapshot falls due while a case runs
constexpr size_t least_log_bytes = size_t{4} << 20;
constexpr size_t turns = 3;
constexpr size_t stride = 31; // has no divisor in common with 100 and 1000
constexpr size_t most_places = 512;
constexpr uint64_t most_added = 100;
constexpr size_t split_transactions = 64;

struct commit_mode {
    const char *name;
    bool in_file = true;
    commit_how how = commit_how::async;
    size_t every = 1; // so many transactions
    bool split = false;
};
constexpr commit_mode modes[] = {
    {"none", false},
    {"async"},
    {"sync", true, commit_how::sync},
    {"partition", true, commit_how::partition},
    {"split", true, commit_how::async, 1, true},
    {"sync-100", true, commit_how::sync, 100},
    {"sync-1000", true, commit_how::sync, 1000},
    {"partition-100", true, commit_how::partition, 100},
};
constexpr const commit_mode &none = modes[0], &async = modes[1], &sync = modes[2];

struct word_case {
    std::string name;
    const commit_mode &mode;
    size_t threads;
    size_t words = gigabyte_words;
    size_t places = 6;
    size_t range_bytes = sizeof(uint64_t);
    bool snapshots = false;

    bool is_usual() const { return places == 6 && range_bytes == sizeof(uint64_t); }
};

// The name gets the number of threads.
void add_cases(std::vector<word_case> &to, word_case which, std::initializer_list<size_t> thread_counts) {
    std::string name = which.name;
    for (size_t threads : thread_counts) {
        word_case made = {name + "-" + std::to_string(threads),
                          which.mode,
                          threads,
                          which.words,
                          which.places,
                          which.range_bytes,
                          which.snapshots};
        to.push_back(made);
    }
}

void add_sizes(std::vector<word_case> &to, const commit_mode &mode) {
    std::string name = mode.name;
    for (size_t places : {64, 512})
        add_cases(to, {.name = name + "-words-" + std::to_string(places), .mode = mode, .threads = 0, .places = places},
                  {1, 4});
    for (size_t bytes : {6, 64, 512})
        add_cases(to,
                  {.name = name + "-bytes-" + std::to_string(bytes),
                   .mode = mode,
                   .threads = 0,
                   .places = 1,
                   .range_bytes = bytes},
                  {1, 4});
}

const std::vector<word_case> &word_cases() {
    static const std::vector<word_case> all = [] {
        std::vector<word_case> made;
        for (const commit_mode &mode : modes) {
            add_cases(made, {.name = mode.name, .mode = mode, .threads = 0}, {1, 2, 4, 8});
            if (&mode == &sync)
                add_cases(made, {.name = mode.name, .mode = mode, .threads = 0}, {16});
        }
        for (const commit_mode *mode : {&none, &async})
            add_cases(
                made,
                {.name = std::string(mode->name) + "-4gb", .mode = *mode, .threads = 0, .words = 4 * gigabyte_words},
                {1, 2, 4, 8});
        for (const commit_mode *mode : {&async, &sync})
            add_cases(made,
                      {.name = std::string(mode->name) + "-snapshots", .mode = *mode, .threads = 0, .snapshots = true},
                      {1, 2, 4, 8});
        for (const commit_mode *mode : {&none, &async})
            add_sizes(made, *mode);
        return made;
    }();
    return all;
}

std::vector<std::string> case_names() {
    return names_of(word_cases());
}

// A thread's transactions, the same for all subjects, and what they have added. On cache lines of its own.
class alignas(128) word_worker {
public:
    word_worker(oltp_store &store, const word_case &which, size_t words, size_t index)
        : store_(store), which_(which), random_(index + 1),
          range_words_((which.range_bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t)), ranges_(words / range_words_) {}

    void transact() {
        std::array<uint64_t, most_places> places;
        for (size_t at = 0; at < which_.places; at++)
            places[at] = random_.below(ranges_) * range_words_;
        uint64_t amount = 1 + random_.below(most_added);
        bool is_special = ++transactions_ % which_.mode.every == 0;
        uint64_t stamp =
            store_.add({.places = {places.data(), which_.places}, .range_bytes = which_.range_bytes, .amount = amount},
                       is_special ? which_.mode.how : commit_how::async);
        added_ += amount * which_.places * range_words_;
        if (which_.mode.split && transactions_ % split_transactions == 0) {
            if (last_stamp_ > 0)
                store_.wait_until_stable(last_stamp_);
            last_stamp_ = stamp;
        }
    }

    uint64_t added() const { return added_; }

private:
    oltp_store &store_;
    const word_case &which_;
    random_source random_;
    size_t range_words_, ranges_;
    uint64_t transactions_ = 0, added_ = 0, last_stamp_ = 0;
};

class work {
public:
    work(oltp_store &store, const word_case &which, size_t words) : store_(store), snapshots_(which.snapshots) {
        for (size_t index = 0; index < which.threads; index++)
            workers_.emplace_back(store, which, words, index);
    }

    lap run(double ns) {
        std::vector<lap> laps(workers_.size());
        std::atomic<size_t> at_work = workers_.size();
        run_side_by_side(workers_.size() + (snapshots_ ? 1 : 0), [&](size_t index, const stopwatch &watch) {
            if (index == workers_.size())
                return take_snapshots(at_work);
            leaving leaves{at_work};
            laps[index] = run_until(ns, watch, stride, [&worker = workers_[index]] { worker.transact(); });
        });
        lap all;
        for (const lap &each : laps)
            all.add(each);
        return all;
    }

    uint64_t added() const {
        uint64_t all = 0;
        for (const word_worker &each : workers_)
            all += each.added();
        return all;
    }

private:
    struct leaving {
        std::atomic<size_t> &at_work;
        ~leaving() { at_work--; }
    };

    void take_snapshots(const std::atomic<size_t> &at_work) {
        do
            store_.snapshot();
        while (at_work > 0);
    }

    oltp_store &store_;
    bool snapshots_;
    std::vector<word_worker> workers_;
};

void expect_sum(oltp_store &store, uint64_t expected, const char *when) {
    uint64_t sum = store.sum();
    if (sum != expected)
        throw std::runtime_error(std::string(when) + " the words add up to " + std::to_string(sum) + " instead of " +
                                 std::to_string(expected));
}

class stage {
public:
    explicit stage(session &session) : session_(session) {}

    void run_words(const oltp_kind &kind, const word_case &which) {
        oltp_settings settings = {.path = which.mode.in_file ? prepare(kind, which) : "",
                                  .words = session_.scaled(which.words),
                                  .log_bytes = std::max(session_.scaled(log_bytes), least_log_bytes)};
        uint64_t sum = sums_.try_emplace(settings.path, settings.words * first_value).first->second;
        if (settings.path.empty())
            sum = settings.words * first_value;
        std::vector<double> figures = in_child([&] { return measure(kind, which, settings, sum); });
        if (which.mode.in_file) {
            flush_folder(settings.path);
            sums_[settings.path] = static_cast<uint64_t>(figures.back());
        }
        add(which.name, kind.name, figures);
    }

private:
    // The folder of a table that all cases of this size use.
    std::string prepare(const oltp_kind &kind, const word_case &which) {
        std::string path =
            session_.path(std::string(kind.name) + "-oltp-" + std::to_string(which.words / gigabyte_words));
        std::filesystem::create_directory(path);
        return path;
    }

    // Figures in the order of the columns below, and the sum.
    std::vector<double> measure(const oltp_kind &kind, const word_case &which, const oltp_settings &settings,
                                uint64_t sum) {
        std::unique_ptr<oltp_store> store = kind.make(settings);
        store->open();
        expect_sum(*store, sum, "opened,");
        work work(*store, which, settings.words);
        work.run(measured_ns(0.5));
        oltp_counts before = store->counts();
        lap lap = work.run(measured_ns(2));
        oltp_counts after = store->counts();
        sum += work.added();
        expect_sum(*store, sum, "after all transactions");
        store->close();
        double transactions = static_cast<double>(lap.transactions);
        return {transactions / lap.ns * 1e9,
                quantile(lap.us, 0.99),
                lap.longest_us / 1e3,
                (after.conflicts - before.conflicts) / transactions,
                (after.log_bytes - before.log_bytes) / transactions,
                static_cast<double>(sum)};
    }

    double measured_ns(double full_s) const {
        return full_s * 1e9 / (session_.options().quick ? 5 : 1) / static_cast<double>(session_.options().divisor);
    }

    void add(const std::string &name, const char *subject, const std::vector<double> &figures) {
        struct column {
            const char *metric, *unit;
        };
        constexpr column columns[] = {{"txn_per_s", "1/s"},
                                      {"p99_us", "us"},
                                      {"longest_ms", "ms"},
                                      {"conflicts_per_txn", "conflicts"},
                                      {"log_bytes_per_txn", "bytes"}};
        for (size_t at = 0; at < std::size(columns); at++)
            if (!std::isnan(figures.at(at)))
                session_.out().add(name, subject, columns[at].metric, columns[at].unit, figures[at]);
    }

    session &session_;
    std::map<std::string, uint64_t> sums_; // of the words of each folder
};

std::vector<const oltp_kind *> kinds_of(const word_case &which) {
    if (which.mode.in_file) {
        bool has_peer = (&which.mode == &sync || &which.mode == &async) && !which.snapshots;
        return has_peer ? std::vector{&taiyen_oltp, &one_writer_oltp} : std::vector{&taiyen_oltp};
    }
    std::vector<const oltp_kind *> kinds = {&taiyen_oltp, &libitm_oltp, &mutex_oltp};
    if (which.is_usual())
        kinds.insert(kinds.end(), {&taiyen_unhinted_oltp, &libitm_hinted_oltp, &mutex_hinted_oltp});
    if (which.threads == 1)
        kinds.push_back(&raw_oltp);
    return kinds;
}

void run(session &session) {
    stage stage(session);
    for (const word_case &which : word_cases()) {
        std::vector<session::subject> subjects;
        for (const oltp_kind *kind : kinds_of(which))
            subjects.push_back({kind->name, [&stage, &which, kind] { stage.run_words(*kind, which); }});
        session.interleave(which.name, session.repetitions(turns), subjects);
    }
    session.out().note("6 random words of 8 bytes a transaction, read and written. raw: the same in plain memory, "
                       "without transactions. hinted, and taiyen: the words are asked for ahead. one-writer: ty_begin "
                       "on a heap that is not concurrent.");
    session.out().note("longest_ms of more threads than processors has the time that a thread waits for a processor. "
                       "log_bytes_per_txn is what is written to the log, padding included.");
}

void judge(session &session) {
    results &out = session.out();
    auto rate = [&](const char *name) { return out.median(name, self, "txn_per_s"); };
    out.bar_at_least("none-1: rate over raw", out.ratio("none-1", "txn_per_s", self, "raw"), 0.15);
    for (const char *name : {"none-2", "none-4"})
        for (const char *peer : {"libitm", "mutex"})
            out.bar_at_least(std::string(name) + ": rate over " + peer, out.ratio(name, "txn_per_s", self, peer), 1.2);
    out.bar_at_least("async-2: rate over none-2", rate("async-2") / rate("none-2"), 0.62);
    out.bar_at_least("async-2: million transactions a second", rate("async-2") / 1e6, 1.25);
    out.bar_at_least("async-4: rate over async-1", rate("async-4") / rate("async-1"), 1);
    for (const char *name : {"sync-1", "sync-16"})
        out.bar_at_least(std::string(name) + ": rate over one-writer", out.ratio(name, "txn_per_s", self, "one-writer"),
                         0.8);
    out.bar_at_least("sync-1000-8: rate over async-8", rate("sync-1000-8") / rate("async-8"), 0.93);
    out.bar_at_least("partition-100-8: rate over sync-100-8", rate("partition-100-8") / rate("sync-100-8"), 1.1);
}

} // namespace

extern const suite oltp_suite;
const suite oltp_suite = {"oltp", "transactions of many threads on one heap, beside a mutex and GCC's libitm",
                          case_names, run, judge};

} // namespace bench
