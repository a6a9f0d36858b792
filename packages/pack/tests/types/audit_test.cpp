// Goal: each kind of mismatch is reported where it is due, with its type, place and figures, and is open where it
// should be; and nowhere else. Method: a small heap for each.
#include "fixture.hpp"

using namespace taiyen::test;

namespace {

struct thing {
    thing *next;
    char *text;
    uint64_t count;
    thing *many;
};
TY_TYPE_DECLARE(thing);
TY_TYPE(thing, TY_POINTER(thing, next, &thing_descriptor), TY_BYTES(thing, text),
        TY_POINTER_COUNTED(thing, many, count, &thing_descriptor))

struct derived {
    thing base;
    uint64_t extra;
    char *more;
};
TY_TYPE(derived, TY_NESTED(derived, base, &thing_descriptor), TY_BYTES(derived, more))

struct two_views {
    thing *as_base;
    derived *as_derived;
};
TY_TYPE(two_views, TY_POINTER(two_views, as_base, &thing_descriptor),
        TY_POINTER(two_views, as_derived, &derived_descriptor))

struct span {
    thing *begin, *end;
    char *cursor;
    void *other;
};
TY_TYPE(span, {"begin", TY_FIELD_POINTER, 0, &thing_descriptor, {}, {TY_COUNT_END, 0, offsetof(span, end), 0}, 0, 0},
        TY_PLACE(span, end, begin), TY_PLACE(span, cursor, begin), TY_REFERENCE(span, other))

struct rooted {
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();

    template <class type>
    type *root(const ty_type *descriptor, size_t bytes = sizeof(type)) {
        auto *made = static_cast<type *>(ty_alloc_zeroed(heap.get(), bytes));
        EXPECT_EQ(ty_root_set(heap.get(), "top", made), TY_OK);
        EXPECT_EQ(ty_types_root(descriptors.get(), "top", descriptor, nullptr), TY_OK) << ty_error_text();
        return made;
    }
    audit_result audit() const { return take_audit(heap.get(), descriptors.get()); }
};

void *as_address(uint64_t value) {
    void *address;
    memcpy(&address, &value, sizeof address);
    return address;
}

} // namespace

TEST(audit, counts_what_it_reaches) {
    rooted all;
    auto *top = all.root<thing>(&thing_descriptor);
    top->next = top; // a cycle
    top->text = make_text(all.heap.get(), "text");
    top->count = 3;
    top->many = make<thing>(all.heap.get(), 3);
    top->many[1].next = &top->many[2]; // into an array that is reached already
    top->many[2].next = top;
    top->many[2].text = top->text; // shared
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_OK) << result.text();
    EXPECT_EQ(result.figures.blocks, 3u);
    EXPECT_EQ(result.figures.reached_blocks, 3u);
    EXPECT_EQ(result.figures.objects, 4u);
    EXPECT_EQ(result.figures.pointers, 6u);
    EXPECT_EQ(result.figures.mismatches, 0u);
}

TEST(audit, reports_dead_addresses) {
    rooted all;
    auto *top = all.root<thing>(&thing_descriptor);
    auto *freed = make<thing>(all.heap.get(), 100);
    top->next = freed;
    ASSERT_EQ(ty_free(freed), TY_OK);
    top->text = static_cast<char *>(as_address(0x1234));
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_E_MISMATCH);
    const reported *next = result.find(TY_AUDIT_DEAD, "thing", 0);
    const reported *text = result.find(TY_AUDIT_DEAD, "thing", 8);
    ASSERT_TRUE(next && text) << result.text();
    EXPECT_TRUE(next->open && text->open);
    EXPECT_EQ(next->field, "next");
    EXPECT_EQ(next->count, 1u);
    EXPECT_EQ(next->of, 1u);
    EXPECT_NE(text->text.find("0x1234"), std::string::npos) << text->text;
    EXPECT_EQ(result.figures.open_mismatches, 2u);
}

