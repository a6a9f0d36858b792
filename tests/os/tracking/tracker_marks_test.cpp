// Goal: the content method goes by the kernel's soft-dirty marks only while they report its own range's writes: not
// after somebody else has cleared them.
// Method: ranges for which marks are used from the first copy on; the test clears all marks of the process between a
// write and the collection, as another heap, or a tool, does. Kernels without marks skip these tests: `make
// test-kernel` boots one that has them.
#include "src/os/os.hpp"
#include "src/os/tracking/tracker_methods.hpp"
#include "tests/os/tracked_memory.hpp"

#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace taiyen::os;

namespace {

class tracker_marks : public testing::Test {
protected:
    static constexpr uint64_t pages = 1000;

    struct tracked {
        explicit tracked(uint64_t page_count) : memory(backing::file, page_count) {
            EXPECT_EQ(found.create(page_count), TY_OK);
            page_range whole{0, page_count};
            EXPECT_EQ(content_tracker::start(memory.base, page_count, {&whole, 1}, &range), TY_OK) << ty_error_text();
        }
        ~tracked() {
            content_tracker::stop(range);
            found.destroy();
        }
        std::set<uint64_t> collect() {
            found.clear();
            page_range whole{0, memory.page_count};
            EXPECT_EQ(content_tracker::collect(range, {&whole, 1}, found), TY_OK) << ty_error_text();
            return members(found);
        }
        bool has_marks() const { return content_tracker::has_marks(range); }

        region memory;
        page_set found;
        content_tracker::range *range = nullptr;
    };

    // Most of the process's memory is the range's copies: clearing marks pays.
    void SetUp() override {
        content_tracker::set_marks_from(1);
        std::ifstream statm("/proc/self/statm");
        uint64_t size = 0, resident = 0;
        statm >> size >> resident;
        one = std::make_unique<tracked>(resident + pages);
        for (uint64_t page = pages; page < resident + pages; page++)
            one->memory.touch(page);
        one->collect();
        if (!one->has_marks())
            GTEST_SKIP() << "this kernel keeps no soft-dirty marks";
    }
    void TearDown() override {
        one.reset();
        content_tracker::set_marks_from(4096);
    }
    static void clear_all_marks() {
        int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
        ASSERT_EQ(write(file, "4", 1), 1);
        close(file);
    }

    std::unique_ptr<tracked> one;
};

} // namespace

TEST_F(tracker_marks, report_exactly_what_was_written) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 30; round++) {
        std::set<uint64_t> model;
        for (int i = 0; i < 50; i++) {
            uint64_t page = random() % pages;
            if (!model.contains(page))
                one->memory.touch(page);
            model.insert(page);
            one->memory.read(random() % pages);
        }
        ASSERT_TRUE(one->has_marks());
        ASSERT_EQ(one->collect(), model);
    }
    EXPECT_EQ(one->collect().size(), 0u);
}

TEST_F(tracker_marks, that_somebody_else_has_cleared_are_not_believed) {
    for (uint64_t page = 0; page < pages; page++)
        one->memory.touch(page);
    one->collect();
    ASSERT_TRUE(one->has_marks());
    one->memory.touch(7);
    one->memory.touch(500);
    clear_all_marks();
    one->memory.touch(9);
    EXPECT_EQ(one->collect(), (std::set<uint64_t>{7, 9, 500}));
    EXPECT_FALSE(one->has_marks()); // they are left to the other for a while
    one->memory.touch(8);
    EXPECT_EQ(one->collect(), std::set<uint64_t>{8});
}

// Memory that is mapped beside counts as written, and may take what it grows together with along: not the witness.
TEST_F(tracker_marks, that_somebody_else_has_cleared_are_not_believed_after_mappings_grew) {
    one->memory.touch(7);
    one->collect();
    ASSERT_TRUE(one->has_marks());
    one->memory.touch(7);
    clear_all_marks();
    std::vector<void *> more;
    for (int i = 0; i < 200; i++)
        more.push_back(mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(one->collect(), std::set<uint64_t>{7});
    for (void *memory : more)
        munmap(memory, page_bytes);
}

TEST_F(tracker_marks, several_ranges_take_turns_and_miss_nothing) {
    tracked two(one->memory.page_count);
    for (uint64_t page = 0; page < two.memory.page_count; page++)
        two.memory.touch(page);
    two.collect();
    std::mt19937_64 random(6);
    int with_marks = 0;
    for (int round = 0; round < 60; round++) {
        std::set<uint64_t> models[2];
        for (int i = 0; i < 20; i++)
            for (int which = 0; which < 2; which++) {
                uint64_t page = random() % pages;
                if (models[which].insert(page).second)
                    (which ? two : *one).memory.touch(page);
                if (i == 10 && random() % 3 == 0) { // the other one collects meanwhile
                    tracked &other = which ? *one : two;
                    ASSERT_EQ(other.collect(), models[1 - which]);
                    models[1 - which].clear();
                }
            }
        with_marks += one->has_marks() || two.has_marks();
        ASSERT_EQ(one->collect(), models[0]);
        ASSERT_EQ(two.collect(), models[1]);
    }
    EXPECT_GT(with_marks, 0);
}
