// Goal: the k-d tree finds exactly the nearest cities, wherever they are, however the tree was built.
// Method: random and awkward sets of points (coincident, around the date line and the poles, on one meridian) in a
// volatile heap; answers are compared with a scan of all points; after removals and insertions too.
#include "atlas/atlas.hpp"
#include "atlas/churn.hpp"
#include "atlas/scan.hpp"
#include "atlas/survey.hpp"
#include "common/heap_file.hpp"
#include <algorithm>
#include <gtest/gtest.h>

namespace {

class atlas_in_memory {
public:
    atlas_in_memory() {
        demo::check(ty_heap_create(nullptr, &heap_));
        book_ = demo::atlas_of(heap_);
    }
    ~atlas_in_memory() { EXPECT_EQ(ty_heap_destroy(heap_), TY_OK); }
    atlas_in_memory(const atlas_in_memory &) = delete;
    atlas_in_memory &operator=(const atlas_in_memory &) = delete;

    demo::atlas *operator->() const { return book_; }
    demo::atlas *get() const { return book_; }
    demo::city *add(double latitude, double longitude, std::string_view name = "x") const {
        return demo::atlas_add(book_, {name, "", "", "XX", latitude, longitude});
    }

private:
    ty_heap *heap_ = nullptr;
    demo::atlas *book_ = nullptr;
};

// The k smallest distances by a scan.
std::vector<double> distances_by_scan(const demo::atlas *book, const demo::point &from, size_t count) {
    std::vector<double> all;
    for (uint64_t bucket = 0; bucket < book->bucket_count; ++bucket)
        for (const demo::city *place = book->buckets[bucket]; place != nullptr; place = place->next_in_bucket)
            all.push_back(chord_square(from, place->where));
    std::sort(all.begin(), all.end());
    all.resize(std::min(all.size(), count));
    return all;
}

void expect_exact(const demo::atlas *book, const demo::point &from, size_t count) {
    std::vector<double> distances;
    for (const demo::neighbour &found : demo::kd_nearest(book->tree, from, count)) {
        EXPECT_EQ(found.chord_square, chord_square(from, found.place->where));
        distances.push_back(found.chord_square);
    }
    EXPECT_EQ(distances, distances_by_scan(book, from, count))
        << "from " << from.latitude << " " << from.longitude << ", " << count << " of " << book->city_count;
}

void expect_exact_everywhere(const demo::atlas *book) {
    for (double latitude : {-90.0, -89.9, -30.0, 0.0, 1e-9, 45.5, 89.9, 90.0})
        for (double longitude : {-180.0, -179.9, -60.0, 0.0, 1e-9, 120.5, 179.9, 180.0})
            for (size_t count : {0, 1, 2, 17, 300})
                expect_exact(book, demo::point_at(latitude, longitude), count);
}

TEST(kdtree, empty) {
    atlas_in_memory book;
    EXPECT_TRUE(demo::kd_nearest(book->tree, demo::point_at(0, 0), 3).empty());
}

TEST(kdtree, random_points) {
    atlas_in_memory book;
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> unit(-1, 1);
    for (int i = 0; i < 3000; ++i)
        book.add(90 * unit(random), 180 * unit(random));
    EXPECT_EQ(demo::survey_atlas(book.get()).problem, "");
    expect_exact_everywhere(book.get());
    EXPECT_EQ(demo::compare_with_scan(book.get(), 500, 2).wrong, 0u);
}

TEST(kdtree, built_at_once) {
    atlas_in_memory book;
    std::mt19937_64 random(3);
    std::uniform_real_distribution<double> unit(-1, 1);
    demo::atlas_loader loader(book.get());
    for (int i = 0; i < 3000; ++i)
        loader.add({"x", "", "", "XX", 90 * unit(random), 180 * unit(random)});
    loader.finish();
    EXPECT_EQ(demo::survey_atlas(book.get()).problem, "");
    expect_exact_everywhere(book.get());
}

TEST(kdtree, coincident_points) {
    atlas_in_memory book;
    for (int i = 0; i < 200; ++i)
        book.add(i % 3 == 0 ? 10 : 20, 30);
    EXPECT_EQ(demo::survey_atlas(book.get()).problem, "");
    expect_exact_everywhere(book.get());
}

TEST(kdtree, points_on_one_meridian_and_at_the_poles) {
    atlas_in_memory book;
    for (int i = -90; i <= 90; ++i)
        book.add(i, 180);
    for (int i = -180; i < 180; i += 5)
        book.add(90, i);
    expect_exact_everywhere(book.get());
}

TEST(kdtree, across_the_date_line) {
    atlas_in_memory book;
    book.add(0, 170, "west");
    demo::city *east = book.add(0, -179, "east");
    EXPECT_EQ(demo::kd_nearest(book->tree, demo::point_at(0, 179), 1).front().place, east);
    EXPECT_NEAR(demo::kilometres(chord_square(demo::point_at(0, 179), east->where)), 222.4, 0.1);
}

TEST(kdtree, stays_exact_under_churn_and_becomes_empty) {
    atlas_in_memory book;
    for (int i = 0; i < 500; ++i)
        book.add(i % 90, i * 0.7 - 175);
    demo::churn work(book.get(), 4);
    for (int i = 0; i < 20; ++i) {
        for (int j = 0; j < 200; ++j)
            work.change_one();
        ASSERT_EQ(demo::survey_atlas(book.get()).problem, "");
        EXPECT_EQ(demo::compare_with_scan(book.get(), 50, static_cast<uint64_t>(i)).wrong, 0u);
    }
    for (uint64_t bucket = 0; bucket < book->bucket_count; ++bucket)
        while (book->buckets[bucket] != nullptr)
            demo::atlas_remove(book.get(), book->buckets[bucket]);
    EXPECT_EQ(book->tree, nullptr);
    EXPECT_EQ(book->city_count, 0u);
    EXPECT_EQ(book->country_count, 0u);
    EXPECT_EQ(book->content, demo::fingerprint{});
    EXPECT_EQ(demo::survey_atlas(book.get()).problem, "");
}

} // namespace
