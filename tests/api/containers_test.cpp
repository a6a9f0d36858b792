// Goal: containers of concurrent heaps hold what a plain container would, after each transaction, each one that was
// rolled back, each open, and with many threads in them. Method: random operations by one thread against std::map and
// std::deque; several threads that keep an invariant of all of a container, which bodies among them look at.
#include "concurrent_fixture.hpp"
#include "tests/stats.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <taiyen/containers.hpp>

using namespace api_test;
using taiyen::atomic_txn;

namespace {

// With padding in the entries, and of no word's size.
struct key {
    uint16_t low, high;
    bool operator<(const key &other) const { return low != other.low ? low < other.low : high < other.high; }
    bool operator==(const key &other) const { return low == other.low && high == other.high; }
};
struct value {
    uint64_t number;
    char text[13];
    bool operator==(const value &other) const {
        return number == other.number && std::equal(text, text + sizeof text, other.text);
    }
};

// Most keys have the hash of some others, and some keys have that of many.
struct poor_hash {
    uint64_t operator()(const key &of) const { return of.low % 4 == 0 ? 77 : of.low % 50 * 0x0123456789abcdef; }
};

using hashed = taiyen::hash_map<key, value>;
using hashed_poorly = taiyen::hash_map<key, value, poor_hash>;
using ordered = taiyen::ordered_map<key, value>;
template <class Map>
inline constexpr bool is_ordered = std::is_same_v<Map, ordered>;
using model = std::map<key, value>;

constexpr uint64_t key_count = 1200;

key key_of(uint64_t number) {
    return {static_cast<uint16_t>(number * 7 % 1000), static_cast<uint16_t>(number % 13)};
}

value value_of(uint64_t number) {
    value made{number, {}};
    snprintf(made.text, sizeof made.text, "%u", static_cast<unsigned>(number % 100000));
    return made;
}

class containers : public concurrent_heap_test {
protected:
    // After the process has "died"; of a volatile heap where it is.
    template <class T>
    T &found(const char *name) {
        if (lasts()) {
            EXPECT_TRUE(heap->is_durable(0, true).value());
        }
        die_and_open();
        T *there = heap->atomically([&](atomic_txn &txn) { return txn.find_root<T>(name); });
        EXPECT_NE(nullptr, there);
        return *there;
    }
    // Blocks that are freed are given back at the latest when the heap is closed.
    void expect_empty_heap(size_t blocks_before) {
        if (!lasts())
            return;
        close_and_open();
        EXPECT_EQ(blocks_before, small_blocks()) << "blocks that nothing leads to";
    }
    // But not the library's own.
    size_t small_blocks() const {
        size_t count = 0;
        EXPECT_TRUE(heap->each_block([&](const ty_block &block) { count += block.size_bytes < 512; }));
        return count;
    }
};

template <class Map>
model content_of(const Map &map) {
    model seen;
    map.each([&](const key &k, const value &v) { EXPECT_TRUE(seen.emplace(k, v).second) << "a key is there twice"; });
    return seen;
}

template <class Map>
void expect_same(Map &map, const model &expected) {
    EXPECT_EQ(expected.size(), map.size());
    EXPECT_TRUE(expected == content_of(map));
    if constexpr (is_ordered<Map>) {
        std::vector<key> keys;
        map.each([&](const key &k, const value &) { keys.push_back(k); });
        EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
        EXPECT_EQ(expected.empty(), !map.first());
        EXPECT_EQ(expected.empty(), !map.last());
        if (!expected.empty()) {
            EXPECT_EQ(expected.begin()->first, map.first()->first);
            EXPECT_EQ(expected.rbegin()->first, map.last()->first);
        }
    }
}

// What lies around a key.
void look_around(atomic_txn &txn, ordered &map, const model &expected, const key &from, const key &to) {
    const auto at = expected.lower_bound(from);
    const auto next = map.at_least(txn, from), previous = map.before(txn, from);
    ASSERT_EQ(at != expected.end(), next.has_value());
    if (next) {
        EXPECT_TRUE(at->first == next->first && at->second == next->second);
    }
    ASSERT_EQ(at != expected.begin(), previous.has_value());
    if (previous) {
        EXPECT_EQ(std::prev(at)->first, previous->first);
    }
    auto walked = at;
    unsigned left = 20;
    map.each_in(txn, from, to, [&](const key &k, const value &v) {
        EXPECT_TRUE(walked != expected.end() && walked->first == k && walked->second == v && k < to);
        ++walked;
        return --left != 0;
    });
    EXPECT_TRUE(left == 0 || walked == expected.end() || !(walked->first < to));
}

template <class Map>
void change(atomic_txn &txn, Map &map, model &expected, dice &random) {
    const key k = key_of(random.below(key_count));
    const value v = value_of(random.below(1000000));
    const auto there = expected.find(k);
    const bool is_there = there != expected.end();
    switch (random.below(is_ordered<Map> ? 8 : 7)) {
    case 0:
        EXPECT_EQ(!is_there, map.put(txn, k, v));
        expected[k] = v;
        break;
    case 1:
        EXPECT_EQ(!is_there, map.insert(k, v)); // of the transaction that is under way
        expected.emplace(k, v);
        break;
    case 2:
    case 3:
        EXPECT_EQ(is_there, random.below(2) == 0 ? map.erase(txn, k) : map.erase(k));
        expected.erase(k);
        break;
    case 4: {
        value *place = map.find(txn, k);
        ASSERT_EQ(is_there, place != nullptr);
        if (place) {
            txn[place->number] += 1;
            there->second.number += 1;
        }
        break;
    }
    case 5:
        txn[map.find_or_make(txn, k, v).number] += 3;
        expected.emplace(k, v).first->second.number += 3;
        break;
    case 6:
        EXPECT_TRUE(map.get(txn, k) == (is_there ? std::optional<value>(there->second) : std::nullopt));
        EXPECT_EQ(expected.size(), map.size(txn));
        break;
    default:
        if constexpr (is_ordered<Map>)
            look_around(txn, map, expected, k, key_of(random.below(key_count)));
    }
}

// Transactions of some operations each, of which some are rolled back.
template <class Map>
void change_often(const taiyen::heap &heap, Map &map, model &expected, dice &random, unsigned transactions) {
    for (unsigned i = 0; i < transactions; i++) {
        const uint64_t operations = 1 + random.below(12);
        const bool fails = random.below(5) == 0;
        model after = expected;
        try {
            heap.atomically(
                [&](atomic_txn &txn) {
                    after = expected;
                    for (uint64_t n = 0; n < operations; n++)
                        change(txn, map, after, random);
                    if (fails)
                        throw std::runtime_error("no");
                },
                TY_COMMIT_ASYNC);
            expected = std::move(after);
        } catch (const std::runtime_error &) {
        }
    }
}

} // namespace

