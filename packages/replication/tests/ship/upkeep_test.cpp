// Goal: merging, new bases, new timelines and removing leave everything restorable that is to be kept, also when they
// are interrupted at any call of the destination (SP2 to SP4). Method: a destination that fails from the n-th call on,
// as a kill does, over a real folder; states of a source_model.
#include "support.hpp"
#include "tests/effort.hpp"

#include <ctime>
#include <mutex>
#include <sys/syscall.h>
#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {
int64_t clock_ahead_s = 0;
int64_t steady_ahead_s = 0; // time that went by, for both clocks
} // namespace

extern "C" int clock_gettime(clockid_t clock, timespec *now) noexcept {
    const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
    if (clock == CLOCK_REALTIME)
        now->tv_sec += clock_ahead_s + steady_ahead_s;
    if (clock == CLOCK_MONOTONIC)
        now->tv_sec += steady_ahead_s;
    return result;
}

namespace {

// Hands calls on until there were so many; then all fail, as for a process that was killed.
struct failing {
    const ty_destination *below;
    uint64_t left;
    ty_destination table{};
    uint64_t calls = 0;
    std::mutex lock{}; // a base is made by another thread

    failing(const ty_destination *to, uint64_t most) : below(to), left(most) {
        table = {sizeof table, this, begin, bytes, end, get, list, remove};
    }
    static bool passes(void *context) {
        auto &self = *static_cast<failing *>(context);
        std::lock_guard guard(self.lock);
        ++self.calls;
        return self.left > 0 && self.left-- > 0;
    }
    static const ty_destination &of(void *context) { return *static_cast<failing *>(context)->below; }
    static ty_status fail() { return ty_error_set(TY_E_IO, 0, "test", nullptr, UINT64_MAX, "none"); }
    static ty_status begin(void *c, const char *name, void **object) {
        return passes(c) ? of(c).put_begin(of(c).context, name, object) : fail();
    }
    static ty_status bytes(void *c, void *object, const void *from, size_t size) {
        return passes(c) ? of(c).put_bytes(of(c).context, object, from, size) : fail();
    }
    static ty_status end(void *c, void *object, bool keep) {
        const bool pass = !keep || passes(c);
        const ty_status status = of(c).put_end(of(c).context, object, keep && pass);
        return pass ? status : fail();
    }
    static ty_status get(void *c, const char *name, uint64_t offset, void *to, size_t size, size_t *got) {
        return of(c).get(of(c).context, name, offset, to, size, got);
    }
    static ty_status list(void *c, ty_object_callback *callback, void *context) {
        return of(c).list(of(c).context, callback, context);
    }
    static ty_status remove(void *c, const char *name) {
        return passes(c) ? of(c).remove(of(c).context, name) : fail();
    }
};

void expect_state(const source_model &source, const ty_destination *from, const std::string &path, uint64_t lsn) {
    ASSERT_OK(restore(from, path, lsn));
    const std::string &expected = source.states.at(lsn), state = state_in(path);
    EXPECT_TRUE(expected == state) << difference(expected, state) << lsn;
    remove_heap(path);
}

TEST(upkeep_test, interrupted_at_any_call) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped"), path = folder.file("restored");
    source_model source(8, files, of_source(files, false, 1));
    source.close();
    ship(source, to);
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    options.merged = 2;
    options.base_bytes = 4000; // nearly always
    uint64_t shipped = 0;
    for (uint64_t calls = 0; calls < 36 && !HasFailure(); calls += stride(1)) {
        source.open();
        source.transactions(4);
        source.close();
        {
            const folder_owner below = open_folder(to, true);
            failing with(below.get(), calls % 18);
            ty_shipper *shipper = nullptr;
            options.open = &source.options();
            if (ty_ship_open(heap_path, &with.table, &options, &shipper) == TY_OK) {
                const ty_status ended = ty_ship_all(shipper, nullptr);
                EXPECT_TRUE(ended == TY_OK || ended == TY_E_IO) << ty_error_text();
                ty_ship_close(shipper);
            }
        }
        const folder_owner from = open_folder(to, false);
        ty_status status;
        EXPECT_TRUE(problems_of(from.get(), &status).empty()) << ty_error_text();
        ty_restore_report report{};
        report.struct_size = sizeof report;
        ASSERT_OK(restore(from.get(), path, 0, &report)) << calls;
        remove_heap(path);
        EXPECT_LE(shipped, report.lsn);
        shipped = report.lsn;
        if (shipped > 0)
            expect_state(source, from.get(), path, 1 + calls % shipped);
    }
    const ty_ship_report report = ship(source, to, options);
    const folder_owner from = open_folder(to, false);
    EXPECT_EQ(source.records.back()->record.lsn, report.lsn);
    for (uint64_t lsn = 1; lsn <= report.lsn; lsn += 37)
        expect_state(source, from.get(), path, lsn);
}