TEST(audit, counts_reach_no_further_than_blocks) {
    rooted all;
    auto *top = all.root<thing>(&thing_descriptor);
    top->many = make<thing>(all.heap.get(), 3);
    ty_block block;
    ASSERT_EQ(ty_block_of(top->many, &block), TY_OK);
    size_t room = block.size_bytes / sizeof(thing);
    for (uint64_t count : {uint64_t{room + 1}, uint64_t{1} << 40, UINT64_MAX}) {
        top->count = count;
        audit_result result = all.audit();
        const reported *many = result.find(TY_AUDIT_DEAD, "thing", offsetof(thing, many));
        ASSERT_NE(many, nullptr) << result.text();
        EXPECT_NE(many->text.find("room for " + std::to_string(room) + " of " + std::to_string(count)),
                  std::string::npos)
            << many->text;
        EXPECT_EQ(result.figures.objects, 1 + room);
    }
}

TEST(audit, reports_hidden_addresses) {
    rooted all;
    struct plain {
        uint64_t a, b, c, d;
    };
    static const ty_type plain_descriptor = {"plain", 32, nullptr, 0, nullptr, nullptr, nullptr};
    auto *top = all.root<plain>(&plain_descriptor);
    auto *other = make<plain>(all.heap.get());
    top->b = reinterpret_cast<uint64_t>(other);
    top->c = reinterpret_cast<uint64_t>(&other->d);
    top->d = 99;
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_E_MISMATCH);
    const reported *start = result.find(TY_AUDIT_HIDDEN, "plain", 8);
    const reported *inside = result.find(TY_AUDIT_HIDDEN, "plain", 16);
    ASSERT_TRUE(start && inside) << result.text();
    EXPECT_TRUE(start->open && inside->open);
    EXPECT_NE(start->text.find("(1 of a first byte)"), std::string::npos) << start->text;
    EXPECT_NE(inside->text.find("(0 of a first byte)"), std::string::npos) << inside->text;
    EXPECT_EQ(result.count(TY_AUDIT_LEAK), 1u);
    EXPECT_EQ(result.count(TY_AUDIT_HIDDEN), 2u);
    EXPECT_NE(result.text().find("no field leads there, but perhaps words that no field names"), std::string::npos)
        << result.text();
    top->b = top->c = 0;
    result = all.audit();
    EXPECT_EQ(result.count(TY_AUDIT_LEAK), 1u);
    EXPECT_NE(result.text().find(": nothing leads there ("), std::string::npos) << result.text();
}

TEST(audit, reports_addresses_just_after_a_block) {
    rooted all;
    auto *top = all.root<thing>(&thing_descriptor);
    ty_block block;
    char *last = static_cast<char *>(ty_alloc_zeroed(all.heap.get(), 4096));
    ASSERT_EQ(ty_block_of(last, &block), TY_OK);
    top->text = last;
    top->count = reinterpret_cast<uint64_t>(last) + block.size_bytes;
    top->many = nullptr;
    EXPECT_NE(all.audit().find(TY_AUDIT_HIDDEN, "thing", offsetof(thing, count)), nullptr);
}

// However few: in an object there are no remains.
TEST(audit, one_hidden_address_of_many_words_is_open) {
    rooted all;
    auto *top = all.root<thing>(&thing_descriptor);
    top->count = 99;
    top->many = make<thing>(all.heap.get(), 99);
    for (int n = 0; n < 99; ++n)
        top->many[n].count = 0xffffffff00000000;
    for (int n = 0; n < 99; ++n)
        top->many[n].many = nullptr;
    top->many[50].count = reinterpret_cast<uint64_t>(top);
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_E_MISMATCH);
    const reported *hidden = result.find(TY_AUDIT_HIDDEN, "thing", offsetof(thing, count));
    ASSERT_NE(hidden, nullptr) << result.text();
    EXPECT_EQ(hidden->count, 1u);
    EXPECT_EQ(hidden->of, 100u);
}

TEST(audit, remains_are_open_if_most_look_so) {
    rooted all;
    struct holder {
        char *bytes[8];
    };
    static const ty_field fields[] = {{"bytes", TY_FIELD_POINTER, 0, nullptr, {TY_COUNT_FIXED, 8, 0, 0}, {}, 0, 0}};
    static const ty_type holder_descriptor = {"holder", 64, fields, 1, nullptr, nullptr, nullptr};
    auto *top = all.root<holder>(&holder_descriptor);
    for (char *&bytes : top->bytes) {
        bytes = static_cast<char *>(ty_alloc_zeroed(all.heap.get(), 32));
        memset(bytes, 'x', 32);
    }
    auto address = reinterpret_cast<uint64_t>(top);
    for (int n = 0; n < 3; ++n)
        memcpy(top->bytes[n] + 8, &address, sizeof address);
    audit_result few = all.audit();
    EXPECT_EQ(few.status, TY_OK) << few.text();
    const reported *remains = few.find(TY_AUDIT_HIDDEN, "holder.bytes", 8);
    ASSERT_NE(remains, nullptr) << few.text();
    EXPECT_FALSE(remains->open);
    EXPECT_EQ(remains->count, 3u);
    EXPECT_EQ(remains->of, 8u);
    memcpy(top->bytes[3] + 8, &address, sizeof address);
    audit_result most = all.audit();
    EXPECT_EQ(most.status, TY_E_MISMATCH);
    EXPECT_TRUE(most.find(TY_AUDIT_HIDDEN, "holder.bytes", 8)->open);
}

