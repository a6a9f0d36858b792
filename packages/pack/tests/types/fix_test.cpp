// Goal: each address is fixed once, however many ways lead to it, and what leads nowhere is left and counted. Method:
// small heaps whose blocks change places with one another, so that an address fixed twice would be wrong.
#include "moves.hpp"

using namespace taiyen::test;

namespace {

struct ring {
    ring *next;
    ring *previous;
    uint64_t number;
};
TY_TYPE_DECLARE(ring);
TY_TYPE(ring, TY_POINTER(ring, next, &ring_descriptor), TY_REFERENCE(ring, previous))

struct counted_ring {
    ring base;
    ring *begin, *end;
};
TY_TYPE(counted_ring, TY_NESTED(counted_ring, base, &ring_descriptor), TY_PLACE(counted_ring, end, begin),
        {"begin",
         TY_FIELD_POINTER,
         offsetof(counted_ring, begin),
         &ring_descriptor,
         {},
         {TY_COUNT_END, 0, offsetof(counted_ring, end), 0},
         0,
         0})

ty_fixes fix(ty_heap *heap, const ty_types *descriptors, move_map &moved) {
    ty_fixes fixes{};
    fixes.struct_size = sizeof fixes;
    EXPECT_EQ(ty_fix_pointers(heap, descriptors, move_map::moved, &moved, &fixes), TY_OK) << ty_error_text();
    return fixes;
}

} // namespace

TEST(fixes, a_ring_whose_blocks_change_places) {
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    std::vector<ring *> nodes;
    for (uint64_t n = 0; n < 1000; ++n) {
        nodes.push_back(make<ring>(heap.get()));
        nodes[n]->number = n;
    }
    for (size_t n = 0; n < nodes.size(); ++n) {
        nodes[n]->next = nodes[(n + 1) % nodes.size()];
        nodes[n]->previous = nodes[(n + nodes.size() - 1) % nodes.size()];
    }
    ASSERT_EQ(ty_root_set(heap.get(), "ring", nodes[0]), TY_OK);
    ASSERT_EQ(ty_types_root(descriptors.get(), "ring", &ring_descriptor, nullptr), TY_OK);
    std::mt19937 dice(3);
    move_map moved = move_within(heap.get(), dice);
    ty_fixes fixes = fix(heap.get(), descriptors.get(), moved);
    EXPECT_EQ(fixes.objects, 1000u);
    EXPECT_EQ(fixes.pointers, 2000u);
    const auto *at = static_cast<const ring *>(ty_root(heap.get(), "ring"));
    for (uint64_t n = 0; n < 1000; ++n, at = at->next) {
        ASSERT_EQ(at->number, n);
        ASSERT_EQ(at->next->previous, at);
    }
}

// The base is met first, by a pointer of its own; the end's distance is from a pointer that is fixed before it, or
// after.
TEST(fixes, two_views_of_one_object) {
    struct top {
        ring *as_base;
        counted_ring *whole;
    };
    static const ty_field fields[] = {{"as_base", TY_FIELD_POINTER, 0, &ring_descriptor, {}, {}, 0, 0},
                                      {"whole", TY_FIELD_POINTER, 8, &counted_ring_descriptor, {}, {}, 0, 0}};
    for (bool reversed : {false, true}) {
        const ty_field both[] = {fields[reversed ? 1 : 0], fields[reversed ? 0 : 1]};
        const ty_type top_descriptor = {"top", 16, both, 2, nullptr, nullptr, nullptr};
        heap_owner_ptr heap = new_heap();
        descriptors_owner descriptors = new_descriptors();
        auto *first = make<top>(heap.get());
        auto *one = make<counted_ring>(heap.get());
        auto *two = make<counted_ring>(heap.get());
        *first = {&one->base, one};
        one->base.next = &two->base;
        two->base.next = &one->base;
        one->base.previous = &two->base;
        one->begin = make<ring>(heap.get(), 8);
        ty_block block;
        ASSERT_EQ(ty_block_of(one->begin, &block), TY_OK);
        ASSERT_EQ(make<ring>(heap.get(), 8)->next, nullptr); // right after, so that an end is the start of another
        one->end = one->begin + block.size_bytes / sizeof(ring);
        size_t distance = block.size_bytes / sizeof(ring);
        ASSERT_EQ(ty_root_set(heap.get(), "top", first), TY_OK);
        ASSERT_EQ(ty_types_root(descriptors.get(), "top", &top_descriptor, nullptr), TY_OK);
        for (unsigned seed = 0; seed < 20; ++seed) {
            std::mt19937 dice(seed);
            move_map moved = move_within(heap.get(), dice);
            ty_fixes fixes = fix(heap.get(), descriptors.get(), moved);
            EXPECT_EQ(fixes.dead, 0u);
            first = static_cast<top *>(ty_root(heap.get(), "top"));
            ASSERT_EQ(first->as_base, &first->whole->base);
            ASSERT_EQ(first->as_base->next->next, first->as_base);
            ASSERT_EQ(first->as_base->previous, first->as_base->next);
            ASSERT_EQ(static_cast<size_t>(first->whole->end - first->whole->begin), distance);
            ASSERT_EQ(ty_block_of(first->whole->begin, &block), TY_OK);
        }
    }
}

