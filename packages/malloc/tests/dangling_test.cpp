// Goal: variables of a library that were filled in a scope are reported, by name, where a rollback or a close takes
// away what they lead to; after a rollback what they lead to is nobody else's (M11); nothing is reported of sound
// programs. Method: a library with caches of several kinds, once in the program and once in a plug-in, is first used in
// a scope of a transaction that rolls back; then other transactions allocate and commit, and the library is used again.
#include "lazy.h"
#include "scope_support.hpp"
#include <atomic>
#include <condition_variable>
#include <dlfcn.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace taiyen::test {
namespace {

struct reported {
    std::string object, variable, text, heap;
    ty_dangling_reason reason;
    bool kept, indirect, thread_local_data;
    uintptr_t value; // complemented: what is noted here must lead to nothing
    size_t bytes;
};

class dangling : public scopes {
protected:
    void SetUp() override {
        scopes::SetUp();
        ty_on_dangling(
            [](const ty_dangling *found, void *context) {
                EXPECT_EQ(sizeof *found, found->struct_size);
                static_cast<std::vector<reported> *>(context)->push_back(
                    {found->object, found->variable, found->text, found->heap_path, found->reason, found->kept,
                     found->indirect, found->thread_local_data, ~reinterpret_cast<uintptr_t>(found->value),
                     found->block_bytes});
            },
            &reported_);
    }
    void TearDown() override {
        scopes::TearDown();
        ty_on_dangling(nullptr, nullptr);
    }
    template <class Function>
    void transact(bool commits, Function &&function) {
        ty_txn *txn = nullptr;
        ASSERT_EQ(TY_OK, ty_begin(heap_, nullptr, &txn)) << ty_error_text();
        within(function);
        ASSERT_EQ(TY_OK, commits ? ty_commit(txn) : ty_rollback(txn)) << ty_error_text();
    }
    // Blocks that lie where those that a rollback has freed lay.
    void fill_heap() {
        transact(true, [this] {
            for (auto &one : others_) {
                one = static_cast<char *>(malloc(1 + (&one - others_) % 40 * 16));
                memset(one, 'o', malloc_usable_size(one));
            }
        });
    }
    void expect_others_whole() {
        for (const char *one : others_)
            for (size_t n = 0; n < malloc_usable_size(const_cast<char *>(one)); n++)
                ASSERT_EQ('o', one[n]);
    }
    uint64_t kept() const {
        ty_txn_stats stats{};
        stats.struct_size = sizeof stats;
        EXPECT_EQ(TY_OK, ty_get_txn_stats(heap_, &stats));
        return stats.reserved_blocks;
    }
    size_t reported_of(const std::string &variable, ty_dangling_reason reason) const {
        size_t count = 0;
        for (const reported &one : reported_)
            count += one.reason == reason && one.variable.find(variable) != std::string::npos;
        return count;
    }

