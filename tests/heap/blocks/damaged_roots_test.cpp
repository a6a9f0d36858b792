// A regression, found by fuzz_journal: a root's name that does not end in the heap was handed on with 48 bytes, one
// more than TY_ROOT_NAME_MAX, past the end of a buffer that a program sizes by it. Method: a name of the greatest
// length loses its final 0 in the heap's own memory.
#include "src/heap/tables/heap_layout.hpp"
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <taiyen/taiyen.h>

namespace taiyen::test {
namespace {

TEST(damaged_roots_test, a_name_without_end_is_cut_at_the_greatest_length) {
    ty_heap *heap = nullptr;
    ASSERT_EQ(TY_OK, ty_heap_create(nullptr, &heap)) << ty_error_text();
    std::string name(TY_ROOT_NAME_MAX, 'n');
    ASSERT_EQ(TY_OK, ty_root_set(heap, name.c_str(), ty_alloc(heap, 8))) << ty_error_text();
    auto *roots = reinterpret_cast<heap_roots *>(static_cast<char *>(ty_heap_base(heap)) + 4096);
    ASSERT_EQ(name, roots->roots[0].name);
    roots->roots[0].name[TY_ROOT_NAME_MAX] = 'n';

    std::string found;
    EXPECT_EQ(TY_OK, ty_each_root(
                         heap,
                         [](const char *each, void *, void *context) {
                             *static_cast<std::string *>(context) = each;
                             return true;
                         },
                         &found));
    EXPECT_EQ(name, found);
    EXPECT_EQ(TY_E_DAMAGED, ty_heap_verify(heap, nullptr, nullptr));
    EXPECT_EQ(TY_OK, ty_heap_destroy(heap));
}

} // namespace
} // namespace taiyen::test
