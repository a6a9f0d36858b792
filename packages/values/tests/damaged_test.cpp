// Goal: verify() finds damage in the blocks of values, and is safe whatever their bytes are (VA14): it reads nothing
// outside of a block, and ends. Method: a heap with values of all kinds; bytes and words of its blocks are changed, one
// or some at a time, and it is verified each time, then they are put back. A block ends at its span's end, or the next
// one's begin, so a wild read of more than that is a signal or a wrong count.
#include "support.hpp"
#include "tests/effort.hpp"

#include <random>

using namespace values_test;

namespace {

class damaged_values : public testing::Test {
protected:
    damaged_values() : heap(taiyen::heap::create(packed_options()).value()), values(value_heap::open(heap).value()) {
        const value root = values.make_container(value_kind::dict).value();
        values.set_root(root).value();
        taiyen::dict all(values, root);
        for (int i = 0; i < 40; ++i)
            all.set(values.text_key("key number " + std::to_string(i)), dict_of(i)).value();
        all.set(values.text_key("list"), filled<taiyen::list>(value_kind::list)).value();
        all.set(values.text_key("array"), array()).value();
        all.set(values.text_key("records"), records()).value();
        const value deque = values.make_container(value_kind::deque).value();
        for (int i = 0; i < 9; ++i)
            taiyen::deque(values, deque).push_front(value::integer(i)).value();
        all.set(values.text_key("deque"), deque).value();
        const value set = values.make_container(value_kind::set).value();
        all.set(values.text_key("set"), set).value();
        for (int i = 0; i < 20; ++i)
            taiyen::set(values, set).add(values.key(tuple(i)).value()).value();
        const value twice = values.make_container(value_kind::list).value();
        all.set(values.text_key("once"), twice).value();
        all.set(values.text_key("twice"), twice).value();
        all.set(values.key(values.make_complex(1, 2).value()).value(), value::none()).value();
        all.set(values.integer_key(std::string(20, 'x'), true), value::real(1.5)).value();
        expect_sound(values);
        EXPECT_EQ(TY_OK, ty_each_block(
                             heap.get(),
                             [](const ty_block *block, void *context) {
                                 static_cast<damaged_values *>(context)->blocks.push_back(*block);
                                 return true;
                             },
                             this));
    }
    value dict_of(int number) {
        const value made = values.make_container(value_kind::dict).value();
        taiyen::dict to(values, made);
        to.set(values.text_key("number"), value::integer(number)).value();
        to.set(values.text_key("text of some length"), values.make_text(std::string(number, 'y')).value()).value();
        to.set(values.text_key("tuple"), tuple(number)).value();
        const value list = values.make_container(value_kind::list).value();
        for (int i = 0; i < number % 7; ++i)
            taiyen::list(values, list).append(value::real(i + 0.25)).value();
        to.set(values.text_key("list"), list).value();
        return values.pack(made).value();
    }
    value tuple(int number) {
        const value inner[2] = {value::integer(number), values.make_text("within a tuple").value()};
        const value outer[2] = {values.make_tuple(inner, 2).value(), value::boolean(true)};
        return values.make_tuple(outer, 2).value();
    }
    template <class T>
    value filled(value_kind kind) {
        const value made = values.make_container(kind).value();
        for (int i = 0; i < 30; ++i)
            T(values, made).append(i % 3 ? value::integer(i) : dict_of(i)).value();
        return made;
    }
    value array() {
        const uint64_t shape[2] = {3, 4};
        return values.make_array("d", 8, shape, 2).value();
    }
    value records() {
        const value made = values.make_records(values.keep_layout("point 16").value(), 16).value();
        taiyen::records(values, made).insert(0, nullptr, 3).value();
        return made;
    }
    // Whether something is reported.
    bool is_reported() {
        std::size_t reported = 0;
        const bool sound{verify(values, [&](const std::string &text) { reported += text.size(); })};
        EXPECT_EQ(sound, reported == 0);
        return reported != 0;
    }

    taiyen::heap heap;
    value_heap values;
    std::vector<ty_block> blocks;
};

TEST_F(damaged_values, bytes_are_changed) {
    std::mt19937 dice(7);
    std::size_t reported = 0, changed = 0;
    for (const ty_block &block : blocks) {
        for (int turn = 0; turn < taiyen::test::effort(60); ++turn) {
            auto *byte = static_cast<uint8_t *>(block.address) +
                         dice() % (turn % 2 && block.size_bytes > 32 ? 32 : block.size_bytes);
            const uint8_t before = *byte;
            *byte = static_cast<uint8_t>(turn % 3 ? before ^ 1u << dice() % 8 : dice());
            changed += *byte != before;
            reported += is_reported();
            *byte = before;
        }
    }
    expect_sound(values);
    EXPECT_GT(changed, 1000u);
    EXPECT_GT(reported,
              changed / 2); // what stands in an array or in records is anything; so is what lies after a text
}

TEST_F(damaged_values, words_are_changed) {
    std::mt19937_64 dice(8);
    const auto address = [&]() -> uint64_t { // a good one, one within a block, or none at all
        const ty_block &block = blocks[dice() % blocks.size()];
        const uint64_t at = reinterpret_cast<uint64_t>(block.address);
        switch (dice() % 6) {
        case 0:
            return at + dice() % block.size_bytes;
        case 1:
            return dice() >> 16;
        case 2:
            return dice() % 4096;
        default:
            return at;
        }
    };
    for (int turn = 0; turn < taiyen::test::effort(20000); ++turn) {
        uint64_t *words[3], before[3];
        for (int i = 0; i < 3; ++i) { // one to three of them
            const ty_block &block = blocks[dice() % blocks.size()];
            words[i] = static_cast<uint64_t *>(block.address) + dice() % (block.size_bytes / 8);
            before[i] = *words[i];
            if (i == 0 || dice() % 2)
                *words[i] = dice() % 3 ? address() : dice();
        }
        is_reported();
        for (int i = 2; i >= 0; --i)
            *words[i] = before[i];
    }
    expect_sound(values);
}

TEST_F(damaged_values, what_an_open_believes) {
    auto *space = values.space();
    const taiyen::detail::value_space before = *space;
    const auto refused = [&](const char *what) {
        const taiyen::result<value_heap> opened = value_heap::open(heap);
        EXPECT_TRUE(!opened && opened.status() == TY_E_DAMAGED) << what;
        *space = before;
    };
    space->root = value::block(reinterpret_cast<char *>(space) + 8);
    refused("a root within a block");
    space->shapes = before.root;
    refused("shapes that are a dict");
    space->layouts = before.shapes;
    refused("layouts that are tuples");
    space->layouts = value::integer(5);
    refused("layouts that are a number");
    EXPECT_TRUE(value_heap::open(heap));
}

} // namespace
