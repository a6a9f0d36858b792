// Goal: what a call that ends a heap returns is what it did. ty_discard that returns TY_OK has ended the heap, whatever
// the disk did; of a ty_rebuild that failed the heap is open as before, or gone, and *heap says which. Method: the
// n-th operation of the storage fails, once or for ever, for every n. The story: a discard reported a header that it
// could not write, and the program discarded the heap a second time; a rebuild left the heap open, and its contract
// said that it was gone.
#include "../files.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr uint64_t most_operations = 2000;

// Runs `what` on a heap of 5 transactions while the n-th operation fails, for every n, until none is met; then checks
// the heap. `what` leaves it NULL where it is gone.
template <class What>
void with_each_fault(ty_kind kind, What what) {
    for (bool forever : {false, true}) {
        bool met = true;
        for (uint64_t n = 0; met && n < most_operations; n++) {
            SCOPED_TRACE(testing::Message() << "kind " << kind << ", operation " << n << " forever " << forever);
            disk files;
            ledger book(n);
            ty_heap *heap = nullptr;
            ty_open_options options = with_log(files, kind);
            ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
            for (int i = 0; kind == TY_TRANSACTIONAL && i < 5; i++)
                ASSERT_OK(book.run(heap));
            uint64_t before = os::sim_operation_count(files.get(), os::sim_op_any);
            os::sim_set_fault(files.get(), {os::sim_op_any, n, forever, TY_E_IO});
            what(heap, options);
            met = os::sim_operation_count(files.get(), os::sim_op_any) - before > n;
            os::sim_set_fault(files.get(), {});
            if (testing::Test::HasFatalFailure())
                return;
            if (heap == nullptr) {
                ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
            }
            if (kind == TY_TRANSACTIONAL) {
                book.check(heap, 5);
                ASSERT_OK(book.run(heap));
            }
            ASSERT_OK(ty_discard(heap));
        }
        ASSERT_FALSE(met);
    }
}

TEST(ending_test, a_discard_has_ended_the_heap) {
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL})
        with_each_fault(kind, [](ty_heap *&heap, const ty_open_options &) {
            void *base = ty_heap_base(heap);
            ASSERT_OK(ty_discard(heap));
            ASSERT_EQ(nullptr, ty_heap_of(base));
            heap = nullptr;
        });
}

TEST(ending_test, a_close_has_ended_the_heap_or_left_it_open) {
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL})
        with_each_fault(kind, [](ty_heap *&heap, const ty_open_options &) {
            void *base = ty_heap_base(heap);
            ty_status status = ty_close(heap);
            ASSERT_EQ(status == TY_OK ? nullptr : heap, ty_heap_of(base));
            if (status == TY_OK)
                heap = nullptr;
        });
}

// A close that failed may have left a header that calls the heap closed: one that needs neither journal nor log. Work
// that is done afterwards needs them; an open without one has all of it, or is refused.
TEST(ending_test, a_commit_after_a_close_that_failed_needs_the_files) {
    uint64_t refusals = 0;
    for (bool forever : {false, true}) {
        bool met = true;
        for (uint64_t n = 0; met && n < most_operations; n++) {
            SCOPED_TRACE(testing::Message() << "operation " << n << " forever " << forever);
            disk files;
            ledger book(n);
            ty_heap *heap = nullptr;
            ty_open_options options = with_log(files);
            ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
            ASSERT_OK(book.run(heap));
            uint64_t before = os::sim_operation_count(files.get(), os::sim_op_any);
            os::sim_set_fault(files.get(), {os::sim_op_any, n, forever, TY_E_IO});
            ty_status closed = ty_close(heap);
            met = os::sim_operation_count(files.get(), os::sim_op_any) - before > n;
            os::sim_set_fault(files.get(), {});
            if (!closed)
                continue;
            ASSERT_OK(book.run(heap));
            disk without_journal(files.cut(os::sim_cut::keep_all)), without_log(files.cut(os::sim_cut::keep_all));
            ASSERT_OK(ty_discard(heap));
            for (auto [cut, lost] : {std::pair{&without_journal, journal_path}, {&without_log, log_path}}) {
                cut->remove(lost);
                ty_open_options again = with_log(*cut);
                if (ty_status status = ty_open(heap_path, &again, &heap, nullptr)) {
                    ASSERT_TRUE(status == TY_E_MISMATCH || status == TY_E_NOT_FOUND) << ty_error_text();
                    ++refusals;
                } else {
                    book.check(heap, 2);
                    ASSERT_OK(ty_discard(heap));
                }
            }
        }
        ASSERT_FALSE(met);
    }
    EXPECT_GT(refusals, 0u);
}

// The header that a close wrote, with which no log is needed, is written again by an open that dies before its flush;
// the log is lost; and the next open is cut. From its first flush on, whatever is found is all that the close left.
TEST(ending_test, an_open_without_the_log_after_one_that_died) {
    disk files;
    ledger book(6);
    ty_heap *heap = nullptr;
    ty_open_options options = with_log(files);
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    for (int i = 0; i < 3; i++)
        ASSERT_OK(book.run(heap));
    ASSERT_OK(ty_close(heap));
    const uint64_t closed = os::sim_event_count(files.get());
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_discard(heap));
    disk died(os::sim_power_cut(files.get(), closed + 1, os::sim_cut::process_death, 1));
    const ty_storage *s = died.storage();
    ASSERT_OK(s->remove(s->context, log_path));
    ASSERT_OK(s->flush_directory(s->context, log_path));
    uint64_t event = os::sim_event_count(died.get());
    options = with_log(died);
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_discard(heap));
    const uint64_t last = os::sim_event_count(died.get());
    while (event < last && os::sim_event_at(died.get(), event) != os::sim_event::flush)
        ++event;
    ASSERT_LT(event, last);
    while (++event <= last)
        for (uint64_t seed = 0; seed < 16; ++seed) {
            SCOPED_TRACE(testing::Message() << "event " << event << " of " << last << ", seed " << seed);
            disk cut(os::sim_power_cut(died.get(), event, seed ? os::sim_cut::trash : os::sim_cut::drop_all, seed));
            ty_open_options again = with_log(cut);
            ASSERT_OK(ty_open(heap_path, &again, &heap, nullptr));
            book.check(heap, 3);
            ASSERT_OK(ty_discard(heap));
        }
}

