// The travel agency of travel.hpp, with many clients. high and low are degrees of contention: high has more items per
// client, from fewer rows, and more changes of the offers, as in the published settings of that name.
#include "oltp_work.hpp"
#include "travel.hpp"

namespace bench {

namespace {

constexpr size_t room_bytes = size_t{512} << 20;

struct contention {
    const char *name;
    size_t rows;            // of each table
    size_t items;           // at most, per client
    size_t asked_percent;   // of all rows
    size_t reserve_percent; // of all requests; half of the others remove a customer
};
constexpr size_t many_rows = 131072, cached_rows = 1024;
constexpr contention low = {"low", many_rows, 2, 90, 98}, high = {"high", many_rows, 4, 60, 90},
                     cached = {"cached", cached_rows, 2, 90, 98};

// The requests of one thread; on cache lines of its own.
class alignas(128) client {
public:
    client(oltp_store &store, const commit_mode &mode, const contention &how, size_t asked_rows, uint64_t seed)
        : store_(store), committer_(store, mode), how_(how), asked_rows_(asked_rows), random_(seed) {}

    void transact() {
        travel_outcome outcome = store_.travel(draw(), committer_.next());
        more_reservations_ += outcome.more_reservations;
        stored_words_ += outcome.stored_words;
    }

    int64_t more_reservations() const { return more_reservations_; }
    uint64_t stored_words() const { return stored_words_; }

private:
    travel_request draw() {
        travel_request request = {};
        bool reserves = random_.below(100) < how_.reserve_percent;
        request.action = reserves               ? travel_action::reserve
                         : random_.below(2) > 0 ? travel_action::remove_customer
                                                : travel_action::change_offers;
        request.customer = random_.below(asked_rows_);
        request.count = 1 + random_.below(how_.items);
        for (size_t at = 0; at < request.count; at++)
            request.items[at] = {.table = random_.below(offer_tables),
                                 .key = random_.below(asked_rows_),
                                 .price = random_.below(2) > 0 ? 50 + random_.below(50) : 0};
        return request;
    }

    oltp_store &store_;
    committer committer_;
    const contention &how_;
    size_t asked_rows_;
    random_source random_;
    int64_t more_reservations_ = 0;
    uint64_t stored_words_ = 0;
};

void open_agency(oltp_store &store, size_t rows) {
    random_source random(11);
    store.travel({.action = travel_action::found_agency, .customer = 0, .count = 0, .items = {}}, commit_how::async);
    for (uint64_t key = 0; key < rows; key++) {
        for (uint64_t table = 0; table < offer_tables; table++) {
            travel_request offer = {travel_action::change_offers, 0, 1 + random.below(travel_most_items), {}};
            std::fill_n(offer.items, offer.count,
                        travel_request::item{.table = table, .key = key, .price = 50 + random.below(50)});
            store.travel(offer, commit_how::async);
        }
        store.travel({.action = travel_action::add_customer, .customer = key, .count = 0, .items = {}},
                     commit_how::async);
    }
}

class travel_work : public oltp_work {
public:
    travel_work(oltp_store &store, const oltp_case &which, const contention &how, size_t rows, double last)
        : store_(store), snapshots_(which.snapshots) {
        if (store.table()[0] == 0)
            open_agency(store, rows);
        else
            reservations_ = static_cast<uint64_t>(last);
        expect_reservations("opened,");
        size_t asked = std::max(rows * how.asked_percent / 100, size_t{1});
        for (size_t index = 0; index < which.threads; index++)
            clients_.emplace_back(store, *which.mode, how, asked, index + 1);
    }

    lap run(double ns) override { return run_workers(store_, clients_, ns, snapshots_); }

    double check() override {
        for (const client &each : clients_)
            reservations_ += static_cast<uint64_t>(each.more_reservations());
        expect_reservations("after all transactions");
        return static_cast<double>(reservations_);
    }

    double stored_words() override {
        uint64_t all = 0;
        for (const client &each : clients_)
            all += each.stored_words();
        return all > 0 ? static_cast<double>(all) : std::numeric_limits<double>::quiet_NaN();
    }

private:
    void expect_reservations(const char *when) {
        uint64_t counted = count_reservations(store_.table());
        if (counted != reservations_)
            throw std::runtime_error(std::string(when) + " there are " + std::to_string(counted) +
                                     " reservations instead of " + std::to_string(reservations_));
    }

    oltp_store &store_;
    bool snapshots_;
    uint64_t reservations_ = 0;
    std::vector<client> clients_;
};

struct travel_case : oltp_case {
    const contention *how;

    oltp_settings settings(const session &session) const override {
        return {.path = "", .words = travel_tables, .first = 0, .block_bytes = session.scaled(room_bytes)};
    }
    std::string table_name() const override { return "travel-" + std::to_string(how->rows); }
    std::vector<const oltp_kind *> peers() const override {
        std::vector<const oltp_kind *> peers = {&libitm_oltp, &mutex_oltp, &tinystm_oltp};
        if (threads == 1)
            peers.push_back(&raw_oltp);
        return peers;
    }
    std::unique_ptr<oltp_work> start(oltp_store &store, const oltp_settings &settings, double last) const override {
        // As much smaller as the room is.
        size_t scaled = std::max(how->rows / (room_bytes / settings.block_bytes), size_t{16});
        return std::make_unique<travel_work>(store, *this, *how, scaled, last);
    }
};

void add(oltp_cases &cases, const contention &how, const commit_mode &mode, bool snapshots) {
    for (size_t threads : {1, 2, 4, 8}) {
        auto made = std::make_unique<travel_case>();
        std::string name = std::string("travel-") + how.name + "-" + mode.name + (snapshots ? "-snapshots" : "");
        made->name = case_name_of(name, threads);
        made->mode = &mode;
        made->threads = threads;
        made->snapshots = snapshots;
        made->how = &how;
        cases.push_back(std::move(made));
    }
}

} // namespace

oltp_cases travel_cases() {
    oltp_cases cases;
    for (const contention *how : {&low, &high, &cached})
        for (const commit_mode *mode : {&none, &async})
            add(cases, *how, *mode, false);
    add(cases, high, async, true);
    return cases;
}

} // namespace bench
