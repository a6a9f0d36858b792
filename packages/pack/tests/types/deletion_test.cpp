// Goal: a program that forgets a field learns which: the type, and where in it. Method: structures of many kinds with
// descriptions that are complete, which the pointer audit must find nothing in; then each field's line is deleted by
// itself, and the pointer audit must have an open mismatch for the type at that field's place.
#include "deletions.hpp"

using namespace taiyen::test;

namespace {

// ---- A list whose header knows both ends.

struct list_node {
    list_node *next, *previous;
    uint64_t key;
    char *text;
};
struct list_head {
    list_node *first, *last;
    uint64_t count;
};
TY_TYPE_DECLARE(list_node);
TY_TYPE(list_node, TY_POINTER(list_node, next, &list_node_descriptor), TY_REFERENCE(list_node, previous),
        TY_BYTES(list_node, text))
TY_TYPE(list_head, TY_POINTER(list_head, first, &list_node_descriptor), TY_REFERENCE(list_head, last))

void make_list(ty_heap *heap) {
    auto *head = make<list_head>(heap);
    for (uint64_t n = 0; n < 50; ++n) {
        auto *node = make<list_node>(heap);
        node->key = n;
        node->text = make_text(heap, "a text of some length");
        node->previous = head->last;
        (head->last ? head->last->next : head->first) = node;
        head->last = node;
    }
    ASSERT_EQ(ty_root_set(heap, "list", head), TY_OK);
}

// ---- A tree with a colour in the low bits of its addresses.

struct tree_node {
    uint64_t key;
    uintptr_t left, right; // bit 0: the colour
    tree_node *parent;
};
TY_TYPE_DECLARE(tree_node);
TY_TYPE(tree_node, TY_POINTER_TAGGED(tree_node, left, 1, &tree_node_descriptor),
        TY_POINTER_TAGGED(tree_node, right, 1, &tree_node_descriptor), TY_REFERENCE(tree_node, parent))

tree_node *make_tree(ty_heap *heap, tree_node *parent, int depth) {
    auto *node = make<tree_node>(heap);
    node->parent = parent;
    node->key = static_cast<uint64_t>(depth);
    if (depth > 0) {
        node->left = reinterpret_cast<uintptr_t>(make_tree(heap, node, depth - 1)) | 1;
        node->right = reinterpret_cast<uintptr_t>(make_tree(heap, node, depth - 2)) | (depth & 1);
    }
    return node;
}

// ---- Arrays, by a count, by an end, and as long as the block.

struct item {
    uint32_t number, kind;
    char *name;
    item *twin;
};
struct arrays {
    item *begin, *end, *room;
    uint16_t count;
    item *counted;
    item **table; // as long as its block
    char *bytes;
    uint32_t byte_count;
};
TY_TYPE_DECLARE(item);
TY_TYPE(item, TY_BYTES(item, name), TY_REFERENCE(item, twin))
TY_TYPE_POINTER_TO(item_pointer, &item_descriptor)
TY_TYPE(arrays,
        {"begin",
         TY_FIELD_POINTER,
         offsetof(arrays, begin),
         &item_descriptor,
         {},
         {TY_COUNT_END, 0, offsetof(arrays, end), 0},
         0,
         0},
        TY_PLACE(arrays, end, begin), TY_PLACE(arrays, room, begin),
        TY_POINTER_COUNTED(arrays, counted, count, &item_descriptor),
        TY_POINTER_BLOCK(arrays, table, &item_pointer_descriptor),
        TY_POINTER_COUNTED(arrays, bytes, byte_count, nullptr))

void make_arrays(ty_heap *heap) {
    auto *all = make<arrays>(heap);
    all->begin = make<item>(heap, 8);
    all->end = all->begin + 5;
    all->room = all->begin + 8;
    all->count = 7;
    all->counted = make<item>(heap, 7);
    for (int n = 0; n < 5; ++n)
        all->begin[n] = {1, 2, make_text(heap, "name"), all->counted + n};
    for (int n = 0; n < 7; ++n)
        all->counted[n] = {3, 4, make_text(heap, "another"), all->begin + n % 5};
    all->table = make<item *>(heap, 16);
    for (int n = 0; n < 9; ++n) {
        all->table[n] = make<item>(heap);
        all->table[n]->name = make_text(heap, "third");
        all->table[n]->twin = all->table[n];
    }
    all->bytes = make_text(heap, "twelve bytes");
    all->byte_count = 12;
    ASSERT_EQ(ty_root_set(heap, "arrays", all), TY_OK);
}

// ---- Structs within structs.

struct cell {
    uint64_t weight;
    char *label;
};
struct row {
    uint64_t id;
    cell cells[4];
    char *note;
};
struct sheet {
    char *title;
    row rows[3];
    cell *chosen; // into the middle of a row
    uint64_t other_count;
    // After it, as many rows.
    row *others() { return reinterpret_cast<row *>(this + 1); }
};
TY_TYPE(cell, TY_BYTES(cell, label))
TY_TYPE(row, TY_NESTED_ARRAY(row, cells, 4, &cell_descriptor), TY_BYTES(row, note))
TY_TYPE(sheet, TY_BYTES(sheet, title), TY_NESTED_ARRAY(sheet, rows, 3, &row_descriptor), TY_REFERENCE(sheet, chosen),
        {"others",
         TY_FIELD_NESTED,
         sizeof(sheet),
         &row_descriptor,
         {TY_COUNT_FIELD, 1, offsetof(sheet, other_count), 8},
         {},
         0,
         0})

void fill_row(ty_heap *heap, row &one) {
    one.id = 17;
    one.note = make_text(heap, "note");
    for (cell &each : one.cells)
        each = {5, make_text(heap, "label")};
}

void make_sheet(ty_heap *heap) {
    auto *all = static_cast<sheet *>(ty_alloc_zeroed(heap, sizeof(sheet) + 2 * sizeof(row)));
    all->title = make_text(heap, "title");
    for (row &one : all->rows)
        fill_row(heap, one);
    all->other_count = 2;
    for (int n = 0; n < 2; ++n)
        fill_row(heap, all->others()[n]);
    all->chosen = &all->rows[1].cells[2];
    ASSERT_EQ(ty_root_set(heap, "sheet", all), TY_OK);
}

// ---- A hash table with chains, its slots after its header; a B-tree whose nodes count their children.

struct chain {
    chain *next;
    uint64_t hash;
    char *key;
};
struct hash_table {
    uint32_t slot_count, used;
    // After it, its slots.
    chain **slots() { return reinterpret_cast<chain **>(this + 1); }
};
struct branch {
    uint16_t children;
    uint64_t keys[4];
    branch *child[5];
    char *note;
};
TY_TYPE_DECLARE(chain);
TY_TYPE_DECLARE(branch);
TY_TYPE(chain, TY_POINTER(chain, next, &chain_descriptor), TY_BYTES(chain, key))
TY_TYPE(hash_table, {"slots",
                     TY_FIELD_POINTER,
                     sizeof(hash_table),
                     &chain_descriptor,
                     {TY_COUNT_FIELD, 1, offsetof(hash_table, slot_count), 4},
                     {},
                     0,
                     0})
TY_TYPE(branch, TY_POINTERS_COUNTED(branch, child, children, &branch_descriptor), TY_BYTES(branch, note))

void make_hash_table(ty_heap *heap) {
    auto *table = static_cast<hash_table *>(ty_alloc_zeroed(heap, sizeof(hash_table) + 32 * sizeof(chain *)));
    table->slot_count = 32;
    for (uint64_t n = 0; n < 60; ++n) {
        auto *link = make<chain>(heap);
        *link = {table->slots()[n * 7 % 32], n, make_text(heap, "key")};
        table->slots()[n * 7 % 32] = link;
    }
    ASSERT_EQ(ty_root_set(heap, "hash_table", table), TY_OK);
}

branch *make_branch(ty_heap *heap, int depth) {
    auto *node = make<branch>(heap);
    node->note = make_text(heap, "note");
    node->children = static_cast<uint16_t>(depth > 0 ? 3 : 0);
    for (int n = 0; n < node->children; ++n)
        node->child[n] = make_branch(heap, depth - 1);
    return node;
}

// ---- A union, whose kind says what it holds.

struct variant {
    uint64_t kind; // 0: a number, 1: a text, 2: another variant
    union {
        uint64_t number;
        char *text;
        variant *inner;
    };
    char *name;
};
TY_TYPE_DECLARE(variant);
void trace_variant(ty_tracer *tracer, void *object, void *) {
    auto *one = static_cast<variant *>(object);
    if (one->kind == 1)
        ty_trace_pointer(tracer, &one->text, nullptr, 1, 0);
    else if (one->kind == 2)
        ty_trace_pointer(tracer, &one->inner, &variant_descriptor, 1, 0);
}
TY_TYPE_HOOKED(variant, trace_variant, nullptr, nullptr, TY_BYTES(variant, name))

void make_variants(ty_heap *heap) {
    auto *all = make<variant>(heap, 3);
    all[0].number = 12345;
    all[1].kind = 1;
    all[1].text = make_text(heap, "text");
    all[2].kind = 2;
    all[2].inner = make<variant>(heap);
    for (int n = 0; n < 3; ++n)
        all[n].name = make_text(heap, "name");
    ASSERT_EQ(ty_root_set(heap, "variants", all), TY_OK);
}

// ----

struct example {
    const char *root;
    const ty_type *descriptor;
    ty_count count;
    void (*make)(ty_heap *heap);
};

const example examples[] = {
    {"list", &list_head_descriptor, {}, make_list},
    {"tree",
     &tree_node_descriptor,
     {},
     [](ty_heap *heap) { ASSERT_EQ(ty_root_set(heap, "tree", make_tree(heap, nullptr, 6)), TY_OK); }},
    {"arrays", &arrays_descriptor, {}, make_arrays},
    {"sheet", &sheet_descriptor, {}, make_sheet},
    {"hash_table", &hash_table_descriptor, {}, make_hash_table},
    {"branch",
     &branch_descriptor,
     {},
     [](ty_heap *heap) { ASSERT_EQ(ty_root_set(heap, "branch", make_branch(heap, 3)), TY_OK); }},
    {"variants", &variant_descriptor, {TY_COUNT_FIXED, 3, 0, 0}, make_variants},
};

class deletions : public testing::TestWithParam<example> {
protected:
    void SetUp() override {
        heap = new_heap();
        GetParam().make(heap.get());
        complete = new_descriptors();
        ASSERT_EQ(ty_types_root(complete.get(), GetParam().root, GetParam().descriptor, &GetParam().count), TY_OK)
            << ty_error_text();
    }
    static void bind(ty_types *descriptors) {
        const ty_type *descriptor = ty_types_find(descriptors, "variant"); // bound if the line is there
        ty_status status = descriptor ? ty_types_bind(descriptors, "variant", trace_variant, nullptr, nullptr) : TY_OK;
        EXPECT_TRUE(status == TY_OK || status == TY_E_ARGUMENT);
    }
    heap_owner_ptr heap;
    descriptors_owner complete;
};

} // namespace

TEST_P(deletions, nothing_is_found_where_all_is_described) {
    audit_result result = take_audit(heap.get(), complete.get());
    EXPECT_EQ(result.status, TY_OK) << result.text();
    EXPECT_EQ(result.mismatches.size(), 0u) << result.text();
    EXPECT_EQ(result.figures.blocks, result.figures.reached_blocks);
}

TEST_P(deletions, each_deleted_line_is_named) {
    expect_each_deleted_line_named(heap.get(), complete.get(), bind);
}

INSTANTIATE_TEST_SUITE_P(of, deletions, testing::ValuesIn(examples),
                         [](const testing::TestParamInfo<example> &one) { return std::string(one.param.root); });
