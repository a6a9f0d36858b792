// Goal: each container is what its plain model is, after any row of changes; in heaps of each kind; after a rollback,
// an undo, a redo, a snapshot and a crash the values are those of before, and every store was declared. Method: random
// changes of a tree of all containers, with parts that are stored several times, beside the model; copies of the model
// say what is to come back. check_stores reports stores that no transaction declared.
#include "support.hpp"
#include "tests/effort.hpp"

#include <taiyen/undo.hpp>
#include <unistd.h>

using namespace values_test;

namespace {

class with_classes : public testing::TestWithParam<ty_class_table> {};
INSTANTIATE_TEST_SUITE_P(all, with_classes, testing::Values(TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE));

TEST_P(with_classes, changed_at_random) {
    for (uint64_t seed = 1; seed <= uint64_t(taiyen::test::effort(6)); ++seed) {
        taiyen::heap_options options;
        options.classes = GetParam();
        taiyen::heap heap = taiyen::heap::create(options).value();
        value_heap values = value_heap::open(heap).value();
        changer both(values, seed);
        ASSERT_TRUE(both.begin());
        for (int round = 0; round < 40; ++round) {
            both.run(60);
            both.expect_as_model();
        }
        EXPECT_GT(both.packed(), 100);
        ASSERT_TRUE(values.set_root(value::none()));
        expect_sound(values);
        const auto *shapes = taiyen::detail::block_as<taiyen::detail::value_container>(values.space()->shapes);
        EXPECT_LE(heap.stats().value().live_blocks, 4u + 2 * shapes->count) << "more than the heap's own is left";
    }
}

class in_files : public testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/taiyen-values-XXXXXX";
        ASSERT_NE(nullptr, mkdtemp(name));
        folder = name;
    }
    void TearDown() override {
        values.reset();
        heap.reset();
        for (const char *file : {"/v.ty", "/v.ty-journal", "/v.ty-log"})
            unlink((folder + file).c_str());
        EXPECT_EQ(0, rmdir(folder.c_str()));
    }
    void open(ty_kind kind, ty_open_mode mode = TY_OPEN_OR_CREATE) {
        values.reset();
        heap.reset();
        taiyen::open_options options;
        options.kind = kind;
        options.mode = mode;
        options.limit_bytes = size_t{64} << 20;
        options.log_bytes = size_t{1} << 20;
        options.background = TY_BACKGROUND_CALLS;
        options.check_stores = kind == TY_TRANSACTIONAL;
        options.undeclared_write = [](const ty_undeclared_write *store, void *) {
            ADD_FAILURE() << "a store of " << store->bytes << " bytes at " << store->address << " was not declared";
        };
        heap = std::make_unique<taiyen::heap>(taiyen::heap::open(folder + "/v.ty", options).value());
        if (kind == TY_TRANSACTIONAL && !heap->find_root<char>("taiyen.values").value())
            heap->transact([&](taiyen::transaction &) { return open_values(); }).value();
        else
            ASSERT_TRUE(open_values());
    }
    bool open_values() {
        values = std::make_unique<value_heap>(value_heap::open(*heap).value());
        return true;
    }
    std::string folder;
    std::unique_ptr<taiyen::heap> heap;
    std::unique_ptr<value_heap> values;
};

TEST_F(in_files, transactions) {
    open(TY_TRANSACTIONAL);
    changer both(*values, 11);
    heap->transact([&](taiyen::transaction &) { ASSERT_TRUE(both.begin()); }).value();
    std::mt19937 dice(5);
    for (int round = 0; round < 150; ++round) {
        const auto before = copy_of(both.model);
        taiyen::transaction txn = heap->begin().value();
        both.run(1 + static_cast<int>(dice() % 40));
        const bool commits = dice() % 3 != 0;
        if (commits) {
            ASSERT_TRUE(txn.commit());
        } else {
            ASSERT_TRUE(txn.rollback());
            both.model = before;
        }
        if (round % 10 == 9) { // the process dies
            ASSERT_TRUE(heap->discard());
            static_cast<void>(heap->release());
            open(TY_TRANSACTIONAL);
            both.use(*values);
        }
        taiyen::transaction looks = heap->begin().value(); // the test makes keys to look for
        both.expect_as_model();
        ASSERT_TRUE(looks.rollback());
    }
}

