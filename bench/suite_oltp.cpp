// What transactions cost where many threads run them on one heap: taiyen's concurrent heaps, a mutex, GCC's
// transactional memory, and plain memory without any of it.
//
// Words: a transaction reads and writes 6 random words of 8 bytes, of as many as 1 GB (or 4 GB) holds. All threads draw
// from all of the words: conflicts are few, but there are some. none-N: in memory, by N threads.
//
// Why the comparison is fair: all subjects do the same work on words that lie side by side in memory for which huge
// pages are asked. Every turn of a subject is a process of its own that makes the table, warms it up, and measures.
// taiyen's hint call asks for the words of a transaction ahead; others have no such call, but a processor's instruction
// does the same: taiyen-unhinted goes without, libitm-hinted and mutex-hinted have it. After each turn the words must
// add up to what all transactions together have added: else the run fails.
//
// One of 31 transactions is timed by itself, so that clocks do not count. longest_ms is as exact as that: those between
// two that are timed count as one.
#include "laps.hpp"
#include "oltp_store.hpp"
#include "process.hpp"

#include <array>

namespace bench {

namespace {

constexpr size_t gigabyte_words = (size_t{1} << 30) / sizeof(uint64_t);
constexpr size_t thread_counts[] = {1, 2, 4, 8};
constexpr size_t turns = 3;
constexpr size_t stride = 31; // has no divisor in common with 100 and 1000
constexpr size_t most_places = 6;
constexpr uint64_t most_added = 100;

struct word_case {
    std::string name;
    size_t threads;
    size_t words = gigabyte_words;
    size_t places = 6;
};

std::string numbered(const std::string &name, size_t number) {
    return name + "-" + std::to_string(number);
}

const std::vector<word_case> &word_cases() {
    static const std::vector<word_case> all = [] {
        std::vector<word_case> made;
        for (size_t threads : thread_counts)
            made.push_back({.name = numbered("none", threads), .threads = threads});
        for (size_t threads : thread_counts)
            made.push_back({.name = numbered("none-4gb", threads), .threads = threads, .words = 4 * gigabyte_words});
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
        : store_(store), random_(index + 1), words_(words), count_(which.places) {}

    void transact() {
        std::array<uint64_t, most_places> places;
        for (size_t at = 0; at < count_; at++)
            places[at] = random_.below(words_);
        uint64_t amount = 1 + random_.below(most_added);
        store_.add({.places = {places.data(), count_}, .amount = amount});
        added_ += amount * count_;
    }

    uint64_t added() const { return added_; }

private:
    oltp_store &store_;
    random_source random_;
    size_t words_, count_;
    uint64_t added_ = 0;
};

lap run_workers(std::vector<word_worker> &workers, double ns) {
    std::vector<lap> laps(workers.size());
    run_side_by_side(workers.size(), [&](size_t index, const stopwatch &watch) {
        laps[index] = run_until(ns, watch, stride, [&worker = workers[index]] { worker.transact(); });
    });
    lap all;
    for (const lap &each : laps)
        all.add(each);
    return all;
}

void expect_sum(oltp_store &store, uint64_t expected) {
    uint64_t sum = store.sum();
    if (sum != expected)
        throw std::runtime_error("the words add up to " + std::to_string(sum) + " instead of " +
                                 std::to_string(expected));
}

class stage {
public:
    explicit stage(session &session) : session_(session) {}

    void run_words(const oltp_kind &kind, const word_case &which) {
        size_t words = session_.scaled(which.words);
        std::vector<double> figures = in_child([&] {
            std::unique_ptr<oltp_store> store = kind.make({.path = "", .words = words});
            store->open();
            std::vector<word_worker> workers;
            for (size_t index = 0; index < which.threads; index++)
                workers.emplace_back(*store, which, words, index);
            run_workers(workers, measured_ns(0.5));
            oltp_counts before = store->counts();
            lap lap = run_workers(workers, measured_ns(2));
            oltp_counts after = store->counts();
            uint64_t expected = words * first_value;
            for (const word_worker &each : workers)
                expected += each.added();
            expect_sum(*store, expected);
            store->close();
            double transactions = static_cast<double>(lap.transactions);
            return std::vector<double>{transactions / lap.ns * 1e9, quantile(lap.us, 0.99), lap.longest_us / 1e3,
                                       (after.conflicts - before.conflicts) / transactions};
        });
        add(which.name, kind.name, figures);
    }

private:
    double measured_ns(double full_s) const {
        return full_s * 1e9 / (session_.options().quick ? 5 : 1) / static_cast<double>(session_.options().divisor);
    }

    void add(const std::string &name, const char *subject, const std::vector<double> &figures) {
        struct column {
            const char *metric, *unit;
        };
        constexpr column columns[] = {
            {"txn_per_s", "1/s"}, {"p99_us", "us"}, {"longest_ms", "ms"}, {"conflicts_per_txn", "conflicts"}};
        for (size_t at = 0; at < std::size(columns); at++)
            if (!std::isnan(figures.at(at)))
                session_.out().add(name, subject, columns[at].metric, columns[at].unit, figures[at]);
    }

    session &session_;
};

void run(session &session) {
    stage stage(session);
    for (const word_case &which : word_cases()) {
        std::vector<const oltp_kind *> kinds = {&taiyen_oltp,        &taiyen_unhinted_oltp, &libitm_oltp,
                                                &libitm_hinted_oltp, &mutex_oltp,           &mutex_hinted_oltp};
        if (which.threads == 1)
            kinds.push_back(&raw_oltp);
        std::vector<session::subject> subjects;
        for (const oltp_kind *kind : kinds)
            subjects.push_back({kind->name, [&stage, &which, kind] { stage.run_words(*kind, which); }});
        session.interleave(which.name, session.repetitions(turns), subjects);
    }
    session.out().note("6 random words of 8 bytes a transaction, read and written. raw: the same in plain memory, "
                       "without transactions. hinted, and taiyen: the words are asked for ahead.");
    session.out().note("longest_ms of more threads than processors has the time that a thread waits for a processor.");
}

void judge(session &session) {
    results &out = session.out();
    out.bar_at_least("none-1: rate over raw", out.ratio("none-1", "txn_per_s", self, "raw"), 0.15);
    for (const char *name : {"none-2", "none-4"})
        for (const char *peer : {"libitm", "mutex"})
            out.bar_at_least(std::string(name) + ": rate over " + peer, out.ratio(name, "txn_per_s", self, peer), 1.2);
}

} // namespace

extern const suite oltp_suite;
const suite oltp_suite = {"oltp", "transactions of many threads on one heap, beside a mutex and GCC's libitm",
                          case_names, run, judge};

} // namespace bench