// Two ways to one object that has hooks: its scrambled address would be moved twice.
TEST(fixes, hooks_are_called_once_for_an_object) {
    struct inner {
        uint64_t scrambled;
    };
    struct outer {
        uint64_t number;
        inner in;
    };
    struct top {
        outer *whole;
        inner *part;
    };
    static int traced;
    static int moved_calls;
    auto trace = [](ty_tracer *tracer, void *object, void *) {
        auto *in = static_cast<inner *>(object);
        ++traced;
        in->scrambled =
            ~reinterpret_cast<uint64_t>(ty_trace_address(tracer, reinterpret_cast<void *>(~in->scrambled), nullptr, 1));
    };
    auto after = [](void *, void *) { ++moved_calls; };
    static const ty_type inner_descriptor = {"inner", 8, nullptr, 0, trace, after, nullptr};
    TY_TYPE(outer, TY_NESTED(outer, in, &inner_descriptor))
    TY_TYPE(top, TY_POINTER(top, whole, &outer_descriptor), TY_POINTER(top, part, &inner_descriptor))
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    auto *first = make<top>(heap.get());
    first->whole = make<outer>(heap.get());
    first->part = &first->whole->in;
    first->part->scrambled = ~reinterpret_cast<uint64_t>(first);
    ASSERT_EQ(ty_root_set(heap.get(), "top", first), TY_OK);
    ASSERT_EQ(ty_types_root(descriptors.get(), "top", &top_descriptor, nullptr), TY_OK) << ty_error_text();
    traced = moved_calls = 0;
    heap_owner_ptr other = new_heap();
    std::mt19937 dice(9);
    move_map moved = move_to(heap.get(), other.get(), dice);
    EXPECT_EQ(fix(other.get(), descriptors.get(), moved).dead, 0u);
    EXPECT_EQ(traced, 1);
    EXPECT_EQ(moved_calls, 1);
    first = static_cast<top *>(ty_root(other.get(), "top"));
    EXPECT_EQ(first->part, &first->whole->in);
    EXPECT_EQ(first->part->scrambled, ~reinterpret_cast<uint64_t>(first));
}

TEST(fixes, dead_addresses_stay) {
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    auto *one = make<ring>(heap.get());
    auto *two = make<ring>(heap.get());
    auto *dead = make<ring>(heap.get(), 100);
    one->next = two;
    two->next = dead;
    two->previous = reinterpret_cast<ring *>(static_cast<uintptr_t>(0x4711));
    ASSERT_EQ(ty_free(dead), TY_OK);
    ASSERT_EQ(ty_root_set(heap.get(), "ring", one), TY_OK);
    ASSERT_EQ(ty_types_root(descriptors.get(), "ring", &ring_descriptor, nullptr), TY_OK);
    heap_owner_ptr other = new_heap();
    std::mt19937 dice(5);
    move_map moved = move_to(heap.get(), other.get(), dice);
    ty_fixes fixes = fix(other.get(), descriptors.get(), moved);
    EXPECT_EQ(fixes.dead, 2u);
    EXPECT_EQ(fixes.pointers, 1u);
    const auto *first = static_cast<const ring *>(ty_root(other.get(), "ring"));
    EXPECT_EQ(first->next->next, dead);
    EXPECT_EQ(first->next->previous, two->previous);
}

TEST(fixes, a_list_of_two_million_nodes) {
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    auto *last = make<ring>(heap.get());
    ASSERT_EQ(ty_root_set(heap.get(), "ring", last), TY_OK);
    ASSERT_EQ(ty_types_root(descriptors.get(), "ring", &ring_descriptor, nullptr), TY_OK);
    constexpr uint64_t count = 2000000;
    for (uint64_t n = 1; n < count; ++n) {
        auto *node = static_cast<ring *>(ty_alloc_zeroed(heap.get(), sizeof(ring)));
        last->next = node;
        node->previous = last;
        last = node;
    }
    auto nowhere = [](const void *address, void *) { return const_cast<void *>(address); };
    ty_fixes fixes{};
    fixes.struct_size = sizeof fixes;
    ASSERT_EQ(ty_fix_pointers(heap.get(), descriptors.get(), nowhere, nullptr, &fixes), TY_OK);
    EXPECT_EQ(fixes.objects, count);
    EXPECT_EQ(fixes.pointers, 2 * (count - 1));
    EXPECT_EQ(fixes.dead, 0u);
    RecordProperty("milliseconds", static_cast<int>(fixes.duration_ns / 1000000));
}

