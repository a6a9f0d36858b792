// Goal: what a value, a key, and a count of stores is: numbers that are equal are one key, whatever they are written
// as; keys that are chosen by somebody do not meet; what was stored last is freed, however deep it is, and rings are
// when they are collected. Method: each is made on purpose.
#include "support.hpp"

#include <cmath>
#include <functional>
#include <limits>

using namespace values_test;

namespace {

class values_of_a_heap : public testing::Test {
protected:
    values_of_a_heap() : heap(taiyen::heap::create(packed_options()).value()), values(value_heap::open(heap).value()) {
        root = values.make_container(value_kind::dict).value();
        values.set_root(root).value();
    }
    taiyen::value_key key(value v) { return values.key(v).value(); }
    value power_of_two(unsigned exponent, bool negative = false) {
        std::string magnitude(exponent / 8 + 1, '\0');
        magnitude.back() = static_cast<char>(1 << exponent % 8);
        return values.make_integer(magnitude, negative).value();
    }
    uint64_t blocks() { return heap.stats().value().live_blocks; }

    taiyen::heap heap;
    value_heap values;
    value root;
};

TEST(values, words) {
    for (const double number : {0.0, -0.0, 1.5, -1e308, 5e-324, HUGE_VAL, -HUGE_VAL}) {
        const value v = value::real(number);
        EXPECT_TRUE(v.is_real() && !v.is_block() && !v.is_integer() && kind_of(v) == value_kind::real);
        EXPECT_EQ(number, v.as_real());
        EXPECT_EQ(std::signbit(number), std::signbit(v.as_real()));
    }
    double odd_nan = 0;
    const uint64_t odd_bits = 0xfff123456789abcd;
    memcpy(&odd_nan, &odd_bits, sizeof odd_nan);
    EXPECT_TRUE(value::real(odd_nan).is_real() && std::isnan(value::real(odd_nan).as_real()));
    for (const int64_t number : {int64_t{0}, int64_t{-1}, value::integer_max, value::integer_min, int64_t{7}}) {
        const value v = value::integer(number);
        EXPECT_TRUE(v.is_integer() && !v.is_real() && !v.is_block() && !v.is_short_text());
        EXPECT_EQ(number, v.as_integer());
    }
    for (const std::string text : {"", "a", "abcdef", "\xc3\xa9t\xc3\xa9"}) {
        const value as_text = value::short_text(text), as_bytes = value::short_bytes(text);
        EXPECT_EQ(text, as_text.short_view());
        EXPECT_EQ(text, as_bytes.short_view());
        EXPECT_EQ(value_kind::text, kind_of(as_text));
        EXPECT_EQ(value_kind::bytes, kind_of(as_bytes));
        EXPECT_FALSE(as_text.is_real() || as_text.is_integer() || as_bytes.is_real() || as_bytes.is_block());
    }
    EXPECT_EQ(value_kind::none, kind_of(value::none()));
    EXPECT_EQ(value_kind::boolean, kind_of(value::boolean(false)));
    EXPECT_EQ(value_kind::nothing, kind_of(value()));
}

TEST_F(values_of_a_heap, equal_numbers_are_one_key) {
    const value big = power_of_two(70), low = power_of_two(60, true);
    const std::vector<std::vector<value>> equal = {
        {value::integer(1), value::real(1), value::boolean(true), values.make_complex(1, 0).value()},
        {value::integer(0), value::real(0.0), value::real(-0.0), value::boolean(false)},
        {big, value::real(std::ldexp(1, 70)), power_of_two(70), values.make_complex(std::ldexp(1, 70), 0).value()},
        {low, value::real(-std::ldexp(1, 60))},
        {value::integer(-7), value::real(-7)},
        {value::real(1.5), values.make_complex(1.5, -0.0).value()},
        {value::real(HUGE_VAL)},
        {value::real(std::nan(""))},
        {values.make_text("1").value()},
        {values.make_bytes("1").value()},
        {value::none()},
        {values.make_complex(1, 2).value(), values.make_complex(1, 2).value()},
        {values.make_complex(0.0, 2).value(), values.make_complex(-0.0, 2).value()},
        {value::integer(1 << 30), value::real(1 << 30)},
        {values.make_integer(std::numeric_limits<int64_t>::min()).value(), value::real(-std::ldexp(1, 63))},
        {values.make_integer(std::numeric_limits<int64_t>::max()).value()},
        {value::real(std::ldexp(1, 70) + std::ldexp(1, 20))},
        {values.make_opaque(1, "12345678").value(), values.make_opaque(1, "12345678").value()},
        {values.make_opaque(2, "12345678").value()},
    };
    taiyen::dict d(values, root);
    for (size_t i = 0; i < equal.size(); ++i)
        EXPECT_TRUE(d.set(key(equal[i][0]), value::integer(static_cast<int64_t>(i))).value()) << i;
    EXPECT_EQ(equal.size(), d.size());
    for (size_t i = 0; i < equal.size(); ++i)
        for (const value v : equal[i])
            EXPECT_EQ(static_cast<int64_t>(i), d.get(key(v)).as_integer()) << i;
    std::string magnitude(9, '\0');
    magnitude.back() = 64;
    EXPECT_EQ(2, d.get(values.integer_key(magnitude, false)).as_integer());
    EXPECT_TRUE(d.get(values.integer_key(magnitude, true)).is_nothing());
    const value complex = values.make_complex(std::ldexp(1, 70), 0).value();
    d.erase(key(complex)).value();
    d.set(key(complex), value::integer(100)).value();
    EXPECT_EQ(100, d.get(values.integer_key(magnitude, false)).as_integer());
    EXPECT_TRUE(d.get(values.integer_key(magnitude, true)).is_nothing());
}

TEST_F(values_of_a_heap, tuples_as_keys) {
    const auto pair = [&](value a, value b) {
        const value both[] = {a, b};
        return values.make_tuple(both, 2).value();
    };
    taiyen::dict d(values, root);
    const value inner = pair(value::integer(2), values.make_text("a text with a block").value());
    d.set(key(pair(value::integer(1), inner)), value::integer(1)).value();
    const value same_inner = pair(value::real(2), values.make_text("a text with a block").value());
    EXPECT_EQ(1, d.get(key(pair(value::boolean(true), same_inner))).as_integer());
    EXPECT_TRUE(d.get(key(pair(value::integer(2), same_inner))).is_nothing());

    const value list = values.make_container(value_kind::list).value();
    EXPECT_EQ(TY_E_ARGUMENT, values.key(list).status());
    EXPECT_EQ(TY_E_ARGUMENT, values.key(pair(value::integer(1), list)).status());
    EXPECT_EQ(TY_E_ARGUMENT, values.key(values.make_opaque(1, "mutable", false).value()).status());
    value deep = value::none();
    for (int i = 0; i < 300; ++i)
        deep = values.make_tuple(&deep, 1).value();
    EXPECT_EQ(TY_E_ARGUMENT, values.key(deep).status()) << "its hash would need a deep stack";
}

TEST_F(values_of_a_heap, keys_that_somebody_chose_do_not_meet) {
    taiyen::dict d(values, root);
    size_t same_hashes = 0;
    std::vector<bool> met(1 << 16);
    for (int64_t i = 0; i < 4000; ++i) {
        for (const taiyen::value_key &k :
             {key(value::integer(i << 32)), key(value::real(std::ldexp(1.0 + static_cast<double>(i) / 4096, 40))),
              values.text_key(std::string(8, 'a') + std::to_string(i))}) {
            same_hashes += met[k.hash & 0xffff];
            met[k.hash & 0xffff] = true;
        }
    }
    EXPECT_LT(same_hashes, 1500u) << "of 12,000 hashes in 65,536 places a thousand meet by chance";
    taiyen::heap other = taiyen::heap::create().value();
    value_heap other_values = value_heap::open(other).value();
    EXPECT_NE(values.text_key("a text that is long").hash, other_values.text_key("a text that is long").hash);
}

TEST_F(values_of_a_heap, a_long_chain_is_freed) {
    const uint64_t before = blocks();
    value chain = value::none();
    for (int i = 0; i < 2'000'000; ++i) {
        if (i % 2) {
            chain = values.make_tuple(&chain, 1).value();
            continue;
        }
        const value link = values.make_container(value_kind::list).value();
        taiyen::list(values, link).append(chain).value();
        chain = link;
    }
    taiyen::dict d(values, root);
    d.set("chain", chain).value();
    expect_sound(values);
    EXPECT_TRUE(d.erase(values.text_key("chain")).value());
    EXPECT_EQ(before + 2, blocks()) << "the dict's table, and the room for suspects";
}

TEST_F(values_of_a_heap, what_a_binding_keeps_is_counted) {
    const value kept = values.make_container(value_kind::list).value();
    ASSERT_TRUE(values.set_kept(kept));
    taiyen::dict d(values, root);
    const value one = values.make_container(value_kind::dict).value();
    d.set("one", one).value();
    taiyen::list(values, kept).append(one).value();
    EXPECT_TRUE(d.erase(values.text_key("one")).value());
    expect_sound(values);
    EXPECT_EQ(value_kind::dict, kind_of(taiyen::list(values, values.kept()).at(0)));
    EXPECT_EQ(0u, collect(values).value());
    ASSERT_TRUE(values.set_kept(value()));
    EXPECT_TRUE(values.kept().is_nothing());
    expect_sound(values);
}

TEST_F(values_of_a_heap, rings_are_collected) {
    taiyen::dict d(values, root);
    d.set("kept", values.make_container(value_kind::list).value()).value();
    const uint64_t before = blocks();
    std::vector<value> ring;
    for (int i = 0; i < 100; ++i)
        ring.push_back(values.make_container(i % 3 == 0 ? value_kind::deque : value_kind::list).value());
    d.set("ring", ring[0]).value();
    for (size_t i = 0; i < ring.size(); ++i) {
        const value next = values.make_tuple(&ring[(i + 1) % ring.size()], 1).value();
        if (i % 3 == 0)
            taiyen::deque(values, ring[i]).push_back(next).value();
        else
            taiyen::list(values, ring[i]).append(next).value();
    }
    taiyen::list(values, ring[1]).append(d.get("kept")).value(); // which something else leads to, too
    expect_sound(values);
    EXPECT_EQ(0u, collect(values).value());
    EXPECT_TRUE(d.erase(values.text_key("ring")).value());
    expect_sound(values); // a ring that was not collected yet leads to what is stored elsewhere
    EXPECT_EQ(0u, collect(values, {ring[50].address()}).value()) << "the program holds a part of it";
    const auto refuse = [](const std::vector<value> &rings, void *count) {
        *static_cast<size_t *>(count) = rings.size();
        return false;
    };
    size_t announced = 0;
    EXPECT_FALSE(collect(values, {}, {}, refuse, &announced));
    EXPECT_EQ(100u, announced);
    std::vector<const void *> reported;
    values.on_freed(
        [](const void *block, void *all) { static_cast<std::vector<const void *> *>(all)->push_back(block); },
        &reported);
    EXPECT_EQ(100u, collect(values).value());
    EXPECT_EQ(200u, reported.size()) << "lists, deques and tuples";
    expect_sound(values);
    EXPECT_EQ(value_kind::list, kind_of(d.get("kept")));
    taiyen::list own(values, d.get("kept"));
    own.append(own.as_value()).value();
    EXPECT_TRUE(d.erase(values.text_key("kept")).value());
    EXPECT_EQ(1u, collect(values).value());
    EXPECT_LE(blocks(), before);
}

TEST_F(values_of_a_heap, a_container_in_itself_goes_while_it_changes) {
    taiyen::dict d(values, root);
    for (const bool clears : {true, false}) {
        d.set("own", values.make_container(value_kind::list).value()).value();
        taiyen::list own(values, d.get("own"));
        own.append(own.as_value()).value();
        EXPECT_TRUE(d.erase(values.text_key("own")).value());
        clears ? own.clear().value() : own.erase(0).value(); // with which it was stored last
        expect_sound(values);
    }
}

TEST_F(values_of_a_heap, keys_are_shared) {
    taiyen::dict d(values, root);
    for (int i = 0; i < 10; ++i) {
        taiyen::dict one(values, values.make_container(value_kind::dict).value());
        one.set("a key of some letters", value::integer(i)).value();
        d.set(key(value::integer(i)), one.as_value()).value();
    }
    const value first = taiyen::dict(values, d.get(key(value::integer(0)))).key_at(0);
    const value last = taiyen::dict(values, d.get(key(value::integer(9)))).key_at(0);
    EXPECT_TRUE(same(first, last));
    d.clear().value();
    d.set("a key of some letters", value::none()).value(); // its block is gone
    expect_sound(values);
}

TEST_F(values_of_a_heap, what_is_replaced_is_the_callers) {
    taiyen::dict d(values, root);
    const value list = values.make_container(value_kind::list).value();
    value before = root;
    EXPECT_TRUE(d.set(values.text_key("key"), list, &before).value());
    EXPECT_TRUE(before.is_nothing());
    EXPECT_FALSE(d.set(values.text_key("key"), value::integer(1), &before).value());
    EXPECT_TRUE(same(list, before));
    EXPECT_FALSE(d.set(values.text_key("key"), list, &before).value());
    EXPECT_TRUE(same(value::integer(1), before));
    expect_sound(values);
}

// The room for suspects that a tuple needs takes the place of a smaller one.
TEST_F(values_of_a_heap, tuples_leave_nothing_to_be_freed) {
    taiyen::list all(values, values.make_container(value_kind::list).value());
    ASSERT_TRUE(values.set_root(all.as_value()));
    for (int i = 0; i < 50; ++i) {
        const value twice[] = {values.make_container(value_kind::list).value(), value::none()};
        all.append(twice[0]).value();
        const value tuple = values.make_tuple(twice, 2).value();
        EXPECT_EQ(nullptr, values.space()->dead) << i;
        all.append(tuple).value();
    }
    expect_sound(values);
}

// What pickle makes of these has 79 bytes, and 83 with names of ten letters and numbers of 17 digits.
TEST_F(values_of_a_heap, small_dicts_are_packed) {
    const auto make = [&](const char *name, double latitude, double longitude) {
        taiyen::dict city(values, values.make_container(value_kind::dict).value());
        city.set("name", values.make_text(name).value()).value();
        city.set("lat", value::real(latitude)).value();
        city.set("lon", value::real(longitude)).value();
        const value tags = values.make_container(value_kind::list).value();
        taiyen::list(values, tags).append(value::short_text("port")).value();
        city.set("tags", tags).value();
        return values.pack(city.as_value()).value();
    };
    EXPECT_FALSE(is_packed(make("Lisbon", 38.72, -9.14))) << "a shape is made for the second one";
    const value small = make("Lisbon", 38.72, -9.14), large = make("city 12345", 0.1 + 0.2, 1 / 3.0);
    ASSERT_TRUE(is_packed(small) && is_packed(large));
    EXPECT_LE(ty_usable_size(small.address()) * 10, 79u * 6);
    EXPECT_LE(ty_usable_size(large.address()) * 10, 83u * 6);
    const uint32_t id = container_id(small);
    EXPECT_EQ(id, container_id(make("Lisbon", 38.72, -9.14)));
    EXPECT_NE(id, container_id(large));

    taiyen::dict(values, root).set("city", large).value();
    const value tags = taiyen::dict(values, large).get("tags"), name = taiyen::dict(values, large).get("name");
    EXPECT_TRUE(is_item(tags) && is_packed(tags) && is_item(name) && !is_packed(name));
    EXPECT_EQ("city 12345", data_of(name));
    EXPECT_EQ(TY_E_ARGUMENT, taiyen::dict(values, root).set("tags", tags).status()) << "a part has no block";
    const value own_name = values.own(name).value();
    EXPECT_FALSE(is_item(own_name));
    taiyen::dict(values, root).set("own name", own_name).value();

    std::vector<std::pair<const void *, value>> reported;
    values.on_unpacked(
        [](const void *packed, value now, void *all) {
            static_cast<std::vector<std::pair<const void *, value>> *>(all)->emplace_back(packed, now);
        },
        &reported);
    const value own_tags = values.own(tags).value();
    ASSERT_EQ(2u, reported.size());
    EXPECT_EQ(tags.address(), reported[1].first);
    EXPECT_TRUE(same(own_tags, reported[1].second));
    EXPECT_TRUE(!is_packed(large) && same(own_tags, taiyen::dict(values, large).get("tags")));
    taiyen::dict(values, root).set("tags", own_tags).value();

    const value both = values.make_container(value_kind::list).value(); // of what is packed already
    for (const char *city : {"Porto", "Faro"})
        taiyen::list(values, both).append(make(city, 38.72, -9.14)).value();
    const uint64_t before = blocks();
    const value packed = values.pack(both).value();
    EXPECT_TRUE(is_packed(packed));
    EXPECT_EQ(before - 3, blocks()) << "a head, a body and two dicts became a block";
    taiyen::dict(values, root).set("both", packed).value();
    const value first = taiyen::list(values, packed).at(0), faro = taiyen::list(values, packed).at(1);
    const value name_of_faro = taiyen::dict(values, faro).get("name");
    EXPECT_EQ("Faro", data_of(name_of_faro));
    EXPECT_EQ(-9.14, taiyen::dict(values, first).get("lon").as_real());
    expect_sound(values);
}

// Keys that are equal and written otherwise: a packed dict has those that it was made with, whichever dicts came
// before.
TEST_F(values_of_a_heap, packed_dicts_keep_their_keys_as_they_are_written) {
    const auto pair = [&](value a, value b) {
        const value both[] = {a, b};
        return values.make_tuple(both, 2).value();
    };
    const std::vector<std::function<value()>> ones = {
        [&] { return value::boolean(true); },
        [&] { return value::integer(1); },
        [&] { return value::real(1); },
        [&] { return values.make_complex(1, 0).value(); },
        [&] { return values.make_complex(1, -0.0).value(); },
        [&] { return value::real(-0.0); },
        [&] { return value::real(0.0); },
        [&] { return value::integer(0); },
        [&] { return power_of_two(70); },
        [&] { return value::real(std::ldexp(1, 70)); },
        [&] { return values.make_complex(0.0, 2).value(); },
        [&] { return values.make_complex(-0.0, 2).value(); },
        [&] { return pair(value::integer(1), value::short_text("a")); },
        [&] { return pair(value::real(1), value::short_text("a")); },
        [&] { return pair(pair(value::boolean(true), value::none()), value::short_text("a")); },
        [&] { return pair(pair(value::integer(1), value::none()), value::short_text("a")); },
    };
    const taiyen::list all(values, values.make_container(value_kind::list).value());
    taiyen::dict(values, root).set("all", all.as_value()).value();
    size_t packed = 0;
    for (int round = 0; round < 3; ++round)
        for (const auto &one : ones) {
            taiyen::dict made(values, values.make_container(value_kind::dict).value());
            made.set(values.text_key("a text that is no word"), value::integer(1)).value();
            made.set(key(one()), value::integer(2)).value();
            const value stored = values.pack(made.as_value()).value();
            packed += is_packed(stored);
            taiyen::list(all).append(stored).value();
        }
    EXPECT_GE(packed, 2 * ones.size()) << "each has a shape of its own";
    for (size_t i = 0; i < all.size(); ++i) {
        const value wanted = ones[i % ones.size()]();
        taiyen::dict one(values, all.at(i));
        EXPECT_TRUE(taiyen::detail::identical_keys(one.key_at(1), wanted)) << i;
        EXPECT_EQ(2, one.get(key(wanted)).as_integer()) << i;
        values.discard(wanted).value();
    }
    expect_sound(values);
    const value first = values.unpack(all.at(ones.size() + 1)).value(); // and so has what is made of it
    EXPECT_TRUE(same(taiyen::dict(values, first).key_at(1), value::integer(1)));
    taiyen::dict(values, first).set(key(value::boolean(true)), value::integer(3)).value();
    EXPECT_TRUE(same(taiyen::dict(values, first).key_at(1), value::integer(1))) << "the first key stays";
    EXPECT_EQ(3, taiyen::dict(values, first).get(key(value::real(1))).as_integer());
    expect_sound(values);
}

TEST_F(values_of_a_heap, tuples_in_packed_containers) {
    const value inner[] = {value::real(38.72), values.make_text("a text of some letters").value()};
    const value outer[] = {value::integer(3), values.make_tuple(inner, 2).value()};
    taiyen::list l(values, values.make_container(value_kind::list).value());
    l.append(values.make_tuple(outer, 2).value()).value();
    const value packed = values.pack(l.as_value()).value();
    ASSERT_TRUE(is_packed(packed));
    taiyen::dict d(values, root);
    d.set("packed", packed).value();
    const value part = taiyen::list(values, packed).at(0);
    EXPECT_TRUE(is_item(part) && !is_packed(part) && kind_of(part) == value_kind::tuple);
    EXPECT_EQ(TY_E_ARGUMENT, values.key(part).status());
    const value own = values.own(part).value();
    d.set(key(own), value::integer(1)).value();
    for (const taiyen::tuple whole : {taiyen::tuple(part), taiyen::tuple(own)}) {
        EXPECT_EQ(2u, whole.size());
        EXPECT_EQ(3, whole.at(0).as_integer());
        EXPECT_EQ(38.72, taiyen::tuple(whole.at(1)).at(0).as_real());
        const value text = taiyen::tuple(whole.at(1)).at(1);
        EXPECT_EQ("a text of some letters", data_of(text));
        EXPECT_TRUE(whole.at(2).is_nothing());
    }
    EXPECT_TRUE(is_packed(packed)) << "a tuple of its own needs no change";
    expect_sound(values);
}

TEST_F(values_of_a_heap, arrays) {
    const uint64_t shape[] = {100, 30};
    const value array = values.make_array("f8", 8, shape, 2).value();
    const auto *head = taiyen::detail::block_as<const taiyen::detail::value_array>(array);
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(head->data()) % 64);
    EXPECT_EQ(24000u, head->size);
    for (size_t i = 0; i < head->size; ++i)
        ASSERT_EQ(0, static_cast<const char *>(head->data())[i]);
    taiyen::dict(values, root).set("grid", array).value();
    expect_sound(values);
    const uint64_t huge[] = {uint64_t{1} << 40, uint64_t{1} << 40};
    EXPECT_EQ(TY_E_MEMORY, values.make_array("f8", 8, huge, 2).status());
    EXPECT_EQ(TY_E_ARGUMENT, values.make_array("f8", 8, huge, 9).status());
}

