// Goal: what libc's own modules and the run-time library of OpenMP allocate lies outside of the scope's heap; what
// other objects allocate lies in it, whatever they are called. (M6) Method: libraries whose names begin as libc's do,
// the test itself under such a name, iconv, GOMP_parallel by its name.
#include "scope_support.hpp"
#include "tests/shards.hpp"
#include <cwchar>
#include <dlfcn.h>
#include <iconv.h>
#include <spawn.h>
#include <sys/wait.h>

namespace taiyen::test {
namespace {

class objects : public scopes {};

constexpr const char *in_scope = "scopes.the_whole_family_allocates_in_the_heap";

TEST_F(objects, libraries_that_are_called_almost_as_libc_s) {
    for (const char *name : {TAIYEN_NAMED_LIBRARIES}) {
        void *library = dlopen((std::string(TAIYEN_NAMED_FOLDER) + "/" + name).c_str(), RTLD_NOW);
        ASSERT_NE(nullptr, library) << dlerror();
        auto *make = reinterpret_cast<void *(*)()>(dlsym(library, "named_block"));
        ASSERT_NE(nullptr, make) << name;
        open();
        void *block = nullptr;
        within([&] { block = make(); });
        EXPECT_TRUE(is_in(block)) << name;
        discard();
        dlclose(library);
    }
}

// dladdr calls a program what it was started by.
TEST_F(objects, programs_that_are_called_as_libc_is) {
    leave_shards();
    for (const char *name : {"libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/x/gconv/libtaiyen.so"}) {
        std::string called = name, filter = std::string("--gtest_filter=") + in_scope, brief = "--gtest_brief=1";
        char *const arguments[] = {called.data(), filter.data(), brief.data(), nullptr};
        pid_t child = 0;
        int status = -1;
        ASSERT_EQ(0, posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ));
        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, status) << name;
    }
}

// M7. A plug-in has a copy of the library of its own, which is not to be asked for a block's owner when it has gone.
// There is room for a few copies at a time.
TEST_F(objects, plug_ins_with_the_library_are_unloaded) {
    open();
    ty_heap *of_program = heap_;
    for (int n = 0; n < 6; n++) {
        void *library = dlopen(TAIYEN_PLUG_IN, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(nullptr, library) << dlerror();
        auto *use = reinterpret_cast<ty_status (*)(const char *)>(dlsym(library, "use_heap"));
        ASSERT_NE(nullptr, use);
        const ty_status status = use((path_ + "-of-plug-in").c_str());
        if (status == TY_E_UNSUPPORTED && n == 0)
            GTEST_SKIP() << "the drop-in's functions are not to be found in this program";
        ASSERT_EQ(TY_OK, status);
        ASSERT_EQ(0, dlclose(library));
        ASSERT_EQ(nullptr, dlopen(TAIYEN_PLUG_IN, RTLD_NOW | RTLD_NOLOAD)) << "it is still there";
        free(hidden(nullptr));
        void *block = nullptr;
        within([&] { block = malloc(100); }); // asked for after the plug-in's copy
        EXPECT_EQ(of_program, ty_heap_of(block));
        block = realloc(block, 10'000);
        EXPECT_EQ(of_program, ty_heap_of(block));
        free(block);
    }
}

TEST_F(objects, modules_of_iconv_are_libc_s) {
    open();
    const size_t before = blocks();
    auto converter = reinterpret_cast<iconv_t>(-1);
    FILE *file = nullptr;
    within([&] {
        converter = iconv_open("UTF-16", "UTF-8");
        file = fopen("/dev/null", "w,ccs=UTF-16");
    });
    if (converter == reinterpret_cast<iconv_t>(-1) || file == nullptr)
        GTEST_SKIP() << "libc's modules are not installed";
    EXPECT_EQ(before, blocks());
    discard();
    char text[] = "hello", converted[64];
    char *from = text, *to = converted;
    size_t left = 5, room = sizeof converted;
    EXPECT_EQ(0u, iconv(converter, &from, &left, &to, &room));
    EXPECT_EQ(12u, sizeof converted - room) << "with the mark of its order";
    EXPECT_EQ(0, iconv_close(converter));
    EXPECT_LT(0, fputws(L"hello", file));
    EXPECT_EQ(0, fclose(file));
}

TEST_F(objects, teams_of_openmp_are_kept_elsewhere) {
    void *library = dlopen("libgomp.so.1", RTLD_NOW);
    if (library == nullptr)
        GTEST_SKIP() << dlerror();
    using parallel = void(void (*)(void *), void *, unsigned threads, unsigned flags);
    auto *run = reinterpret_cast<parallel *>(dlsym(library, "GOMP_parallel"));
    auto *alloc = reinterpret_cast<void *(*)(size_t, uintptr_t)>(dlsym(library, "omp_alloc"));
    ASSERT_TRUE(run != nullptr && alloc != nullptr);
    open();
    const size_t before = blocks();
    std::atomic<int> runs{0};
    auto count = [](void *all) { static_cast<std::atomic<int> *>(all)->fetch_add(1); };
    void *block = nullptr;
    within([&] {
        run(count, &runs, 3, 0);
        block = alloc(100, 0);
    });
    EXPECT_TRUE(is_in(block)) << "the caller's";
    EXPECT_EQ(before + 1, blocks());
    discard();
    run(count, &runs, 5, 0);
    EXPECT_EQ(8, runs.load());
}

} // namespace
} // namespace taiyen::test
