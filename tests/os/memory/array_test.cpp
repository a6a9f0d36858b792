// Goal: a growable array keeps what was put into it, and is as it was when there is no memory. Method: operations
// beside a std::vector; a growth that no address space has room for.
#include "src/os/memory/array.hpp"

#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace taiyen;

namespace {

struct item {
    uint64_t value;
    uint32_t more;
};

TEST(array, is_as_a_vector) {
    std::mt19937 dice(7);
    os::array<item> array, other;
    std::vector<item> model, other_model;
    for (uint32_t n = 0; n < 20000; ++n) {
        switch (dice() % 10) {
        case 0: {
            item *added = nullptr;
            const size_t more = dice() % 200;
            ASSERT_EQ(TY_OK, array.extend(more, &added));
            ASSERT_EQ(added + more, array.end());
            model.resize(model.size() + more);
            break;
        }
        case 1:
            array.cut(model.size() / 2);
            model.resize(model.size() / 2);
            break;
        case 2:
            array.swap(other);
            model.swap(other_model);
            break;
        case 3:
            if (!model.empty()) {
                ASSERT_EQ(model.back().value, array.pop().value);
                model.pop_back();
            }
            break;
        case 4: {
            const size_t more = dice() % 50;
            ASSERT_EQ(TY_OK, array.reserve(more));
            for (size_t i = 0; i < more; ++i) {
                ASSERT_TRUE(array.has_room());
                array.push_in_room({n, 1});
                model.push_back({n, 1});
            }
            break;
        }
        default:
            ASSERT_EQ(TY_OK, array.push({n, 2}));
            model.push_back({n, 2});
        }
        ASSERT_EQ(model.size(), array.count());
        for (size_t i = 0; i < model.size(); i += 1 + i / 8) {
            ASSERT_EQ(model[i].value, array[i].value) << n << ", " << i;
            ASSERT_EQ(model[i].more, array[i].more);
        }
    }
    array.clear();
    EXPECT_EQ(0u, array.count());
    array.release();
    EXPECT_FALSE(array.has_room());
    EXPECT_EQ(TY_OK, array.push({1, 1}));
}

TEST(array, is_as_it_was_without_memory) {
    os::array<item> array;
    ASSERT_EQ(TY_OK, array.push({5, 6}));
#ifndef __SANITIZE_ADDRESS__ // which ends the program
    EXPECT_EQ(TY_E_MEMORY, array.reserve(size_t{1} << 58));
#endif
    item *added = nullptr;
    volatile size_t more = SIZE_MAX / sizeof(item); // with the one, their bytes do not fit a size; compilers look ahead
    EXPECT_EQ(TY_E_MEMORY, array.extend(more, &added));
    ASSERT_EQ(1u, array.count());
    EXPECT_EQ(5u, array[0].value);
}

} // namespace
