// Goal: values are as before wherever their heap goes, and the pointer audit finds nothing to say of them: also of
// texts, arrays and numbers that look like addresses. Method: a heap with all kinds of values, rings and packed ones
// among them, is packed, unpacked elsewhere and laid out anew, twice; the model says what is to be there.
#include "support.hpp"

#include <taiyen/pack.h>
#include <taiyen/value_types.hpp>

using namespace values_test;

namespace {

taiyen::heap unpacked(ty_heap *heap, const ty_types *descriptors, ty_layout layout) {
    void *bytes = nullptr;
    size_t size = 0;
    EXPECT_EQ(TY_OK, ty_pack_memory(heap, nullptr, &bytes, &size, nullptr)) << ty_error_text();
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.place = TY_PLACE_OTHER;
    options.layout = layout;
    options.types = descriptors;
    ty_heap *moved = nullptr;
    EXPECT_EQ(TY_OK, ty_unpack_memory(bytes, size, &options, &moved, nullptr, nullptr)) << ty_error_text();
    free(bytes);
    return taiyen::heap(moved);
}

// Addresses of the heap as bytes, which are to stay as they are.
void add_lookalikes(value_heap &values, taiyen::dict &to) {
    const void *address = values.root().address();
    const std::string bytes(reinterpret_cast<const char *>(&address), sizeof address);
    std::string many;
    for (int i = 0; i < 40; ++i)
        many += bytes;
    to.set("bytes", values.make_bytes(many).value()).value();
    to.set("opaque", values.make_opaque(5, many).value()).value();
    const uint64_t descriptor[] = {1500};
    const value array = values.make_array("u8", 8, descriptor, 1).value();
    for (size_t i = 0; i < 1500; ++i)
        memcpy(static_cast<char *>(taiyen::array(array).data()) + i * 8, &address, 8);
    to.set("array", array).value();
    const value rows = values.make_records(values.keep_layout("eight bytes").value(), 8).value();
    taiyen::records(values, rows).insert(0, many.data(), many.size() / 8).value();
    to.set("records", rows).value();
    EXPECT_FALSE(values.make_records(7, 8)); // a layout that there is not
}

TEST(moved_values, are_as_before) {
    ty_types *descriptors = nullptr;
    ASSERT_EQ(TY_OK, ty_types_create(&descriptors));
    ASSERT_EQ(TY_OK, taiyen::add_values(descriptors)) << ty_error_text();
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        taiyen::heap heap = taiyen::heap::create().value();
        auto values = std::make_unique<value_heap>(value_heap::open(heap).value());
        changer both(*values, seed);
        ASSERT_TRUE(both.begin());
        both.run(3000);
        const value own = values->make_container(value_kind::list).value(); // a ring that only it leads to
        taiyen::list(*values, own).append(own).value();
        taiyen::list(*values, own).append(own).value();
        const value apart = values->make_container(value_kind::dict).value();
        taiyen::dict d(*values, apart);
        const value all[] = {values->root(), apart, own};
        add_lookalikes(*values, d);
        const value kept_bytes = d.get("bytes");
        const std::string looks(data_of(kept_bytes));
        ASSERT_TRUE(values->set_root(values->make_tuple(all, 3).value()));
        for (const ty_layout layout : {TY_LAYOUT_SAME, TY_LAYOUT_DEFRAGMENT, TY_LAYOUT_PACKED}) {
            ty_audit audit{};
            audit.struct_size = sizeof audit;
            EXPECT_EQ(TY_OK, ty_audit_pointers(
                                 heap.get(), descriptors,
                                 [](const ty_audit_mismatch *found, void *) {
                                     ADD_FAILURE() << found->text;
                                     return true;
                                 },
                                 nullptr, &audit));
            // The library knows the hook of those that the heap keeps.
            const bool kept = layout != TY_LAYOUT_SAME;
            if (kept) {
                ASSERT_EQ(TY_OK, ty_types_keep(descriptors, heap.get())) << ty_error_text();
            }
            taiyen::heap moved = unpacked(heap.get(), kept ? nullptr : descriptors, layout);
            values.reset();
            heap = std::move(moved);
            values = std::make_unique<value_heap>(value_heap::open(heap).value());
            const taiyen::tuple three(values->root());
            EXPECT_EQ("", difference(*values, three.at(0), {"", both.model}));
            const value there = three.at(1);
            taiyen::dict after(*values, there);
            for (const char *name : {"bytes", "opaque"}) {
                const value found = after.get(name);
                EXPECT_EQ(looks, data_of(found));
            }
            EXPECT_EQ(0, memcmp(taiyen::array(after.get("array")).data(), looks.data(), looks.size()));
            const taiyen::records rows(*values, after.get("records"));
            EXPECT_EQ(looks, std::string(static_cast<const char *>(rows.data()), rows.size() * rows.item_size()));
            EXPECT_EQ("eight bytes", values->layout(rows.layout()));
            taiyen::list ring(*values, three.at(2));
            EXPECT_TRUE(same(ring.at(0), ring.as_value()) && same(ring.at(1), ring.as_value()));
            expect_sound(*values);
        }
        ASSERT_TRUE(values->set_root(taiyen::tuple(values->root()).at(0)));
        EXPECT_EQ(1u, collect(*values).value());
        both.use(*values);
        both.run(300);
        both.expect_as_model();
    }
    ty_types_destroy(descriptors);
}

} // namespace