// VA10: who keeps something by the stamp sees that it is void.
TEST_F(in_files, stamps_never_come_twice) {
    open(TY_TRANSACTIONAL);
    std::vector<uint64_t> seen{values->stamp()};
    for (int64_t round = 0; round < 20; ++round) {
        taiyen::transaction txn = heap->begin().value();
        ASSERT_TRUE(values->set_root(value::integer(round)));
        seen.push_back(values->stamp());
        if (round % 3) {
            ASSERT_TRUE(txn.commit());
        } else {
            ASSERT_TRUE(txn.rollback());
            EXPECT_NE(seen.back(), values->stamp());
        }
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen.end(), std::adjacent_find(seen.begin(), seen.end()));
}

// VA15: who keeps something by the number of a container or array is not led to another one.
TEST_F(in_files, numbers_never_come_twice) {
    open(TY_TRANSACTIONAL);
    const uint64_t shape[] = {5};
    std::vector<uint32_t> seen;
    for (int round = 0; round < 20; ++round) {
        taiyen::transaction txn = heap->begin().value();
        for (const value made :
             {values->make_container(value_kind::list).value(), values->make_array("d", 8, shape, 1).value()}) {
            seen.push_back(taiyen::container_id(made));
            ASSERT_TRUE(values->discard(made));
        }
        ASSERT_TRUE(round % 3 ? txn.commit() : txn.rollback());
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen.end(), std::adjacent_find(seen.begin(), seen.end()));
}

// Records beside plain bytes; each change is a transaction (a step of undo), and some are taken back.
class record_changes {
public:
    record_changes(value_heap &values, uint64_t seed) : values_(values), dice_(seed) {}
    static constexpr size_t width = 12;
    value make() {
        const uint16_t layout = values_.keep_layout("Point 12").value();
        const value made = values_.make_records(layout, width).value();
        EXPECT_TRUE(values_.set_root(made));
        return made;
    }
    // One change; the model as it is to be then.
    std::string change(const std::string &model) {
        taiyen::records in_heap(values_, values_.root());
        const size_t count = model.size() / width, place = dice_() % (count + 1), more = dice_() % 5;
        std::string bytes(more * width, '\0'), after = model;
        for (char &byte : bytes)
            byte = static_cast<char>(dice_());
        const uint32_t stamp = in_heap.stamp();
        switch (dice_() % 6) {
        case 0:
        case 1:
            EXPECT_TRUE(in_heap.insert(place, more == 4 ? nullptr : bytes.data(), more));
            EXPECT_EQ(place == count || more == 0, in_heap.stamp() == stamp);
            return after.insert(place * width, more == 4 ? std::string(more * width, '\0') : bytes);
        case 2:
            EXPECT_EQ(place + more <= count, bool(in_heap.erase(place, more)));
            return place + more <= count ? after.erase(place * width, more * width) : after;
        case 3:
            EXPECT_EQ(place < count, bool(in_heap.store(place, 3, "abc", 3)));
            return place < count ? after.replace(place * width + 3, 3, "abc") : after;
        case 4: // others, as many
            EXPECT_EQ(place + more <= count, bool(in_heap.replace(place, more, bytes.data(), more)));
            EXPECT_EQ(more == 0 || place + more > count, in_heap.stamp() == stamp);
            return place + more <= count ? after.replace(place * width, more * width, bytes) : after;
        default:
            EXPECT_FALSE(in_heap.store(place, width - 1, "ab", 2));
            EXPECT_TRUE(in_heap.reserve(count + more));
            return after;
        }
    }
    void expect(const std::string &model) {
        const taiyen::records in_heap(values_, values_.root());
        ASSERT_EQ(model, std::string(static_cast<const char *>(in_heap.data()), in_heap.size() * width));
        EXPECT_EQ("Point 12", values_.layout(in_heap.layout()));
        expect_sound(values_);
    }
    bool roll(uint64_t sides) { return dice_() % sides == 0; }

private:
    value_heap &values_;
    std::mt19937_64 dice_;
};

TEST_F(in_files, records_in_transactions) {
    open(TY_TRANSACTIONAL);
    record_changes both(*values, 21);
    ASSERT_TRUE(heap->transact([&](taiyen::transaction &) { return !both.make().is_nothing(); }));
    std::string model;
    for (int i = 0; i < 600; ++i) {
        taiyen::transaction one = heap->begin().value();
        const std::string after = both.change(model);
        if (both.roll(3)) {
            ASSERT_TRUE(one.rollback());
        } else {
            ASSERT_TRUE(one.commit());
            model = after;
        }
        both.expect(model);
    }
    EXPECT_GT(model.size(), 100u);
    open(TY_TRANSACTIONAL);
    record_changes(*values, 1).expect(model);
}

