// Goal: the type descriptors of the library's own containers say all there is: the pointer audit finds nothing to say
// of maps that grew and shrank, and wherever their heap goes, each answer stays the same, also of maps whose keys are
// addresses. Method: maps of many entries, in and below one another, in a concurrent heap in a file; entries are taken
// away and others made; then the heap is packed and unpacked elsewhere, or compacted, and asked as before.
#include "../support.hpp"
#include "fixture.hpp"
#include <taiyen/containers.hpp>
#include <taiyen/types.hpp>

using namespace taiyen::test;
using taiyen::atomic_txn;

namespace {

struct person;
using by_address = taiyen::hash_map<const person *, long>;
using by_rank = taiyen::ordered_map<long, person *>;
struct person {
    long id;
    person *parent;
    by_rank children;
};
struct place { // a key without addresses, and of no word's size
    uint16_t row, column;
    bool operator<(const place &other) const { return row != other.row ? row < other.row : column < other.column; }
};
struct card {
    const char *text;
    person *of;
};
// What a map does not see: the same hash for many.
struct poor_hash {
    uint64_t operator()(long id) const { return static_cast<uint64_t>(id % 20); }
};
struct town {
    taiyen::hash_map<long, person *> people;
    by_address numbers;
    taiyen::ordered_map<const void *, long> ages; // by one of two blocks of the person's
    taiyen::hash_map<place, card> cards;
    taiyen::ordered_map<place, card> shelf;
    taiyen::hash_map<long, person *, poor_hash> crowd;
    taiyen::queue<person *> waiting;
    taiyen::counter counted;
    taiyen::var<person *> mayor;
    town *next; // of the same type descriptor
};

constexpr long people_most = 1500;

place place_of(long id) {
    return {static_cast<uint16_t>(id % 50), static_cast<uint16_t>(id / 50)};
}

card card_of(atomic_txn &txn, person *of) {
    std::string text = "card of " + std::to_string(of->id);
    auto *copy = static_cast<char *>(txn.alloc(text.size() + 1));
    memcpy(copy, text.c_str(), text.size());
    return {copy, of};
}

// Blocks of different sizes, which change their order when a heap is laid out anew.
const void *name_of(atomic_txn &txn, const town &here, const person *of) {
    return of->id % 2 ? static_cast<const void *>(of) : here.cards.get(txn, place_of(of->id))->text;
}

void settle(atomic_txn &txn, town &here, long id) {
    auto *one = txn.make<person>();
    one->id = id;
    if (auto parent = here.people.get(txn, id / 3)) {
        one->parent = *parent;
        one->parent->children.put(txn, id, one);
    }
    here.people.put(txn, id, one);
    here.numbers.put(txn, one, id);
    here.cards.put(txn, place_of(id), card_of(txn, one));
    here.ages.put(txn, name_of(txn, here, one), id % 90);
    here.shelf.put(txn, place_of(id), card_of(txn, one));
    if (id % 20 == 0)
        here.crowd.put(txn, id, one);
    here.waiting.push(txn, one);
    here.counted.add(txn, id);
}

// From everything but the list of those who wait.
void leave(atomic_txn &txn, town &here, person *one) {
    one->children.each(txn, [&](long, person *child) { txn[child->parent] = nullptr; });
    one->children.clear(txn);
    if (person *parent = txn[one->parent])
        parent->children.erase(txn, one->id);
    here.people.erase(txn, one->id);
    here.numbers.erase(txn, one);
    here.ages.erase(txn, name_of(txn, here, one));
    txn.free(const_cast<char *>(here.cards.get(txn, place_of(one->id))->text));
    here.cards.erase(txn, place_of(one->id));
    txn.free(const_cast<char *>(here.shelf.get(txn, place_of(one->id))->text));
    here.shelf.erase(txn, place_of(one->id));
    here.crowd.erase(txn, one->id);
    txn.free(one);
}

template <class Step>
void in_transactions(const town &here, long begin, long end, const Step &step) {
    for (constexpr long at_once = 100; begin < end; begin += at_once)
        taiyen::heap_view(ty_heap_of(&here)).atomically([&](atomic_txn &txn) {
            for (long n = begin; n < std::min(end, begin + at_once); ++n)
                step(txn, n);
        });
}

void settle(town &here, long first, long last) {
    in_transactions(here, first, last + 1, [&](atomic_txn &txn, long id) { settle(txn, here, id); });
}

void fill(town &here, std::mt19937 &dice) {
    settle(here, 1, people_most);
    here.mayor = *here.people.get(7);
    std::vector<long> ids;
    for (long id = 100; id < people_most; ++id)
        ids.push_back(id);
    std::shuffle(ids.begin(), ids.end(), dice);
    here.waiting.clear();
    auto part = static_cast<long>(ids.size() / 3);
    in_transactions(here, 0, part * 2,
                    [&](atomic_txn &txn, long n) { leave(txn, here, *here.people.get(txn, ids[n])); });
    in_transactions(here, 1, 90, [&](atomic_txn &txn, long id) { here.waiting.push(txn, *here.people.get(txn, id)); });
    settle(here, people_most + 1, people_most + part);
}

// All that can be asked, without addresses.
std::map<std::string, long> answers(town &here) {
    std::map<std::string, long> all;
    here.people.each([&](long id, person *one) {
        std::string name = std::to_string(id);
        all[name] = one->id;
        all[name + " parent"] = one->parent ? one->parent->id : 0;
        long last = 0;
        one->children.each([&](long child, const person *there) {
            EXPECT_LT(last, child);
            EXPECT_EQ(there->parent, one);
            last = child;
            all[name + " child " + std::to_string(child)] = there->id;
        });
        all[name + " number"] = here.numbers.get(one).value_or(-1);
        for (auto found : {here.cards.get(place_of(id)), here.shelf.get(place_of(id))}) {
            EXPECT_EQ(found->of, one);
            all[name + found->text] = found->of->id;
        }
        all[name + " age"] =
            here.ages.get(id % 2 ? one : static_cast<const void *>(here.cards.get(place_of(id))->text)).value_or(-1);
        all[name + " crowd"] = here.crowd.get(id).value_or(one)->id;
    });
    all["ages"] = static_cast<long>(here.ages.size());
    long ages = 0;
    const void *before = nullptr;
    here.ages.each([&](const void *one, long) {
        EXPECT_LT(before, one);
        before = one;
        ++ages;
    });
    all["ages in order"] = ages;
    all["waiting"] = static_cast<long>(here.waiting.size());
    all["first"] = (*here.waiting.front())->id;
    all["counted"] = here.counted.read();
    all["mayor"] = here.mayor.load()->id;
    return all;
}

ty_heap *open_heap(const std::string &path, ty_kind kind, bool concurrent,
                   ty_class_table classes = TY_CLASSES_CACHE_LINE) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.classes = classes;
    options.kind = kind;
    options.concurrent = concurrent;
    options.limit_bytes = size_t{256} << 20;
    ty_heap *heap = nullptr;
    EXPECT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    return heap;
}

