// Goal: the survey that the demo's proof relies on detects every kind of damage, and counts the heap's blocks exactly.
// Method: an atlas in a volatile heap, one thing broken at a time and repaired again.
#include "atlas/churn.hpp"
#include "atlas/survey.hpp"
#include "common/heap_file.hpp"
#include <gtest/gtest.h>

namespace {

class survey : public testing::Test {
protected:
    void SetUp() override {
        demo::check(ty_heap_create(nullptr, &heap_));
        book_ = demo::atlas_of(heap_);
        for (int i = 0; i < 300; ++i) {
            std::string name = "City " + std::to_string(i % 100);
            demo::atlas_add(book_, {name, "Region", "District", i % 2 == 0 ? "AB" : "CD", i * 0.3 - 45, i * 1.1 - 170});
        }
        city_ = demo::atlas_find(book_, "City 7");
        demo::atlas_set_note(book_, city_, "noted");
        ASSERT_EQ(found(), "");
    }
    void TearDown() override { EXPECT_EQ(ty_heap_destroy(heap_), TY_OK); }

    std::string found() const { return demo::survey_atlas(book_).problem; }

    template <class T>
    void expect_seen(T &field, std::type_identity_t<T> broken) {
        T whole = field;
        field = broken;
        EXPECT_NE(found(), "");
        field = whole;
        EXPECT_EQ(found(), "");
    }

    demo::kd_node *some_leaf() const {
        demo::kd_node *node = book_->tree;
        while (node->axis != demo::kd_leaf)
            node = node->low;
        return node;
    }

    ty_heap *heap_ = nullptr;
    demo::atlas *book_ = nullptr;
    demo::city *city_ = nullptr;
};

TEST_F(survey, sees_changed_content) {
    expect_seen(city_->name[0], 'X');
    expect_seen(city_->region[2], 'X');
    expect_seen(city_->district[0], 'X');
    expect_seen(city_->note[4], 'X');
    expect_seen(city_->edition, 99);
    expect_seen(city_->where.latitude, 1);
    expect_seen(city_->where.longitude, 1);
    expect_seen(city_->home->code[0], 'X');
    expect_seen(book_->content.low, 1);
}

TEST_F(survey, sees_broken_structures) {
    char outside[] = "outside";
    expect_seen(city_->name, outside);
    expect_seen(city_->note, nullptr);
    expect_seen(city_->name_hash, 5);
    expect_seen(city_->home_index, city_->home_index + 1);
    expect_seen(city_->home, nullptr);
    expect_seen(city_->where.unit[book_->tree->axis], 1.5);
    expect_seen(book_->city_count, book_->city_count - 1);
    expect_seen(book_->country_count, 1);
    expect_seen(book_->tree->low, nullptr);
    expect_seen(book_->tree->low, book_->tree);
    expect_seen(book_->tree->axis, 7);
    demo::kd_node *leaf = some_leaf();
    expect_seen(leaf->count, leaf->count - 1);
    expect_seen(leaf->cities[0], leaf->cities[1]);
    expect_seen(book_->buckets[demo::bucket_of(book_, city_->name_hash)], nullptr);
}

TEST_F(survey, counts_the_blocks_of_the_heap) {
    demo::churn work(book_, 1);
    for (int i = 0; i < 5000; ++i)
        work.change_one();
    demo::survey walked = demo::survey_atlas(book_);
    EXPECT_EQ(walked.problem, "");
    EXPECT_EQ(walked.cities, book_->city_count);
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    ASSERT_EQ(ty_heap_get_stats(heap_, &stats), TY_OK);
    EXPECT_EQ(walked.blocks, stats.live_blocks);
}

TEST_F(survey, finds_cities_by_name) {
    unsigned count = 0;
    for (demo::city *place = demo::atlas_find(book_, "City 7"); place != nullptr; place = demo::atlas_find_next(place))
        ++count;
    EXPECT_EQ(count, 3u);
    demo::atlas_rename(book_, city_, "Elsewhere");
    EXPECT_EQ(demo::atlas_find(book_, "Elsewhere"), city_);
    EXPECT_EQ(demo::atlas_find(book_, "Nowhere"), nullptr);
    EXPECT_EQ(found(), "");
}

} // namespace
