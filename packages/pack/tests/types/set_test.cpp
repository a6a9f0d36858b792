// Goal: a set takes type descriptors of a program with all that they lead to, refuses what cannot be, and is as it was
// then.
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
TY_TYPE_DECLARE(node);
TY_TYPE(item, TY_BYTES(item, text))
TY_TYPE(node, TY_POINTER(node, next, &node_descriptor), TY_BYTES(node, text),
        TY_POINTER_COUNTED(node, items, count, &item_descriptor))

void trace_nothing(ty_tracer *, void *, void *) {}

} // namespace

TEST(descriptor_sets, take_all_that_a_descriptor_leads_to) {
    descriptors_owner descriptors = new_descriptors();
    ASSERT_EQ(ty_types_root(descriptors.get(), "list", &node_descriptor, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_types_find(descriptors.get(), "node"), &node_descriptor);
    EXPECT_EQ(ty_types_find(descriptors.get(), "item"), &item_descriptor);
    const ty_type *of_root = nullptr;
    ty_count count{};
    ASSERT_EQ(ty_types_find_root(descriptors.get(), "list", &of_root, &count), TY_OK) << ty_error_text();
    EXPECT_EQ(of_root, &node_descriptor);
    EXPECT_EQ(count.kind, TY_COUNT_FIXED);
    EXPECT_EQ(ty_types_find_root(descriptors.get(), "lists", &of_root, nullptr), TY_E_NOT_FOUND);
    EXPECT_EQ(ty_types_find_root(descriptors.get(), "list", nullptr, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_types_add(descriptors.get(), &item_descriptor), TY_OK);
    EXPECT_EQ(ty_types_root(descriptors.get(), "list", &node_descriptor, nullptr), TY_OK);
    EXPECT_EQ(ty_types_root(descriptors.get(), "list", &item_descriptor, nullptr), TY_E_EXISTS);
    EXPECT_EQ(text_of(descriptors.get()), "taiyen types 1\n"
                                          "type \"node\" 32\n"
                                          "  field 0 \"next\" pointer \"node\"\n"
                                          "  field 8 \"text\" pointer -\n"
                                          "  field 24 \"items\" pointer \"item\" there field 16 4\n"
                                          "type \"item\" 16\n"
                                          "  field 8 \"text\" pointer -\n"
                                          "root \"list\" \"node\"\n");
}

TEST(descriptor_sets, are_as_they_were_after_a_refusal) {
    static const ty_type other_item = {"item", 16, nullptr, 0, nullptr, nullptr, nullptr};
    static const ty_field bad_fields[] = {{"good", TY_FIELD_POINTER, 0, &node_descriptor, {}, {}, 0, 0},
                                          {"bad", TY_FIELD_POINTER, 12, &item_descriptor, {}, {}, 0, 0}};
    static const ty_type bad = {"bad", 32, bad_fields, 2, nullptr, nullptr, nullptr};
    descriptors_owner descriptors = new_descriptors();
    ASSERT_EQ(ty_types_add(descriptors.get(), &other_item), TY_OK);
    std::string text = text_of(descriptors.get());
    EXPECT_EQ(ty_types_add(descriptors.get(), &bad), TY_E_ARGUMENT);
    EXPECT_NE(std::string(ty_error_text()).find("bad + 12"), std::string::npos) << ty_error_text();
    EXPECT_EQ(ty_types_add(descriptors.get(), &node_descriptor), TY_E_EXISTS);
    EXPECT_EQ(ty_types_root(descriptors.get(), "r", &node_descriptor, nullptr), TY_E_EXISTS);
    EXPECT_EQ(text_of(descriptors.get()), text);
}

TEST(descriptor_sets, refuse_null_and_wrong_counts) {
    descriptors_owner descriptors = new_descriptors();
    ty_count end{TY_COUNT_END, 0, 8, 0};
    EXPECT_EQ(ty_types_create(nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_types_add(descriptors.get(), nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_types_add(nullptr, &node_descriptor), TY_E_ARGUMENT);
    EXPECT_EQ(ty_types_root(descriptors.get(), nullptr, &node_descriptor, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_types_root(descriptors.get(), "r", &node_descriptor, &end), TY_E_ARGUMENT);
    EXPECT_EQ(ty_types_find(nullptr, "a"), nullptr);
    static const ty_type nameless = {nullptr, 8, nullptr, 0, nullptr, nullptr, nullptr};
    static const ty_type fieldless = {"f", 8, nullptr, 1, nullptr, nullptr, nullptr};
    static const ty_type odd = {"odd", 12, nullptr, 0, trace_nothing, nullptr, nullptr};
    EXPECT_EQ(ty_types_add(descriptors.get(), &nameless), TY_E_ARGUMENT);
    EXPECT_EQ(ty_types_add(descriptors.get(), &fieldless), TY_E_ARGUMENT);
    EXPECT_EQ(ty_types_add(descriptors.get(), &odd), TY_E_ARGUMENT);
    ty_types_destroy(nullptr);
}

TEST(descriptor_sets, bind_hooks_to_descriptors_of_texts) {
    descriptors_owner descriptors = new_descriptors();
    std::string text = "taiyen types 1\ntype \"u\" 8\n  trace\ntype \"v\" 8\n";
    ASSERT_EQ(ty_types_read(descriptors.get(), text.data(), text.size()), TY_OK);
    ASSERT_EQ(ty_types_add(descriptors.get(), &item_descriptor), TY_OK);
    heap_owner_ptr heap = new_heap();
    auto stay = [](const void *address, void *) { return const_cast<void *>(address); };
    EXPECT_EQ(ty_fix_pointers(heap.get(), descriptors.get(), stay, nullptr, nullptr), TY_E_UNSUPPORTED);
    EXPECT_EQ(ty_types_bind(descriptors.get(), "w", trace_nothing, nullptr, nullptr), TY_E_NOT_FOUND);
    EXPECT_EQ(ty_types_bind(descriptors.get(), "item", trace_nothing, nullptr, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_types_bind(descriptors.get(), "v", trace_nothing, nullptr, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_types_bind(descriptors.get(), "u", trace_nothing, nullptr, nullptr), TY_OK);
    EXPECT_EQ(take_audit(heap.get(), descriptors.get()).status, TY_OK);
    EXPECT_NE(text_of(descriptors.get()).find("type \"u\" 8\n  trace\n"), std::string::npos);
}

// What says the same is no conflict: type descriptors that a heap keeps, loaded twice, or by the program whose type
// descriptors they are.
TEST(descriptor_sets, take_what_is_the_same) {
    heap_owner_ptr heap = new_heap();
    descriptors_owner own = new_descriptors();
    static const ty_count all_of_block = {TY_COUNT_BLOCK, 0, 0, 0};
    ASSERT_EQ(ty_types_root(own.get(), "nodes", &node_descriptor, &all_of_block), TY_OK);
    ASSERT_EQ(ty_types_root(own.get(), "item", &item_descriptor, nullptr), TY_OK);
    ASSERT_EQ(ty_types_keep(own.get(), heap.get()), TY_OK);
    const std::string text = text_of(own.get());
    EXPECT_EQ(ty_types_load(own.get(), heap.get()), TY_OK) << ty_error_text();
    EXPECT_EQ(text_of(own.get()), text);
    descriptors_owner loaded = new_descriptors();
    ASSERT_EQ(ty_types_load(loaded.get(), heap.get()), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_types_load(loaded.get(), heap.get()), TY_OK) << ty_error_text();
    EXPECT_EQ(text_of(loaded.get()), text);
    // Another one that leads to them, and is new.
    const std::string more =
        text + "type \"more\" 8\n  field 0 \"to\" pointer \"" + node_descriptor.name + "\"\nroot \"more\" \"more\"\n";
    EXPECT_EQ(ty_types_read(loaded.get(), more.data(), more.size()), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_types_find(loaded.get(), "more")->fields[0].descriptor,
              ty_types_find(loaded.get(), node_descriptor.name));
    // What differs in one word.
    for (const auto &[what, instead] :
         {std::pair{"there block", "there 2"}, {" pointer ", " nested "}, {"type \"item\" 16", "type \"item\" 24"}}) {
        std::string other = text;
        ASSERT_NE(other.find(what), std::string::npos) << text;
        other.replace(other.find(what), strlen(what), instead);
        ASSERT_NE(ty_types_read(own.get(), other.data(), other.size()), TY_OK) << what;
        EXPECT_EQ(text_of(own.get()), text);
    }
}
