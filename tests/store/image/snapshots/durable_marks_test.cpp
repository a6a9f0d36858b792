// Goal: each durable mark is whole or not there, whatever happens to the process, the power or the disk; and its file
// is believed only where it belongs. Method: a heap on the simulated disk with marks, returns, drops, snapshots and
// checkpoints; the power cut at its events, also while the next open repairs what the first cut left; failing disks;
// files that are damaged, exchanged or missing.
#include "src/store/image/files/marks_file.hpp"
#include "tests/effort.hpp"
#include "tests/store/image/support.hpp"

#include <functional>

namespace taiyen::test {
namespace {

constexpr const char *marks_path = "test.ty-marks";

ty_status mark(ty_heap *heap, const std::string &name) {
    ty_mark_options options = TY_MARK_OPTIONS_INIT;
    options.durable = true;
    return ty_mark(heap, name.c_str(), &options);
}

std::vector<std::string> names_of(ty_heap *heap) {
    std::vector<std::string> names;
    EXPECT_OK(ty_each_mark(
        heap,
        [](const ty_mark_info *info, void *context) {
            EXPECT_TRUE(info->durable);
            static_cast<std::vector<std::string> *>(context)->push_back(info->name);
            return true;
        },
        &names));
    return names;
}

// The heap as it was at a mark; its files stay as they are.
content view_of(const disk &files, const std::string &name) {
    ty_open_options options = files.options();
    options.mode = TY_OPEN_READ_ONLY;
    options.mark = name.c_str();
    ty_heap *heap = nullptr;
    EXPECT_OK(ty_open(heap_path, &options, &heap, nullptr)) << name;
    if (heap == nullptr)
        return {};
    content seen = content_of(heap);
    expect_sound(heap);
    EXPECT_EQ(TY_SNAPSHOT, ty_heap_kind(heap));
    EXPECT_OK(ty_close(heap));
    return seen;
}

// A heap, and what its states were.
class run {
public:
    explicit run(uint64_t seed)
        : background_(seed % 2 == 0 ? TY_BACKGROUND_CALLS : TY_BACKGROUND_THREAD), random_(seed), changes_(seed + 1) {
        saved.push_back({});
        open();
    }
    ~run() { EXPECT_EQ(TY_OK, heap != nullptr ? ty_discard(heap) : TY_OK); }

    // When it was there for certain, in events of the disk: from made to dropped; maybe from begun to gone.
    struct mark_life {
        content seen;
        uint64_t begun, made = UINT64_MAX, dropped = UINT64_MAX, gone = UINT64_MAX;
    };

    void open() {
        ty_open_options options = files.options();
        options.background = background_;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    }
    uint64_t now() const { return os::sim_event_count(files.get()); }
    void snapshot() {
        saved.push_back(content_of(heap));
        ASSERT_OK(ty_snapshot(heap));
    }
    void step() {
        const uint64_t what = random_() % 16;
        if (what < 6)
            changes_.change(heap, 10);
        else if (what < 8)
            snapshot();
        else if (what < 10)
            ASSERT_OK(ty_run_background_work(heap));
        else if (what < 12)
            make();
        else if (what < 14)
            go_back();
        else if (what < 15)
            drop();
        else
            reopen();
    }
    void make() {
        const std::string name = "mark " + std::to_string(marks.size());
        mark_life &made = marks[name];
        made.seen = content_of(heap);
        made.begun = now();
        saved.push_back(made.seen);
        ASSERT_OK(mark(heap, name));
        made.made = now();
    }
    std::string any() {
        std::vector<std::string> names = names_of(heap);
        return names.empty() ? "" : names[random_() % names.size()];
    }
    void go_back() {
        const std::string name = any();
        if (name.empty())
            return;
        ASSERT_OK(ty_return_to(heap, name.c_str(), nullptr));
        ASSERT_TRUE(content_of(heap) == marks[name].seen) << name;
        changes_.forget_others(heap);
    }
    void drop() {
        const std::string name = any();
        if (name.empty())
            return;
        marks[name].dropped = now();
        ASSERT_OK(ty_drop_mark(heap, name.c_str()));
        marks[name].gone = now();
    }
    void reopen() {
        saved.push_back(content_of(heap));
        ASSERT_OK(random_() % 2 == 0 ? ty_close(heap) : ty_discard(heap));
        heap = nullptr;
        open();
        changes_.forget_others(heap);
    }

