// Goal: the slots of staging memory. Copies go where memory is, and chunks are written in the order in which they were
// filled. Method: slots are taken and given back by hand.
#include "src/store/image/snapshots/batch_writer.hpp"

#include <gtest/gtest.h>

using namespace taiyen;

namespace {

class staging_test : public testing::Test {
protected:
    staging_test() { EXPECT_EQ(TY_OK, ring.create(4 * staging_slot_bytes)); }
    ~staging_test() override { ring.destroy(); }

    staging ring;
};

TEST_F(staging_test, what_was_emptied_last_is_filled_next) {
    uint32_t a = ring.take_empty(), b = ring.take_empty();
    EXPECT_NE(a, b);
    ring.put_empty(a);
    ring.put_empty(b);
    EXPECT_EQ(b, ring.take_empty());
    EXPECT_EQ(a, ring.take_empty());
    EXPECT_EQ(2u, ring.touched) << "memory was touched although some was there";
}

TEST_F(staging_test, new_memory_only_when_none_is_empty) {
    for (uint32_t i = 0; i < 4; ++i)
        EXPECT_EQ(i, ring.take_empty());
    EXPECT_EQ(staging::none, ring.take_empty());
    ring.put_empty(2);
    EXPECT_EQ(2u, ring.take_empty());
    EXPECT_EQ(staging::none, ring.take_empty());
}

TEST_F(staging_test, the_line_is_in_order) {
    for (uint32_t slot : {3u, 0u, 2u}) {
        ring.put(ring.filled, slot);
        EXPECT_NE(staging::none, ring.filled.first);
    }
    EXPECT_EQ(3u, ring.take(ring.filled));
    ring.put(ring.filled, 1);
    for (uint32_t slot : {0u, 2u, 1u})
        EXPECT_EQ(slot, ring.take(ring.filled));
    EXPECT_EQ(staging::none, ring.filled.first);
    ring.put(ring.filled, 2); // after the line was empty
    EXPECT_EQ(2u, ring.take(ring.filled));
}

TEST_F(staging_test, the_most_in_use_at_a_time) {
    uint32_t a = ring.take_empty();
    ring.put_empty(a);
    a = ring.take_empty();
    uint32_t b = ring.take_empty();
    ring.put_empty(a);
    ring.put_empty(b);
    EXPECT_EQ(2u, ring.most_in_use);
    EXPECT_EQ(0u, ring.in_use);
}

TEST_F(staging_test, cleared) {
    for (int i = 0; i < 4; ++i)
        ring.put(ring.filled, ring.take_empty());
    ring.clear(2);
    EXPECT_EQ(staging::none, ring.filled.first);
    EXPECT_EQ(2u, ring.touched);
    EXPECT_EQ(0u, ring.most_in_use);
    for (uint32_t i = 0; i < 4; ++i)
        EXPECT_EQ(i, ring.take_empty());
}

} // namespace
