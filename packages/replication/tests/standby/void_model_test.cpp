// Goal: no false loss is found, and nothing that was acknowledged is void, in any interleaving of sessions whose
// messages come late (ST1). Method: a model of messages' headers beside classify() and newest_position(), over engines
// that refuse as JetStream does, and over one that takes all.
#include "packages/replication/standby/engine_io.hpp"
#include "packages/replication/standby/receiving.hpp"
#include "support.hpp"
#include "tests/effort.hpp"

#include <atomic>
#include <deque>
#include <functional>

using namespace taiyen;
using namespace taiyen::test;
using namespace taiyen::standby;

namespace {

struct model_session {
    uint64_t expected = 0, known_at = 0;
    message_header last{};
    struct sent {
        std::string bytes;
        uint64_t expected;
    };
    std::deque<sent> way;         // under way, in order
    std::deque<int64_t> reported; // results not read yet: the place, or -1
    bool failed = false;
};

struct model {
    bool keeps;
    std::mt19937_64 random;
    sim_store store;
    sim_engine engine{store};
    std::vector<model_session> sessions;
    uint64_t next_session = 1, term = 0;
    std::map<uint64_t, uint64_t> counting; // at -> number
    std::vector<uint64_t> acked;
    tail truth{};
    size_t classified = 0;
    struct reader {
        tail last{};
        uint64_t at = 0;
    };
    std::vector<reader> readers;
    uint64_t skipped = 0, errors = 0;

    explicit model(uint64_t seed, bool kept) : keeps(kept), random(seed) { store.step = 1; }
    uint64_t below(uint64_t n) { return random() % n; }
    std::vector<sim_message> &log() { return store.logs[0]; }