// Half a number, half of what was there before: it may look like an address, of some byte in some block.
TEST(audit, padding_is_no_address) {
    struct numbered {
        thing *next;
        uint32_t number;
    };
    TY_TYPE(numbered, TY_POINTER(numbered, next, &thing_descriptor))
    static const ty_count all_of_block = {TY_COUNT_BLOCK, 0, 0, 0};
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    auto *list = static_cast<numbered *>(ty_alloc_zeroed(heap.get(), 64 * sizeof(numbered)));
    auto *target = static_cast<char *>(ty_alloc_zeroed(heap.get(), 1024));
    ASSERT_EQ(ty_root_set(heap.get(), "list", list), TY_OK);
    ASSERT_EQ(ty_root_set(heap.get(), "target", target), TY_OK);
    ASSERT_EQ(ty_types_root(descriptors.get(), "list", &numbered_descriptor, &all_of_block), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_types_root(descriptors.get(), "target", nullptr, nullptr), TY_OK);
    auto look_alike = reinterpret_cast<uint64_t>(target) + 24;
    uint64_t number = 5;
    for (size_t n = 0; n < 64; ++n)
        memcpy(reinterpret_cast<char *>(&list[n]) + 8, n % 8 == 0 ? &look_alike : &number, sizeof number);
    EXPECT_EQ(ty_audit_pointers(heap.get(), descriptors.get(), nullptr, nullptr, nullptr), TY_OK) << ty_error_text();
    look_alike -= 24; // of a first byte: that is no chance
    for (size_t n = 0; n < 64; n += 8)
        memcpy(reinterpret_cast<char *>(&list[n]) + 8, &look_alike, sizeof look_alike);
    EXPECT_EQ(ty_audit_pointers(heap.get(), descriptors.get(), nullptr, nullptr, nullptr), TY_E_MISMATCH);
}

// A buffer holds what it likes.
TEST(audit, plain_words_are_passed_over) {
    struct buffered {
        thing *next;
        char buffer[16];
    };
    TY_TYPE(buffered, TY_POINTER(buffered, next, &thing_descriptor), TY_PLAIN(buffered, buffer, 2))
    rooted all;
    auto *top = all.root<buffered>(&buffered_descriptor);
    memcpy(top->buffer, &top, sizeof top);
    memcpy(top->buffer + 8, &top, sizeof top);
    EXPECT_EQ(all.audit().status, TY_OK) << all.audit().text();
    EXPECT_EQ(all.audit().mismatches.size(), 0u);
}

TEST(audit, a_hook_whose_tag_takes_bits_of_the_address) {
    struct hooked {
        void *tagged;
    };
    static const ty_type hooked_descriptor = {"hooked",
                                              sizeof(hooked),
                                              nullptr,
                                              0,
                                              [](ty_tracer *tracer, void *object, void *) {
                                                  ty_trace_pointer(tracer, &static_cast<hooked *>(object)->tagged,
                                                                   nullptr, 1, 0xffff);
                                              },
                                              nullptr,
                                              nullptr};
    rooted all;
    all.root<hooked>(&hooked_descriptor)->tagged = ty_alloc(all.heap.get(), 100);
    EXPECT_EQ(all.audit().status, TY_E_ARGUMENT);
}

TEST(audit, looks_after_objects) {
    rooted all;
    auto *top = all.root<thing>(&thing_descriptor, 128);
    auto address = reinterpret_cast<uint64_t>(top);
    memcpy(reinterpret_cast<char *>(top) + 40, &address, sizeof address);
    audit_result result = all.audit();
    const reported *after = result.find(TY_AUDIT_HIDDEN, "thing", 40);
    ASSERT_NE(after, nullptr) << result.text();
    EXPECT_TRUE(after->open);
    EXPECT_NE(after->text.find("after the object's end"), std::string::npos);
}

