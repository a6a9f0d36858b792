// Goal: the memory of a heap bound to nodes has that policy in the kernel, all of it and after its pages were made
// usable; where the kernel refuses, the status says so; the calling thread's node heap is one and the same. Method:
// bind to the nodes that the machine has, and read the policy back.
#include "fixture.hpp"

#include <thread>

using namespace api_test;

TEST(numa, a_heap_bound_to_a_node_has_that_policy) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.numa_nodes = 1;
    ty_heap *heap;
    ty_status status = ty_heap_create(&options, &heap);
    if (status == TY_E_UNSUPPORTED)
        GTEST_SKIP() << ty_error_text();
    ASSERT_EQ(status, TY_OK) << ty_error_text();
    uint64_t nodes = 0;
    ASSERT_EQ(ty_heap_get_nodes(heap, &nodes), TY_OK) << ty_error_text();
    EXPECT_EQ(nodes, 1u);
    EXPECT_NE(ty_alloc_zeroed(heap, 10 << 20), nullptr);
    EXPECT_NE(ty_alloc(heap, 100), nullptr);
    ASSERT_EQ(ty_heap_get_nodes(heap, &nodes), TY_OK) << ty_error_text();
    EXPECT_EQ(nodes, 1u);
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}

TEST(numa, nodes_that_there_are_not) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.numa_nodes = uint64_t{1} << 63;
    ty_heap *heap;
    ty_status status = ty_heap_create(&options, &heap);
    if (status == TY_E_UNSUPPORTED)
        GTEST_SKIP() << ty_error_text();
    expect_refusal(status, TY_E_ARGUMENT, "0x8000000000000000");
}

TEST(numa, a_heap_like_others_is_bound_to_none) {
    ty_heap *heap;
    ASSERT_EQ(ty_heap_create(nullptr, &heap), TY_OK);
    uint64_t nodes = 77;
    ty_status status = ty_heap_get_nodes(heap, &nodes);
    if (status == TY_OK)
        EXPECT_EQ(nodes, 0u);
    else
        expect_refusal(status, TY_E_UNSUPPORTED);
    EXPECT_EQ(ty_heap_destroy(heap), TY_OK);
}

TEST(numa, the_heap_of_the_calling_threads_node) {
    ty_heap *one = nullptr, *other = nullptr;
    ASSERT_EQ(ty_node_heap(&one), TY_OK) << ty_error_text();
    void *block = ty_alloc(one, 100);
    ASSERT_NE(block, nullptr);
    std::thread([&] {
        EXPECT_EQ(ty_node_heap(&other), TY_OK) << ty_error_text();
        EXPECT_EQ(ty_free(block), TY_OK);
    }).join();
    ty_error detail;
    ty_error_detail(&detail);
    EXPECT_TRUE(one == other || ty_heap_base(one) != ty_heap_base(other)) << "on another node, another heap";
    EXPECT_EQ(ty_heap_destroy(one), TY_OK);
    ASSERT_EQ(ty_node_heap(&one), TY_OK) << ty_error_text();
    EXPECT_NE(ty_alloc(one, 100), nullptr);
    EXPECT_EQ(ty_heap_destroy(one), TY_OK);
}
