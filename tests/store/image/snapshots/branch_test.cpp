// Goal: a branch has all that the heap had, or is not there; from then on each of the two goes its own way. Views at
// marks beside a writer show the mark. Method: branches on the simulated disk with power cuts and failing writes;
// forked children beside a parent that takes snapshots; a process that marks and drops while this one looks.
#include "../support.hpp"
#include "tests/effort.hpp"
#include "tests/os/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <latch>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

constexpr const char *branch_path = "branch.ty";

void open_in(const disk &files, const char *path, ty_heap **heap, ty_open_mode mode = TY_OPEN_EXISTING) {
    ty_open_options options = files.options();
    options.mode = mode;
    ASSERT_OK(ty_open(path, &options, heap, nullptr)) << path;
}

content content_of_file(const disk &files, const char *path) {
    ty_heap *heap = nullptr;
    open_in(files, path, &heap);
    if (heap == nullptr)
        return {};
    content found = content_of(heap);
    expect_sound(heap);
    EXPECT_OK(ty_discard(heap));
    return found;
}

// A heap with pages in the image, in the journal, and in memory alone.
struct heap_in_parts {
    disk files;
    ty_heap *heap = nullptr;
    scribbler changes{3};

    heap_in_parts() {
        open_in(files, heap_path, &heap, TY_CREATE_NEW);
        changes.change(heap, 300);
        EXPECT_OK(ty_snapshot(heap));
        EXPECT_OK(ty_run_background_work(heap));
        changes.change(heap, 100);
        EXPECT_OK(ty_snapshot(heap));
        changes.change(heap, 100);
    }
    ~heap_in_parts() { EXPECT_OK(ty_discard(heap)); }
    void close() {
        EXPECT_OK(ty_close(heap));
        heap = nullptr;
    }
};

// Runs it in a child, and returns what that returned.
template <class Function>
int in_child(Function &&function) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        _exit(function());
    }
    int status = -1;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return WEXITSTATUS(status);
}

} // namespace

TEST(branch, has_what_the_heap_has_and_goes_its_own_way) {
    heap_in_parts from;
    const content seen = content_of(from.heap);
    ASSERT_OK(ty_root_set(from.heap, "a", seen.begin()->first));
    ASSERT_OK(ty_branch(from.heap, branch_path));
    from.changes.change(from.heap, 100);
    const content later = content_of(from.heap);
    from.close();
    EXPECT_TRUE(content_of_file(from.files, branch_path) == seen);
    ty_heap *branch = nullptr;
    open_in(from.files, branch_path, &branch);
    EXPECT_EQ(seen.begin()->first, ty_root(branch, "a"));
    scribbler(5).change(branch, 100);
    const content other = content_of(branch);
    ASSERT_OK(ty_close(branch));
    ty_open_options options = from.files.options();
    EXPECT_OK(ty_scrub(
        branch_path, &options, nullptr, [](const char *text, void *) { ADD_FAILURE() << text; }, nullptr));
    EXPECT_TRUE(content_of_file(from.files, heap_path) == later);
    EXPECT_TRUE(content_of_file(from.files, branch_path) == other);
}

// I26: after a cut at any event it is whole or not there, and the heap is as it was.
TEST(branch, the_power_fails) {
    heap_in_parts from;
    const content seen = content_of(from.heap);
    ASSERT_OK(ty_snapshot(from.heap));
    const uint64_t begun = os::sim_event_count(from.files.get());
    ASSERT_OK(ty_branch(from.heap, branch_path));
    const uint64_t made = os::sim_event_count(from.files.get());
    ASSERT_GT(made, begun + 5);
    from.close();
    std::mt19937_64 random(1);
    unsigned there = 0;
    for (uint64_t event = begun; event <= made; event++)
        for (const os::sim_cut how : os::sim_cuts)
            for (int i = 0; i < effort(1) && !HasFailure(); i++) {
                SCOPED_TRACE("event " + std::to_string(event) + " of " + std::to_string(made) + " cut " +
                             std::to_string(int(how)));
                const disk found(os::sim_power_cut(from.files.get(), event, how, random()));
                EXPECT_TRUE(content_of_file(found, heap_path) == seen);
                ty_heap *heap = nullptr;
                ty_open_options options = found.options();
                options.mode = TY_OPEN_EXISTING;
                if (ty_open(branch_path, &options, &heap, nullptr) != TY_OK) {
                    EXPECT_LT(event, made);
                    open_in(found, heap_path, &heap);
                    ASSERT_OK(ty_branch(heap, branch_path)); // what is left is in nobody's way
                    ASSERT_OK(ty_discard(heap));
                    open_in(found, branch_path, &heap);
                } else {
                    there++;
                }
                EXPECT_TRUE(content_of(heap) == seen);
                ASSERT_OK(ty_close(heap));
            }
    EXPECT_GT(there, 0u);
    open_in(from.files, heap_path, &from.heap);
}

