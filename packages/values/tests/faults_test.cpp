// Goal: a call that fails for want of memory, or since the transaction or undo takes no more, changes nothing; what
// could not be freed is freed later. Method: the linker puts functions here in the place of the library's (--wrap);
// the n-th call of one of them fails, for each n of a change; then the values are held against the model, and the next
// change has no fault.
#include "support.hpp"

#include <taiyen/undo.hpp>

using namespace values_test;

namespace {
// Calls until one fails; 0: none does.
long until_fault = 0;
bool fails_now() {
    if (until_fault == 0 || --until_fault > 0)
        return false;
    ty_error_set(TY_E_MEMORY, 0, "a fault of the test", nullptr, UINT64_MAX, "none");
    return true;
}
} // namespace

extern "C" {
void *__real_ty_alloc(ty_heap *heap, size_t size);
void *__real_ty_txn_alloc(ty_txn *txn, size_t size);
void *__real_ty_undo_alloc(ty_heap *heap, size_t size);
ty_status __real_ty_declare(ty_txn *txn, const void *address, size_t bytes);
ty_status __real_ty_undo_record(ty_heap *heap, const void *address, size_t bytes);
ty_status __real_ty_txn_free(ty_txn *txn, void *block);
ty_status __real_ty_undo_free(ty_heap *heap, void *block);
void *__wrap_ty_alloc(ty_heap *heap, size_t size) {
    return fails_now() ? nullptr : __real_ty_alloc(heap, size);
}
void *__wrap_ty_txn_alloc(ty_txn *txn, size_t size) {
    return fails_now() ? nullptr : __real_ty_txn_alloc(txn, size);
}
void *__wrap_ty_undo_alloc(ty_heap *heap, size_t size) {
    return fails_now() ? nullptr : __real_ty_undo_alloc(heap, size);
}
ty_status __wrap_ty_declare(ty_txn *txn, const void *address, size_t bytes) {
    return fails_now() ? TY_E_MEMORY : __real_ty_declare(txn, address, bytes);
}
ty_status __wrap_ty_undo_record(ty_heap *heap, const void *address, size_t bytes) {
    return fails_now() ? TY_E_MEMORY : __real_ty_undo_record(heap, address, bytes);
}
ty_status __wrap_ty_txn_free(ty_txn *txn, void *block) {
    return fails_now() ? TY_E_MEMORY : __real_ty_txn_free(txn, block);
}
ty_status __wrap_ty_undo_free(ty_heap *heap, void *block) {
    return fails_now() ? TY_E_MEMORY : __real_ty_undo_free(heap, block);
}
}

namespace {

// Changes of which the first, second ... call fails, until one needs fewer calls. The heap may hold more than the model
// reports until the next change.
void fail_each_call(value_heap &values, changer &both, long *failed) {
    for (long nth = 1;; ++nth) {
        until_fault = nth;
        static_cast<void>(both.change());
        const bool reached = until_fault == 0;
        until_fault = 0;
        if (!reached)
            return;
        ++*failed;
        ASSERT_TRUE(values.free_deferred());
        both.expect_as_model();
        if (testing::Test::HasFailure())
            return;
    }
}

TEST(values_faults, plain) {
    long failed = 0;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        taiyen::heap heap = taiyen::heap::create().value();
        value_heap values = value_heap::open(heap).value();
        changer both(values, seed);
        ASSERT_TRUE(both.begin());
        for (int i = 0; i < 400 && !HasFailure(); ++i)
            fail_each_call(values, both, &failed);
        ASSERT_TRUE(values.set_root(value::none()));
        const auto *shapes = taiyen::detail::block_as<taiyen::detail::value_container>(values.space()->shapes);
        EXPECT_LE(heap.stats().value().live_blocks, 4u + 2 * shapes->count) << "a failure has left blocks";
    }
    EXPECT_GT(failed, 1000);
}

TEST(values_faults, in_transactions) {
    char name[] = "/tmp/taiyen-values-XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(name));
    const std::string path = std::string(name) + "/v.ty";
    long failed = 0;
    {
        taiyen::open_options options;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = size_t{64} << 20;
        options.log_bytes = size_t{1} << 20;
        options.background = TY_BACKGROUND_CALLS;
        taiyen::heap heap = taiyen::heap::open(path, options).value();
        taiyen::transaction made = heap.begin().value();
        value_heap values = value_heap::open(heap).value();
        changer both(values, 3);
        ASSERT_TRUE(both.begin());
        ASSERT_TRUE(made.commit());
        for (int i = 0; i < 250 && !HasFailure(); ++i) {
            const auto before = copy_of(both.model);
            taiyen::transaction txn = heap.begin().value();
            fail_each_call(values, both, &failed);
            if (i % 3) {
                ASSERT_TRUE(txn.commit());
            } else {
                ASSERT_TRUE(txn.rollback());
                both.model = before;
                taiyen::transaction looks = heap.begin().value();
                both.expect_as_model();
            }
        }
        ASSERT_TRUE(heap.close());
    }
    EXPECT_GT(failed, 1000);
    for (const char *end : {"", "-journal", "-log"})
        unlink((path + end).c_str());
    EXPECT_EQ(0, rmdir(name));
}

// It waits among the dead blocks, and the next key with its bytes is another one.
TEST(values_faults, a_key_that_could_not_be_freed_is_not_taken_again) {
    bool waited = false;
    for (long nth = 1; nth < 20; ++nth) {
        taiyen::heap heap = taiyen::heap::create().value();
        value_heap values = value_heap::open(heap).value();
        taiyen::undo_view undo(heap);
        ASSERT_TRUE(values.set_root(values.make_container(value_kind::dict).value()));
        ASSERT_TRUE(undo.attach());
        taiyen::undo_transaction open = undo.begin("step").value();
        values.record_undo(true);
        taiyen::dict d(values, values.root());
        d.set("a key of some letters", values.make_text("a text of some letters").value()).value(); // which goes first
        until_fault = nth;
        static_cast<void>(d.erase(values.text_key("a key of some letters")));
        until_fault = 0;
        waited |= values.space()->dead != nullptr;
        d.set("a key of some letters", value::integer(2)).value();
        ASSERT_TRUE(values.free_deferred());
        expect_sound(values);
        EXPECT_EQ(2, d.get("a key of some letters").as_integer()) << nth;
        values.record_undo(false);
        ASSERT_TRUE(open.end());
    }
    EXPECT_TRUE(waited);
}

TEST(values_faults, while_undo_records) {
    long failed = 0;
    for (uint64_t seed = 4; seed <= 10; ++seed) {
        taiyen::heap heap = taiyen::heap::create().value();
        value_heap values = value_heap::open(heap).value();
        taiyen::undo_view undo(heap);
        changer both(values, seed);
        ASSERT_TRUE(both.begin());
        ASSERT_TRUE(undo.attach());
        for (int i = 0; i < 250 && !HasFailure(); ++i) {
            const auto before = copy_of(both.model);
            const uint64_t steps = undo.stats().value().undoable;
            taiyen::undo_transaction open = undo.begin("step").value();
            values.record_undo(true);
            fail_each_call(values, both, &failed);
            values.record_undo(false);
            ASSERT_TRUE(open.end());
            if (i % 3 == 0 && undo.stats().value().undoable > steps) { // what changes nothing is no step
                ASSERT_TRUE(undo.undo());
                ASSERT_TRUE(undo.exit());
                both.model = before;
                both.expect_as_model();
            }
        }
    }
    EXPECT_GT(failed, 1000);
}

} // namespace