// SP3: of a heap that died the copy holds what only the log does; no segment gets through.
TEST(upkeep_test, a_base_waits_for_segments) {
    disk files;
    temporary_folder folder;
    source_model source(14, files, of_source(files, false, 1));
    source.transactions(10);
    disk died(source.copy());
    source.close();
    ty_open_options open = source.options();
    open.storage = died.storage();
    const folder_owner below = open_folder(folder.file("shipped"), true);
    ty_destination with = *below;
    static const ty_destination *folder_below;
    folder_below = below.get();
    with.put_begin = [](void *, const char *name, void **object) {
        return strncmp(name, "segment", 7) ? folder_below->put_begin(folder_below->context, name, object)
                                           : ty_error_set(TY_E_IO, 0, "test", nullptr, UINT64_MAX, "none");
    };
    const shipper_owner shipper = open_shipper(open, &with, TY_SHIP_OPTIONS_INIT);
    ty_ship_report report{};
    report.struct_size = sizeof report;
    for (int n = 0; n < 300; ++n) {
        EXPECT_EQ(TY_E_IO, ty_ship_step(shipper.get(), 0, nullptr, &report));
        std::this_thread::yield();
    }
    EXPECT_EQ(0u, report.bases);
    EXPECT_TRUE(files_of(folder.file("shipped")).empty());
    with.put_begin = below->put_begin;
    EXPECT_OK(ty_ship_all(shipper.get(), &report));
    EXPECT_EQ(1u, report.bases);
    EXPECT_EQ(source.records.back()->record.lsn, report.lsn);
}

TEST(upkeep_test, a_gap_is_shown_and_not_restored_to) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped"), path = folder.file("restored");
    ty_open_options open = of_source(files, false, 1);
    open.log_bytes = size_t{2} << 20;
    source_model source(9, files, open);
    source.close();
    ship(source, to);
    source.open();
    source.transactions(5);
    source.close();
    const uint64_t end = ship(source, to).lsn;
    source.open();
    for (int n = 0; n < 80; ++n) { // the log is written over
        source.transactions(20);
        source.snapshot();
    }
    source.close();
    const ty_ship_report report = ship(source, to);
    EXPECT_EQ(1u, report.gaps);
    EXPECT_EQ(1u, report.bases);
    source.open();
    source.transactions(5);
    source.close();
    const uint64_t last = ship(source, to).lsn;
    const folder_owner from = open_folder(to, false);
    ty_status status;
    EXPECT_TRUE(problems_of(from.get(), &status).empty()) << ty_error_text();
    expect_state(source, from.get(), path, end);
    EXPECT_EQ(TY_E_NOT_FOUND, restore(from.get(), path, end + 1));
    expect_state(source, from.get(), path, report.lsn);
    expect_state(source, from.get(), path, last);
    int timelines = 0;
    ASSERT_OK(ty_ship_list(
        from.get(),
        [](const ty_ship_object *object, void *context) {
            *static_cast<int *>(context) += !object->is_base && !object->follows;
            return true;
        },
        &timelines));
    EXPECT_EQ(2, timelines);
}

// X36. It is in a snapshot alone.
TEST(upkeep_test, a_return_to_a_mark_is_a_gap) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped"), path = folder.file("restored");
    source_model source(10, files, of_source(files, false, 1));
    source.transactions(5);
    source.close();
    const uint64_t before = ship(source, to).lsn;
    source.open();
    source.go_back(5);
    const uint64_t returned = source.last();
    source.transactions(5);
    source.close();
    const ty_ship_report report = ship(source, to);
    EXPECT_EQ(1u, report.gaps);
    EXPECT_EQ(1u, report.bases);
    const folder_owner from = open_folder(to, false);
    ty_status status;
    EXPECT_TRUE(problems_of(from.get(), &status).empty()) << ty_error_text();
    expect_state(source, from.get(), path, before);
    EXPECT_EQ(TY_E_NOT_FOUND, restore(from.get(), path, returned));
    expect_state(source, from.get(), path, report.lsn);
}

TEST(upkeep_test, what_is_too_old_goes) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped"), path = folder.file("restored");
    source_model source(10, files, of_source(files, false, 1));
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    options.base_bytes = 3000;
    options.keep_ms = 1;
    options.bases_min = 2;
    ty_ship_report all{};
    for (int n = 0; n < 24; ++n) {
        source.transactions(10);
        source.close();
        all.removed += ship(source, to, options).removed;
        source.open();
    }
    source.close();
    EXPECT_LT(2u, all.removed);
    const folder_owner from = open_folder(to, false);
    ty_status status;
    EXPECT_TRUE(problems_of(from.get(), &status).empty()) << ty_error_text();
    size_t bases = 0;
    for (const std::string &name : files_of(to))
        bases += name.rfind("base", 0) == 0;
    EXPECT_LE(bases, 4u); // each of the two between them counts for half of the time at most
    EXPECT_EQ(TY_E_NOT_FOUND, restore(from.get(), path, 15));
    expect_state(source, from.get(), path, source.records.back()->record.lsn);
}