// The sizes go up and down: by themselves to what makes as many keys as it erases, and to nothing by a walk that
// erases.
#define MAP_TEST(kind)                                                                                                 \
    TEST_P(containers, kind##_is_as_its_model) {                                                                       \
        kind *map = &made<kind>("map");                                                                                \
        const size_t blocks = small_blocks();                                                                          \
        dice random(2);                                                                                                \
        model expected;                                                                                                \
        for (unsigned round = 0; round < 4; round++) {                                                                 \
            change_often(*heap, *map, expected, random, 250);                                                          \
            map = &found<kind>("map");                                                                                 \
            expect_same(*map, expected);                                                                               \
        }                                                                                                              \
        ASSERT_GT(expected.size(), 300u);                                                                              \
        heap->atomically([&](atomic_txn &txn) {                                                                        \
            map->each(txn, [&](const key &k, const value &v) {                                                         \
                if (v.number % 3 != 0) {                                                                               \
                    EXPECT_TRUE(map->erase(txn, k));                                                                   \
                    expected.erase(k);                                                                                 \
                }                                                                                                      \
            });                                                                                                        \
        });                                                                                                            \
        expect_same(*map, expected);                                                                                   \
        while (!expected.empty()) {                                                                                    \
            heap->atomically([&] { EXPECT_TRUE(map->erase(expected.begin()->first)); }, TY_COMMIT_ASYNC);              \
            expected.erase(expected.begin());                                                                          \
        }                                                                                                              \
        expect_same(*map, expected);                                                                                   \
        expect_empty_heap(blocks);                                                                                     \
        map = &found<kind>("map");                                                                                     \
        for (uint64_t i = 0; i < 300; i++)                                                                             \
            heap->atomically([&] { map->put(key_of(i), value_of(i)); }, TY_COMMIT_ASYNC);                              \
        map->clear();                                                                                                  \
        expect_same(*map, expected);                                                                                   \
        expect_empty_heap(blocks);                                                                                     \
    }

MAP_TEST(hashed)
MAP_TEST(hashed_poorly)
MAP_TEST(ordered)