    disk files;
    ty_heap *heap = nullptr;
    std::vector<content> saved; // states that a snapshot may have
    std::map<std::string, mark_life> marks;

private:
    ty_background background_;
    std::mt19937_64 random_;
    scribbler changes_;
};

// What an open finds after the power failed before this event.
void check_found(const run &history, uint64_t event, const disk &files) {
    ty_heap *heap = nullptr;
    const ty_open_options options = files.options();
    const ty_status status = ty_open(heap_path, &options, &heap, nullptr);
    ASSERT_OK(status);
    const content found = content_of(heap);
    EXPECT_TRUE(std::find(history.saved.begin(), history.saved.end(), found) != history.saved.end());
    const std::vector<std::string> names = names_of(heap);
    for (const auto &[name, life] : history.marks) {
        const bool there = std::find(names.begin(), names.end(), name) != names.end();
        if (event >= life.made && event <= life.dropped) {
            EXPECT_TRUE(there) << name << " is gone";
        }
        if (event <= life.begun || event >= life.gone) {
            EXPECT_FALSE(there) << name << " is there";
        }
    }
    for (const std::string &name : names) {
        ASSERT_OK(ty_return_to(heap, name.c_str(), nullptr));
        EXPECT_TRUE(content_of(heap) == history.marks.at(name).seen) << name;
        expect_sound(heap);
    }
    ASSERT_OK(ty_discard(heap));
    for (size_t i = event % 3; i < names.size(); i += 3)
        EXPECT_TRUE(view_of(files, names[i]) == history.marks.at(names[i]).seen) << names[i];
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(mark(heap, "one more"));
    ASSERT_OK(ty_close(heap));
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_return_to(heap, "one more", nullptr));
    EXPECT_TRUE(content_of(heap) == found);
    ASSERT_OK(ty_discard(heap));
}

} // namespace

// MK7, MK8: after a cut at any event each mark is whole, or not there.
TEST(durable_marks, the_power_fails) {
    std::mt19937_64 random(1);
    for (int seed = 0; seed < effort(4) && !testing::Test::HasFailure(); seed++) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        run history(static_cast<uint64_t>(seed));
        for (int i = 0; i < 60 && !testing::Test::HasFailure(); i++)
            history.step();
        if (testing::Test::HasFailure())
            return;
        ASSERT_OK(ty_discard(history.heap)); // its address is needed
        history.heap = nullptr;
        const uint64_t events = history.now();
        for (int i = 0; i < 60 && !testing::Test::HasFailure(); i++) {
            uint64_t event = random() % (events + 1);
            if (i % 2 != 0 && !history.marks.empty()) { // while one is made, and as often at the last writes of that
                auto any = history.marks.begin();
                std::advance(any, static_cast<ptrdiff_t>(random() % history.marks.size()));
                const uint64_t all = any->second.made - any->second.begun;
                event = any->second.made - random() % (i % 4 == 1 ? all + 1 : std::min<uint64_t>(all, 6) + 1);
            }
            const os::sim_cut how = os::sim_cuts[random() % std::size(os::sim_cuts)];
            SCOPED_TRACE("event " + std::to_string(event) + " cut " + std::to_string(int(how)));
            disk found(os::sim_power_cut(history.files.get(), event, how, random()));
            if (how != os::sim_cut::process_death && random() % 2 == 0) { // and again, amid the next open and its close
                const uint64_t begun = os::sim_event_count(found.get());
                ty_heap *heap = nullptr;
                const ty_open_options options = found.options();
                ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
                ASSERT_OK(random() % 2 == 0 ? ty_close(heap) : ty_discard(heap));
                const uint64_t more = os::sim_event_count(found.get()) - begun;
                disk again(os::sim_power_cut(found.get(), begun + random() % (more + 1),
                                             os::sim_cuts[random() % std::size(os::sim_cuts)], random()));
                check_found(history, event, again);
            } else {
                check_found(history, event, found);
            }
        }
    }
}

// MK7: an open writes the header again, whose process may not have seen that it is durable.
TEST(durable_marks, the_power_fails_amid_the_next_open) {
    run history(14);
    scribbler changes(4);
    changes.change(history.heap, 100);
    history.make();
    ASSERT_OK(ty_discard(history.heap));
    history.heap = nullptr;
    const disk opened(history.files.cut(os::sim_cut::keep_all));
    const uint64_t before = os::sim_event_count(opened.get());
    ty_heap *heap = nullptr;
    const ty_open_options options = opened.options();
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_discard(heap));
    const uint64_t after = os::sim_event_count(opened.get());
    ASSERT_GT(after, before + 3);
    for (const os::sim_cut how : os::sim_cuts)
        for (uint64_t event = before; event <= after; event++)
            for (uint64_t seed = 1; seed <= (how == os::sim_cut::trash ? 100u : 4u) && !HasFailure(); seed++)
                check_found(history, history.now(), disk(os::sim_power_cut(opened.get(), event, how, seed)));
    history.open();
}