TEST_F(values_of_a_heap, layouts_keep_their_numbers) {
    for (int round = 0; round < 2; ++round)
        for (uint16_t i = 0; i < 300; ++i) {
            const std::string text = "a" + std::to_string(i) + (i % 2 ? " of a text that is a block" : "");
            EXPECT_EQ(i, values.keep_layout(text).value());
            EXPECT_EQ(text, values.layout(i));
        }
    EXPECT_EQ("", values.layout(300));
    EXPECT_FALSE(values.keep_layout(""));
    EXPECT_FALSE(values.make_records(300, 8));
    EXPECT_FALSE(values.make_records(0, 0));
    const value one = values.make_records(299, 24, true).value();
    taiyen::records single(values, one);
    EXPECT_TRUE(single.is_single() && single.size() == 1 && single.layout() == 299 && single.item_size() == 24);
    EXPECT_FALSE(single.store(1, 0, "a", 1));
    taiyen::dict(values, root).set(values.text_key("one"), one).value();
    expect_sound(values);
}

TEST_F(values_of_a_heap, an_order_that_is_kept) {
    taiyen::dict d(values, root);
    for (int64_t i = 0; i < 3000; ++i)
        d.set(key(value::integer(i)), value::integer(i)).value();
    for (int64_t i = 2999; i >= 1000; --i) { // from the end: room there is used again
        EXPECT_EQ(i, d.take_at(d.previous()).value().as_integer());
        if (i % 3 == 0) {
            d.set(key(value::integer(i + 10000)), value::none()).value();
            EXPECT_TRUE(d.erase(key(value::integer(i + 10000))).value());
        }
    }
    EXPECT_EQ(1000u, d.size());
    expect_sound(values);
    int64_t expected = 0;
    for (uint32_t at = d.next(); at != d.end_position; at = d.next(at + 1))
        EXPECT_EQ(expected++, d.key_at(at).as_integer());
    taiyen::list l(values, values.make_container(value_kind::list).value());
    for (int64_t i = 0; i < 5; ++i)
        l.append(value::integer(i)).value();
    const uint32_t order[] = {4, 2, 0, 1, 3};
    value room[5];
    l.rearrange(order, room).value();
    for (size_t i = 0; i < 5; ++i)
        EXPECT_EQ(order[i], l.at(i).as_integer());
    EXPECT_EQ(TY_E_ARGUMENT, l.set(5, value::none()).status());
    EXPECT_EQ(TY_E_ARGUMENT, l.erase(4, 2).status());
    EXPECT_EQ(TY_E_ARGUMENT, l.insert(6, room, 1).status());
    values.discard(l.as_value()).value();
}