TEST(fixes, refuse_what_cannot_be) {
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    EXPECT_EQ(ty_fix_pointers(heap.get(), descriptors.get(), nullptr, nullptr, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_fix_pointers(nullptr, descriptors.get(), move_map::moved, nullptr, nullptr), TY_E_ARGUMENT);
}

// A type descriptor that says one element where there are two: the second has its place where a smaller block would
// have no room, and leads where it led.
TEST(fixes, elements_that_no_descriptor_reports_are_kept_in_step) {
    struct top {
        ring **list;
        ring *second;
    };
    TY_TYPE_POINTER_TO(one_pointer, &ring_descriptor)
    TY_TYPE(top, TY_POINTER(top, list, &one_pointer_descriptor), TY_POINTER(top, second, &ring_descriptor))
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    auto *all = make<top>(heap.get());
    all->list = static_cast<ring **>(ty_alloc_zeroed(heap.get(), 2 * sizeof(ring *)));
    all->list[0] = make<ring>(heap.get());
    all->list[1] = all->second = make<ring>(heap.get());
    ASSERT_EQ(ty_root_set(heap.get(), "top", all), TY_OK);
    ASSERT_EQ(ty_types_root(descriptors.get(), "top", &top_descriptor, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_audit_pointers(heap.get(), descriptors.get(), nullptr, nullptr, nullptr), TY_OK) << ty_error_text();
    std::mt19937 dice(7);
    move_map moved = move_within(heap.get(), dice);
    fix(heap.get(), descriptors.get(), moved);
    all = static_cast<top *>(ty_root(heap.get(), "top"));
    EXPECT_EQ(all->list[1], all->second);
}

// An element that is gone leaves its allocator behind, with the heap's base.
TEST(fixes, bases_after_objects_are_no_reason_to_refuse) {
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    auto **block = static_cast<void **>(ty_alloc_zeroed(heap.get(), 4 * sizeof(ring)));
    block[sizeof(ring) / sizeof(void *) + 1] = ty_heap_base(heap.get());
    ASSERT_EQ(ty_root_set(heap.get(), "ring", block), TY_OK);
    ASSERT_EQ(ty_types_root(descriptors.get(), "ring", &ring_descriptor, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_audit_pointers(heap.get(), descriptors.get(), nullptr, nullptr, nullptr), TY_OK) << ty_error_text();
}

// An array has room for eight, and a count of three: what stands after is kept in step, if somebody else leads there,
// too. Blocks that nothing else leads to are reported by the pointer audit.
TEST(fixes, elements_after_a_count_are_kept_in_step) {
    struct top {
        ring **list;
        uint64_t count;
    };
    TY_TYPE_POINTER_TO(ring_pointer, &ring_descriptor)
    TY_TYPE(top, TY_POINTER_COUNTED(top, list, count, &ring_pointer_descriptor))
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    auto *all = make<top>(heap.get());
    all->list = static_cast<ring **>(ty_alloc_zeroed(heap.get(), 100 * sizeof(ring *)));
    all->count = 3;
    for (uint64_t n = 0; n < 3; ++n) {
        all->list[n] = make<ring>(heap.get());
        all->list[n]->number = n;
        for (uint64_t m = 5 + n; m + 1 < 100; m += 3)
            all->list[m] = all->list[n];
    }
    ASSERT_EQ(ty_root_set(heap.get(), "top", all), TY_OK);
    ASSERT_EQ(ty_types_root(descriptors.get(), "top", &top_descriptor, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_audit_pointers(heap.get(), descriptors.get(), nullptr, nullptr, nullptr), TY_OK) << ty_error_text();
    std::mt19937 dice(7);
    move_map moved = move_within(heap.get(), dice);
    fix(heap.get(), descriptors.get(), moved);
    all = static_cast<top *>(ty_root(heap.get(), "top"));
    for (uint64_t n = 0; n < 3; ++n) {
        EXPECT_EQ(all->list[n]->number, n);
        for (uint64_t m = 5 + n; m + 1 < 100; m += 3)
            EXPECT_EQ(all->list[n], all->list[m]);
    }
    all->list[4] = make<ring>(heap.get());
    EXPECT_EQ(ty_audit_pointers(heap.get(), descriptors.get(), nullptr, nullptr, nullptr), TY_E_MISMATCH);
}
