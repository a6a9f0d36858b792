// Goal: a handle of a heap that has ended is refused by every closed_call, in particular by those that end heaps,
// although new heaps were opened since. Method: heaps of each kind are ended in each way that there is; then the
// closed_calls are made with the old handle, and the new heap must be untouched. The story: a second ty_close of a
// handle ended the process.
#include "fixture.hpp"

#include <functional>
#include <string>
#include <taiyen/taiyen.h>
#include <vector>

using namespace api_test;
namespace {

struct closed_call {
    const char *name;
    std::function<bool(ty_heap *)> refused;
};

bool is(ty_status status) {
    return status == TY_E_ARGUMENT && std::string(ty_error_text()).find("closed") != std::string::npos;
}
bool none(const void *pointer) {
    return pointer == nullptr && is(TY_E_ARGUMENT);
}

const closed_call closed_calls[] = {
    {"ty_close", [](ty_heap *h) { return is(ty_close(h)); }},
    {"ty_discard", [](ty_heap *h) { return is(ty_discard(h)); }},
    {"ty_heap_destroy", [](ty_heap *h) { return is(ty_heap_destroy(h)); }},
    {"ty_rebuild", [](ty_heap *h) { return is(ty_rebuild(&h, nullptr, nullptr)); }},
    {"ty_alloc", [](ty_heap *h) { return none(ty_alloc(h, 100)); }},
    {"ty_alloc of nothing", [](ty_heap *h) { return none(ty_alloc(h, 0)); }},
    {"ty_alloc of much", [](ty_heap *h) { return none(ty_alloc(h, 1 << 20)); }},
    {"ty_alloc_zeroed", [](ty_heap *h) { return none(ty_alloc_zeroed(h, 100)); }},
    {"ty_alloc_aligned", [](ty_heap *h) { return none(ty_alloc_aligned(h, 100, 64)); }},
    {"ty_alloc_at", [](ty_heap *h) { return is(ty_alloc_at(h, &h, 100)); }},
    {"ty_make_extents", [](ty_heap *h) { return is(ty_make_extents(h, nullptr, 0, nullptr)); }},
    {"ty_each_internal_block",
     [](ty_heap *h) {
         return is(ty_each_internal_block(
             h, [](const ty_block *, void *) { return true; }, nullptr));
     }},
    {"ty_heap_class_table",
     [](ty_heap *h) { return ty_heap_class_table(h) == TY_CLASSES_CACHE_LINE && is(TY_E_ARGUMENT); }},
    {"ty_heap_base", [](ty_heap *h) { return none(ty_heap_base(h)); }},
    {"ty_heap_purge", [](ty_heap *h) { return is(ty_heap_purge(h, nullptr)); }},
    {"ty_heap_verify", [](ty_heap *h) { return is(ty_heap_verify(h, nullptr, nullptr)); }},
    {"ty_root", [](ty_heap *h) { return none(ty_root(h, "root")); }},
    {"ty_root_set", [](ty_heap *h) { return is(ty_root_set(h, "root", nullptr)); }},
    {"ty_snapshot", [](ty_heap *h) { return is(ty_snapshot(h)); }},
    {"ty_run_background_work", [](ty_heap *h) { return is(ty_run_background_work(h)); }},
    {"ty_reserve", [](ty_heap *h) { return none(ty_reserve(h, 100)); }},
    {"ty_durable", [](ty_heap *h) { return is(ty_durable(h, 0, true, nullptr)); }},
    {"ty_read_begin", [](ty_heap *h) { return is(ty_read_begin(h)); }},
    {"ty_undo_attach", [](ty_heap *h) { return is(ty_undo_attach(h, nullptr)); }},
    {"ty_begin",
     [](ty_heap *h) {
         ty_txn *txn = nullptr;
         return is(ty_begin(h, nullptr, &txn));
     }},
    {"ty_each_block",
     [](ty_heap *h) {
         return is(ty_each_block(
             h, [](const ty_block *, void *) { return true; }, nullptr));
     }},
};

void expect_refused(ty_heap *closed) {
    for (const closed_call &each : closed_calls)
        EXPECT_TRUE(each.refused(closed)) << each.name << ": " << ty_error_text();
    EXPECT_EQ(TY_KIND_DEFAULT, ty_heap_kind(closed));
    ty_read_end(closed);
}

TEST(closed, a_volatile_heap) {
    ty_heap *heap = nullptr, *other = nullptr;
    ASSERT_EQ(TY_OK, ty_heap_create(nullptr, &heap));
    ASSERT_EQ(TY_OK, ty_heap_destroy(heap));
    ASSERT_EQ(TY_OK, ty_heap_create(nullptr, &other));
    expect_refused(heap);
    EXPECT_NE(nullptr, ty_alloc(other, 100));
    ASSERT_EQ(TY_OK, ty_heap_destroy(other));
}

TEST(closed, a_heap_in_files) {
    folder in;
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL})
        for (auto end : {ty_close, ty_discard}) {
            std::string path = in.path("kind" + std::to_string(kind) + ".ty");
            ty_open_options options = TY_OPEN_OPTIONS_INIT;
            options.kind = kind;
            options.limit_bytes = size_t{64} << 20;
            options.log_bytes = 1 << 20;
            ty_heap *heap = nullptr, *again = nullptr;
            ASSERT_EQ(TY_OK, ty_open(path.c_str(), &options, &heap, nullptr)) << ty_error_text();
            ASSERT_EQ(TY_OK, end(heap));
            expect_refused(heap);
            ASSERT_EQ(TY_OK, ty_open(path.c_str(), &options, &again, nullptr)) << ty_error_text();
            expect_refused(heap);
            ASSERT_EQ(TY_OK, ty_close(again)) << ty_error_text();
        }
}

