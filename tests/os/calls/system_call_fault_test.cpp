// Goal: whichever system call of the layer fails, the function gives a status with a whole detail, or does without;
// it leaves no mapping, file descriptor, file or lock behind, and the same call succeeds afterwards.
// Method: each function runs again and again; in run n its n-th call of one kind fails, until a run has no such call.
// The sum over all functions must have failed every kind of call that the seam knows.
#include "src/os/calls/syscalls.hpp"
#include "src/os/os.hpp"
#include "src/os/process/text_file.hpp"
#include "src/os/storage/nameless_file.hpp"
#include "tests/os/failing_call.hpp"
#include "tests/os/storage/access_list.hpp"
#include "tests/os/temporary_folder.hpp"

#include <cstring>
#include <dirent.h>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <sys/stat.h>
#include <taiyen/storage.h>
#include <vector>

using namespace taiyen::os;
using taiyen::test::failing_call;

namespace {

std::set<int> &kinds_failed() {
    static std::set<int> kinds;
    return kinds;
}

// Open files, and mappings in the zone; outside it, the C library maps memory when it likes.
std::string what_is_held() {
    std::string held;
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder) != nullptr)
        count++;
    closedir(folder);
    held = std::to_string(count) + " files";
    mapping_reader reader;
    mapping found;
    EXPECT_TRUE(reader.open());
    while (reader.next(found))
        if (found.start >= persistent_zone().low && found.end <= persistent_zone().high)
            held += std::string(", ") + std::to_string(found.start) + "-" + std::to_string(found.end);
    reader.close();
    return held;
}