TEST(ending_test, a_rebuild_reports_whether_the_heap_is_open) {
    int gone = 0;
    with_each_fault(TY_TRANSACTIONAL, [&gone](ty_heap *&heap, const ty_open_options &options) {
        void *base = ty_heap_base(heap);
        ty_heap *before = heap;
        ty_status status = ty_rebuild(&heap, &options, nullptr);
        ASSERT_EQ(heap, ty_heap_of(base));
        ASSERT_TRUE(status == TY_OK ? heap != nullptr : heap == nullptr || heap == before);
        gone += heap == nullptr;
    });
    EXPECT_GT(gone, 0);
}

// Nothing is done that would lose what was committed.
TEST(ending_test, a_rebuild_that_cannot_make_all_durable) {
    disk files;
    ledger book(3);
    ty_heap *heap = nullptr;
    ty_open_options options = with_log(files);
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(book.run(heap));
    ASSERT_OK(book.run(heap, false));
    os::sim_set_fault(files.get(), {os::sim_op_write | os::sim_op_write_durable, 0, true, TY_E_IO});
    ty_heap *before = heap;
    EXPECT_EQ(TY_E_IO, ty_rebuild(&heap, &options, nullptr));
    ASSERT_EQ(before, heap);
    os::sim_set_fault(files.get(), {});
    ASSERT_OK(ty_durable(heap, 0, true, nullptr));
    ASSERT_OK(ty_rebuild(&heap, &options, nullptr));
    book.check(heap, 2);
    ASSERT_OK(ty_discard(heap));
}

TEST(ending_test, a_rebuild_that_is_refused) {
    disk files;
    ledger book(4);
    ty_heap *heap = nullptr;
    ty_open_options options = with_log(files);
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(book.run(heap));
    options.mode = TY_CREATE_NEW;
    ty_heap *before = heap;
    EXPECT_EQ(TY_E_ARGUMENT, ty_rebuild(&heap, &options, nullptr));
    options.mode = TY_OPEN_OR_CREATE;
    options.log_bytes = 1;
    EXPECT_EQ(TY_E_ARGUMENT, ty_rebuild(&heap, &options, nullptr));
    ASSERT_EQ(before, heap);
    book.check(heap, 1);
    ASSERT_OK(ty_discard(heap));
}

// What has the heap's name by now is not the heap, and nothing is made in its place.
TEST(ending_test, a_rebuild_of_a_heap_that_lost_its_name) {
    disk files;
    ledger book(5);
    ty_heap *heap = nullptr;
    ty_open_options options = with_log(files);
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(book.run(heap));
    const ty_storage &storage = *files.storage();
    ASSERT_OK(storage.rename(storage.context, heap_path, "moved.ty"));
    ty_heap *before = heap;
    EXPECT_EQ(TY_E_NOT_FOUND, ty_rebuild(&heap, &options, nullptr));
    ASSERT_EQ(before, heap);
    ty_open_options other = files.options();
    other.kind = TY_ARCHIVE;
    other.base = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(ty_heap_base(heap)) + (size_t{1} << 40));
    ty_heap *another = nullptr;
    ASSERT_OK(ty_open("other.ty", &other, &another, nullptr));
    ASSERT_OK(ty_close(another));
    ASSERT_OK(storage.rename(storage.context, "other.ty", heap_path));
    EXPECT_EQ(TY_E_MISMATCH, ty_rebuild(&heap, &options, nullptr));
    ASSERT_EQ(before, heap);
    ASSERT_OK(storage.rename(storage.context, heap_path, "other.ty"));
    ASSERT_OK(storage.rename(storage.context, "moved.ty", heap_path));
    ASSERT_OK(ty_rebuild(&heap, &options, nullptr));
    book.check(heap, 1);
    ASSERT_OK(ty_discard(heap));
}

// All that the heap has is in its log, and its journal says nothing of it: a creation in its place is refused before it
// has touched either.
TEST(ending_test, a_creation_beside_a_heap_whose_image_is_away) {
    for (ty_kind kind : {TY_TRANSACTIONAL, TY_SNAPSHOT}) {
        disk files;
        ledger book(6);
        ty_heap *heap = nullptr;
        ty_open_options options = with_log(files);
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        ASSERT_OK(book.run(heap));
        ASSERT_OK(ty_discard(heap));
        const ty_storage &storage = *files.storage();
        ASSERT_OK(storage.rename(storage.context, heap_path, "away.ty"));
        options = with_log(files, kind);
        EXPECT_EQ(TY_E_MISMATCH, ty_open(heap_path, &options, &heap, nullptr));
        ASSERT_OK(storage.rename(storage.context, "away.ty", heap_path));
        options = with_log(files);
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
        book.check(heap, 1);
        ASSERT_OK(ty_discard(heap));
    }
}

} // namespace
