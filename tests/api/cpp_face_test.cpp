// Goal: the C++ face is what the design prints: heaps that close themselves, results that must be looked at, typed
// roots, containers that live in a heap and are found by the next run; and no exception passes through the library.
// Method: through taiyen.hpp alone.
#include "fixture.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <taiyen/taiyen.hpp>
#include <vector>

using namespace api_test;

namespace {

template <class T>
using heap_vector = std::vector<T, taiyen::allocator<T>>;
using heap_string = std::basic_string<char, std::char_traits<char>, taiyen::allocator<char>>;

struct bank {
    explicit bank(taiyen::heap_view heap) : names(taiyen::allocator<heap_string>(heap)) {}
    int balance = 100;
    heap_vector<heap_string> names;
};

taiyen::open_options small() {
    taiyen::open_options options;
    options.limit_bytes = size_t{64} << 20;
    return options;
}

size_t live_blocks(const taiyen::heap_view &heap) {
    return heap.stats().value().live_blocks;
}

struct refuses_to_be {
    explicit refuses_to_be(bool really) {
        if (really)
            throw std::runtime_error("no");
    }
};

} // namespace

TEST(cpp_face, a_volatile_heap) {
    auto heap = taiyen::heap::create().value();
    EXPECT_EQ(heap.kind(), TY_VOLATILE);
    auto number = heap.make<int>(42);
    ASSERT_TRUE(number) << number.error().text();
    EXPECT_EQ(*number.value(), 42);
    EXPECT_EQ(taiyen::heap_view::of(number.value()).get(), heap.get());
    EXPECT_EQ(live_blocks(heap), 1u);
    EXPECT_TRUE(taiyen::heap_view::destroy(number.value()));
    EXPECT_EQ(live_blocks(heap), 0u);
    EXPECT_TRUE(heap.verify());
    taiyen::heap moved = std::move(heap);
    EXPECT_FALSE(heap);
    EXPECT_TRUE(moved);
    EXPECT_TRUE(moved.close());
    EXPECT_FALSE(moved);
    EXPECT_TRUE(moved.close()); // nothing left to do
}

TEST(cpp_face, ends_the_heap_with_its_owner) {
    void *base = nullptr;
    {
        auto heap = taiyen::heap::create().value();
        base = ty_heap_base(heap.get());
        EXPECT_EQ(ty_heap_of(base), heap.get());
    }
    EXPECT_EQ(ty_heap_of(base), nullptr);
}

TEST(cpp_face, containers_live_in_a_heap_and_are_found_again) {
    folder files;
    const std::string path = files.path("bank.ty");
    const std::string long_name = "a name too long to fit in the string object itself, ";
    for (int run = 0; run < 3; ++run) {
        ty_report report;
        auto heap = taiyen::heap::open(path, small(), &report).value();
        auto &b = heap.root<bank>("bank", heap.view()); // found, or constructed in place
        EXPECT_EQ(report.created, run == 0);
        EXPECT_EQ(b.names.size(), static_cast<size_t>(run));
        for (int i = 0; i < run; ++i)
            EXPECT_EQ(b.names[static_cast<size_t>(i)], (long_name + std::to_string(i)).c_str());
        EXPECT_EQ(b.balance, 100 - 10 * run);
        b.balance -= 10;
        b.names.emplace_back((long_name + std::to_string(run)).c_str(), taiyen::allocator<char>(heap));
        EXPECT_EQ(taiyen::heap_view::of(b.names.back().data()).get(), heap.get());
        auto snapshot = heap.snapshot();
        EXPECT_TRUE(snapshot) << snapshot.error().text();
    }
}

TEST(cpp_face, pmr_containers_take_a_heap_as_their_resource) {
    auto heap = taiyen::heap::create().value();
    {
        std::pmr::vector<int> numbers(heap.resource());
        for (int i = 0; i < 1000; ++i)
            numbers.push_back(i);
        EXPECT_EQ(ty_heap_of(numbers.data()), heap.get());
        std::pmr::map<std::pmr::string, int> words(heap.resource());
        words["a string that is long enough to need a block of its own"] = 1;
        EXPECT_EQ(ty_heap_of(words.begin()->first.data()), heap.get());
        struct alignas(256) wide {
            char bytes[256];
        };
        std::pmr::vector<wide> wides(3, heap.resource());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(wides.data()) % 256, 0u);
        taiyen::memory_resource same(heap.get());
        EXPECT_TRUE(*heap.resource() == same);
    }
    EXPECT_EQ(live_blocks(heap), 0u);
}

TEST(cpp_face, allocators_of_a_heap_are_equal) {
    auto first = taiyen::heap::create().value();
    auto second = taiyen::heap::create().value();
    EXPECT_TRUE(taiyen::allocator<int>(first) == taiyen::allocator<char>(first));
    EXPECT_TRUE(taiyen::allocator<int>(first) != taiyen::allocator<int>(second));
    EXPECT_THROW(static_cast<void>(taiyen::allocator<long>(first).allocate(SIZE_MAX / 2)), std::bad_array_new_length);
    EXPECT_THROW(static_cast<void>(taiyen::allocator<char>(first).allocate(SIZE_MAX / 2)), std::bad_alloc);
}

