// Goal: several threads in one container never see it in between, lose nothing and make nothing. Method: amounts that
// threads move between keys, so that the sum of all is always the same, for bodies that walk over all of it as well;
// numbered values that go through queues, of which each arrives once.
#include "concurrent_fixture.hpp"

#include <stdexcept>
#include <taiyen/containers.hpp>

using namespace api_test;
using taiyen::atomic_txn;

namespace {

constexpr unsigned threads = 4;
constexpr uint64_t thread_keys = 400, whole = 100000;

using word_hash_map = taiyen::hash_map<uint64_t, uint64_t>;
using word_ordered_map = taiyen::ordered_map<uint64_t, uint64_t>;

class containers_of_threads : public concurrent_heap_test {
protected:
    template <class T>
    T &found(const char *name) {
        die_and_open();
        T *there = heap->atomically([&](atomic_txn &txn) { return txn.find_root<T>(name); });
        EXPECT_NE(nullptr, there);
        return *there;
    }
};

// Keys come with the first that they get, and go with the last that they give.
template <class Map>
void move_some(atomic_txn &txn, Map &map, uint64_t from, uint64_t to, uint64_t wanted) {
    uint64_t *giver = map.find(txn, from);
    if (!giver || from == to)
        return;
    const uint64_t has = txn[*giver], amount = std::min(has, wanted);
    txn[map.find_or_make(txn, to)] += amount;
    if (amount == has)
        EXPECT_TRUE(map.erase(txn, from));
    else
        txn[*giver] -= amount;
}

template <class Map>
void look_at_all(atomic_txn &txn, const Map &map) {
    uint64_t sum = 0, count = 0, last = 0;
    map.each(txn, [&](uint64_t key, uint64_t amount) {
        sum += amount;
        count++;
        if (std::is_same_v<Map, word_ordered_map>) {
            EXPECT_TRUE(count == 1 || last < key);
        }
        last = key;
    });
    EXPECT_EQ(whole, sum);
    EXPECT_EQ(map.size(txn), count);
}

template <class Map>
void use_map(const taiyen::heap &heap, Map &map, unsigned thread) {
    dice random(thread);
    for (unsigned i = 0; i < 1500; i++) {
        taiyen::atomic_options options = TY_COMMIT_ASYNC;
        if (i % 50 == 0) {
            options.reads_only = i % 100 == 0;
            heap.atomically([&](atomic_txn &txn) { look_at_all(txn, map); }, options);
            continue;
        }
        const uint64_t from = random.below(thread_keys), to = random.below(thread_keys), wanted = random.below(700);
        const bool fails = random.below(10) == 0;
        try {
            heap.atomically(
                [&](atomic_txn &txn) {
                    move_some(txn, map, from, to, wanted);
                    move_some(txn, map, to, from + 1, wanted / 2);
                    if (fails)
                        throw std::runtime_error("no");
                },
                options);
        } catch (const std::runtime_error &) {
        }
    }
}

struct parcel {
    unsigned sender;
    unsigned number;
};

} // namespace

template <class Map>
static void use_map_by_threads(const taiyen::heap &heap, Map &map) {
    for (uint64_t key = 0; key < 100; key++)
        map.put(key * 4, whole / 100);
    in_threads(threads, [&](unsigned thread) { use_map(heap, map, thread); });
    heap.atomically([](atomic_txn &) {}); // what is asynchronous before it is durable, too
    ASSERT_TRUE(heap.kind() == TY_VOLATILE || heap.is_durable(0, true).value());
}

TEST_P(containers_of_threads, a_hash_map_keeps_its_sum) {
    use_map_by_threads(*heap, made<word_hash_map>("map"));
    word_hash_map &map = found<word_hash_map>("map");
    heap->atomically([&](atomic_txn &txn) { look_at_all(txn, map); });
}

TEST_P(containers_of_threads, an_ordered_map_keeps_its_sum_and_order) {
    use_map_by_threads(*heap, made<word_ordered_map>("map"));
    word_ordered_map &map = found<word_ordered_map>("map");
    heap->atomically([&](atomic_txn &txn) { look_at_all(txn, map); });
}

// Tables come and go below all of them.
TEST_P(containers_of_threads, a_hash_map_grows_and_shrinks_under_all) {
    constexpr uint64_t own = 2000;
    word_hash_map &map = made<word_hash_map>("map");
    in_threads(threads, [&](unsigned thread) {
        for (uint64_t n = 0; n < own; n++)
            heap->atomically([&] { EXPECT_TRUE(map.put(n * threads + thread, n)); }, TY_COMMIT_ASYNC);
        for (uint64_t n = 0; n < own; n++)
            EXPECT_EQ(n, heap->atomically([&] { return map.get(n * threads + thread); }, TY_COMMIT_ASYNC));
        for (uint64_t n = 1; n < own; n++)
            heap->atomically([&] { EXPECT_TRUE(map.erase(n * threads + thread)); }, TY_COMMIT_ASYNC);
    });
    EXPECT_EQ(threads, map.size());
    for (uint64_t thread = 0; thread < threads; thread++)
        EXPECT_EQ(0u, map.get(thread));
}

// Senders put into one of two queues; relays take from either, and put into a third; a replica takes all.
TEST_P(containers_of_threads, what_goes_through_queues_arrives_once) {
    constexpr unsigned each = 500, senders = 2, relays = 2;
    using parcels = taiyen::queue<parcel>;
    parcels *sent[senders] = {&made<parcels>("first"), &made<parcels>("second")}, &out = made<parcels>("out");
    std::vector<unsigned> next(senders);
    in_threads(senders + relays + 1, [&](unsigned thread) {
        if (thread < senders) {
            for (unsigned n = 0; n < each; n++)
                heap->atomically([&] { sent[thread]->push({thread, n}); }, TY_COMMIT_ASYNC);
            return;
        }
        if (thread < senders + relays) {
            bool drops = true; // then it is back where it was
            for (unsigned n = 0; n < each * senders / relays;) {
                try {
                    heap->atomically(
                        [&](atomic_txn &txn) {
                            out.push(txn,
                                     txn.or_else([&] { return sent[0]->pop(txn); }, [&] { return sent[1]->pop(); }));
                            if (n % 7 == 3 && drops)
                                throw std::runtime_error("dropped");
                        },
                        TY_COMMIT_ASYNC);
                    n++;
                    drops = true;
                } catch (const std::runtime_error &) {
                    drops = false;
                }
            }
            return;
        }
        for (unsigned n = 0; n < each * senders; n++) {
            const parcel taken = out.pop();
            EXPECT_EQ(next[taken.sender]++, taken.number) << "in the order in which they were sent";
        }
    });
    EXPECT_EQ(std::vector<unsigned>(senders, each), next);
    EXPECT_EQ(0u, sent[0]->size() + sent[1]->size() + out.size());
}

INSTANTIATE_TEST_SUITE_P(all, containers_of_threads, testing::Values(sort::volatile_heap, sort::transactional),
                         sort_name);