// Where a block of bytes has room that a smaller block would not have, nobody may have asked for it.
TEST(audit, the_spare_end_of_bytes_is_remains) {
    struct holder {
        char *bytes[8];
    };
    static const ty_field fields[] = {{"bytes", TY_FIELD_POINTER, 0, nullptr, {TY_COUNT_FIXED, 8, 0, 0}, {}, 0, 0}};
    static const ty_type holder_descriptor = {"holder", 64, fields, 1, nullptr, nullptr, nullptr};
    rooted all;
    auto *top = all.root<holder>(&holder_descriptor);
    auto *bytes = static_cast<char *>(ty_alloc_zeroed(all.heap.get(), 40)); // in a block of 64
    top->bytes[0] = bytes;
    auto address = reinterpret_cast<uint64_t>(top);
    memcpy(bytes + 40, &address, sizeof address);
    EXPECT_EQ(all.audit().status, TY_OK) << all.audit().text();
    memcpy(bytes + 24, &address, sizeof address);
    EXPECT_EQ(all.audit().status, TY_E_MISMATCH);
}

TEST(audit, reports_an_array_that_is_called_bytes) {
    rooted all;
    auto *top = all.root<thing>(&thing_descriptor);
    constexpr size_t count = 20000;
    auto *many = make<thing>(all.heap.get(), count);
    top->text = reinterpret_cast<char *>(many);
    for (size_t n = 0; n < count; ++n) {
        many[n].next = top;
        many[n].count = n + 1;
    }
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_E_MISMATCH);
    EXPECT_LE(result.mismatches.size(), 2u);
    const reported *bytes = result.find(TY_AUDIT_HIDDEN, "thing.text", 0);
    ASSERT_NE(bytes, nullptr) << result.text();
    EXPECT_GT(bytes->count, count - 512); // all but the block's spare end
}

// An allocator in a container knows its heap by its base: no block is there, and it would be wrong after a move.
TEST(audit, knows_the_heaps_base) {
    struct holder {
        void *heap;
        uint64_t number;
    };
    TY_TYPE_PLAIN(holder)
    rooted hidden;
    hidden.root<holder>(&holder_descriptor)->heap = ty_heap_base(hidden.heap.get());
    audit_result result = hidden.audit();
    ASSERT_NE(result.find(TY_AUDIT_HIDDEN, "holder", 0), nullptr) << result.text();
    EXPECT_TRUE(result.mismatches[0].open);

    static const ty_field fields[] = {TY_HEAP_BASE(holder, heap)};
    static const ty_type named = {"holder", sizeof(holder), fields, 1, nullptr, nullptr, nullptr};
    rooted reported;
    auto *top = reported.root<holder>(&named);
    EXPECT_EQ(reported.audit().status, TY_OK);
    top->heap = ty_heap_base(reported.heap.get());
    EXPECT_EQ(reported.audit().status, TY_OK);
    top->heap = ty_heap_base(hidden.heap.get());
    EXPECT_NE(reported.audit().find(TY_AUDIT_DEAD, "holder", 0), nullptr);
    auto stay = [](const void *address, void *) { return const_cast<void *>(address); };
    ASSERT_EQ(ty_fix_pointers(reported.heap.get(), reported.descriptors.get(), stay, nullptr, nullptr), TY_OK);
    EXPECT_EQ(top->heap, ty_heap_base(reported.heap.get()));
}

TEST(audit, reports_leaks_by_size) {
    rooted all;
    all.root<thing>(&thing_descriptor);
    for (int n = 0; n < 5; ++n)
        make<thing>(all.heap.get());
    ASSERT_NE(ty_alloc(all.heap.get(), 10000), nullptr);
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_OK); // a leak is not open
    EXPECT_EQ(result.count(TY_AUDIT_LEAK), 2u) << result.text();
    EXPECT_EQ(result.mismatches[0].count, 5u);
    EXPECT_EQ(result.mismatches[0].of, 6u);
    EXPECT_EQ(result.mismatches[0].bytes, 5 * sizeof(thing));
    EXPECT_EQ(result.figures.reached_blocks, 1u);
}

