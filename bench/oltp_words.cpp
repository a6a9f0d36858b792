// Transactions that read and write random words of a large table.
#include "oltp_work.hpp"

namespace bench {

namespace {

constexpr commit_mode stream = {"stream", true, commit_how::stream};
constexpr commit_mode split = {"split", true, commit_how::async, 1, true};
constexpr commit_mode sync_100 = {"sync-100", true, commit_how::sync, 100};
constexpr commit_mode sync_1000 = {"sync-1000", true, commit_how::sync, 1000};
constexpr commit_mode stream_100 = {"stream-100", true, commit_how::stream, 100};

constexpr size_t cached_words = (size_t{256} << 10) / sizeof(uint64_t);

class word_work : public oltp_work {
public:
    word_work(oltp_store &store, const oltp_case &which, const word_shape &shape, uint64_t sum)
        : store_(store), words_(shape.words), snapshots_(which.snapshots), sum_(sum) {
        expect_sum(store, words_, sum, "opened,");
        for (size_t index = 0; index < which.threads; index++)
            workers_.emplace_back(store, *which.mode, shape, index + 1);
    }

    lap run(double ns) override { return run_workers(store_, workers_, ns, snapshots_); }

    double check() override {
        for (const word_worker &each : workers_)
            sum_ += each.added();
        expect_sum(store_, words_, sum_, "after all transactions");
        return static_cast<double>(sum_);
    }

private:
    oltp_store &store_;
    size_t words_;
    bool snapshots_;
    uint64_t sum_;
    std::vector<word_worker> workers_;
};

struct word_case : oltp_case {
    word_shape shape;

    oltp_settings settings(const session &session) const override {
        const bool is_cached = shape.words == cached_words;
        const size_t words = session.options().quick && !is_cached ? shape.words / 8 : shape.words;
        return {.path = "", .words = is_cached ? words : session.scaled(words)};
    }

    std::string table_name() const override { return "words-" + std::to_string(shape.words); }

    std::vector<const oltp_kind *> peers() const override {
        std::vector<const oltp_kind *> peers = {&libitm_oltp, &mutex_oltp};
        if (shape.range_bytes == sizeof(uint64_t))
            peers.push_back(&tinystm_oltp);
        if (shape.places == word_shape().places)
            peers.insert(peers.end(), {&taiyen_unhinted_oltp, &libitm_hinted_oltp, &mutex_hinted_oltp});
        if (threads == 1)
            peers.insert(peers.end(), {&raw_oltp, &raw_huge_oltp});
        return peers;
    }

    std::unique_ptr<oltp_work> start(oltp_store &store, const oltp_settings &settings, double last) const override {
        word_shape scaled = shape;
        scaled.words = settings.words;
        uint64_t sum = std::isnan(last) ? settings.words * first_value : static_cast<uint64_t>(last);
        return std::make_unique<word_work>(store, *this, scaled, sum);
    }
};

class case_list {
public:
    void add(const commit_mode &mode, const std::string &what, std::initializer_list<size_t> thread_counts,
             const word_shape &shape = {}, bool snapshots = false) {
        for (size_t threads : thread_counts) {
            auto made = std::make_unique<word_case>();
            made->name = case_name_of(mode.name + what, threads);
            made->mode = &mode;
            made->threads = threads;
            made->snapshots = snapshots;
            made->shape = shape;
            cases.push_back(std::move(made));
        }
    }

    oltp_cases cases;
};

} // namespace

oltp_cases word_cases() {
    case_list list;
    for (const commit_mode *mode : {&none, &async, &sync, &stream, &split, &sync_100, &sync_1000, &stream_100})
        list.add(*mode, "", {1, 2, 4, 8});
    list.add(sync, "", {16});
    for (const commit_mode *mode : {&async, &sync})
        list.add(*mode, "-snapshots", {1, 2, 4, 8}, {}, true);
    for (const commit_mode *mode : {&none, &async}) {
        list.add(*mode, "-cached", {1, 2}, {.words = cached_words});
        list.add(*mode, "-4gb", {1, 2, 4, 8}, {.words = 4 * gigabyte_words});
        for (size_t places : {64, 512})
            list.add(*mode, "-words-" + std::to_string(places), {1, 4}, {.places = places});
        for (size_t bytes : {size_t{6}, size_t{64}, most_range_bytes})
            list.add(*mode, "-bytes-" + std::to_string(bytes), {1, 4}, {.places = 1, .range_bytes = bytes});
    }
    return std::move(list.cases);
}

} // namespace bench
