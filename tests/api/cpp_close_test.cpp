// Goal: heap::close goes by what the call of C says, not by what lies at the heap's address afterwards: that may be
// another thread's new heap.
// Method: the destroy that the header calls is one that makes such a heap at once.
#include <gtest/gtest.h>
#include <taiyen/taiyen.h>

namespace {

ty_heap *theirs;

ty_status destroy_and_make(ty_heap *heap) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = size_t{64} << 20;
    options.base = ty_heap_base(heap);
    ty_status status = ty_heap_destroy(heap);
    EXPECT_EQ(ty_heap_create(&options, &theirs), TY_OK) << ty_error_text();
    return status;
}

} // namespace

#define ty_heap_destroy destroy_and_make
#include <taiyen/taiyen.hpp>
#undef ty_heap_destroy

TEST(cpp_close, leaves_another_threads_heap_alone) {
    taiyen::heap_options options;
    options.limit_bytes = size_t{64} << 20;
    void *base = nullptr;
    {
        taiyen::heap heap = taiyen::heap::create(options).value();
        base = ty_heap_base(heap.get());
        EXPECT_TRUE(heap.close());
        EXPECT_EQ(heap.get(), nullptr);
    }
    EXPECT_EQ(ty_heap_of(base), theirs);
    EXPECT_EQ(ty_heap_destroy(theirs), TY_OK);
}

TEST(cpp_allocators, align_no_bytes_too) {
    for (ty_class_table table : {TY_CLASSES_LINE, TY_CLASSES_PACKED}) {
        taiyen::heap_options options;
        options.classes = table;
        taiyen::heap heap = taiyen::heap::create(options).value();
        taiyen::allocator<long double> numbers(heap.view());
        for (size_t i = 0; i < 5; i++) {
            EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.allocate(0)) % 16, 0u);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(heap.resource()->allocate(0, 16)) % 16, 0u);
            for (size_t size : {0u, 16u, 48u, 65536u, 70'000u})
                EXPECT_EQ(reinterpret_cast<uintptr_t>(ty_alloc(heap.get(), size)) % 16, 0u) << size;
        }
        EXPECT_EQ(ty_heap_destroy(heap.release()), TY_OK);
    }
}
