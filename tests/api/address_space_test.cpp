// Goal: a heap takes little more address space than its limit, and a core file has what is used of it.
// Method: heaps of 64 MiB of each kind, used and snapshotted in a child with 512 MiB to map; which parts of a heap of 4
// GiB the kernel would leave out of a core file, by /proc/self/smaps.
#include "fixture.hpp"
#include "tests/units.hpp"

#include <cstdio>
#include <cstring>
#include <functional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // their shadows need more

using namespace taiyen::test;

namespace {

// In a child that may map so much more.
void within(size_t bytes, const std::function<ty_status()> &work) {
    pid_t child = fork();
    if (child == 0) {
        size_t pages = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        if (fscanf(file, "%zu", &pages) != 1)
            _exit(2);
        fclose(file);
        rlimit limit{pages * 4096 + bytes, RLIM_INFINITY};
        setrlimit(RLIMIT_AS, &limit);
        ty_status status = work();
        if (status != TY_OK)
            fprintf(stderr, "%s\n", ty_error_text());
        _exit(status == TY_OK ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

ty_status use(const char *path, ty_kind kind, bool automatic) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = kind;
    options.limit_bytes = 64 * mb;
    options.track_stores = automatic;
    ty_heap *heap;
    if (ty_status status = ty_open(path, &options, &heap, nullptr))
        return status;
    ty_txn *txn = nullptr;
    if (kind == TY_TRANSACTIONAL)
        if (ty_status status = ty_begin(heap, nullptr, &txn))
            return status;
    char *block = static_cast<char *>(txn != nullptr ? ty_txn_alloc(txn, 20 * mb) : ty_alloc(heap, 20 * mb));
    if (block == nullptr)
        return TY_E_MEMORY;
    memset(block, 1, 20 * mb);
    if (txn != nullptr)
        if (ty_status status = ty_commit(txn))
            return status;
    if (ty_status status = ty_snapshot(heap))
        return status;
    return ty_close(heap);
}

// Of the bytes of a range, how many a core file would have; or, of a page, whether it would.
size_t dumped_bytes(const void *start, size_t bytes) {
    uintptr_t low = reinterpret_cast<uintptr_t>(start), high = low + bytes;
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long from = 0, to = 0, first, second;
    size_t dumped = 0;
    while (fgets(line, sizeof line, file) != nullptr) {
        if (sscanf(line, "%lx-%lx ", &first, &second) == 2) {
            from = first;
            to = second;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd") == nullptr && from < high && to > low) {
            dumped += (to < high ? to : high) - (from > low ? from : low);
        }
    }
    fclose(file);
    return dumped;
}

} // namespace

TEST(address_space, heaps_of_64_mb_within_512_mb) {
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL}) {
        api_test::folder folder;
        const std::string path = folder.path("heap.ty");
        within(512 * mb, [&] { return use(path.c_str(), kind, false); });
    }
    api_test::folder folder;
    const std::string path = folder.path("heap.ty");
    within(512 * mb, [&] { return use(path.c_str(), TY_TRANSACTIONAL, true); });
    within(512 * mb, [] {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = 64 * mb;
        ty_heap *heap;
        if (ty_status status = ty_heap_create(&options, &heap))
            return status;
        void *block = ty_alloc(heap, 40 * mb);
        return block == nullptr ? TY_E_MEMORY : ty_free(memset(block, 1, 40 * mb));
    });
}

TEST(address_space, a_core_file_has_what_is_used) {
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT}) {
        api_test::folder folder;
        const std::string path = folder.path("heap.ty");
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = kind;
        for (size_t limit : {1024 * mb, 4096 * mb}) { // the second time it is raised
            options.limit_bytes = limit;
            ty_heap *heap;
            ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
            EXPECT_LT(dumped_bytes(ty_heap_base(heap), limit), 64 * mb);
            for (size_t bytes : {size_t{100}, 5 * mb, 50 * mb}) {
                void *block = ty_alloc(heap, bytes);
                ASSERT_NE(block, nullptr) << ty_error_text();
                EXPECT_EQ(dumped_bytes(block, bytes), bytes);
            }
            EXPECT_LT(dumped_bytes(ty_heap_base(heap), limit), 256 * mb);
            ASSERT_EQ(ty_close(heap), TY_OK) << ty_error_text();
        }
    }
}

#endif