// A call that fails has changed nothing, and works later.
TEST(durable_marks, the_disk_fails) {
    run history(7);
    scribbler changes(3);
    changes.change(history.heap, 300);
    history.snapshot();
    history.make();
    changes.change(history.heap, 100);
    const auto failing = [&](const char *what, const std::function<ty_status()> &call) {
        SCOPED_TRACE(what);
        for (uint64_t n = 0;; n++) {
            const content before = content_of(history.heap);
            const std::vector<std::string> marks = names_of(history.heap);
            os::sim_set_fault(history.files.get(),
                              {os::sim_op_write | os::sim_op_flush | os::sim_op_names, n, true, TY_E_IO});
            const ty_status status = call();
            os::sim_set_fault(history.files.get(), {});
            if (status == TY_OK)
                break;
            ASSERT_EQ(TY_E_IO, status);
            ASSERT_TRUE(content_of(history.heap) == before);
            ASSERT_EQ(marks, names_of(history.heap));
        }
    };
    failing("mark", [&] { return mark(history.heap, "other"); });
    const content other = content_of(history.heap);
    changes.change(history.heap, 100);
    failing("checkpoint", [&] {
        const ty_status status = ty_snapshot(history.heap);
        return status == TY_OK ? ty_run_background_work(history.heap) : status;
    });
    changes.change(history.heap, 100);
    ASSERT_OK(ty_return_to(history.heap, "other", nullptr));
    EXPECT_TRUE(content_of(history.heap) == other);
    history.snapshot();
    history.reopen();
    ASSERT_OK(ty_return_to(history.heap, "mark 0", nullptr));
    EXPECT_TRUE(content_of(history.heap) == history.marks["mark 0"].seen);
    ASSERT_OK(ty_return_to(history.heap, "other", nullptr));
    EXPECT_TRUE(content_of(history.heap) == other);
}

// A file of another state of the heap would return to what never was.
TEST(durable_marks, believed_where_they_belong) {
    run history(5);
    scribbler changes(4);
    changes.change(history.heap, 100);
    history.make();
    ASSERT_OK(ty_close(history.heap));
    history.files.rename(marks_path, "away");
    history.open();
    EXPECT_TRUE(names_of(history.heap).empty());
    changes.forget_others(history.heap);
    changes.change(history.heap, 100);
    history.reopen();
    ASSERT_OK(ty_close(history.heap));
    history.files.rename("away", marks_path);
    const ty_open_options options = history.files.options();
    const std::string image = history.files.read_file(heap_path), marks = history.files.read_file(marks_path);
    EXPECT_EQ(TY_E_MISMATCH, ty_open(heap_path, &options, &history.heap, nullptr));
    EXPECT_EQ(image, history.files.read_file(heap_path));
    EXPECT_EQ(marks, history.files.read_file(marks_path));
    history.files.rename(marks_path, "away");
    history.open();
    history.files.rename("away", marks_path); // it was not there at the open
    EXPECT_EQ(TY_E_MISMATCH, mark(history.heap, "a"));
    history.files.remove(marks_path);
    ASSERT_OK(mark(history.heap, "a"));
    ASSERT_OK(ty_drop_mark(history.heap, "a"));
    EXPECT_EQ("(none)", history.files.read_file(marks_path));
}

// Nor does an older image with the file of a later open.
TEST(durable_marks, an_older_image_is_refused) {
    run history(11);
    scribbler changes(4);
    changes.change(history.heap, 100);
    ASSERT_OK(mark(history.heap, "a"));
    ASSERT_OK(ty_close(history.heap));
    const disk before(history.files.cut(os::sim_cut::keep_all));
    history.open();
    changes.change(history.heap, 100);
    ASSERT_OK(mark(history.heap, "b"));
    ASSERT_OK(ty_close(history.heap));
    std::string newer = history.files.read_file(marks_path);
    before.resize(marks_path, newer.size());
    for (size_t at = 0; at < newer.size(); at += page_bytes)
        before.patch(marks_path, at, newer.data() + at, page_bytes);
    ty_heap *heap = nullptr;
    const ty_open_options options = before.options();
    EXPECT_EQ(TY_E_MISMATCH, ty_open(heap_path, &options, &heap, nullptr));
    history.open();
    EXPECT_EQ(2u, names_of(history.heap).size());
}

