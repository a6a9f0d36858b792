// Goal: an archive heap that may be a mixture is never taken for one that was closed in order (I16): not after power
// cuts in the opens that follow the death, and not where a close failed and the heap was used further. Method: a heap
// on a simulated disk whose pages all hold one number; the power is cut twice, the second time before each event of the
// next open; what is found says that it may be a mixture, or all pages hold the number of the last close.
#include "../support.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr int page_count = 12;

class archive_test : public testing::Test {
protected:
    static ty_status open(const disk &on, ty_heap **heap, ty_report *report = nullptr) {
        ty_open_options options = on.options();
        options.kind = TY_ARCHIVE;
        options.limit_bytes = 0;
        return ty_open(heap_path, &options, heap, report);
    }
    static void write_all(ty_heap *heap, uint64_t number) {
        auto *pages = static_cast<uint64_t *>(ty_root(heap, "pages"));
        for (int i = 0; i < page_count; ++i)
            pages[i * 512] = number;
    }
    // A heap whose pages hold 1, closed and open again.
    static ty_heap *make(const disk &on) {
        ty_open_options options = on.options();
        options.kind = TY_ARCHIVE;
        ty_heap *heap = nullptr;
        EXPECT_OK(ty_open(heap_path, &options, &heap, nullptr));
        EXPECT_OK(ty_root_set(heap, "pages", ty_alloc_zeroed(heap, page_count * 4096)));
        write_all(heap, 1);
        EXPECT_OK(ty_close(heap));
        EXPECT_OK(open(on, &heap));
        return heap;
    }
    // Whichever of its headers is lost.
    static void expect_reported(os::sim_disk *taken) {
        const disk on(taken);
        for (uint64_t slot : {0, 1}) {
            const disk one(on.cut(os::sim_cut::keep_all));
            one.flip(heap_path, slot * 4096 + 100);
            EXPECT_TRUE(is_reported(one)) << slot;
        }
        EXPECT_TRUE(is_reported(on));
    }
    static bool is_reported(const disk &on) {
        ty_heap *heap = nullptr;
        ty_report report{};
        EXPECT_OK(open(on, &heap, &report));
        bool reported = report.maybe_inconsistent;
        ty_discard(heap);
        return reported;
    }
    void expect_reported_or_whole(const disk &on) {
        ty_heap *heap = nullptr;
        ty_report report{};
        ASSERT_OK(open(on, &heap, &report));
        reported += report.maybe_inconsistent;
        const auto *pages = static_cast<uint64_t *>(ty_root(heap, "pages"));
        for (int i = 0; i < page_count && !report.maybe_inconsistent; ++i)
            ASSERT_EQ(1u, pages[i * 512]) << report.text;
        ty_discard(heap);
    }

    int reported = 0;
};

TEST_F(archive_test, one_that_died_goes_on_to_say_so) {
    disk files;
    ty_heap *heap = make(files);
    write_all(heap, 2);
    os::sim_set_fault(files.get(), {os::sim_op_flush, 0, true, TY_E_IO}); // so the pages are unflushed
    EXPECT_EQ(TY_E_IO, ty_snapshot(heap));
    os::sim_disk *kept = files.cut(os::sim_cut::keep_all), *died[12];
    for (uint64_t seed = 0; seed < 12; ++seed)
        died[seed] = files.cut(seed % 2 ? os::sim_cut::random : os::sim_cut::process_death, seed);
    ty_discard(heap);
    expect_reported(kept);
    for (uint64_t seed = 0; seed < 12; ++seed) {
        disk left(died[seed]);
        const uint64_t first = os::sim_event_count(left.get());
        if (!is_reported(left))
            continue; // no page had reached the disk
        for (uint64_t event = first; event <= os::sim_event_count(left.get()); ++event)
            for (uint64_t again = 0; again < 12; ++again) {
                SCOPED_TRACE(std::to_string(seed) + ", " + std::to_string(event) + ", " + std::to_string(again));
                expect_reported_or_whole(disk(os::sim_power_cut(left.get(), event, os::sim_cut::trash, again)));
                if (HasFatalFailure())
                    return;
            }
    }
    EXPECT_GT(reported, 300);
}

// Until a power cut, the disk may hold that the heap was closed.
TEST_F(archive_test, a_close_that_failed_is_taken_back) {
    int failures = 0;
    for (uint64_t n = 0; n < 12; ++n) {
        SCOPED_TRACE(n);
        disk files;
        ty_heap *heap = make(files);
        os::sim_set_fault(files.get(), {os::sim_op_flush | os::sim_op_write, n, false, TY_E_IO});
        const ty_status status = ty_close(heap);
        os::sim_set_fault(files.get(), {});
        if (status == TY_OK)
            continue;
        failures += 1;
        write_all(heap, 2);
        ty_status ignored = ty_snapshot(heap); // refused, where the disk may not hold what it says
        static_cast<void>(ignored);
        os::sim_disk *cut[] = {files.cut(os::sim_cut::keep_all), files.cut(os::sim_cut::drop_all)};
        ty_discard(heap);
        for (os::sim_disk *each : cut)
            expect_reported(each);
    }
    EXPECT_GT(failures, 2);
}

// And where the disk takes that back only later: before a page is written.
TEST_F(archive_test, a_close_that_failed_is_taken_back_by_the_next_snapshot) {
    disk files;
    ty_heap *heap = make(files);
    const uint64_t writes = os::sim_operation_count(files.get(), os::sim_op_write);
    os::sim_set_fault(files.get(), {os::sim_op_write, 1, true, TY_E_SPACE}); // the header that says "closed", and on
    EXPECT_EQ(TY_E_SPACE, ty_close(heap));
    EXPECT_GT(os::sim_operation_count(files.get(), os::sim_op_write), writes + 1);
    os::sim_set_fault(files.get(), {});
    write_all(heap, 2);
    const uint64_t first = os::sim_event_count(files.get());
    ASSERT_OK(ty_snapshot(heap));
    std::vector<os::sim_disk *> cuts;
    for (uint64_t event = first; event <= os::sim_event_count(files.get()); ++event)
        for (uint64_t seed = 0; seed < 20; ++seed)
            cuts.push_back(os::sim_power_cut(files.get(), event, os::sim_cut::random, seed));
    ty_discard(heap);
    for (os::sim_disk *each : cuts)
        expect_reported_or_whole(disk(each));
    EXPECT_GT(reported, 20);
}

// A close that succeeded is whole; a cut in the open that follows it does not make it a mixture, but where both headers
// were on their way.
TEST_F(archive_test, one_that_was_closed_stays_whole) {
    disk files;
    ty_discard(make(files));
    ty_heap *heap = nullptr;
    ASSERT_OK(open(files, &heap));
    ASSERT_OK(ty_close(heap));
    const uint64_t first = os::sim_event_count(files.get());
    ASSERT_OK(open(files, &heap));
    const uint64_t end = os::sim_event_count(files.get());
    ty_discard(heap);
    for (uint64_t event = first; event <= end; ++event)
        for (uint64_t seed = 0; seed < 12; ++seed)
            expect_reported_or_whole(disk(os::sim_power_cut(files.get(), event, os::sim_cut::trash, seed)));
    EXPECT_LT(reported, 12 * int(end - first + 1));
}

} // namespace
