// Goal: the set of pages is a set, at every size and density (B1, B2).
// Method: random operations against std::set; edges of words, segments, groups; a large sparse set is walked, and the
// pages that the walk touched are counted (not the time).
#include "src/os/memory/page_set.hpp"
#include "src/os/memory/vm.hpp"

#include <cstdio>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace taiyen::os;

namespace {

void expect_same(const page_set &set, const std::set<uint64_t> &model) {
    ASSERT_EQ(set.count(), model.size());
    uint64_t page = set.next(0);
    for (uint64_t expected : model) {
        ASSERT_EQ(page, expected);
        ASSERT_TRUE(set.contains(page));
        page = set.next(page + 1);
    }
    ASSERT_EQ(page, set.page_count());
}

size_t resident_pages() {
    size_t all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT_EQ(fscanf(file, "%zu %zu", &all, &resident), 2);
    fclose(file);
    return resident;
}

} // namespace

TEST(page_set, random_operations_agree_with_a_model) {
    std::mt19937_64 random(1);
    for (uint64_t pages : {1u, 63u, 64u, 65u, 1023u, 1024u, 1025u, 5000u, 65536u, 70001u}) {
        page_set set, other;
        ASSERT_EQ(set.create(pages), TY_OK);
        ASSERT_EQ(other.create(pages), TY_OK);
        std::set<uint64_t> model, other_model;
        for (int step = 0; step < 400; step++) {
            uint64_t page = random() % pages;
            uint64_t count =
                random() % (random() % 4 == 0 ? pages - page + 1 : std::min<uint64_t>(pages - page, 40) + 1);
            switch (random() % 6) {
            case 0:
                set.insert(page);
                model.insert(page);
                break;
            case 1:
                set.insert_range(page, count);
                for (uint64_t i = page; i < page + count; i++)
                    model.insert(i);
                break;
            case 2:
                for (uint64_t i = page; i < page + count; i++) {
                    set.erase(i);
                    model.erase(i);
                }
                break;
            case 3:
                other.insert(page);
                other_model.insert(page);
                break;
            case 4:
                set.merge(other);
                model.insert(other_model.begin(), other_model.end());
                break;
            default:
                if (random() % 20 == 0) {
                    set.clear();
                    model.clear();
                }
                auto at = model.lower_bound(page);
                ASSERT_EQ(set.next(page), at == model.end() ? pages : *at);
            }
            if (step % 20 == 0)
                expect_same(set, model);
        }
        expect_same(set, model);
        expect_same(other, other_model);
        set.clear();
        model.clear();
        expect_same(set, model);
        set.destroy();
        other.destroy();
    }
}

TEST(page_set, a_sparse_set_of_a_terabyte_is_walked_without_touching_its_empty_parts) {
    constexpr uint64_t pages = uint64_t{1} << 28;
    page_set set, copy;
    ASSERT_EQ(set.create(pages), TY_OK);
    ASSERT_EQ(copy.create(pages), TY_OK);
    for (uint64_t i = 0; i < 1000; i++)
        set.insert(i * (pages / 1000));
    copy.merge(set);
    size_t before = resident_pages();
    uint64_t found = 0;
    for (uint64_t page = copy.next(0); page < pages; page = copy.next(page + 1))
        found++;
    EXPECT_EQ(found, 1000u);
    EXPECT_LE(resident_pages(), before + 200); // the bits of all pages would be 8,192 pages of memory
    copy.clear();
    EXPECT_EQ(copy.next(0), pages);
    EXPECT_EQ(copy.count(), 0u);
    set.destroy();
    copy.destroy();
}

TEST(page_set, words_show_the_page_bits) {
    page_set set;
    ASSERT_EQ(set.create(200), TY_OK);
    set.insert(0);
    set.insert(63);
    set.insert(130);
    EXPECT_EQ(set.word(0), 1 | uint64_t{1} << 63);
    EXPECT_EQ(set.word(1), 0u);
    EXPECT_EQ(set.word(2), 4u);
    set.destroy();
    EXPECT_EQ(set.page_count(), 0u);
    set.destroy();
}