// Nothing of it is left then.
TEST(branch, the_disk_fails) {
    heap_in_parts from;
    const content seen = content_of(from.heap);
    uint64_t n = 0;
    for (ty_status status = TY_E_IO; status != TY_OK; n++) {
        const ty_status failing = n % 2 == 0 ? TY_E_IO : TY_E_SPACE;
        os::sim_set_fault(from.files.get(),
                          {os::sim_op_write | os::sim_op_flush | os::sim_op_names, n, false, failing});
        status = ty_branch(from.heap, branch_path);
        os::sim_set_fault(from.files.get(), {});
        if (status == TY_OK)
            break;
        ASSERT_EQ(failing, status) << ty_error_text();
        ASSERT_TRUE(content_of(from.heap) == seen);
        ASSERT_EQ("(none)", from.files.read_file(branch_path)) << n;
        ASSERT_EQ("(none)", from.files.read_file("branch.ty-journal")) << n;
        ASSERT_EQ("(none)", from.files.read_file("branch.ty-creating")) << n;
    }
    EXPECT_GT(n, 8u);
    from.close();
    EXPECT_TRUE(content_of_file(from.files, branch_path) == seen);
    open_in(from.files, heap_path, &from.heap);
}

TEST(branch, refused) {
    heap_in_parts from;
    EXPECT_EQ(TY_E_ARGUMENT, ty_branch(nullptr, branch_path));
    EXPECT_EQ(TY_E_ARGUMENT, ty_branch(from.heap, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_branch(from.heap, ""));
    EXPECT_EQ(TY_E_EXISTS, ty_branch(from.heap, heap_path));
    ASSERT_OK(ty_branch(from.heap, branch_path));
    EXPECT_EQ(TY_E_EXISTS, ty_branch(from.heap, branch_path));
    from.files.remove(branch_path);
    ASSERT_OK(ty_branch(from.heap, branch_path)); // a journal that was never used is no heap's
    from.close();
    ty_heap *heap = nullptr;
    open_in(from.files, branch_path, &heap);
    scribbler(1).change(heap, 10);
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_discard(heap));
    from.files.remove(branch_path);
    const std::string journal = from.files.read_file("branch.ty-journal");
    open_in(from.files, heap_path, &from.heap);
    EXPECT_EQ(TY_E_MISMATCH, ty_branch(from.heap, branch_path)); // it may be needed
    EXPECT_EQ(journal, from.files.read_file("branch.ty-journal"));
    EXPECT_EQ("(none)", from.files.read_file(branch_path));
    ASSERT_OK(ty_heap_create(nullptr, &heap));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_branch(heap, branch_path));
    ASSERT_OK(ty_heap_destroy(heap));
    ty_open_options options = from.files.options();
    options.kind = TY_ARCHIVE;
    ASSERT_OK(ty_open("archive.ty", &options, &heap, nullptr));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_branch(heap, branch_path));
    ASSERT_OK(ty_close(heap));
}

