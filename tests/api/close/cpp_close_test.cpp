// Goal: heap::close goes by what the call of C says, not by what lies at the heap's address afterwards: that may be
// another thread's new heap.
// Method: a program of its own, in which the linker puts a destroy that makes such a heap at once in place of the
// library's (--wrap).
#include <gtest/gtest.h>
#include <taiyen/taiyen.hpp>

static ty_heap *theirs;

extern "C" {
ty_status __real_ty_heap_destroy(ty_heap *heap);
ty_status __wrap_ty_heap_destroy(ty_heap *heap) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = size_t{64} << 20;
    options.base = ty_heap_base(heap);
    ty_status status = __real_ty_heap_destroy(heap);
    EXPECT_EQ(ty_heap_create(&options, &theirs), TY_OK) << ty_error_text();
    return status;
}
}

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
    EXPECT_EQ(__real_ty_heap_destroy(theirs), TY_OK);
}