struct way {
    const char *name;
    ty_class_table classes;
    ty_layout layout;
    bool compact;
};

class moved_maps : public testing::TestWithParam<way> {
protected:
    void SetUp() override {
        complete = new_descriptors();
        ASSERT_OK(ty_types_root(complete.get(), "town", taiyen::descriptor_of<town>(), nullptr));
        ty_heap *heap = open_heap(path, TY_TRANSACTIONAL, true, GetParam().classes);
        taiyen::heap_view(heap).atomically([&](atomic_txn &txn) { txn.root<town>("town").next = txn.make<town>(); });
        std::mt19937 dice(11);
        before = fill_and_ask(heap, dice);
        expect_nothing_found(heap);
        ASSERT_OK(ty_close(heap));
    }
    static std::map<std::string, long> fill_and_ask(ty_heap *heap, std::mt19937 &dice) {
        town &here = *static_cast<town *>(ty_root(heap, "town"));
        fill(here, dice);
        return answers(here);
    }
    void expect_nothing_found(ty_heap *heap) {
        audit_result result = take_audit(heap, complete.get());
        EXPECT_EQ(result.status, TY_OK);
        EXPECT_EQ(result.mismatches.size(), 0u) << result.text();
        EXPECT_EQ(result.figures.blocks, result.figures.reached_blocks);
    }
    // The path of the heap where it is then.
    std::string move() {
        if (GetParam().compact) {
            ty_heap *heap = open_heap(path, TY_SNAPSHOT, false);
            ty_compact_options options = TY_COMPACT_OPTIONS_INIT;
            options.types = complete.get();
            EXPECT_OK(ty_compact(heap, &options, nullptr));
            EXPECT_OK(ty_close(heap));
            return path;
        }
        ty_heap *heap = open_heap(path, TY_TRANSACTIONAL, false);
        std::string stream = packed(heap).text();
        std::string other = where.path("other.ty");
        ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
        options.path = other.c_str();
        options.place = TY_PLACE_OTHER;
        options.layout = GetParam().layout;
        options.types = complete.get();
        EXPECT_OK(unpack(stream, options, nullptr));
        EXPECT_OK(ty_close(heap));
        return other;
    }
    folder where;
    std::string path = where.path("town.ty");
    descriptors_owner complete;
    std::map<std::string, long> before;
};

} // namespace