size_t address_space_pages() {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT_EQ(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool address_space_is_exact = false;
#else
constexpr bool address_space_is_exact = true;
#endif

// Runs the action with each call of each kind failing once. The action must clean up after itself when it succeeds; an
// action that gives TY_OK in spite of a failed call did without it.
void fail_each_call(const char *what, const std::function<ty_status()> &action, int error = EIO) {
    SCOPED_TRACE(what);
    ASSERT_EQ(action(), TY_OK) << ty_error_text();
    ASSERT_EQ(action(), TY_OK) << ty_error_text();
    for (int kind = 0; kind < static_cast<int>(sys::call::count); kind++)
        for (int n = 0; n < 100; n++) {
            SCOPED_TRACE("kind " + std::to_string(kind) + ", call " + std::to_string(n));
            std::string held = what_is_held();
            size_t pages = address_space_pages();
            EXPECT_EQ(ty_error_set(TY_E_FORKED, 0, "stale", nullptr, UINT64_MAX, nullptr), TY_E_FORKED);
            ty_status status = TY_OK;
            {
                failing_call fails(static_cast<sys::call>(kind), n, error);
                status = action();
            }
            if (!failing_call::was_made())
                break;
            kinds_failed().insert(kind);
            ASSERT_EQ(what_is_held(), held);
            // A mapping that the kernel refuses to unmap stays; its memory was given back.
            if (address_space_is_exact && kind != static_cast<int>(sys::call::munmap)) {
                ASSERT_EQ(address_space_pages(), pages);
            }
            ASSERT_NE(status, TY_E_FORKED);
            ty_error detail;
            ty_error_detail(&detail);
            if (status != TY_OK) {
                ASSERT_EQ(detail.status, status);
                ASSERT_STRNE(detail.operation, "stale");
                ASSERT_NE(detail.operation[0], 0);
                ASSERT_NE(detail.remedy[0], 0) << ty_error_text();
            }
            ASSERT_EQ(action(), TY_OK) << ty_error_text();
        }
}

constexpr size_t unit = TY_STORAGE_BLOCK;
alignas(unit) char four_units[4 * unit];

// A walk through the whole storage table. Failing anywhere, it closes and removes what it has made.
ty_status use_storage(const std::string &path) {
    const ty_storage &disk = *ty_storage_default();
    ty_file *file = nullptr;
    ty_status status = disk.open(disk.context, path.c_str(), TY_FILE_WRITE | TY_FILE_CREATE, &file);
    if (status != TY_OK) {
        EXPECT_NE(access(path.c_str(), F_OK), 0) << "a failed open left a file";
        return status;
    }
    void *address = reinterpret_cast<void *>(persistent_zone().low);
    bool mapped = false;
    uint64_t size = 0, start = 0, end = 0;
    auto step = [&](ty_status result) { return (status = result) == TY_OK; };
    memset(four_units, 'x', sizeof four_units);
    ty_write writes[] = {
        {8 * unit, four_units, unit}, {20 * unit, four_units, sizeof four_units}, {11 * unit, four_units, unit}};
    char resolved[TY_STORAGE_PATH_MAX];
    bool done = step(disk.resolve(disk.context, path.c_str(), resolved, sizeof resolved)) &&
                step(disk.lock(disk.context, file, true)) && step(disk.set_size(disk.context, file, 64 * unit)) &&
                step(disk.allocate(disk.context, file, 0, 8 * unit)) &&
                step(disk.write(disk.context, file, unit, four_units, sizeof four_units)) &&
                step(disk.write_many(disk.context, file, writes, 3)) && step(disk.flush(disk.context, file)) &&
                step(disk.write_durable(disk.context, file, 2 * unit, four_units, 2 * unit)) &&
                step(disk.read(disk.context, file, 11 * unit, four_units, unit)) &&
                step(disk.read(disk.context, file, unit, four_units, sizeof four_units)) &&
                step(disk.punch(disk.context, file, 2 * unit, unit)) &&
                step(disk.get_size(disk.context, file, &size)) &&
                step(disk.next_data(disk.context, file, 0, &start, &end)) && step(disk.check(disk.context, file)) &&
                step(disk.map(disk.context, file, address, 4 * unit, 0, TY_MAP_WRITE | TY_MAP_SHARED)) &&
                (mapped = true) && step(disk.write_back(disk.context, file, address, 4 * unit));
    EXPECT_TRUE(!done || four_units[0] == 'x');
    if (mapped) {
        ty_status unmapped = disk.unmap(disk.context, file, address, 4 * unit);
        if (unmapped != TY_OK)
            ::munmap(address, 4 * unit);
        status = done ? unmapped : status;
    }
    disk.close(disk.context, file);
    std::string other = path + "-renamed";
    if (status == TY_OK && step(disk.rename(disk.context, path.c_str(), other.c_str())) &&
        step(disk.flush_directory(disk.context, path.c_str())))
        status = disk.remove(disk.context, other.c_str());
    ::unlink(path.c_str());
    ::unlink(other.c_str());
    return status;
}

// The compiler does not know that the store calls the owner.
void write_to_piece(char *memory, uint64_t piece) {
    *static_cast<volatile char *>(memory + piece * 16 * page_bytes) = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Three pieces of 16 pages are written and protected again. The owner was called for what is written, whatever fails.
ty_status use_guard(char *memory, uint64_t pages) {
    constexpr uint64_t most = 320;
    std::vector<char> called(most, 0);
    write_guard guard;
    ty_status status = guard.start(
        memory, pages, 16,
        [](void *context, const first_write &write) {
            static_cast<char *>(context)[write.piece] = 1;
            return write_answer::allow;
        },
        called.data());
    if (status != TY_OK)
        return status;
    status = guard.arm();
    if (status == TY_OK) {
        for (uint64_t piece : {1, 3, 200})
            write_to_piece(memory, piece);
        EXPECT_TRUE(called[1] && called[3] && called[200]);
        std::vector<uint64_t> pieces;
        for (uint64_t piece = 0; piece < most; piece++)
            if (called[piece])
                pieces.push_back(piece);
        ty_status again = guard.protect(pieces.data(), pieces.size());
        status = again;
        if (again != TY_OK) {
            EXPECT_EQ(guard.protect(pieces.data(), pieces.size()), TY_OK);
        }
        called.assign(most, 0);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        write_to_piece(memory, 3);
        EXPECT_TRUE(called[3]);
        ty_status touched = guard.touch(memory + 100 * 16 * page_bytes, 1);
        EXPECT_TRUE(called[100]);
        ty_status freed = guard.disarm();
        status = status != TY_OK ? status : touched != TY_OK ? touched : freed;
    }
    guard.stop();
    called.assign(most, 0);
    write_to_piece(memory, 5);
    EXPECT_EQ(called, std::vector<char>(most, 0));
    return status;
}

// Files without names: one on the disk, or in memory where that fails, and one in memory.
ty_status use_nameless_files(const std::string &path) {
    const ty_storage &disk = *ty_storage_default();
    for (bool in_memory : {false, true}) {
        ty_file *file = nullptr;
        if (ty_status status = make_nameless_file(path.c_str(), in_memory, &file))
            return status;
        memset(four_units, 'x', sizeof four_units);
        ty_status status = disk.write(disk.context, file, unit, four_units, unit);
        if (status == TY_OK)
            status = disk.read(disk.context, file, 0, four_units, 2 * unit);
        if (status == TY_OK) {
            EXPECT_EQ(four_units[unit - 1], 0);
            EXPECT_EQ(four_units[unit], 'x');
        }
        disk.close(disk.context, file);
        if (status != TY_OK)
            return status;
    }
    return TY_OK;
}

// A file that is open to all becomes as private as another one: its owner's, without an access list. Whatever fails, it
// is private, or the call says that it is not.
ty_status use_protection(const std::string &path, bool with_list) {
    const ty_storage &disk = *ty_storage_default();
    std::string like_path = path + "-like";
    ty_file *file = nullptr, *like = nullptr;
    constexpr uint32_t new_file = TY_FILE_WRITE | TY_FILE_CREATE | TY_FILE_PRIVATE;
    ty_status status = disk.open(disk.context, path.c_str(), new_file, &file);
    if (status == TY_OK)
        status = disk.open(disk.context, like_path.c_str(), new_file, &like);
    if (status == TY_OK) {
        EXPECT_EQ(::chmod(path.c_str(), 0666), 0);
        set_access_list((with_list ? like_path : path).c_str());
        status = disk.protect(disk.context, file, like);
        struct stat now;
        EXPECT_EQ(::stat(path.c_str(), &now), 0);
        EXPECT_TRUE(status != TY_OK || (now.st_mode & 0007) == 0);
    }
    for (ty_file *each : {file, like})
        disk.close(disk.context, each);
    ::unlink(path.c_str());
    ::unlink(like_path.c_str());
    return status;
}

ty_status use_guard() {
    constexpr uint64_t pages = 5000;
    void *memory;
    ty_status status = reserve(persistent_zone().low, pages * page_bytes, 0, &memory);
    if (status != TY_OK)
        return status;
    ::mprotect(memory, pages * page_bytes, PROT_READ | PROT_WRITE);
    status = use_guard(static_cast<char *>(memory), pages);
    ::munmap(memory, pages * page_bytes);
    return status;
}

ty_status use_tracker(tracker_method method) {
    constexpr uint64_t pages = 5000;
    void *memory;
    ty_status status = reserve(persistent_zone().low, pages * page_bytes, 0, &memory);
    if (status != TY_OK)
        return status;
    ::mprotect(memory, pages * page_bytes, PROT_READ | PROT_WRITE);
    page_set found;
    tracker dirty;
    status = found.create(pages);
    if (status == TY_OK)
        status = dirty.start(memory, pages, method);
    if (status == TY_OK) {
        static_cast<volatile char *>(memory)[7 * page_bytes] = 1;
        status = dirty.query(found);
        static_cast<volatile char *>(memory)[9 * page_bytes] = 1; // that this is a copy, collect has to find out
        ty_status collected = dirty.collect(found);
        if (collected != TY_OK) { // no write is forgotten: the next collection has it
            EXPECT_EQ(dirty.collect(found), TY_OK);
        }
        EXPECT_TRUE(found.contains(7));
        EXPECT_TRUE(found.contains(9));
        status = status != TY_OK ? status : collected;
        uint64_t copies[4], next = 0;
        size_t count = 0;
        collected = dirty.unwritten_copies(0, pages, copies, 4, &count, &next);
        status = status != TY_OK ? status : collected;
        dirty.stop();
        static_cast<volatile char *>(memory)[8 * page_bytes] = 1; // plain memory again
    }
    found.destroy();
    ::munmap(memory, pages * page_bytes);
    return status;
}

ty_status use_memory() {
    void *memory = nullptr, *target = nullptr;
    ty_status status = map_memory(8 << 20, memory_hint::huge, &memory);
    if (status != TY_OK)
        return status;
    half_resident_huge(memory);
    status = reserve(0, 8 << 20, 4 << 20, &target);
    auto step = [&](ty_status result) { return (status = result) == TY_OK; };
    bool done = status == TY_OK && step(commit(target, 8 << 20)) && step(protect(target, page_bytes, false)) &&
                step(protect(target, page_bytes, true)) && step(decommit(target, 8 << 20));
    ty_status released = target != nullptr ? release(target, 8 << 20) : TY_OK;
    if (released != TY_OK)
        ::munmap(target, 8 << 20);
    unmap_memory(memory, 8 << 20);
    ::munmap(memory, 8 << 20); // where unmapping was made to fail, only the memory was given back
    return done ? released : status;
}

ty_status use_move() {
    void *from = nullptr, *to = nullptr;
    if (ty_status status = map_memory(1 << 20, memory_hint::none, &from))
        return status;
    ty_status status = map_memory(1 << 20, memory_hint::none, &to);
    if (status == TY_OK) {
        *static_cast<char *>(from) = 7;
        status = move_mapping(from, to, 1 << 20);
        EXPECT_EQ(*static_cast<char *>(to), status == TY_OK ? 7 : 0);
    }
    for (void *memory : {from, to}) {
        unmap_memory(memory, memory != nullptr ? 1 << 20 : 0);
        if (memory != nullptr)
            ::munmap(memory, 1 << 20);
    }
    return status;
}

void *do_nothing(void *) {
    return nullptr;
}

ty_status use_thread() {
    thread t;
    ty_status status = t.start(do_nothing, nullptr);
    if (status == TY_OK)
        t.join();
    return status;
}

ty_status use_fork_guard() {
    fork_guard guard;
    ty_status status = guard.start();
    guard.stop();
    return status;
}

} // namespace

TEST(system_call_fault, storage) {
    temporary_folder folder;
    fail_each_call(
        "storage", [&] { return use_storage(folder.file("a.ty")); }, ENOSPC);
    fail_each_call(
        "nameless files", [&] { return use_nameless_files(folder.file("a.ty")); }, ENOSPC);
}

TEST(system_call_fault, storage_protection) {
    temporary_folder folder;
    for (bool with_list : {false, true})
        fail_each_call(
            "protection", [&] { return use_protection(folder.file("a.ty"), with_list); }, EPERM);
}

// The same in memory, where flushing costs nothing, with errors that lead to another try.
TEST(system_call_fault, storage_tries_again) {
    if (access("/dev/shm", W_OK) != 0)
        GTEST_SKIP() << "there is no /dev/shm";
    temporary_folder folder("/dev/shm");
    for (int error : {EINVAL, EINTR})
        fail_each_call(
            "storage", [&] { return use_storage(folder.file("a.ty")); }, error);
}

TEST(system_call_fault, tracker_by_kernel) {
    if (use_tracker(tracker_method::kernel) == TY_E_UNSUPPORTED)
        GTEST_SKIP() << ty_error_text();
    for (int error : {ENOMEM, EMFILE, EPERM, EINTR})
        fail_each_call(
            "kernel", [] { return use_tracker(tracker_method::kernel); }, error);
}

TEST(system_call_fault, tracker_by_signal_content_and_automatic) {
    fail_each_call(
        "signal", [] { return use_tracker(tracker_method::signal); }, ENOMEM);
    for (int error : {ENOMEM, EMFILE, EINTR})
        fail_each_call(
            "content", [] { return use_tracker(tracker_method::content); }, error);
    fail_each_call(
        "automatic", [] { return use_tracker(tracker_method::automatic); }, EPERM);
}

TEST(system_call_fault, guard) {
    fail_each_call(
        "guard", [] { return use_guard(); }, ENOMEM);
}

TEST(system_call_fault, memory) {
    fail_each_call("memory", use_memory, ENOMEM);
    fail_each_call("move_mapping", use_move, ENOMEM);
}

// What cannot be read is passed over, and the answer says so.
TEST(system_call_fault, variables) {
    static uintptr_t word;
    word = reinterpret_cast<uintptr_t>(four_units);
    fail_each_call(
        "variables",
        [] {
            bool found = false;
            const bool whole = each_variable_word(
                word, word + 1, nullptr, 0,
                [](void *context, const variable_word &one) { *static_cast<bool *>(context) |= one.address == &word; },
                &found);
            EXPECT_TRUE(found || !whole);
            return whole ? TY_OK : ty_error_set(TY_E_MEMORY, EFAULT, "read variables", nullptr, UINT64_MAX, "none");
        },
        EFAULT);
}

TEST(system_call_fault, threads_and_guards) {
    fail_each_call("thread", use_thread, EAGAIN);
    fail_each_call(
        "idle_poller",
        [] {
            idle_poller one;
            if (ty_status status = one.start())
                return status;
            if (one.begin())
                one.end();
            one.stop();
            return TY_OK;
        },
        EAGAIN);
    fail_each_call("fork guard", use_fork_guard, ENOMEM);
}

// These have no failure to report: they answer 0, nothing, or a guess.
TEST(system_call_fault, questions_about_the_system) {
    static char page[page_bytes];
    fail_each_call("find_free", [] {
        find_free(page_bytes, page_bytes, zone_end::low, persistent_zone());
        return TY_OK;
    });
    fail_each_call("resident_bytes", [] {
        size_t resident = resident_bytes(page, sizeof page);
        EXPECT_LE(resident, sizeof page + page_bytes);
        return TY_OK;
    });
    fail_each_call("describe_mapping", [] {
        char text[100];
        describe_mapping(reinterpret_cast<uintptr_t>(page), 1, text, sizeof text);
        return TY_OK;
    });
    fail_each_call("holes_take_memory", [] {
        EXPECT_FALSE(holes_take_memory("/proc/self"));
        return TY_OK;
    });
    fail_each_call("survey_machine", [] {
        topology m = survey_machine();
        EXPECT_GE(m.cores, 1u);
        EXPECT_GE(m.numa_nodes, 1u);
        EXPECT_GT(m.memory_bytes, 0u);
        return TY_OK;
    });
    fail_each_call("reserve_advised_max", [] {
        EXPECT_GT(reserve_advised_max(), size_t{1} << 30);
        return TY_OK;
    });
    fail_each_call("random_bytes", [] {
        uint64_t words[3] = {};
        random_bytes(words, sizeof words);
        EXPECT_TRUE(words[0] != words[1] && words[1] != words[2]);
        return TY_OK;
    });
    static char own[page_bytes];
    uint64_t before;
    bool allowed = nodes_of(own, &before) == TY_OK; // a container's profile may refuse these calls always
    fail_each_call("bind_to_nodes", [&] {
        void *memory;
        if (ty_status status = map_memory(page_bytes, memory_hint::none, &memory); status != TY_OK)
            return status;
        uint64_t nodes = 0;
        ty_status status = bind_to_nodes(memory, page_bytes, 1);
        EXPECT_NE(status, TY_E_ARGUMENT) << "there is a node 0";
        if (status == TY_OK)
            status = nodes_of(memory, &nodes);
        if (status == TY_OK) {
            EXPECT_EQ(nodes, 1u);
            EXPECT_LT(current_node(), numa_nodes_max);
        }
        unmap_memory(memory, page_bytes);
        return allowed ? status : TY_OK;
    });
    fail_each_call("process_barrier", [] {
        if (process_barrier_register())
            static_cast<void>(process_barrier());
        return TY_OK;
    });
}

// The handler for faults is installed once in a process, so this runs in a new one.
TEST(system_call_fault, installing_the_fault_handler) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            int bad = 0;
            for (int n = 0; n < 2; n++) {
                failing_call fails(sys::call::sigaction, n, EINVAL);
                bad += use_tracker(tracker_method::signal) != TY_E_UNSUPPORTED;
            }
            bad += use_tracker(tracker_method::signal) != TY_OK;
            _exit(bad);
        },
        testing::ExitedWithCode(0), "");
    GTEST_FLAG_SET(death_test_style, "fast");
    kinds_failed().insert(static_cast<int>(sys::call::sigaction));
}

// Only where all tests of this file ran in one process; each alone has seen a part.
TEST(system_call_fault, zz_every_kind_of_call_was_made_to_fail) {
    if (testing::UnitTest::GetInstance()->test_to_run_count() < 8)
        GTEST_SKIP() << "run the whole file in one process: --gtest_filter='system_call_fault.*'";
    for (int kind = 0; kind < static_cast<int>(sys::call::count); kind++)
        EXPECT_TRUE(kinds_failed().contains(kind)) << "kind " << kind;
}