// N3: what is acknowledged is in a file that the next open finds.
TEST(durable_marks, are_not_made_in_a_file_that_is_gone) {
    run history(13);
    scribbler changes(4);
    changes.change(history.heap, 100);
    ASSERT_OK(mark(history.heap, "a"));
    history.files.remove(marks_path);
    changes.change(history.heap, 100);
    EXPECT_EQ(TY_E_IO, mark(history.heap, "b"));
    EXPECT_EQ(std::vector<std::string>{"a"}, names_of(history.heap));
}

// A heap that was removed leaves a file that no other heap takes for its own.
TEST(durable_marks, no_heap_is_made_beside_another_ones) {
    run history(12);
    ASSERT_OK(mark(history.heap, "a"));
    ASSERT_OK(ty_close(history.heap));
    history.heap = nullptr;
    history.files.remove(heap_path);
    history.files.remove(journal_path);
    const ty_open_options options = history.files.options();
    EXPECT_EQ(TY_E_MISMATCH, ty_open(heap_path, &options, &history.heap, nullptr));
    EXPECT_EQ("(none)", history.files.read_file(heap_path));
    history.files.remove(marks_path);
    history.open();
}

TEST(durable_marks, refuse_what_they_cannot) {
    run history(6);
    ASSERT_OK(mark(history.heap, "a"));
    EXPECT_EQ(TY_E_EXISTS, mark(history.heap, "a"));
    EXPECT_EQ(TY_E_EXISTS, ty_mark(history.heap, "a", nullptr));
    ASSERT_OK(ty_mark(history.heap, "b", nullptr));
    EXPECT_EQ(TY_E_EXISTS, mark(history.heap, "b"));
    ASSERT_OK(ty_close(history.heap));
    ty_open_options options = history.files.options();
    options.limit_bytes = 2 * small_limit;
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_open(heap_path, &options, &history.heap, nullptr));
    options.limit_bytes = 0;
    options.mode = TY_OPEN_READ_ONLY;
    ASSERT_OK(ty_open(heap_path, &options, &history.heap, nullptr));
    EXPECT_EQ(std::vector<std::string>{"a"}, names_of(history.heap));
    EXPECT_EQ(TY_E_PERMISSION, ty_return_to(history.heap, "a", nullptr));
    EXPECT_EQ(TY_E_PERMISSION, ty_drop_mark(history.heap, "a"));
    ASSERT_OK(ty_close(history.heap));
    history.open();
}

// Any bit of the file may be wrong: it is refused, or does not matter.
TEST(durable_marks, are_damaged) {
    run history(9);
    for (int i = 0; i < 40; i++)
        history.step();
    history.make();
    ASSERT_OK(ty_close(history.heap));
    history.heap = nullptr;
    const uint64_t size = history.files.read_file(marks_path).size();
    std::mt19937_64 random(2);
    unsigned refused = 0;
    for (int i = 0; i < effort(150) && !HasFailure(); i++) {
        disk found(history.files.cut(os::sim_cut::keep_all));
        const uint64_t page = random() % 4 == 0 ? random() % 2 : random() % (size / page_bytes);
        found.flip(marks_path, page * page_bytes + random() % (page < 2 ? 120 : page_bytes));
        ty_heap *heap = nullptr;
        const ty_open_options options = found.options();
        const ty_status status = ty_open(heap_path, &options, &heap, nullptr);
        if (status != TY_OK) {
            ASSERT_TRUE(status == TY_E_DAMAGED || status == TY_E_FORMAT) << ty_error_text();
            refused++;
            continue;
        }
        for (const std::string &name : names_of(heap)) {
            const content before = content_of(heap);
            const ty_status returned = ty_return_to(heap, name.c_str(), nullptr);
            ASSERT_TRUE(returned == TY_OK || returned == TY_E_DAMAGED) << ty_error_text();
            refused += returned == TY_E_DAMAGED;
            ASSERT_TRUE(content_of(heap) == (returned == TY_OK ? history.marks[name].seen : before));
        }
        ASSERT_OK(ty_discard(heap));
    }
    EXPECT_GT(refused, 0u);
}