// A file that has the temporary name is somebody's, unless a crash may have left it.
TEST(branch, what_others_have_is_not_replaced) {
    temporary_folder folder;
    const ty_open_options options = options_of(TY_SNAPSHOT);
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(folder.file("heap.ty").c_str(), &options, &heap, nullptr));
    const std::string path = folder.file("branch.ty"), making = path + "-creating";
    std::ofstream(making) << "a text";
    EXPECT_EQ(TY_E_EXISTS, ty_branch(heap, path.c_str())) << ty_error_text();
    EXPECT_EQ(6u, std::filesystem::file_size(making));
    for (const size_t left : {size_t{0}, size_t{8192}}) {
        std::ofstream(making) << std::string(left, '\0');
        EXPECT_OK(ty_branch(heap, path.c_str()));
        EXPECT_FALSE(std::filesystem::exists(making));
        std::filesystem::remove(path);
    }
    EXPECT_EQ(TY_E_ARGUMENT, ty_branch(heap, making.c_str()));
    ASSERT_OK(ty_close(heap));
    EXPECT_EQ(TY_E_ARGUMENT, ty_open(making.c_str(), &options, &heap, nullptr));
}

// N4. Whoever may not read the heap may not read the branch.
TEST(branch, has_the_access_rights_of_the_heap) {
    temporary_folder folder;
    ty_open_options options = options_of(TY_SNAPSHOT);
    const std::string path = folder.file("heap.ty");
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    ASSERT_EQ(0, chmod(path.c_str(), 0600));
    const mode_t before = umask(0);
    const auto expect_private = [&](const char *name) {
        const std::string branch = folder.file(name);
        EXPECT_OK(ty_branch(heap, branch.c_str()));
        for (const char *suffix : {"", "-journal"})
            EXPECT_EQ(std::filesystem::perms{0600}, std::filesystem::status(branch + suffix).permissions()) << name;
    };
    expect_private("of-a-writer.ty");
    EXPECT_EQ(0, in_child([&] {
                  expect_private("of-a-child.ty");
                  return int(HasFailure());
              }));
    ASSERT_OK(ty_close(heap));
    options.mode = TY_OPEN_READ_ONLY;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    expect_private("of-a-reader.ty");
    ASSERT_OK(ty_close(heap));
    umask(before);
}

// Of many that make the same one, one does, and no other one harms it.
TEST(branch, many_to_one_path) {
    temporary_folder folder;
    const ty_open_options options = options_of(TY_SNAPSHOT);
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(folder.file("heap.ty").c_str(), &options, &heap, nullptr));
    scribbler(1).change(heap, 200);
    const content seen = content_of(heap);
    const std::string path = folder.file("branch.ty");
    for (int round = 0; round < effort(20) && !HasFailure(); round++) {
        pid_t children[4];
        for (pid_t &child : children)
            if ((child = fork()) == 0) {
                alarm(120);
                ty_status status = TY_E_BUSY;
                while (status == TY_E_BUSY)
                    status = ty_branch(heap, path.c_str());
                _exit(int(status));
            }
        int made = 0;
        for (const pid_t child : children) {
            int status = -1;
            ASSERT_EQ(child, waitpid(child, &status, 0));
            ASSERT_TRUE(WIFEXITED(status));
            made += WEXITSTATUS(status) == TY_OK;
            EXPECT_TRUE(WEXITSTATUS(status) == TY_OK || WEXITSTATUS(status) == TY_E_EXISTS) << WEXITSTATUS(status);
        }
        EXPECT_EQ(1, made);
        EXPECT_FALSE(std::filesystem::exists(path + "-creating"));
        EXPECT_EQ(0, in_child([&] {
                      ty_heap *branch = nullptr;
                      if (ty_discard(heap) != TY_OK || ty_open(path.c_str(), &options, &branch, nullptr) != TY_OK)
                          return 1;
                      return content_of(branch) == seen && ty_discard(branch) == TY_OK ? 0 : 2;
                  }));
        std::filesystem::remove(path);
        std::filesystem::remove(path + "-journal");
    }
    ASSERT_OK(ty_close(heap));
}