TEST(closed, a_transaction_of_a_closed_heap) {
    folder in;
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = size_t{64} << 20;
    options.log_bytes = 1 << 20;
    ty_heap *heap = nullptr;
    ty_txn *txn = nullptr;
    ASSERT_EQ(TY_OK, ty_open(in.path("t.ty").c_str(), &options, &heap, nullptr)) << ty_error_text();
    ASSERT_EQ(TY_OK, ty_begin(heap, nullptr, &txn));
    void *block = ty_txn_alloc(txn, 100);
    ASSERT_EQ(TY_OK, ty_discard(heap));
    EXPECT_EQ(TY_E_ARGUMENT, ty_declare(txn, block, 8));
    EXPECT_EQ(nullptr, ty_txn_alloc(txn, 8));
    EXPECT_EQ(nullptr, ty_txn_alloc_aligned(txn, 8, 64));
    EXPECT_EQ(TY_E_ARGUMENT, ty_txn_free(txn, block));
    EXPECT_EQ(nullptr, ty_txn_resize(txn, block, 8));
    EXPECT_EQ(TY_E_ARGUMENT, ty_txn_root_set(txn, "a", nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_commit(txn));
    EXPECT_EQ(TY_E_ARGUMENT, ty_commit_async(txn, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_rollback(txn));
    EXPECT_EQ(nullptr, ty_txn_heap(txn));
}

// So many handles are reported, whatever is opened meanwhile; what is kept of them takes no memory worth counting.
TEST(closed, many_heaps) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = size_t{64} << 20;
    std::vector<ty_heap *> ended;
    for (int i = 0; i < 300; i++) {
        ty_heap *heap = nullptr;
        ASSERT_EQ(TY_OK, ty_heap_create(&options, &heap));
        for (size_t k = ended.size() > 63 ? ended.size() - 63 : 0; k < ended.size(); k++)
            ASSERT_NE(ended[k], heap);
        ASSERT_EQ(TY_OK, ty_heap_destroy(heap));
        ASSERT_EQ(TY_E_ARGUMENT, ty_heap_destroy(heap));
        ended.push_back(heap);
    }
}

} // namespace