    std::vector<reported> reported_;
    char *others_[2000] = {};
};

struct library {
    const char *name;
    const char *path; // NULL: the program
};
struct place {
    library of;
    size_t cache;
};
class dangling_caches : public dangling, public testing::WithParamInterface<place> {
protected:
    void SetUp() override {
        dangling::SetUp();
        caches_ = lazy_caches;
        if (GetParam().of.path != nullptr) {
            void *plug_in = dlopen(GetParam().of.path, RTLD_NOW | RTLD_LOCAL);
            ASSERT_NE(nullptr, plug_in) << dlerror();
            caches_ = static_cast<const lazy_cache *>(dlsym(plug_in, "lazy_caches"));
            ASSERT_NE(nullptr, caches_);
        }
    }
    const lazy_cache &cache() const { return caches_[GetParam().cache]; }
    std::string object() const {
        return GetParam().of.path != nullptr ? GetParam().of.path
                                             : std::filesystem::read_symlink("/proc/self/exe").string();
    }

private:
    const lazy_cache *caches_ = nullptr;
};

// M11.
TEST_P(dangling_caches, outlive_a_rollback) {
    open(TY_TRANSACTIONAL);
    if (cache().prepare != nullptr)
        cache().prepare();
    transact(false, [&] { cache().use('a'); });
    ASSERT_EQ(1u, reported_of(cache().variable, TY_DANGLING_ROLLBACK));
    EXPECT_EQ(object(), reported_[0].object);
    EXPECT_TRUE(reported_[0].kept);
    EXPECT_EQ(path_, reported_[0].heap);
    EXPECT_EQ(GetParam().cache == 1, reported_[0].thread_local_data);
    EXPECT_NE(std::string::npos, reported_[0].text.find(cache().variable));
    EXPECT_EQ(GetParam().cache >= LAZY_DIRECT_CACHES, reported_[0].indirect);
    EXPECT_TRUE(is_in(reinterpret_cast<const void *>(~reported_[0].value)));
    EXPECT_LT(0u, kept());
    fill_heap();
    EXPECT_EQ('a', cache().look()) << "the library's, after the rollback";
    if (GetParam().cache != 2) // what a table has in a committed transaction is rolled back by another one
        transact(true, [&] { cache().use('b'); });
    transact(false, [&] { cache().use('c'); }); // what is kept has more by now, which is reached through it alone
    fill_heap();
    EXPECT_EQ('c', cache().look());
    cache().use('d'); // in no scope, and no transaction
    expect_others_whole();
    EXPECT_EQ('d', cache().look());
    EXPECT_EQ(TY_OK, ty_heap_verify(heap_, nullptr, nullptr)) << ty_error_text();
    EXPECT_EQ(reported_.size(), reported_of(cache().variable, TY_DANGLING_ROLLBACK)) << reported_.back().text;
    transact(true, [&] { cache().forget(); }); // some of it may have been allocated in the committed transaction
    EXPECT_EQ(0u, kept());
    reported_.clear();
    EXPECT_EQ(TY_OK, ty_close(heap_));
    heap_ = nullptr;
    EXPECT_EQ(0u, reported_of(cache().variable, TY_DANGLING_CLOSE));
}

TEST_P(dangling_caches, are_reported_at_a_close) {
    if (GetParam().cache >= LAZY_DIRECT_CACHES)
        return; // of these alone
    for (ty_kind kind : {TY_SNAPSHOT, TY_TRANSACTIONAL, TY_VOLATILE}) {
        if (kind == TY_VOLATILE) {
            ASSERT_EQ(TY_OK, ty_heap_create(nullptr, &heap_));
        } else {
            std::filesystem::remove_all(path_);
            std::filesystem::remove_all(path_ + "-journal");
            std::filesystem::remove_all(path_ + "-log");
            open(kind);
        }
        if (kind == TY_TRANSACTIONAL)
            transact(true, [&] { cache().use('a'); });
        else
            within([&] { cache().use('a'); });
        EXPECT_EQ(0u, reported_.size());
        EXPECT_EQ(TY_OK, kind == TY_VOLATILE   ? ty_heap_destroy(heap_)
                         : kind == TY_SNAPSHOT ? ty_discard(heap_)
                                               : ty_close(heap_));
        heap_ = nullptr;
        EXPECT_LE(1u, reported_of(cache().variable, TY_DANGLING_CLOSE)) << kind;
        EXPECT_EQ(object(), reported_.empty() ? "" : reported_[0].object);
        EXPECT_EQ(kind == TY_VOLATILE ? "" : path_, reported_.empty() ? "?" : reported_[0].heap);
        reported_.clear();
        cache().abandon();
    }
}

// A block of before the transaction would be as long again after the rollback as it was: the library knows it longer.
TEST_F(dangling, what_realloc_made_longer_stays_so_after_a_rollback) {
    for (size_t bytes : {size_t{5000}, size_t{100'000}}) {
        open(TY_TRANSACTIONAL);
        transact(true, [&] { lazy_grow(bytes); });
        transact(false, [&] { lazy_grow(4 * bytes); });
        EXPECT_EQ(1u, reported_of("lazy_scratch", TY_DANGLING_ROLLBACK));
        fill_heap();
        memset(lazy_scratch, 't', 4 * bytes);
        lazy_grow(8 * bytes); // with no transaction
        EXPECT_TRUE(is_in(lazy_scratch));
        expect_others_whole();
        EXPECT_EQ(1u, kept());
        lazy_grow(10);
        free(lazy_scratch);
        lazy_scratch = nullptr;
        EXPECT_EQ(0u, kept());
        discard();
        reported_.clear();
        std::filesystem::remove_all(path_);
        std::filesystem::remove_all(path_ + "-journal");
        std::filesystem::remove_all(path_ + "-log");
    }
}

// Each is reported once; and what is kept has a bound, where a library forgets it and frees nothing.
TEST_F(dangling, what_nothing_leads_to_any_more_is_let_go) {
    open(TY_TRANSACTIONAL);
    uint64_t most = 0;
    for (int n = 0; n < 100; n++) {
        transact(false, [] {
            lazy_scratch = nullptr;
            lazy_grow(size_t{1} << 20);
        });
        most = std::max(most, kept());
    }
    EXPECT_EQ(1u, reported_.size());
    EXPECT_LE(TY_KEPT_BYTES_MAX >> 20, most);
    EXPECT_GE((TY_KEPT_BYTES_MAX >> 20) + 2, most);
    free(lazy_scratch);
    lazy_scratch = nullptr;
}

// Like reserved blocks.
TEST_F(dangling, what_was_kept_is_gone_at_the_next_open) {
    open(TY_TRANSACTIONAL);
    transact(true, [this] { EXPECT_EQ(TY_OK, ty_root_set(heap_, "text", strdup("kept"))); });
    const size_t before = blocks();
    transact(false, [] { lazy_caches[2].use('a'); });
    EXPECT_LT(before + 16, blocks());
    for (bool closes : {false, true}) {
        EXPECT_EQ(TY_OK, ty_snapshot(heap_));
        if (closes)
            EXPECT_EQ(TY_OK, ty_close(heap_));
        else
            discard();
        lazy_caches[2].abandon();
        open(TY_TRANSACTIONAL);
        EXPECT_GE(before + 1, blocks()) << "a block of the list of reserved ones";
        EXPECT_EQ(0u, kept());
        EXPECT_STREQ("kept", static_cast<char *>(ty_root(heap_, "text")));
        transact(false, [] { lazy_caches[2].use('a'); });
    }
    lazy_caches[2].abandon();
}

TEST_F(dangling, variables_of_other_threads_are_found) {
    open(TY_TRANSACTIONAL);
    std::mutex lock;
    std::condition_variable changed;
    int step = 0;
    auto go_to = [&](int next) {
        std::lock_guard guard(lock);
        step = next;
        changed.notify_all();
    };
    auto wait_for = [&](int wanted) {
        std::unique_lock guard(lock);
        changed.wait(guard, [&] { return step == wanted; });
    };
    std::thread other([&] {
        transact(true, [] { lazy_caches[1].use('a'); });
        go_to(1);
        wait_for(2);
        lazy_caches[1].abandon();
    });
    wait_for(1);
    EXPECT_EQ(TY_OK, ty_close(heap_));
    heap_ = nullptr;
    go_to(2);
    other.join();
    EXPECT_EQ(1u, reported_of("lazy_thread_local", TY_DANGLING_CLOSE));
    EXPECT_EQ(1u, reported_.size());
}

TEST_F(dangling, sound_uses_are_not_reported) {
    for (const lazy_cache &cache : lazy_caches) { // in no scope
        if (cache.prepare != nullptr)
            cache.prepare();
        cache.use('a');
    }
    open(TY_TRANSACTIONAL);
    transact(false, [] {
        for (const lazy_cache &cache : lazy_caches)
            if (cache.variable != std::string("lazy_table") && cache.variable != std::string("lazy_vector"))
                cache.use('b'); // these need nothing more
        std::vector<std::string> local(100, std::string(100, 'x'));
        free(hidden(malloc(100))); // freed again
        static_cast<void>(hidden(malloc(100)));
    });
    EXPECT_EQ(0u, kept());
    transact(true, [this] { EXPECT_EQ(TY_OK, ty_root_set(heap_, "text", strdup("kept"))); });
    EXPECT_EQ(TY_OK, ty_close(heap_));
    heap_ = nullptr;
    EXPECT_EQ(0u, reported_.size()) << reported_[0].text;
    for (const lazy_cache &cache : lazy_caches)
        cache.forget();
}

// ---- What blocks of the process's own malloc lead to.

struct handle { // of a library's object, made outside
    char *scratch;
};
void use_handle(handle *of, char filler) {
    if (of->scratch == nullptr)
        of->scratch = static_cast<char *>(malloc(200));
    memset(of->scratch, filler, 200);
}

// M11. No variable leads there.
TEST_F(dangling, an_object_that_the_stack_alone_leads_to_keeps_what_it_has) {
    open(TY_TRANSACTIONAL);
    auto *object = static_cast<handle *>(calloc(1, sizeof(handle)));
    transact(false, [&] { use_handle(object, 'a'); });
    ASSERT_EQ(1u, reported_.size());
    EXPECT_EQ("", reported_[0].object);
    EXPECT_EQ("", reported_[0].variable);
    EXPECT_TRUE(reported_[0].kept);
    EXPECT_TRUE(reported_[0].indirect);
    EXPECT_NE(std::string::npos, reported_[0].text.find("memory of the process's own at 0x")) << reported_[0].text;
    fill_heap();
    use_handle(object, 'b');
    expect_others_whole();
    EXPECT_EQ(1u, kept());
    free(object->scratch);
    EXPECT_EQ(0u, kept());
    free(object);
}

TEST_F(dangling, what_was_freed_leads_to_nothing) {
    open(TY_TRANSACTIONAL);
    std::vector<void *> freed;
    for (size_t bytes = sizeof(handle); bytes < (size_t{1} << 20); bytes *= 2)
        freed.push_back(calloc(1, bytes));
    transact(false, [&] {
        for (void *one : freed)
            use_handle(static_cast<handle *>(one), 'a');
        for (void *one : freed) {
            char *volatile *place = &static_cast<handle *>(one)->scratch;
            char *scratch = *place;
            if (one == freed[0])
                free(scratch); // of the others the block is left, and the object goes
            free(one);
        }
        freed.clear();
    });
    EXPECT_EQ(0u, kept());
    EXPECT_EQ(0u, reported_.size()) << reported_[0].text;
}

// Guard pages of stacks that a program has made of malloc's memory.
TEST_F(dangling, memory_that_was_closed_is_left_alone) {
    open(TY_TRANSACTIONAL);
    constexpr size_t page = 4096, pages = 64;
    auto *memory = static_cast<char *>(aligned_alloc(page, pages * page));
    memset(memory, 0, pages * page);
    for (size_t n = 0; n < pages; n += 2)
        ASSERT_EQ(0, mprotect(memory + n * page, page, PROT_NONE));
    auto *object = reinterpret_cast<handle *>(memory + (pages - 1) * page);
    transact(false, [&] { use_handle(object, 'a'); });
    EXPECT_EQ(1u, kept());
    EXPECT_EQ(1u, reported_.size());
    free(object->scratch);
    ASSERT_EQ(0, mprotect(memory, pages * page, PROT_READ | PROT_WRITE));
    free(memory);
}

// Threads that have used no heap but the process's own.
TEST_F(dangling, variables_of_threads_that_only_allocate_are_found) {
    open(TY_TRANSACTIONAL);
    static thread_local handle dangling_in_thread;
    std::mutex lock;
    std::condition_variable changed;
    handle *object = nullptr;
    bool ends = false;
    std::thread other([&] {
        free(hidden(malloc(100)));
        std::unique_lock guard(lock);
        object = &dangling_in_thread;
        changed.notify_all();
        changed.wait(guard, [&] { return ends; });
        use_handle(&dangling_in_thread, 'b');
        free(dangling_in_thread.scratch);
    });
    {
        std::unique_lock guard(lock);
        changed.wait(guard, [&] { return object != nullptr; });
    }
    transact(false, [&] { use_handle(object, 'a'); });
    EXPECT_EQ(1u, kept());
    EXPECT_EQ(1u, reported_of("dangling_in_thread", TY_DANGLING_ROLLBACK));
    fill_heap();
    {
        std::lock_guard guard(lock);
        ends = true;
        changed.notify_all();
    }
    other.join();
    expect_others_whole();
    EXPECT_EQ(0u, kept());
}

// pthread_setspecific; and of the keys beyond those that a thread has room for itself.
TEST_F(dangling, thread_specific_values_are_found) {
    open(TY_TRANSACTIONAL);
    std::vector<pthread_key_t> keys(40);
    for (pthread_key_t &key : keys)
        ASSERT_EQ(0, pthread_key_create(&key, nullptr));
    ASSERT_EQ(0, pthread_setspecific(keys.back(), hidden(&keys))); // what libc makes for it, it makes here
    for (const pthread_key_t key : {keys.front(), keys.back()}) {
        transact(false, [&] {
            void *made = malloc(200);
            memset(made, 'a', 200);
            static_cast<void>(pthread_setspecific(key, made));
        });
        ASSERT_EQ(1u, reported_.size());
        EXPECT_NE(std::string::npos, reported_[0].text.find("thread-specific data")) << reported_[0].text;
        EXPECT_TRUE(reported_[0].thread_local_data);
        EXPECT_EQ(key == keys.back(), reported_[0].indirect);
        EXPECT_EQ(1u, kept());
        fill_heap();
        memset(pthread_getspecific(key), 'b', 200);
        expect_others_whole();
        free(pthread_getspecific(key));
        EXPECT_EQ(0, pthread_setspecific(key, nullptr));
        EXPECT_EQ(0u, kept());
        reported_.clear();
    }
    for (pthread_key_t key : keys)
        EXPECT_EQ(0, pthread_key_delete(key));
}

// To who asks by ty_on_dangling: a program's own objects often lead to a heap that is closed.
TEST_F(dangling, what_the_process_s_own_memory_leads_to_is_reported_at_a_close) {
    for (ty_kind kind : {TY_SNAPSHOT, TY_TRANSACTIONAL}) {
        open(kind);
        auto *object = static_cast<handle *>(calloc(1, sizeof(handle)));
        auto use = [&] { use_handle(object, 'a'); };
        if (kind == TY_TRANSACTIONAL)
            transact(true, use);
        else
            within(use);
        EXPECT_EQ(TY_OK, ty_close(heap_));
        heap_ = nullptr;
        ASSERT_EQ(1u, reported_.size());
        EXPECT_TRUE(reported_[0].indirect);
        EXPECT_EQ(TY_DANGLING_CLOSE, reported_[0].reason);
        reported_.clear();
        free(object);
        std::filesystem::remove_all(path_);
        std::filesystem::remove_all(path_ + "-journal");
        std::filesystem::remove_all(path_ + "-log");
    }
}

// Others allocate and free meanwhile, and the objects move.
TEST_F(dangling, threads_that_allocate_go_on_beside_rollbacks) {
    open(TY_TRANSACTIONAL);
    std::atomic<bool> ends{false};
    std::vector<std::thread> others;
    for (int n = 0; n < 3; n++)
        others.emplace_back([&] {
            std::vector<void *> mine(200);
            for (size_t k = 0; !ends; k++) {
                free(mine[k % 200]);
                mine[k % 200] = malloc(1 + k * 37 % 40'000);
            }
            for (void *one : mine)
                free(one);
        });
    auto *object = static_cast<handle *>(calloc(1, sizeof(handle)));
    for (int n = 0; n < 50; n++) {
        transact(false, [&] { use_handle(object, 'a'); });
        EXPECT_EQ(1u, kept());
        transact(true, [&] {
            free(object->scratch);
            object->scratch = nullptr;
        });
        object = static_cast<handle *>(realloc(object, 16 + n % 2 * 30'000));
    }
    ends = true;
    for (std::thread &one : others)
        one.join();
    free(object);
    EXPECT_EQ(0u, kept());
}

std::vector<place> all_places() {
    std::vector<place> all;
    for (library of : {library{"program", nullptr}, library{"plug_in", TAIYEN_LAZY_PLUG_IN}})
        for (size_t n = 0; n < LAZY_CACHES; n++)
            all.push_back({of, n});
    return all;
}
INSTANTIATE_TEST_SUITE_P(lazy, dangling_caches, testing::ValuesIn(all_places()), [](const auto &one) {
    return std::string(one.param.of.name) + "_" + lazy_caches[one.param.cache].variable;
});

} // namespace
} // namespace taiyen::test