    void add(std::string bytes, const char *why) {
        store.add(0, std::move(bytes));
        const message one = message_in(log().back());
        bool counts = false;
        const ty_status status = classify(one, &truth, &counts);
        if (status) {
            ADD_FAILURE() << why << ": " << ty_error_text() << " at " << one.at << " number " << one.header.number
                          << " after " << truth.number << " voids " << truth.voids;
            ++errors;
        }
        if (counts)
            counting[one.at] = one.header.number;
    }
    bool find(records_end *at) {
        bool found = false;
        const ty_status status = newest_position(*engine.table(), at, &found);
        if (status) {
            ADD_FAILURE() << "newest_position: " << ty_error_text();
            ++errors;
            return false;
        }
        if (found && at->newest.read.at != truth.at) {
            ADD_FAILURE() << "newest_position found " << at->newest.read.at << ", not " << truth.at;
            ++errors;
            return false;
        }
        return true;
    }
    void send(model_session &s, message_kind kind) {
        message_header header = header_after(s.last, kind);
        header.session = s.last.session;
        header.known_at = s.known_at;
        header.timeline = kind == message_kind::timeline ? header.number : header.timeline;
        const std::vector<uint8_t> bytes = message_of(header);
        memcpy(&s.last, bytes.data(), sizeof s.last);
        s.way.push_back({std::string(bytes.begin(), bytes.end()), s.expected});
        s.expected += s.expected == TY_ENGINE_ANYWHERE ? 0 : 1;
    }
    void begin() {
        records_end at;
        if (!find(&at))
            return;
        model_session s;
        s.last = at.newest.read.header;
        s.known_at = at.newest.read.at;
        s.expected = at.end_at;
        const bool empty = s.last.number == 0;
        s.last.session = next_session++;
        if (empty) {
            s.last.term = s.last.replication = 1;
            term = 1;
        }
        sessions.push_back(s);
        if (empty)
            send(sessions.back(), message_kind::term);
        if (empty || begins_term(s.last))
            send(sessions.back(), message_kind::timeline);
    }
    void promote() { // by who has read some counting message, perhaps an older one
        if (counting.empty())
            return;
        auto at = std::prev(counting.end());
        for (uint64_t back = below(4); back && at != counting.begin(); --back)
            --at;
        for (const sim_message &one : log())
            if (one.position == at->first) {
                const message m = message_in(one);
                const bool takes = below(2);
                message_header header = header_after(m.header, takes ? message_kind::take_over : message_kind::term);
                header.term = m.header.term + 1;
                header.session = next_session++;
                header.known_at = m.at;
                const std::vector<uint8_t> bytes = message_of(header);
                model_session s;
                s.failed = true;
                s.way.push_back(
                    {std::string(bytes.begin(), bytes.end()), takes ? store.newest(0) - below(2) : TY_ENGINE_ANYWHERE});
                sessions.push_back(s);
                return;
            }
    }
    void deliver(model_session &s) {
        if (s.way.empty())
            return;
        auto one = std::move(s.way.front());
        s.way.pop_front();
        const bool fits = one.expected == TY_ENGINE_ANYWHERE || one.expected == store.newest(0);
        if (fits || keeps)
            add(std::move(one.bytes), "delivered");
        s.reported.push_back(fits ? int64_t(store.newest(0)) : -1);
    }
    void hear(model_session &s) {
        if (s.reported.empty() || s.failed)
            return;
        const int64_t reported = s.reported.front();
        s.reported.pop_front();
        if (reported < 0) {
            s.failed = true;
            return;
        }
        s.known_at = uint64_t(reported);
        acked.push_back(s.known_at);
        if (!counting.count(s.known_at)) {
            ADD_FAILURE() << "acknowledged, and does not count: " << reported;
            ++errors;
        }
    }
    void read(reader &r) {
        for (const sim_message &one : log()) {
            if (one.position <= r.at)
                continue;
            const message m = message_in(one);
            bool counts = false;
            const ty_status status = classify(m, &r.last, &counts);
            if (status) {
                r.at = UINT64_MAX; // notified
                return;
            }
            r.at = one.position;
            if (below(20) == 0)
                return;
        }
        if (r.last.at != truth.at && r.at == store.newest(0))
            skipped += 1; // believes that it has all
    }
    void step() {
        switch (below(20)) {
        case 0:
            begin();
            break;
        case 1:
            if (below(8) == 0)
                promote();
            break;
        case 2: // cut
            if (!sessions.empty()) {
                model_session &s = sessions[below(sessions.size())];
                s.failed = true;
                if (below(2) && !keeps) // some are lost, in the middle too
                    for (size_t n = 0; n < s.way.size();)
                        below(3) ? n++ : (s.way.erase(s.way.begin() + int64_t(n)), n);
                else if (below(2))
                    s.way.resize(below(s.way.size() + 1));
            }
            break;
        case 3:
        case 4:
        case 5:
        case 6:
            if (!sessions.empty() && !sessions.back().failed && below(20) == 0)
                send(sessions.back(), message_kind::timeline);
            if (!sessions.empty() && !sessions.back().failed)
                for (uint64_t n = below(6); n && sessions.back().way.size() < 64; --n)
                    send(sessions.back(), message_kind::alive);
            break;
        case 7:
        case 8:
            if (!sessions.empty())
                hear(sessions.back());
            break;
        case 9: // a reader begins at a counting message
            if (!counting.empty()) {
                auto at = counting.begin();
                std::advance(at, below(counting.size()));
                for (const sim_message &one : log())
                    if (one.position == at->first) {
                        const message m = message_in(one);
                        readers.push_back({tail_at(m.header, m.at), m.at});
                    }
            }
            break;
        case 10:
            if (!readers.empty())
                read(readers[below(readers.size())]);
            break;
        case 11:
            if (trims && below(10) == 0 && counting.size() > 2) {
                auto at = counting.end();
                for (uint64_t back = 1 + below(4); back && at != counting.begin(); --back)
                    --at;
                (void)!engine.table()->trim(engine.table()->context, TY_ENGINE_RECORDS, at->first);
            }
            break;
        default:
            if (!sessions.empty()) {
                const uint64_t back = below(3) ? 0 : below(std::min<size_t>(sessions.size(), 6));
                deliver(sessions[sessions.size() - 1 - back]);
            }
        }
    }
    bool trims = false;
};

TEST(void_run_model, nothing_is_wrong_where_nothing_is_lost) {
    for (bool keeps : {false, true})
        for (uint64_t seed = 1; seed <= uint64_t(effort(200)) && !testing::Test::HasFailure(); ++seed) {
            model m(seed, keeps);
            for (int n = 0; n < 600 && !testing::Test::HasFailure(); ++n)
                m.step();
            for (auto &r : m.readers)
                for (int n = 0; n < 1000 && r.at != UINT64_MAX && r.at < m.store.newest(0); ++n)
                    m.read(r);
            for (auto &r : m.readers) {
                EXPECT_NE(UINT64_MAX, r.at) << "a reader from a counting message is refused, seed " << seed;
                EXPECT_EQ(m.truth.at, r.last.at) << seed;
            }
            EXPECT_EQ(0u, m.skipped);
        }
}

} // namespace