// What failed last is what failed last, whatever was looked for since.
TEST(branch, a_success_changes_no_detail) {
    heap_in_parts from;
    ty_mark_options durable = TY_MARK_OPTIONS_INIT;
    durable.durable = true;
    EXPECT_EQ(TY_E_NOT_FOUND, ty_error_set(TY_E_NOT_FOUND, 0, "do this", "there", UINT64_MAX, "do that"));
    const std::string text = ty_error_text();
    ASSERT_OK(ty_mark(from.heap, "a", &durable));
    ASSERT_OK(ty_mark(from.heap, "b", nullptr));
    ASSERT_OK(ty_return_to(from.heap, "a", nullptr));
    ASSERT_OK(ty_branch(from.heap, branch_path));
    ASSERT_OK(ty_drop_mark(from.heap, "a"));
    from.close();
    ty_heap *branch = nullptr;
    open_in(from.files, branch_path, &branch);
    EXPECT_EQ(text, ty_error_text());
    ASSERT_OK(ty_close(branch));
    std::thread([&] {
        open_in(from.files, heap_path, &from.heap);
        EXPECT_STREQ("", ty_error_text());
    }).join();
}

// Read-only, at a mark, and of a heap with transactions, which has what was committed.
TEST(branch, of_other_opens) {
    disk files;
    ty_open_options options = files.options();
    options.kind = TY_TRANSACTIONAL;
    options.log_bytes = 1 << 20;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    uint64_t *number = nullptr;
    const auto commit = [&](uint64_t value) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        if (number == nullptr) {
            number = static_cast<uint64_t *>(ty_txn_alloc(txn, 8));
            ASSERT_OK(ty_txn_root_set(txn, "a", number));
        }
        ASSERT_OK(ty_declare(txn, number, 8));
        *number = value;
        ASSERT_OK(ty_commit(txn));
    };
    ty_mark_options durable = TY_MARK_OPTIONS_INIT;
    durable.durable = true;
    commit(1);
    ASSERT_OK(ty_mark(heap, "one", &durable));
    commit(2);
    void *reserved = ty_reserve(heap, 100);
    ASSERT_NE(nullptr, reserved);
    EXPECT_EQ(TY_E_BUSY, ty_branch(heap, branch_path));
    ASSERT_OK(ty_cancel(reserved));
    ASSERT_OK(ty_branch(heap, branch_path));
    commit(3);
    ASSERT_OK(ty_discard(heap));
    options.mode = TY_OPEN_READ_ONLY;
    options.kind = TY_KIND_DEFAULT;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_OK(ty_branch(heap, "three.ty"));
    ASSERT_OK(ty_close(heap));
    options.mark = "one";
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    EXPECT_EQ(1u, *number);
    ASSERT_OK(ty_branch(heap, "one.ty"));
    ASSERT_OK(ty_close(heap));
    options.mark = nullptr;
    options.mode = TY_OPEN_EXISTING;
    const std::pair<const char *, uint64_t> all[] = {{"one.ty", 1}, {branch_path, 2}, {"three.ty", 3}};
    for (const ty_kind kind : {TY_KIND_DEFAULT, TY_TRANSACTIONAL})
        for (const auto &[path, value] : all) {
            options.kind = kind;
            ASSERT_OK(ty_open(path, &options, &heap, nullptr)) << path;
            EXPECT_EQ(kind == TY_KIND_DEFAULT ? TY_SNAPSHOT : TY_TRANSACTIONAL, ty_heap_kind(heap));
            EXPECT_EQ(number, ty_root(heap, "a"));
            EXPECT_EQ(value, *number) << path;
            expect_sound(heap);
            ASSERT_OK(ty_close(heap));
        }
}