TEST(values, records_undone) {
    taiyen::heap heap = taiyen::heap::create().value();
    value_heap values = value_heap::open(heap).value();
    taiyen::undo_view undo(heap);
    record_changes both(values, 22);
    both.make();
    ASSERT_TRUE(undo.attach());
    std::vector<std::string> states{""};
    for (int step = 0; step < 80; ++step) {
        taiyen::undo_transaction open = undo.begin("step").value();
        values.record_undo(true);
        std::string after;
        do
            after = both.change(states.back()); // a step in which nothing changes is none
        while (after == states.back());
        states.push_back(after);
        values.record_undo(false);
        ASSERT_TRUE(open.end());
    }
    for (size_t at = states.size() - 1; at-- > 0;) {
        ASSERT_TRUE(undo.undo());
        both.expect(states[at]);
    }
    for (size_t at = 1; at < states.size(); ++at) {
        ASSERT_TRUE(undo.redo());
        both.expect(states[at]);
    }
    ASSERT_TRUE(undo.exit());
    const uint64_t before = heap.stats().value().live_blocks;
    ASSERT_TRUE(values.set_root(value::none()));
    EXPECT_EQ(before - 2, heap.stats().value().live_blocks);
}

TEST_F(in_files, outside_of_a_transaction) {
    open(TY_TRANSACTIONAL);
    EXPECT_EQ(TY_E_ARGUMENT, values->make_text("a text that needs a block").status());
    EXPECT_EQ(TY_E_ARGUMENT, values->set_root(value::none()).status());
}

TEST_F(in_files, open_for_reading_only) {
    open(TY_SNAPSHOT);
    changer both(*values, 12);
    ASSERT_TRUE(both.begin());
    ASSERT_TRUE(values->set_root(value::integer(5)));
    ASSERT_TRUE(heap->snapshot());
    ASSERT_TRUE(heap->close());
    open(TY_SNAPSHOT, TY_OPEN_READ_ONLY);
    EXPECT_TRUE(values->is_read_only());
    EXPECT_EQ(5, values->root().as_integer());
    EXPECT_EQ(TY_E_PERMISSION, values->set_root(value::none()).status());
}

TEST_F(in_files, snapshots) {
    open(TY_SNAPSHOT);
    changer both(*values, 13);
    ASSERT_TRUE(both.begin());
    for (int round = 0; round < 12; ++round) {
        both.run(200);
        ASSERT_TRUE(heap->snapshot());
        const auto kept = copy_of(both.model);
        both.run(100);
        ASSERT_TRUE(heap->discard());
        static_cast<void>(heap->release());
        open(TY_SNAPSHOT);
        both.use(*values);
        both.model = kept;
        both.expect_as_model();
    }
}

TEST_F(in_files, an_archive) {
    open(TY_ARCHIVE);
    changer both(*values, 14);
    ASSERT_TRUE(both.begin());
    for (int round = 0; round < 6; ++round) {
        both.run(300);
        ASSERT_TRUE(heap->close());
        open(TY_ARCHIVE);
        both.use(*values);
        both.expect_as_model();
    }
}

TEST(values, undo_and_redo) {
    taiyen::heap heap = taiyen::heap::create().value();
    value_heap values = value_heap::open(heap).value();
    taiyen::undo_view undo(heap);
    changer both(values, 15);
    ASSERT_TRUE(both.begin());
    both.run(300);
    ASSERT_TRUE(undo.attach());
    std::vector<std::shared_ptr<node>> states{copy_of(both.model)};
    for (int step = 0; step < 40; ++step) {
        taiyen::undo_transaction open = undo.begin("step").value();
        values.record_undo(true);
        both.run(25);
        values.record_undo(false);
        if (step % 5 == 4) {
            ASSERT_TRUE(open.cancel());
            both.model = copy_of(states.back());
        } else {
            ASSERT_TRUE(open.end());
            states.push_back(copy_of(both.model));
        }
        both.expect_as_model();
    }
    for (size_t at = states.size() - 1; at-- > 0;) {
        ASSERT_TRUE(undo.undo());
        both.model = states[at];
        both.expect_as_model();
    }
    for (size_t at = 1; at < states.size() - 3; ++at) {
        ASSERT_TRUE(undo.redo());
        both.model = states[at];
        both.expect_as_model();
    }
    ASSERT_TRUE(undo.exit());
    both.model = copy_of(both.model);
    both.run(200);
    both.expect_as_model();
}

} // namespace