TEST(audit, reports_code) {
    rooted all;
    struct plain {
        uint64_t a, b, c;
    };
    static const ty_type plain_descriptor = {"plain", 24, nullptr, 0, nullptr, nullptr, nullptr};
    auto *top = all.root<plain>(&plain_descriptor);
    top->b = reinterpret_cast<uint64_t>(&ty_free);
    top->c = reinterpret_cast<uint64_t>(&plain_descriptor);
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_OK);
    EXPECT_NE(result.find(TY_AUDIT_CODE, "plain", 8), nullptr) << result.text();
    EXPECT_NE(result.find(TY_AUDIT_CODE, "plain", 16), nullptr) << result.text();
    EXPECT_EQ(result.count(TY_AUDIT_CODE), 2u);
}

TEST(audit, reports_roots) {
    rooted all;
    all.root<thing>(&thing_descriptor);
    ASSERT_EQ(ty_root_set(all.heap.get(), "unknown", make<thing>(all.heap.get())), TY_OK);
    ASSERT_EQ(ty_types_root(all.descriptors.get(), "missing", nullptr, nullptr), TY_OK);
    ASSERT_EQ(ty_types_keep(all.descriptors.get(), all.heap.get()), TY_OK);
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_E_MISMATCH);
    EXPECT_EQ(result.count(TY_AUDIT_ROOT), 2u) << result.text();
    EXPECT_TRUE(result.find(TY_AUDIT_ROOT, "unknown", 0)->open);
    EXPECT_FALSE(result.find(TY_AUDIT_ROOT, "missing", 0)->open);
    EXPECT_EQ(result.figures.reached_blocks, 3u);
    EXPECT_EQ(result.count(TY_AUDIT_LEAK), 0u);
}

// What undo has in the heap is the library's, and neither reached nor a leak.
TEST(audit, leaves_the_librarys_blocks_out) {
    rooted all;
    auto *top = all.root<thing>(&thing_descriptor);
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    ASSERT_EQ(ty_undo_attach(all.heap.get(), &options), TY_OK) << ty_error_text();
    size_t own = 0;
    auto count = [](const ty_block *, void *context) {
        ++*static_cast<size_t *>(context);
        return true;
    };
    ASSERT_EQ(ty_each_internal_block(all.heap.get(), count, &own), TY_OK);
    ASSERT_GT(own, 0u);
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_OK) << result.text();
    EXPECT_EQ(result.mismatches.size(), 0u) << result.text();
    EXPECT_EQ(result.figures.blocks, 1u);
    EXPECT_EQ(result.figures.reached_blocks, 1u);
    EXPECT_EQ(top->next, nullptr);
}

TEST(audit, a_base_and_what_is_derived_of_it) {
    for (bool base_first : {true, false}) {
        rooted all;
        auto *top = all.root<two_views>(&two_views_descriptor);
        auto *one = make<derived>(all.heap.get());
        auto *chain = make<two_views>(all.heap.get());
        top->as_derived = one;
        if (base_first)
            top->as_base = &one->base;
        one->base.next = &one->base;
        one->more = make_text(all.heap.get(), "more");
        ASSERT_EQ(ty_free(chain), TY_OK);
        audit_result result = all.audit();
        EXPECT_EQ(result.status, TY_OK) << result.text();
        EXPECT_EQ(result.figures.reached_blocks, 3u);
        one->extra = reinterpret_cast<uint64_t>(top);
        EXPECT_NE(all.audit().find(TY_AUDIT_HIDDEN, "derived", offsetof(derived, extra)), nullptr)
            << all.audit().text();
    }
}

TEST(audit, ends_and_places) {
    rooted all;
    auto *top = all.root<span>(&span_descriptor);
    EXPECT_EQ(all.audit().status, TY_OK);
    top->begin = make<thing>(all.heap.get(), 4);
    top->end = top->begin + 4;
    top->cursor = reinterpret_cast<char *>(top->begin + 1) + 3;
    top->other = &top->begin[2].text;
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_OK) << result.text();
    EXPECT_EQ(result.figures.objects, 5u);
    top->end = reinterpret_cast<thing *>(reinterpret_cast<char *>(top->end) - 8);
    EXPECT_NE(all.audit().find(TY_AUDIT_DEAD, "span", 0), nullptr);
    top->end = top->begin - 1;
    EXPECT_NE(all.audit().find(TY_AUDIT_DEAD, "span", 0), nullptr);
    EXPECT_NE(all.audit().find(TY_AUDIT_DEAD, "span", 8), nullptr);
    top->end = top->begin + 4;
    top->cursor = reinterpret_cast<char *>(top);
    EXPECT_NE(all.audit().find(TY_AUDIT_DEAD, "span", 16), nullptr);
    top->cursor = nullptr;
    top->other = make<thing>(all.heap.get()); // nothing else leads there
    audit_result alone = all.audit();
    EXPECT_EQ(alone.status, TY_E_MISMATCH);
    ASSERT_NE(alone.find(TY_AUDIT_DEAD, "span", 24), nullptr) << alone.text();
}