// Many futures of one state: each child changes its copy, and makes a heap of it.
TEST(branch, in_forked_children) {
    temporary_folder folder;
    const ty_open_options options = options_of(TY_SNAPSHOT);
    const std::string path = folder.file("heap.ty");
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    scribbler changes(1);
    changes.change(heap, 500);
    ASSERT_OK(ty_close(heap));
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr)); // pages are in the file alone
    auto *number = static_cast<uint64_t *>(ty_alloc(heap, 8));
    ASSERT_OK(ty_root_set(heap, "number", number));
    const content seen = content_of(heap);
    const auto path_of = [&](uint64_t n) { return folder.file(("branch" + std::to_string(n)).c_str()); };
    for (uint64_t n = 0; n < 8; n++) {
        SCOPED_TRACE(n);
        std::latch busy(1);
        std::atomic<bool> end{false};
        std::thread beside([&] { // its cache has blocks at the fork
            for (uint64_t i = 0; !end; i++) {
                EXPECT_OK(ty_free(ty_alloc(heap, 100 + i % 1000)));
                if (i == 1000)
                    busy.count_down();
            }
        });
        busy.wait();
        EXPECT_EQ(0, in_child([&] {
                      *number = n;
                      if (ty_branch(heap, path_of(n).c_str()) != TY_OK)
                          return 1;
                      if (ty_discard(heap) != TY_OK)
                          return 2;
                      ty_heap *branch = nullptr;
                      if (ty_open(path_of(n).c_str(), &options, &branch, nullptr) != TY_OK)
                          return 3;
                      return *number == n && ty_close(branch) == TY_OK ? 0 : 4;
                  }));
        end = true;
        beside.join();
    }
    ASSERT_OK(ty_close(heap));
    for (uint64_t n = 0; n < 8; n++) {
        ASSERT_OK(ty_open(path_of(n).c_str(), &options, &heap, nullptr));
        EXPECT_EQ(n, *number);
        for (const auto &[address, bytes] : seen) {
            if (address != reinterpret_cast<char *>(number)) {
                ASSERT_EQ(bytes, std::string(address, bytes.size()));
            }
        }
        expect_sound(heap);
        ASSERT_OK(ty_close(heap));
    }
}

// I26: what the child sees of the image's file may be newer than the fork.
TEST(branch, in_a_child_whose_parent_has_gone_on) {
    temporary_folder folder;
    const ty_open_options options = options_of(TY_SNAPSHOT);
    const std::string path = folder.file("heap.ty"), branch = folder.file("branch.ty");
    ty_heap *heap = nullptr;
    const auto with = [&](auto &&meanwhile, ty_status expected) {
        ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
        int ends[2];
        ASSERT_EQ(0, pipe(ends));
        const pid_t child = fork();
        if (child == 0) {
            alarm(120);
            char byte = 0;
            _exit(read(ends[0], &byte, 1) == 1 ? int(ty_branch(heap, branch.c_str())) : 99);
        }
        meanwhile();
        EXPECT_EQ(1, write(ends[1], "x", 1));
        int status = -1;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(int(expected), WEXITSTATUS(status));
        EXPECT_EQ(expected == TY_OK ? 0 : -1, unlink(branch.c_str()));
        close(ends[0]);
        close(ends[1]);
        ASSERT_OK(ty_close(heap));
    };
    const auto change = [&] {
        scribbler(1).change(heap, 100);
        EXPECT_OK(ty_snapshot(heap));
    };
    with([] {}, TY_OK);
    with(change, TY_OK); // the journal has it
    with(
        [&] {
            change();
            EXPECT_OK(ty_run_background_work(heap));
        },
        TY_E_BUSY);
    with(
        [&] {
            EXPECT_OK(ty_close(heap));
            heap = nullptr;
        },
        TY_E_BUSY);
}

// Of transactions that other threads had under way at the fork the child knows nothing.
TEST(branch, in_a_child_of_a_heap_with_transactions) {
    temporary_folder folder;
    const ty_open_options options = options_of(TY_TRANSACTIONAL);
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(folder.file("heap.ty").c_str(), &options, &heap, nullptr));
    const std::string branch = folder.file("branch.ty");
    EXPECT_EQ(int(TY_E_FORKED), in_child([&] { return int(ty_branch(heap, branch.c_str())); }));
    ASSERT_OK(ty_close(heap));
}

