// Goal: a heap's outboxes and its inbox stay whole when it is packed, laid out anew and moved: they hold no addresses,
// and need no type descriptors. Method: a transactional heap on a simulated disk, unpacked at another address.
#include "packages/pack/tests/support.hpp"
#include "tests/simulated_disk/storage_sim.hpp"

#include <taiyen/outbox.h>

namespace taiyen::test {
namespace {

struct commit_of {
    ty_heap *heap;
    template <class Function>
    void operator()(Function &&function) const {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        function(txn);
        ASSERT_OK(ty_commit(txn));
    }
};

TEST(pack_outbox, moves_with_its_heap) {
    os::sim_disk *disk = os::sim_create();
    ty_open_options open = TY_OPEN_OPTIONS_INIT;
    open.storage = os::sim_storage(disk);
    open.background = TY_BACKGROUND_CALLS;
    open.kind = TY_TRANSACTIONAL;
    open.limit_bytes = size_t{64} << 20;
    open.log_bytes = size_t{1} << 20;
    ty_heap *heap = nullptr, *moved = nullptr;
    ASSERT_OK(ty_open("before.ty", &open, &heap, nullptr));
    void *gap = nullptr;
    commit_of{heap}([&](ty_txn *txn) { gap = ty_txn_alloc(txn, 100000); });
    commit_of{heap}([&](ty_txn *txn) {
        EXPECT_OK(ty_outbox_make(txn, "out", 5000));
        EXPECT_OK(ty_outbox_put(txn, "out", "first", 5, nullptr));
        EXPECT_OK(ty_outbox_put(txn, "out", "second", 6, nullptr));
        EXPECT_OK(ty_outbox_forget(txn, "out", 1));
        EXPECT_OK(ty_inbox_set(txn, "shop", 12));
        EXPECT_OK(ty_txn_free(txn, gap));
    });
    const void *block = ty_root(heap, "taiyen.outbox.out");
    const uint64_t place = offset_of(heap, block);
    const std::string stream = packed(heap).text();
    ty_types *descriptors = nullptr;
    ASSERT_OK(ty_types_create(&descriptors));
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.kind = TY_TRANSACTIONAL;
    options.path = "after.ty";
    options.open = &open;
    options.place = TY_PLACE_OTHER;
    options.layout = TY_LAYOUT_DEFRAGMENT;
    options.types = descriptors;
    ASSERT_OK(unpack(stream, options, &moved, nullptr));
    EXPECT_NE(ty_heap_base(heap), ty_heap_base(moved));
    EXPECT_NE(place, offset_of(moved, ty_root(moved, "taiyen.outbox.out")));
    std::string found;
    ASSERT_OK(ty_outbox_read(
        moved, "out", 1,
        [](const ty_message *message, void *context) {
            EXPECT_EQ(2u, message->number);
            static_cast<std::string *>(context)->assign(static_cast<const char *>(message->bytes), message->size_bytes);
            return true;
        },
        &found));
    EXPECT_EQ("second", found);
    uint64_t last = 0;
    ASSERT_OK(ty_inbox_last(moved, "shop", &last));
    EXPECT_EQ(12u, last);
    commit_of{moved}([&](ty_txn *txn) { EXPECT_OK(ty_outbox_put(txn, "out", "third", 5, nullptr)); });
    ty_types_destroy(descriptors);
    EXPECT_OK(ty_discard(moved));
    EXPECT_OK(ty_discard(heap));
    os::sim_destroy(disk);
}

} // namespace
} // namespace taiyen::test