TEST(audit, hooks_are_not_believed) {
    struct wild {
        uint64_t words[4];
    };
    static int what;
    static const ty_type stranger = {"stranger", 0, nullptr, 0, nullptr, nullptr, nullptr}; // cannot be
    static ty_type wild_descriptor = {"wild", sizeof(wild), nullptr, 0, nullptr, nullptr, nullptr};
    wild_descriptor.trace = [](ty_tracer *tracer, void *object, void *) {
        char *bytes = static_cast<char *>(object);
        switch (what) {
        case 0:
            return ty_trace_pointer(tracer, bytes + 4, nullptr, 1, 0);
        case 1:
            return ty_trace_pointer(tracer, bytes - 4096, nullptr, 1, 0);
        case 2:
            return ty_trace_reference(tracer, &what, 0);
        case 3:
            return ty_trace_nested(tracer, bytes, &thing_descriptor, 1000);
        case 4:
            EXPECT_EQ(ty_trace_address(tracer, &what, nullptr, 1), &what);
            return;
        case 5:
            return ty_trace_pointer(tracer, bytes, &stranger, 1, 0);
        case 6:
            return ty_trace_nested(tracer, bytes, &wild_descriptor, 1); // for ever, if it were believed
        default:
            return ty_trace_nested(tracer, bytes + sizeof(wild), &wild_descriptor, 1); // as deep as the block is long
        }
    };
    rooted all;
    ASSERT_EQ(ty_types_add(all.descriptors.get(), &thing_descriptor), TY_OK);
    all.root<wild>(&wild_descriptor);
    for (what = 0; what < 5; ++what)
        EXPECT_NE(all.audit().find(TY_AUDIT_DEAD, "wild", 0), nullptr) << what;
    what = 5;
    EXPECT_EQ(all.audit().status, TY_E_ARGUMENT);
    what = 6;
    EXPECT_EQ(all.audit().status, TY_OK);
    rooted deep;
    deep.root<wild>(&wild_descriptor, size_t{16} << 20);
    what = 7;
    EXPECT_EQ(deep.audit().status, TY_E_ARGUMENT);
}

TEST(audit, refuses_what_it_cannot_do) {
    rooted all;
    ty_audit audit{};
    EXPECT_EQ(ty_audit_pointers(nullptr, all.descriptors.get(), nullptr, nullptr, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_audit_pointers(all.heap.get(), nullptr, nullptr, nullptr, nullptr), TY_E_ARGUMENT);
    EXPECT_EQ(ty_audit_pointers(all.heap.get(), all.descriptors.get(), nullptr, nullptr, &audit), TY_E_ARGUMENT);
    heap_owner_ptr checked = new_heap();
    ty_check_options options = TY_CHECK_OPTIONS_INIT;
    options.checks = TY_CHECK_BOUNDS;
    ASSERT_EQ(ty_heap_start_checks(checked.get(), &options), TY_OK);
    EXPECT_EQ(ty_audit_pointers(checked.get(), all.descriptors.get(), nullptr, nullptr, nullptr), TY_E_UNSUPPORTED);
}

TEST(audit, a_list_of_two_million_nodes) {
    rooted all;
    auto *top = all.root<thing>(&thing_descriptor);
    thing *last = top;
    constexpr uint64_t count = 2000000;
    for (uint64_t n = 1; n < count; ++n) {
        last->next = static_cast<thing *>(ty_alloc_zeroed(all.heap.get(), sizeof(thing)));
        last = last->next;
    }
    audit_result result = all.audit();
    EXPECT_EQ(result.status, TY_OK) << result.text();
    EXPECT_EQ(result.figures.objects, count);
    RecordProperty("milliseconds", static_cast<int>(result.figures.duration_ns / 1000000));
}