namespace {

// What the writer of the test below has stored in page n after step k.
uint64_t stored_in(uint64_t page, uint64_t step) {
    while (step > 0 && (page * 0x9e3779b97f4a7c15u ^ step * 0xc2b2ae3d27d4eb4fu) % 8 != 0)
        step--;
    return step;
}

constexpr uint64_t pages_there = 256, words = 512;

int mark_and_drop(const char *path, const std::atomic<uint64_t> *end, std::atomic<uint64_t> *newest) {
    ty_open_options options = options_of(TY_SNAPSHOT);
    options.background = TY_BACKGROUND_THREAD;
    options.mode = TY_OPEN_EXISTING;
    ty_heap *heap = nullptr;
    ty_mark_options durable = TY_MARK_OPTIONS_INIT;
    durable.durable = true;
    if (ty_open(path, &options, &heap, nullptr) != TY_OK)
        return 1;
    auto *all = static_cast<uint64_t *>(ty_root(heap, "all"));
    for (uint64_t step = 1; *end == 0; step++) {
        for (uint64_t page = 0; page < pages_there; page++)
            if (stored_in(page, step) == step)
                all[page * words] = step;
        if (ty_mark(heap, std::to_string(step).c_str(), &durable) != TY_OK)
            return 2;
        *newest = step;
        const uint64_t kept = step % 50 == 0 ? 0 : 6; // 0: the file is made anew
        for (uint64_t old = step > 6 ? step - 6 : 1; old + kept <= step; old++)
            if (const ty_status status = ty_drop_mark(heap, std::to_string(old).c_str());
                status != TY_OK && status != TY_E_NOT_FOUND)
                return 3;
        if (kept == 0 && ty_mark(heap, std::to_string(step).c_str(), &durable) != TY_OK)
            return 4;
        if (step % 3 == 0 && ty_run_background_work(heap) != TY_OK)
            return 5;
    }
    return ty_close(heap) == TY_OK ? 0 : 6;
}

} // namespace

// I21: what a copy shows is the mark, whatever the writer overwrites meanwhile.
TEST(branch, views_beside_a_writer) {
    temporary_folder folder;
    const std::string path = folder.file("heap.ty");
    ty_open_options options = options_of(TY_SNAPSHOT);
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    void *all = ty_alloc_zeroed(heap, pages_there * words * 8);
    ASSERT_OK(ty_root_set(heap, "all", all));
    ASSERT_OK(ty_close(heap));
    void *shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *words_shared = static_cast<std::atomic<uint64_t> *>(shared);
    const pid_t writer = fork();
    if (writer == 0) {
        alarm(300);
        _exit(mark_and_drop(path.c_str(), &words_shared[0], &words_shared[1]));
    }
    options.mode = TY_OPEN_COPY;
    unsigned seen = 0, gone = 0;
    int status = -1;
    for (uint64_t i = 0; seen < unsigned(effort(60)) && !HasFailure(); i++) {
        ASSERT_EQ(0, waitpid(writer, &status, WNOHANG)) << status;
        const uint64_t newest = words_shared[1];
        if (newest < 4)
            continue;
        const uint64_t step = newest - i % 4;
        const std::string name = std::to_string(step);
        options.mark = name.c_str();
        const ty_status opened = ty_open(path.c_str(), &options, &heap, nullptr);
        if (opened == TY_E_NOT_FOUND) { // dropped by now
            gone++;
            continue;
        }
        ASSERT_OK(opened);
        const auto *found = static_cast<const uint64_t *>(ty_root(heap, "all"));
        for (uint64_t page = 0; page < pages_there; page++)
            EXPECT_EQ(stored_in(page, step), found[page * words]) << "page " << page << " at " << step;
        expect_sound(heap);
        ASSERT_OK(ty_close(heap));
        options.mark = nullptr;
        ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
        for (int k = 0; k < 50; k++)
            ASSERT_OK(ty_each_mark(
                heap, [](const ty_mark_info *info, void *) { return info->durable; }, nullptr));
        ASSERT_OK(ty_close(heap));
        seen++;
    }
    words_shared[0] = 1;
    ASSERT_EQ(writer, waitpid(writer, &status, 0));
    EXPECT_EQ(0, status);
    munmap(shared, 4096);
    std::printf("%u views, %u marks were gone\n", seen, gone);
}

} // namespace taiyen::test
