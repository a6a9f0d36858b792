// Goal: new and delete in all forms.
// Method: each form allocates a block of ours, of the alignment asked for, and each form of delete takes it back;
// failures throw, or don't, and ask the new-handler.
#include "support.hpp"
#include <new>

namespace taiyen::test {
namespace {

using align = std::align_val_t;

void check(void *block, size_t size, size_t alignment) {
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(aligned(block, alignment));
    EXPECT_GE(malloc_usable_size(block), size); // it would end the process if the block was not ours
    fill(block, size, 1);
}

TEST(malloc_operators, plain_forms) {
    for (size_t size : {size_t{0}, size_t{1}, size_t{24}, size_t{1000}, size_t{100'000}}) {
        void *blocks[] = {::operator new(size), ::operator new[](size), ::operator new(size, std::nothrow),
                          ::operator new[](size, std::nothrow)};
        void (*deletes[])(void *, size_t) = {
            [](void *block, size_t) { ::operator delete(block); },
            [](void *block, size_t) { ::operator delete[](block); },
            [](void *block, size_t bytes) { ::operator delete(block, bytes); },
            [](void *block, size_t bytes) { ::operator delete[](block, bytes); },
        };
        for (size_t i = 0; i < 4; i++) {
            check(blocks[i], size, size <= 8 ? 8 : 16);
            deletes[i](blocks[i], size);
        }
    }
    ::operator delete(::operator new(10), std::nothrow);
    ::operator delete[](::operator new[](10), std::nothrow);
    ::operator delete(nullptr);
}

TEST(malloc_operators, aligned_forms) {
    for (size_t alignment : {size_t{1}, size_t{16}, size_t{32}, size_t{64}, size_t{4096}, size_t{1} << 21}) {
        align wanted{alignment};
        void *blocks[] = {::operator new(100, wanted),
                          ::operator new[](100, wanted),
                          ::operator new(100, wanted, std::nothrow),
                          ::operator new[](100, wanted, std::nothrow),
                          ::operator new(100, wanted),
                          ::operator new[](100, wanted)};
        for (void *block : blocks)
            check(block, 100, alignment);
        ::operator delete(blocks[0], wanted);
        ::operator delete[](blocks[1], wanted);
        ::operator delete (blocks[2], size_t{100}, wanted);
        ::operator delete[](blocks[3], size_t{100}, wanted);
        ::operator delete(blocks[4], wanted, std::nothrow);
        ::operator delete[](blocks[5], wanted, std::nothrow);
    }
}

TEST(malloc_operators, failure_throws_or_is_null) {
    EXPECT_THROW(::operator new(too_much()), std::bad_alloc);
    EXPECT_THROW(::operator new[](too_much()), std::bad_alloc);
    EXPECT_THROW(::operator new(opaque(SIZE_MAX)), std::bad_alloc);
    EXPECT_THROW(::operator new (too_much(), align{64}), std::bad_alloc);
    EXPECT_THROW(::operator new[](too_much(), align{64}), std::bad_alloc);
    EXPECT_EQ(::operator new(too_much(), std::nothrow), nullptr);
    EXPECT_EQ(::operator new[](too_much(), std::nothrow), nullptr);
    EXPECT_EQ(::operator new (too_much(), align{64}, std::nothrow), nullptr);
    EXPECT_EQ(::operator new[](too_much(), align{64}, std::nothrow), nullptr);
}

int calls;
void give_up_at_the_third_call() {
    if (++calls == 3)
        std::set_new_handler(nullptr);
}
void refuse() {
    throw std::bad_alloc();
}

TEST(malloc_operators, the_new_handler_is_asked) {
    calls = 0;
    std::set_new_handler(give_up_at_the_third_call);
    EXPECT_THROW(::operator new(too_much()), std::bad_alloc);
    EXPECT_EQ(calls, 3);
    std::set_new_handler(refuse);
    EXPECT_THROW(::operator new(too_much()), std::bad_alloc);
    EXPECT_EQ(::operator new(too_much(), std::nothrow), nullptr);
    std::set_new_handler(nullptr);
}

} // namespace
} // namespace taiyen::test