// J2. Looked at after each step: lists that are wrong might never end for whoever goes on.
TEST_P(containers, an_ordered_map_after_each_step) {
    ordered &map = made<ordered>("map");
    dice random(4);
    model expected;
    for (unsigned i = 0; i < 400; i++) {
        const key k = key_of(random.below(60));
        if (random.below(3) == 0) {
            ASSERT_EQ(expected.erase(k) != 0, map.erase(k));
        } else {
            ASSERT_EQ(expected.insert_or_assign(k, value_of(i)).second, map.put(k, value_of(i)));
        }
        model::const_iterator next = expected.begin();
        map.each([&](const key &at, const value &what) {
            return next != expected.end() && next->first == at && next++->second == what;
        });
        ASSERT_TRUE(next == expected.end());
        for (const auto &[at, what] : expected)
            ASSERT_TRUE(map.get(at) == std::optional<value>(what));
    }
    map.clear();
    expect_same(map, {});
}

TEST_P(containers, a_queue_is_as_its_model) {
    using numbers = taiyen::queue<value>;
    numbers *queue = &made<numbers>("queue");
    const size_t blocks = small_blocks();
    dice random(3);
    std::deque<value> expected;
    for (unsigned i = 0; i < 600; i++) {
        std::deque<value> after;
        const bool fails = random.below(5) == 0;
        try {
            heap->atomically(
                [&](atomic_txn &txn) {
                    after = expected;
                    for (uint64_t n = random.below(9); n != 0; n--) {
                        const value v = value_of(random.below(1000));
                        if (random.below(2) == 0) {
                            queue->push(txn, v);
                            after.push_back(v);
                            continue;
                        }
                        EXPECT_TRUE(queue->front(txn) ==
                                    (after.empty() ? std::nullopt : std::optional<value>(after.front())));
                        const std::optional<value> popped = queue->try_pop();
                        ASSERT_EQ(!after.empty(), popped.has_value());
                        if (popped) {
                            EXPECT_EQ(after.front(), *popped);
                            after.pop_front();
                        }
                        EXPECT_EQ(after.size(), queue->size(txn));
                    }
                    if (fails)
                        throw std::runtime_error("no");
                },
                TY_COMMIT_ASYNC);
            expected = std::move(after);
        } catch (const std::runtime_error &) {
        }
        if (i % 200 == 0)
            queue = &found<numbers>("queue");
    }
    EXPECT_EQ(expected.size(), queue->size());
    while (!expected.empty()) {
        EXPECT_EQ(expected.front(), queue->pop());
        expected.pop_front();
    }
    EXPECT_FALSE(queue->try_pop());
    queue->push(value_of(1));
    queue->clear();
    EXPECT_EQ(0u, queue->size());
    expect_empty_heap(blocks);
}

TEST_P(containers, additions_do_not_conflict) {
    taiyen::counter *count = &made<taiyen::counter>("count");
    in_threads(4, [&](unsigned thread) {
        for (unsigned i = 0; i < 5000; i++)
            heap->atomically([&](atomic_txn &txn) { count->add(txn, thread + 1); }, TY_COMMIT_ASYNC);
    });
    const ty_atomic_stats stats = taiyen::test::atomic_stats_of(heap->get());
    EXPECT_EQ(0u, stats.conflicts_locked + stats.conflicts_changed + stats.conflicts_serial);
    EXPECT_EQ(5000 * (1 + 2 + 3 + 4), count->read());
    count->add(-50000);
    EXPECT_EQ(0, found<taiyen::counter>("count").read());
}

// A body may go on, and commit, after a call that has failed.
template <class Map>
static void fill_a_heap() {
    taiyen::heap_options options;
    options.concurrent = true;
    taiyen::heap heap = taiyen::heap::create(options).value();
    ty_heap_limits limits = TY_HEAP_LIMITS_INIT;
    limits.hard_bytes = size_t{1} << 20;
    ASSERT_EQ(TY_OK, ty_heap_set_limits(heap.get(), &limits));
    Map &map = heap.atomically([](atomic_txn &txn) -> Map & { return txn.root<Map>("map"); });
    model expected;
    heap.atomically([&](atomic_txn &txn) {
        expected.clear();
        try {
            for (uint32_t i = 0;; i++) {
                const key k{static_cast<uint16_t>(i), static_cast<uint16_t>(i >> 16)};
                EXPECT_TRUE(map.put(txn, k, value_of(i)));
                expected[k] = value_of(i);
            }
        } catch (const taiyen::exception &full) {
            EXPECT_EQ(TY_E_MEMORY, full.status());
        }
    });
    EXPECT_GT(expected.size(), 5000u);
    expect_same(map, expected);
    map.clear();
    expect_same(map, {});
}

TEST(containers_in_full_heaps, stay_whole) {
    fill_a_heap<hashed>();
    fill_a_heap<ordered>();
}

INSTANTIATE_TEST_SUITE_P(all, containers, testing::Values(sort::volatile_heap, sort::transactional), sort_name);