// Any of them, whatever the journal and the log have since.
TEST(durable_marks, are_looked_at_without_a_return) {
    run history(16);
    scribbler(5).change(history.heap, 300); // in the image before the first mark
    history.snapshot();
    history.reopen();
    for (int i = 0; i < 120; i++)
        history.step();
    history.make();
    const std::vector<std::string> names = names_of(history.heap);
    ASSERT_OK(ty_discard(history.heap));
    history.heap = nullptr;
    const std::string image = history.files.read_file(heap_path), marks = history.files.read_file(marks_path);
    for (const std::string &name : names)
        EXPECT_TRUE(view_of(history.files, name) == history.marks[name].seen) << name;
    EXPECT_EQ(image, history.files.read_file(heap_path));
    EXPECT_EQ(marks, history.files.read_file(marks_path));
    ty_open_options options = history.files.options();
    options.mode = TY_OPEN_READ_ONLY;
    for (const char *name : {"none", "", "\n"}) {
        options.mark = name;
        EXPECT_EQ(*name == 'n' ? TY_E_NOT_FOUND : TY_E_ARGUMENT, ty_open(heap_path, &options, &history.heap, nullptr));
    }
    options.mode = TY_OPEN_EXISTING;
    options.mark = names.front().c_str();
    EXPECT_EQ(TY_E_ARGUMENT, ty_open(heap_path, &options, &history.heap, nullptr));
    history.open();
}

// The image never gets what is free at the snapshot after the mark.
TEST(durable_marks, what_was_freed_after_it_returns) {
    run history(8);
    char *block = static_cast<char *>(ty_alloc(history.heap, 8 << 20));
    memset(block, 1, 8 << 20);
    ty_open_options options = history.files.options();
    ty_mark_options durable = TY_MARK_OPTIONS_INIT;
    durable.durable = true;
    ASSERT_OK(ty_close(history.heap));
    options.kind = TY_TRANSACTIONAL; // whose mark is no snapshot
    options.log_bytes = 1 << 20;
    ASSERT_OK(ty_open(heap_path, &options, &history.heap, nullptr));
    const auto change = [&](const std::function<ty_status()> &call) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(history.heap, nullptr, &txn));
        ASSERT_OK(ty_declare(txn, block, 1000));
        ASSERT_OK(call());
        ASSERT_OK(ty_commit(txn));
    };
    change([&] {
        memset(block, 2, 1000);
        return TY_OK;
    });
    const content seen = content_of(history.heap);
    ASSERT_OK(ty_mark(history.heap, "a", &durable));
    change([&] { return ty_free(block); });
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(ty_close(history.heap));
        ASSERT_OK(ty_open(heap_path, &options, &history.heap, nullptr));
    }
    ASSERT_OK(ty_return_to(history.heap, "a", nullptr));
    EXPECT_TRUE(content_of(history.heap) == seen);
}

// A mark that would take more is refused, and takes nothing.
TEST(durable_marks, have_a_limit) {
    run history(18);
    auto *all = static_cast<char *>(ty_alloc(history.heap, 1 << 20));
    ASSERT_OK(mark(history.heap, "first"));
    memset(all, 1, 1 << 20);
    ty_mark_options options = TY_MARK_OPTIONS_INIT;
    options.durable = true;
    options.limit_bytes = 1 << 20;
    const uint64_t size = history.files.read_file(marks_path).size();
    EXPECT_EQ(TY_E_SPACE, ty_mark(history.heap, "second", &options));
    EXPECT_EQ(std::vector<std::string>{"first"}, names_of(history.heap));
    EXPECT_EQ(size, history.files.read_file(marks_path).size());
    options.limit_bytes = 2 << 20;
    ASSERT_OK(ty_mark(history.heap, "second", &options));
    EXPECT_GT(history.files.read_file(marks_path).size(), size_t{1} << 20);
    memset(all, 2, 1 << 20);
    EXPECT_EQ(TY_E_SPACE, ty_mark(history.heap, "third", &options));
    ASSERT_OK(ty_drop_mark(history.heap, "first")); // its copies are not needed
    ASSERT_OK(ty_drop_mark(history.heap, "second"));
    ASSERT_OK(ty_mark(history.heap, "third", &options));
    ASSERT_OK(ty_return_to(history.heap, "third", nullptr));
}

// Room that dropped marks had is used again.
TEST(durable_marks, room_comes_back) {
    run history(10);
    auto *all = static_cast<char *>(ty_alloc(history.heap, 2 << 20));
    ASSERT_NE(nullptr, all);
    ASSERT_OK(mark(history.heap, "first"));
    uint64_t most = 0;
    for (int i = 0; i < 40; i++) {
        memset(all, i + 1, 1 << 20);
        ASSERT_OK(mark(history.heap, "next"));
        ASSERT_OK(ty_run_background_work(history.heap));
        ASSERT_OK(ty_drop_mark(history.heap, "next"));
        const uint64_t size = history.files.read_file(marks_path).size();
        most = i == 3 ? size : most;
        if (i > 3) {
            EXPECT_LE(size, most + (64 << 10));
        }
    }
}

} // namespace taiyen::test
