// One thread with long transactions among three threads with short ones, on a table of a million words: it must get
// through. All transactions preserve the sum of all words, so a reader of all words must always find it.
#include "oltp_work.hpp"

namespace bench {

namespace {

constexpr size_t table_words = 1000000;
constexpr size_t written_words = 100000;
constexpr size_t short_threads = 3;
constexpr double timeout_ns = 120e9; // the longest that the short ones continue for the long one

class long_work : public oltp_work {
public:
    long_work(oltp_store &store, const commit_mode &mode, size_t words, size_t written)
        : store_(store), words_(words), writes_(written > 0) {
        expect_sum(store, words_, sum(), "opened,");
        for (size_t index = 0; index < short_threads; index++)
            short_workers_.emplace_back(store, mode, word_shape{.words = words, .balanced = true}, index + 1);
        writer_.emplace_back(store, mode, word_shape{.words = words, .places = written, .balanced = true},
                             short_threads + 1);
    }

    lap run(double ns) override {
        long_ms_.clear();
        std::atomic<size_t> done = 0, done_among_others = 0, long_at_work = 1;
        auto long_ones = [&](const std::atomic<size_t> &at_work) {
            leaving leaves(long_at_work);
            do {
                stopwatch watch;
                transact();
                long_ms_.push_back(watch.ms());
                if (at_work == short_threads) // checked first: they may end as soon as one is done
                    done_among_others++;
                done++;
            } while (at_work > 0);
        };
        lap lap = run_workers(short_workers_, ns, true, long_ones, [&](const stopwatch &watch) {
            return done > 0 || long_at_work == 0 || watch.ns() > timeout_ns;
        });
        if (done_among_others == 0)
            throw std::runtime_error("a long transaction did not get through among short ones");
        return lap;
    }

    double check() override {
        expect_sum(store_, words_, sum(), "after all transactions");
        return static_cast<double>(sum());
    }

    double long_ms() override { return quantile(long_ms_, 0.5); }

private:
    uint64_t sum() const { return words_ * first_value; }

    void transact() {
        if (writes_) {
            writer_.front().transact();
            return;
        }
        uint64_t seen = store_.read_all();
        if (seen != sum())
            throw std::runtime_error("a reader has seen a sum of " + std::to_string(seen) + " instead of " +
                                     std::to_string(sum()));
    }

    oltp_store &store_;
    size_t words_;
    bool writes_;
    std::vector<word_worker> short_workers_, writer_;
    std::vector<double> long_ms_;
};

struct long_case : oltp_case {
    bool writes;

    oltp_settings settings(const session &session) const override {
        return {.path = "", .words = session.scaled(table_words)};
    }
    std::string table_name() const override { return "long"; }
    std::vector<const oltp_kind *> peers() const override { return {&libitm_oltp, &mutex_oltp}; }
    std::unique_ptr<oltp_work> start(oltp_store &store, const oltp_settings &settings, double) const override {
        size_t written = settings.words / (table_words / written_words) / 2 * 2;
        return std::make_unique<long_work>(store, *mode, settings.words, writes ? written : 0);
    }
};

} // namespace

oltp_cases long_cases() {
    oltp_cases cases;
    for (bool writes : {false, true})
        for (const commit_mode *mode : {&none, &async}) {
            auto made = std::make_unique<long_case>();
            made->name = std::string(writes ? "long-writer-" : "long-reader-") + mode->name;
            made->mode = mode;
            made->threads = short_threads;
            made->writes = writes;
            cases.push_back(std::move(made));
        }
    return cases;
}

} // namespace bench