TEST_P(moved_maps, answer_as_before) {
    ty_heap *heap = open_heap(move(), TY_TRANSACTIONAL, true);
    town &here = *static_cast<town *>(ty_root(heap, "town"));
    EXPECT_EQ(answers(here), before);
    expect_nothing_found(heap);
    // They are alive: they grow, shrink, and give back all that they have.
    settle(here, 10000, 11000);
    std::vector<person *> all;
    here.people.each([&](long, person *one) { all.push_back(one); });
    EXPECT_EQ(here.numbers.size(), all.size());
    here.waiting.clear();
    in_transactions(here, 0, static_cast<long>(all.size()), [&](atomic_txn &txn, long n) { leave(txn, here, all[n]); });
    EXPECT_EQ(here.people.size() + here.numbers.size() + here.ages.size() + here.shelf.size() + here.crowd.size(), 0u);
    here.numbers.clear();                                           // its tables, which were not freed in the move
    EXPECT_EQ(take_audit(heap, complete.get()).figures.blocks, 2u); // the towns
    ASSERT_OK(ty_close(heap));
}

INSTANTIATE_TEST_SUITE_P(of, moved_maps,
                         testing::Values(way{"elsewhere", TY_CLASSES_DENSE, TY_LAYOUT_SAME, false},
                                         way{"laid_out_anew", TY_CLASSES_DENSE, TY_LAYOUT_DEFRAGMENT, false},
                                         way{"lines_laid_out_anew", TY_CLASSES_CACHE_LINE, TY_LAYOUT_DEFRAGMENT, false},
                                         way{"compacted", TY_CLASSES_CACHE_LINE, TY_LAYOUT_DEFRAGMENT, true}),
                         [](const testing::TestParamInfo<way> &one) { return std::string(one.param.name); });

// A map is made anew after a move only if its keys hold addresses: a text's type descriptor with a hook is nothing to a
// tool.
TEST(descriptors_of_maps, hooks_where_keys_hold_addresses) {
    struct name {
        const char *text;
        long length;
    };
    struct deep {
        name names[2];
    };
    EXPECT_EQ((taiyen::descriptor_of<taiyen::hash_map<long, void *>>()->moved), nullptr);
    EXPECT_EQ((taiyen::descriptor_of<taiyen::hash_map<place, void *>>()->moved), nullptr);
    EXPECT_EQ((taiyen::descriptor_of<taiyen::ordered_map<place, void *>>()->moved), nullptr);
    EXPECT_NE((taiyen::descriptor_of<taiyen::hash_map<void *, long>>()->moved), nullptr);
    EXPECT_NE((taiyen::descriptor_of<taiyen::hash_map<deep, long>>()->moved), nullptr);
    EXPECT_NE((taiyen::descriptor_of<taiyen::ordered_map<const name *, long>>()->moved), nullptr);
}

namespace {

// Keys that lead to what has the map: the key's type descriptor is begun before the map's, and ended after it.
struct knot;
struct knot_key {
    knot *of;
    long number;
};
struct knot {
    taiyen::hash_map<knot_key, long> *map;
};

} // namespace

TEST(descriptors_of_maps, keys_that_lead_to_the_map) {
    taiyen::descriptor_of<knot_key>();
    EXPECT_NE((taiyen::descriptor_of<taiyen::hash_map<knot_key, long>>()->moved), nullptr);
    EXPECT_EQ(taiyen::descriptor_of<knot_key>()->field_count, 1u);
}