TEST(cpp_face, results_say_why_there_is_no_value) {
    folder files;
    taiyen::open_options options;
    options.mode = TY_OPEN_EXISTING;
    auto none = taiyen::heap::open(files.path("none.ty"), options);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.status(), TY_E_NOT_FOUND);
    EXPECT_NE(none.error().text().find("none.ty"), std::string::npos);
    try {
        static_cast<void>(none.value());
        FAIL() << "no exception";
    } catch (const taiyen::exception &e) {
        EXPECT_EQ(e.status(), TY_E_NOT_FOUND);
        EXPECT_EQ(e.what(), none.error().text());
    }
    auto heap = taiyen::heap::create().value();
    EXPECT_EQ(heap.snapshot().status(), TY_E_ARGUMENT);
    EXPECT_EQ(heap.discard().status(), TY_E_ARGUMENT);
    EXPECT_TRUE(heap); // still there
}

TEST(cpp_face, roots_have_types) {
    auto heap = taiyen::heap::create().value();
    EXPECT_EQ(heap.find_root<int>("number").value(), nullptr);
    int &number = heap.root<int>("number", 7);
    EXPECT_EQ(number, 7);
    number = 8;
    EXPECT_EQ(heap.root<int>("number", 7), 8); // found, and not constructed again
    struct big {
        char bytes[1000];
    };
    EXPECT_EQ(heap.find_root<big>("number").status(), TY_E_MISMATCH);
    EXPECT_THROW(static_cast<void>(heap.root<big>("number")), taiyen::exception);
    auto says = [&heap](const char *what) {
        EXPECT_EQ(heap.find_root<big>("number").status(), TY_E_MISMATCH);
        EXPECT_NE(std::string(ty_error_text()).find(what), std::string::npos) << ty_error_text();
    };
    says("too small");
    struct alignas(1024) aligned {
        char bytes[1024];
    };
    std::vector<void *> blocks;
    for (std::size_t bytes = 1025; bytes < 16000; bytes += 100) // some size's are not aligned so
        blocks.push_back(ty_alloc(heap.get(), bytes));
    void *block = *std::find_if(blocks.begin(), blocks.end(),
                                [](void *address) { return reinterpret_cast<std::uintptr_t>(address) % 1024 != 0; });
    ASSERT_TRUE(heap.set_root("aligned", block));
    EXPECT_EQ(heap.find_root<aligned>("aligned").status(), TY_E_MISMATCH);
    EXPECT_NE(std::string(ty_error_text()).find("alignment"), std::string::npos) << ty_error_text();
    for (void *one : blocks)
        EXPECT_EQ(ty_free(one), TY_OK);
    const std::string long_name(100, 'x');
    EXPECT_EQ(heap.find_or_make_root<int>(long_name.c_str(), 1).status(), TY_E_ARGUMENT);
    EXPECT_EQ(live_blocks(heap), 1u) << "what was made for a root that could not be set is still there";
}

TEST(cpp_face, constructors_that_throw_leave_no_block) {
    auto heap = taiyen::heap::create().value();
    EXPECT_THROW(static_cast<void>(heap.make<refuses_to_be>(true)), std::runtime_error);
    EXPECT_EQ(live_blocks(heap), 0u);
    EXPECT_TRUE(heap.make<refuses_to_be>(false));
}

TEST(cpp_face, exceptions_of_callbacks_go_around_the_library) {
    auto heap = taiyen::heap::create().value();
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(heap.make<int>(i));
    int seen = 0;
    const auto stop_at_five = [&](const ty_block &) {
        if (++seen == 5)
            throw std::runtime_error("five");
    };
    EXPECT_THROW(static_cast<void>(heap.each_block(stop_at_five)), std::runtime_error);
    EXPECT_EQ(seen, 5);
    EXPECT_TRUE(heap.make<int>(1)) << "the heap is still locked";
    seen = 0;
    EXPECT_TRUE(heap.each_block([&](const ty_block &) { return ++seen < 3; }));
    EXPECT_EQ(seen, 3);
    size_t extents = 0, roots = 0;
    EXPECT_TRUE(heap.each_extent([&](const ty_extent &) { ++extents; }));
    EXPECT_GT(extents, 1u);
    static_cast<void>(heap.root<int>("a", 1));
    EXPECT_TRUE(heap.each_root([&](const char *name, void *) { roots += strcmp(name, "a") == 0; }));
    EXPECT_EQ(roots, 1u);
    EXPECT_TRUE(heap.verify([](const char *problem) { ADD_FAILURE() << problem; }));
}

TEST(cpp_face, snapshots_in_two_steps) {
    folder files;
    auto heap = taiyen::heap::open(files.path("a.ty"), small()).value();
    heap.root<int>("number", 1) = 2;
    auto epoch = heap.start_snapshot();
    ASSERT_TRUE(epoch) << epoch.error().text();
    EXPECT_TRUE(heap.wait_for_snapshot(epoch.value()));
    EXPECT_TRUE(heap.work());
    EXPECT_EQ(heap.epoch(), epoch.value());
    EXPECT_TRUE(heap.discard());
    EXPECT_FALSE(heap);
}