TEST(upkeep_test, by_time) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped"), path = folder.file("restored");
    source_model source(12, files, of_source(files, false, 1));
    source.close();
    ship(source, to);
    for (int n = 0; n < 3; ++n) {
        source.open();
        source.transactions(5);
        source.close();
        ship(source, to);
    }
    const folder_owner from = open_folder(to, false);
    struct gathered {
        std::vector<ty_ship_object> segments;
        uint64_t first_base_ns = 0;
    } found;
    ASSERT_OK(ty_ship_list(
        from.get(),
        [](const ty_ship_object *object, void *context) {
            auto &all = *static_cast<gathered *>(context);
            if (object->is_base)
                all.first_base_ns = object->first_ns;
            else
                all.segments.push_back(*object);
            return true;
        },
        &found));
    ASSERT_EQ(3u, found.segments.size());
    for (const ty_ship_object &segment : found.segments)
        for (uint64_t ns : {segment.last_ns, segment.first_ns - 1}) {
            ty_restore_options options = TY_RESTORE_OPTIONS_INIT;
            options.to_ns = ns;
            ty_restore_report report{};
            report.struct_size = sizeof report;
            ASSERT_OK(ty_restore(from.get(), path.c_str(), &options, &report));
            EXPECT_EQ(ns == segment.last_ns ? segment.last : segment.first - 1, report.lsn);
            EXPECT_TRUE(source.states.at(report.lsn) == state_in(path));
            remove_heap(path);
        }
    ty_restore_options options = TY_RESTORE_OPTIONS_INIT;
    options.to_ns = found.first_base_ns - 1;
    EXPECT_EQ(TY_E_NOT_FOUND, ty_restore(from.get(), path.c_str(), &options, nullptr));
}

uint64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// SP8: with clocks that were ahead, or set back, no time gives another state than what was shipped then; and nothing
// goes that is to be kept. Method: the test's own clock.
TEST(upkeep_test, a_clock_that_was_set) {
    for (const int64_t jump : {86400, -86400}) {
        disk files;
        temporary_folder folder;
        const std::string to = folder.file("shipped"), path = folder.file("restored");
        source_model source(13, files, of_source(files, false, 1));
        ty_ship_options options = TY_SHIP_OPTIONS_INIT;
        options.keep_ms = 8 * 3600 * 1000;
        options.base_bytes = 1;
        options.bases_min = 1;
        ty_ship_report all{};
        const auto round = [&](int64_t ahead_s) {
            clock_ahead_s = ahead_s;
            source.open();
            source.transactions(60);
            source.close();
            const ty_ship_report one = ship(source, to, options);
            all.removed += one.removed;
            all.clock_back += one.clock_back;
        };
        source.close();
        ship(source, to, options);
        for (int n = 0; n < 4; n++)
            round(n * 3600);
        const uint64_t before = source.records.back()->record.lsn;
        round(4 * 3600 + jump);
        clock_ahead_s = 4 * 3600; // before anything shows that the clock was wrong
        ty_restore_options asked = TY_RESTORE_OPTIONS_INIT;
        asked.to_ns = now_ns();
        const folder_owner from = open_folder(to, false);
        EXPECT_EQ(jump > 0 ? TY_E_MISMATCH : TY_OK, ty_restore(from.get(), path.c_str(), &asked, nullptr)) << jump;
        remove_heap(path);
        if (jump < 0) { // before or after what the clock gave that time twice?
            asked.to_ns -= 3 * uint64_t{3600} * 1'000'000'000;
            EXPECT_EQ(TY_E_MISMATCH, ty_restore(from.get(), path.c_str(), &asked, nullptr));
        }
        round(5 * 3600);
        EXPECT_EQ(0u, all.removed) << jump;
        EXPECT_EQ(1u, all.clock_back);
        asked.to_ns = now_ns();
        const ty_status status = ty_restore(from.get(), path.c_str(), &asked, nullptr);
        if (jump > 0)
            EXPECT_EQ(TY_E_MISMATCH, status);
        else
            EXPECT_OK(status); // all was before it, by each of the clocks
        remove_heap(path);
        expect_state(source, from.get(), path, before);
        expect_state(source, from.get(), path, 3);
        clock_ahead_s = 0;
    }
}

