// Goal: values of format version 1 can be read for ever: blocks, words, hashes, items of packed containers. Method: a
// packed heap in packages/values/tests/golden, made by the headers that wrote this version first, is unpacked at
// another address and held against what was put in; each key is looked for by its hash. TAIYEN_MAKE_GOLDEN=1 makes the
// file if it is missing.
#include "support.hpp"

#include <filesystem>
#include <taiyen/pack.h>
#include <taiyen/value_types.hpp>

using namespace values_test;

namespace {

const std::string path = TAIYEN_VALUES_GOLDEN "values-1.typ";

std::vector<std::string> scalars() {
    return {"i0",
            "i-7",
            "i281474976710655",
            "i9223372036854775807",
            "i-281474976710657",
            "r0.25",
            "r-0",
            "r1e300",
            "t",
            "tabcdef",
            "tabcdefg",
            "t\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
            "y",
            "y123",
            "ybytes with a block",
            "n",
            "b0",
            "b1",
            "c2",
            "o77",
            "p3"};
}

void fill(value_heap &values) {
    taiyen::dict root(values, values.make_container(value_kind::dict).value());
    values.set_root(root.as_value()).value();
    const auto all = scalars();
    for (size_t i = 0; i < all.size(); ++i)
        root.set(values.key(make_scalar(values, all[i])).value(), make_scalar(values, all[all.size() - 1 - i])).value();
    taiyen::set many(values, values.make_container(value_kind::set).value());
    for (int64_t i = 0; i < 1000; ++i) // an index of two bytes a slot
        many.add(values.key(value::integer(i * i)).value()).value();
    root.set("many", many.as_value()).value();
    taiyen::deque ring(values, values.make_container(value_kind::deque).value());
    for (int64_t i = 0; i < 9; ++i)
        ring.push_front(value::integer(i)).value();
    root.set("ring", ring.as_value()).value();
    for (int64_t i = 0; i < 3; ++i) { // the first makes the shape known
        taiyen::dict small(values, values.make_container(value_kind::dict).value());
        small.set("name", values.make_text("a name of some length").value()).value();
        small.set("numbers", values.make_container(value_kind::list).value()).value();
        taiyen::list numbers(values, small.get("numbers"));
        for (const value v : {value::integer(i), value::integer(-1), value::integer(300), value::integer(70000),
                              value::integer(value::integer_min), value::real(38.72), value::real(1 / 3.0),
                              value::none(), value::boolean(true), value::short_bytes("ab")})
            numbers.append(v).value();
        root.set("small " + std::to_string(i), values.pack(small.as_value()).value()).value();
    }
}

void expect_small(value_heap &values, value v, int64_t number) {
    EXPECT_EQ(number > 0, is_packed(v));
    const taiyen::dict small(values, v);
    const value name = small.get("name");
    EXPECT_EQ("a name of some length", data_of(name));
    const taiyen::list numbers(values, small.get("numbers"));
    ASSERT_EQ(10u, numbers.size());
    const std::string expected[] = {
        "i" + std::to_string(number), "i-1", "i300", "i70000", "i-281474976710656", "r38.719999999999999",
        "r0.33333333333333331",       "n",   "b1",   "yab"};
    for (size_t i = 0; i < 10; ++i)
        EXPECT_EQ(expected[i], text_of(numbers.at(i)));
}

TEST(values_golden, version_1) {
    if (!std::filesystem::exists(path) && getenv("TAIYEN_MAKE_GOLDEN")) {
        taiyen::heap heap = taiyen::heap::create().value();
        value_heap values = value_heap::open(heap).value();
        fill(values);
        ty_pack_options options = TY_PACK_OPTIONS_INIT;
        options.codec = TY_CODEC_ZSTD;
        ASSERT_EQ(TY_OK, ty_pack_file(heap.get(), path.c_str(), &options, nullptr)) << ty_error_text();
    }
    ty_types *shapes = nullptr;
    ASSERT_EQ(TY_OK, ty_types_create(&shapes));
    ASSERT_EQ(TY_OK, taiyen::add_values(shapes));
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.place = TY_PLACE_OTHER;
    options.types = shapes;
    ty_heap *unpacked = nullptr;
    ASSERT_EQ(TY_OK, ty_unpack_file(path.c_str(), &options, &unpacked, nullptr, nullptr)) << ty_error_text();
    taiyen::heap heap(unpacked);
    ty_types_destroy(shapes);

    value_heap values = value_heap::open(heap).value();
    expect_sound(values);
    taiyen::dict root(values, values.root());
    const auto all = scalars();
    std::vector<std::string> found; // -0 is 0, which came before, and so are false and true
    for (uint32_t at = root.next(); at != root.end_position; at = root.next(at + 1))
        found.push_back(text_of(root.key_at(at)));
    EXPECT_EQ(all.size() - 2 + 5, found.size());
    EXPECT_EQ("i0", found[0]);
    const value false_key = make_scalar(values, "b0");
    EXPECT_EQ(all[4], text_of(root.get(values.key(false_key).value()))) << "what stands for b0, and so for i0 and r-0";
    for (const std::string &key : all)
        EXPECT_TRUE(root.contains(values.key(make_scalar(values, key)).value())) << key;
    taiyen::set many(values, root.get("many"));
    for (int64_t i = 0; i < 1000; ++i)
        EXPECT_TRUE(many.contains(values.key(value::integer(i * i)).value()));
    const taiyen::deque ring(values, root.get("ring"));
    for (int64_t i = 0; i < 9; ++i)
        EXPECT_EQ(8 - i, ring.at(static_cast<size_t>(i)).as_integer());
    for (int64_t i = 0; i < 3; ++i)
        expect_small(values, root.get("small " + std::to_string(i)), i);
}

} // namespace