// Also where entries were erased, which take room until the table is made anew.
TEST_F(values_of_a_heap, what_is_reserved_comes_without_memory) {
    taiyen::dict d(values, root);
    taiyen::set s(values, values.make_container(value_kind::set).value());
    taiyen::deque q(values, values.make_container(value_kind::deque).value());
    const auto live_bytes = [this] { return heap.stats().value().live_bytes; };
    int next = 0;
    for (const int count : {1, 3, 8, 9, 100, 1000}) {
        for (int i = 0; i < 5; ++i, ++next) {
            d.set(key(value::integer(next)), value::none()).value();
            d.erase(key(value::integer(next - 1))).value();
            q.push_back(value::none()).value();
            q.take_front().value();
        }
        d.reserve_more(static_cast<size_t>(count)).value();
        s.reserve_more(static_cast<size_t>(count)).value();
        q.reserve_more(static_cast<size_t>(count)).value();
        const auto before = live_bytes();
        for (int i = 0; i < count; ++i, ++next) {
            d.set(key(value::integer(next)), value::none()).value();
            s.add(key(value::integer(next))).value();
            i % 2 ? q.push_back(value::none()).value() : q.push_front(value::none()).value();
        }
        EXPECT_EQ(before, live_bytes()) << count;
    }
    values.discard(s.as_value()).value();
    values.discard(q.as_value()).value();
}

TEST(values, a_root_that_leads_to_something_else) {
    taiyen::heap heap = taiyen::heap::create().value();
    void *block = ty_alloc_zeroed(heap.get(), 256);
    ASSERT_TRUE(heap.set_root("taiyen.values", block));
    EXPECT_EQ(TY_E_MISMATCH, value_heap::open(heap).status());
    static_cast<taiyen::detail::value_space *>(block)->magic = taiyen::detail::values_magic;
    EXPECT_EQ(TY_E_FORMAT, value_heap::open(heap).status());
}

} // namespace
