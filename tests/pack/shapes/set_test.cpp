// Goal: a set takes shapes of a program with all that they lead to, refuses what cannot be, and is as it was then.
#include "fixture.hpp"

using namespace taiyen::test;

namespace {

struct item {
    uint64_t key;
    char *text;
};
struct node {
    node *next;
    char *text;
    uint32_t count;
    item *items;
};
TY_SHAPE_DECLARE(node);
TY_SHAPE(item, TY_BYTES(item, text))
TY_SHAPE(node, TY_POINTER(node, next, &node_shape), TY_BYTES(node, text),
         TY_POINTER_COUNTED(node, items, count, &item_shape))

void trace_nothing(ty_tracer *, void *, void *) {}

} // namespace

TEST(shape_sets, take_all_that_a_shape_leads_to) {
    shapes_owner shapes = new_shapes();
    ASSERT_EQ(ty_shapes_root(shapes.get(), "list", &node_shape, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_shapes_find(shapes.get(), "node"), &node_shape);
    EXPECT_EQ(ty_shapes_find(shapes.get(), "item"), &item_shape);
    const ty_shape *of_root = nullptr;
    ty_count count{};
    ASSERT_EQ(ty_shapes_find_root(shapes.get(), "list", &of_root, &count), TY_OK) << ty_error_text();
    EXPECT_EQ(of_root, &node_shape);
    EXPECT_EQ(count.kind, TY_COUNT_FIXED);
    EXPECT_EQ(ty_shapes_find_root(shapes.get(), "lists", &of_root, nullptr), TY_E_NOT_FOUND);
    EXPECT_EQ(ty_shapes_find_root(shapes.get(), "list", nullptr, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_shapes_add(shapes.get(), &item_shape), TY_OK);
    EXPECT_EQ(ty_shapes_root(shapes.get(), "list", &node_shape, nullptr), TY_OK);
    EXPECT_EQ(ty_shapes_root(shapes.get(), "list", &item_shape, nullptr), TY_E_EXISTS);
    EXPECT_EQ(text_of(shapes.get()), "taiyen shapes 1\n"
                                     "shape \"node\" 32\n"
                                     "  field 0 \"next\" pointer \"node\"\n"
                                     "  field 8 \"text\" pointer -\n"
                                     "  field 24 \"items\" pointer \"item\" there field 16 4\n"
                                     "shape \"item\" 16\n"
                                     "  field 8 \"text\" pointer -\n"
                                     "root \"list\" \"node\"\n");
}

TEST(shape_sets, are_as_they_were_after_a_refusal) {
    static const ty_shape other_item = {"item", 16, nullptr, 0, nullptr, nullptr, nullptr};
    static const ty_field bad_fields[] = {{"good", TY_FIELD_POINTER, 0, &node_shape, {}, {}, 0, 0},
                                          {"bad", TY_FIELD_POINTER, 12, &item_shape, {}, {}, 0, 0}};
    static const ty_shape bad = {"bad", 32, bad_fields, 2, nullptr, nullptr, nullptr};
    shapes_owner shapes = new_shapes();
    ASSERT_EQ(ty_shapes_add(shapes.get(), &other_item), TY_OK);
    std::string text = text_of(shapes.get());
    EXPECT_EQ(ty_shapes_add(shapes.get(), &bad), TY_E_ARGUMENT);
    EXPECT_NE(std::string(ty_error_text()).find("bad + 12"), std::string::npos) << ty_error_text();
    EXPECT_EQ(ty_shapes_add(shapes.get(), &node_shape), TY_E_EXISTS);
    EXPECT_EQ(ty_shapes_root(shapes.get(), "r", &node_shape, nullptr), TY_E_EXISTS);
    EXPECT_EQ(text_of(shapes.get()), text);
}

TEST(shape_sets, refuse_null_and_wrong_counts) {
    shapes_owner shapes = new_shapes();
    ty_count end{TY_COUNT_END, 0, 8, 0};
    EXPECT_EQ(ty_shapes_create(nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_shapes_add(shapes.get(), nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_shapes_add(nullptr, &node_shape), TY_E_ARGUMENT);
    EXPECT_EQ(ty_shapes_root(shapes.get(), nullptr, &node_shape, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_shapes_root(shapes.get(), "r", &node_shape, &end), TY_E_ARGUMENT);
    EXPECT_EQ(ty_shapes_find(nullptr, "a"), nullptr);
    static const ty_shape nameless = {nullptr, 8, nullptr, 0, nullptr, nullptr, nullptr};
    static const ty_shape fieldless = {"f", 8, nullptr, 1, nullptr, nullptr, nullptr};
    static const ty_shape odd = {"odd", 12, nullptr, 0, trace_nothing, nullptr, nullptr};
    EXPECT_EQ(ty_shapes_add(shapes.get(), &nameless), TY_E_ARGUMENT);
    EXPECT_EQ(ty_shapes_add(shapes.get(), &fieldless), TY_E_ARGUMENT);
    EXPECT_EQ(ty_shapes_add(shapes.get(), &odd), TY_E_ARGUMENT);
    ty_shapes_destroy(nullptr);
}

TEST(shape_sets, bind_hooks_to_shapes_of_texts) {
    shapes_owner shapes = new_shapes();
    std::string text = "taiyen shapes 1\nshape \"u\" 8\n  trace\nshape \"v\" 8\n";
    ASSERT_EQ(ty_shapes_read(shapes.get(), text.data(), text.size()), TY_OK);
    ASSERT_EQ(ty_shapes_add(shapes.get(), &item_shape), TY_OK);
    heap_owner_ptr heap = new_heap();
    auto stay = [](const void *address, void *) { return const_cast<void *>(address); };
    EXPECT_EQ(ty_fix_pointers(heap.get(), shapes.get(), stay, nullptr, nullptr), TY_E_UNSUPPORTED);
    EXPECT_EQ(ty_shapes_bind(shapes.get(), "w", trace_nothing, nullptr, nullptr), TY_E_NOT_FOUND);
    EXPECT_EQ(ty_shapes_bind(shapes.get(), "item", trace_nothing, nullptr, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_shapes_bind(shapes.get(), "v", trace_nothing, nullptr, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_shapes_bind(shapes.get(), "u", trace_nothing, nullptr, nullptr), TY_OK);
    EXPECT_EQ(take_census(heap.get(), shapes.get()).status, TY_OK);
    EXPECT_NE(text_of(shapes.get()).find("shape \"u\" 8\n  trace\n"), std::string::npos);
}

// What says the same is no conflict: shapes that a heap keeps, loaded twice, or by the program whose shapes they are.
TEST(shape_sets, take_what_is_the_same) {
    heap_owner_ptr heap = new_heap();
    shapes_owner own = new_shapes();
    static const ty_count all_of_block = {TY_COUNT_BLOCK, 0, 0, 0};
    ASSERT_EQ(ty_shapes_root(own.get(), "nodes", &node_shape, &all_of_block), TY_OK);
    ASSERT_EQ(ty_shapes_root(own.get(), "item", &item_shape, nullptr), TY_OK);
    ASSERT_EQ(ty_shapes_keep(own.get(), heap.get()), TY_OK);
    const std::string text = text_of(own.get());
    EXPECT_EQ(ty_shapes_load(own.get(), heap.get()), TY_OK) << ty_error_text();
    EXPECT_EQ(text_of(own.get()), text);
    shapes_owner loaded = new_shapes();
    ASSERT_EQ(ty_shapes_load(loaded.get(), heap.get()), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_shapes_load(loaded.get(), heap.get()), TY_OK) << ty_error_text();
    EXPECT_EQ(text_of(loaded.get()), text);
    // Another one that leads to them, and is new.
    const std::string more =
        text + "shape \"more\" 8\n  field 0 \"to\" pointer \"" + node_shape.name + "\"\nroot \"more\" \"more\"\n";
    EXPECT_EQ(ty_shapes_read(loaded.get(), more.data(), more.size()), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_shapes_find(loaded.get(), "more")->fields[0].shape, ty_shapes_find(loaded.get(), node_shape.name));
    // What differs in one word.
    for (const auto &[what, instead] :
         {std::pair{"there block", "there 2"}, {" pointer ", " nested "}, {"shape \"item\" 16", "shape \"item\" 24"}}) {
        std::string other = text;
        ASSERT_NE(other.find(what), std::string::npos) << text;
        other.replace(other.find(what), strlen(what), instead);
        ASSERT_NE(ty_shapes_read(own.get(), other.data(), other.size()), TY_OK) << what;
        EXPECT_EQ(text_of(own.get()), text);
    }
}
