// The common parts of the workloads of the suite oltp: the modes of commit, and threads at work on one store.
// oltp_words.cpp, oltp_long.cpp and oltp_travel.cpp have the workloads.
#pragma once

#include "laps.hpp"
#include "oltp_store.hpp"

#include <atomic>

namespace bench {

struct commit_mode {
    const char *name;
    bool in_file = true;
    commit_how how = commit_how::async;
    size_t every = 1; // one of so many transactions; the others are async
    bool split = false;
};
inline constexpr commit_mode none = {"none", false};
inline constexpr commit_mode async = {"async"};
inline constexpr commit_mode sync = {"sync", true, commit_how::sync};

// One workload on one store, for a turn.
class oltp_work {
public:
    virtual ~oltp_work() = default;
    // Runs transactions for so long.
    virtual lap run(double ns) = 0;
    // Throws if the table is not as the transactions must have left it. Returns what `start` gets when the table is
    // opened again.
    virtual double check() = 0;
    // NaN: it has none. The median of the long transactions of the last run.
    virtual double long_ms() { return std::numeric_limits<double>::quiet_NaN(); }
    // NaN: not counted. Words that were stored so far.
    virtual double stored_words() { return std::numeric_limits<double>::quiet_NaN(); }
};

struct oltp_case {
    std::string name;
    const commit_mode *mode;
    size_t threads;
    bool snapshots = false; // one after the other, meanwhile

    virtual ~oltp_case() = default;
    virtual oltp_settings settings(const session &session) const = 0; // without path and log
    // Cases of the same table name use the same files.
    virtual std::string table_name() const = 0;
    // In addition to taiyen, in memory.
    virtual std::vector<const oltp_kind *> peers() const = 0;
    // last: what `check` returned at the end of the turn before; NaN: the table is new. Throws if it is not as it was.
    virtual std::unique_ptr<oltp_work> start(oltp_store &store, const oltp_settings &settings, double last) const = 0;
};
using oltp_cases = std::vector<std::unique_ptr<const oltp_case>>;
oltp_cases word_cases(), long_cases(), travel_cases();

inline constexpr size_t gigabyte_words = (size_t{1} << 30) / sizeof(uint64_t);

// A workload's name, mode and threads as a case's name.
inline std::string case_name_of(const std::string &name, size_t threads) {
    return name + "-" + std::to_string(threads);
}

inline void expect_sum(oltp_store &store, size_t words, uint64_t expected, const char *when) {
    uint64_t sum = sum_of(store.table(), words);
    if (sum != expected)
        throw std::runtime_error(std::string(when) + " the words add up to " + std::to_string(sum) + " instead of " +
                                 std::to_string(expected));
}

// How the transactions of one thread commit.
class committer {
public:
    committer(oltp_store &store, const commit_mode &mode) : store_(store), mode_(mode) {}

    commit_how next() { return ++transactions_ % mode_.every == 0 ? mode_.how : commit_how::async; }

    // Call after each transaction. In the mode split, after every 64th it waits for those before the last 64.
    void committed(uint64_t stamp) {
        if (!mode_.split || transactions_ % 64 != 0)
            return;
        if (last_stamp_ > 0)
            store_.wait_until_durable(last_stamp_);
        last_stamp_ = stamp;
    }

private:
    oltp_store &store_;
    const commit_mode &mode_;
    uint64_t transactions_ = 0, last_stamp_ = 0;
};

// The size and number of additions to random words: the same transactions for all subjects.
struct word_shape {
    size_t words = gigabyte_words; // of the table
    size_t places = 6;             // of a transaction
    size_t range_bytes = sizeof(uint64_t);
    bool balanced = false;
};
class alignas(128) word_worker {
public:
    // shape.words is the table's size.
    word_worker(oltp_store &store, const commit_mode &mode, const word_shape &shape, uint64_t seed)
        : store_(store), committer_(store, mode), shape_(shape), random_(seed),
          range_words_((shape.range_bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t)), places_(shape.places) {}

    void transact() {
        for (uint64_t &place : places_)
            place = random_.below(shape_.words / range_words_) * range_words_;
        uint64_t amount = 1 + random_.below(most_added);
        committer_.committed(store_.add(
            {.places = places_, .range_bytes = shape_.range_bytes, .amount = amount, .balanced = shape_.balanced},
            committer_.next()));
        if (!shape_.balanced)
            added_ += amount * shape_.places * range_words_;
    }

    uint64_t added() const { return added_; }

private:
    static constexpr uint64_t most_added = 100;
    oltp_store &store_;
    committer committer_;
    word_shape shape_;
    random_source random_;
    size_t range_words_;
    std::vector<uint64_t> places_;
    uint64_t added_ = 0;
};

// Reports that a thread's work is done, however it ends.
class leaving {
public:
    explicit leaving(std::atomic<size_t> &at_work) : at_work_(at_work) {}
    leaving(const leaving &) = delete;
    ~leaving() { at_work_--; }

private:
    std::atomic<size_t> &at_work_;
};

// One of 31 transactions is timed: a number that has no divisor in common with 100 and 1000.
inline constexpr size_t timed_stride = 31;

// Worker has transact(). If wanted, one more thread calls beside(at_work) until no thread is at work.
template <typename Worker, typename Beside, typename MayEnd>
lap run_workers(std::vector<Worker> &workers, double ns, bool with_beside, Beside beside, MayEnd may_end) {
    std::vector<lap> laps(workers.size());
    std::atomic<size_t> at_work = workers.size();
    run_side_by_side(workers.size() + (with_beside ? 1 : 0), [&](size_t index, const stopwatch &watch) {
        if (index == workers.size())
            return beside(at_work);
        leaving leaves(at_work);
        laps[index] = run_until(
            ns, watch, timed_stride, [&worker = workers[index]] { worker.transact(); }, [&] { return may_end(watch); });
    });
    lap all;
    for (const lap &each : laps)
        all.add(each);
    return all;
}

// If wanted, snapshots are taken one after the other meanwhile.
template <typename Worker>
lap run_workers(oltp_store &store, std::vector<Worker> &workers, double ns, bool snapshots) {
    auto take = [&store](const std::atomic<size_t> &at_work) {
        do
            store.snapshot();
        while (at_work > 0);
    };
    return run_workers(workers, ns, snapshots, take, [](const stopwatch &) { return true; });
}

} // namespace bench