// SP8: one shipper knows how much time went by, also while a clock is ahead over many bases.
TEST(upkeep_test, a_clock_that_stays_ahead) {
    disk files;
    temporary_folder folder;
    source_model source(17, files, of_source(files, false, 1));
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    options.keep_ms = 8 * 3600 * 1000;
    options.base_bytes = 1;
    options.bases_min = 1;
    source.close();
    const folder_owner to = open_folder(folder.file("shipped"), true);
    const shipper_owner shipper = open_shipper(source.options(), to.get(), options);
    ty_ship_report report{};
    report.struct_size = sizeof report;
    for (int hour = 0; hour <= 16; ++hour) {
        steady_ahead_s = hour * 3600;
        clock_ahead_s = hour >= 2 ? 3 * 86400 : 0;
        source.open();
        source.transactions(60);
        source.close();
        EXPECT_OK(ty_ship_all(shipper.get(), &report));
        if (hour <= 8) {
            EXPECT_EQ(0u, report.removed) << hour;
        }
    }
    EXPECT_LT(0u, report.removed);
    clock_ahead_s = steady_ahead_s = 0;
}

void expect_sound(const ty_destination *from) {
    ty_status status;
    for (const std::string &problem : problems_of(from, &status))
        ADD_FAILURE() << problem;
}

// SP7: a timeline that nothing was shipped in is no gap that is missed; what is missing before a gap is.
TEST(upkeep_test, a_log_made_anew_begins_a_timeline) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped"), path = folder.file("restored");
    source_model source(18, files, of_source(files, false, 1));
    std::vector<uint64_t> ends;
    const auto ship_some = [&](int transactions, uint64_t new_logs) {
        source.transactions(transactions);
        source.close();
        const ty_ship_report report = ship(source, to);
        EXPECT_EQ(new_logs, report.new_logs);
        EXPECT_EQ(new_logs, report.gaps);
        expect_sound(open_folder(to, false).get());
        ends.push_back(report.lsn);
    };
    ship_some(6, 0);
    for (uint32_t streams : {2, 1, 3}) {
        source.open_with(streams);
        ship_some(6, 1);
        if (streams == 1)
            continue; // nothing but a base
        source.open();
        ship_some(3, 0);
    }
    source.open_with(1);
    ship_some(0, 1); // a base in the place of one, of another log
    source.open();
    ship_some(3, 0);
    const folder_owner from = open_folder(to, false);
    for (uint64_t end : ends)
        expect_state(source, from.get(), path, end);
    std::vector<std::string> segments;
    for (const std::string &name : files_of(to))
        if (name.rfind("segment", 0) == 0)
            segments.push_back(name);
    ASSERT_EQ(3u, segments.size());
    unlink((to + "/" + segments[0]).c_str());
    ty_status status;
    const std::vector<std::string> problems = problems_of(from.get(), &status);
    EXPECT_EQ(TY_E_DAMAGED, status);
    ASSERT_FALSE(problems.empty());
    EXPECT_NE(std::string::npos, problems[0].find("up to transaction " + std::to_string(ends[2]))) << problems[0];
}

// The log is made anew when the newest records were read, and the base is of the new one.
TEST(upkeep_test, a_log_made_anew_before_a_base_is_copied) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped"), path = folder.file("restored");
    source_model source(19, files, of_source(files, false, 1));
    source.close();
    ship(source, to);
    source.open();
    source.transactions(6);
    source.close();
    const folder_owner below = open_folder(to, true);
    static const ty_destination *folder_below;
    static source_model *model;
    folder_below = below.get();
    model = &source;
    ty_destination with = *below;
    with.put_begin = [](void *, const char *name, void **object) {
        if (model && strncmp(name, "segment", 7) == 0) {
            model->open_with(2);
            model->transactions(6);
            model->close();
            model = nullptr;
        }
        return folder_below->put_begin(folder_below->context, name, object);
    };
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    options.base_bytes = 1;
    const shipper_owner shipper = open_shipper(source.options(), &with, options);
    ty_ship_report report{};
    report.struct_size = sizeof report;
    EXPECT_OK(ty_ship_all(shipper.get(), &report));
    EXPECT_EQ(1u, report.new_logs);
    EXPECT_EQ(source.records.back()->record.lsn, report.lsn);
    expect_sound(below.get());
    expect_state(source, below.get(), path, report.lsn);
}

// Nothing but a base shows that the folder is ahead of the heap.
TEST(upkeep_test, an_older_copy_of_the_heap_is_refused) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped");
    source_model source(20, files, of_source(files, false, 1));
    source.transactions(6);
    source.close();
    disk older(source.copy());
    source.open_with(2);
    source.transactions(6);
    source.close();
    ship(source, to);
    ty_open_options open = source.options();
    open.storage = older.storage();
    const folder_owner below = open_folder(to, true);
    const shipper_owner shipper = open_shipper(open, below.get(), TY_SHIP_OPTIONS_INIT);
    EXPECT_EQ(TY_E_MISMATCH, ty_ship_all(shipper.get(), nullptr));
    EXPECT_EQ(1u, files_of(to).size());
}

} // namespace
