// Goal: within a scope, code that knows nothing of Taiyen allocates in a heap, and nothing else does; blocks are freed
// and resized where they lie; what cannot be sound is refused.
// Method: each function of the family, standard containers, exceptions, streams, threads and snapshots in scopes; heaps
// that are closed and opened again.
#include "scope_support.hpp"
#include <clocale>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <vector>

namespace taiyen::test {
namespace {

TEST_F(scopes, the_whole_family_allocates_in_the_heap) {
    open();
    size_t before = blocks();
    std::vector<void *> made(20);
    size_t count = 0;
    within([&] {
        auto add = [&](void *block) { made[count++] = hidden(block); };
        add(malloc(100));
        add(malloc(opaque(100'000)));
        add(calloc(10, 10));
        add(calloc(1000, 100));
        add(realloc(nullptr, 50));
        add(realloc(malloc(20), 5000));
        add(reallocarray(nullptr, 5, 5));
        add(aligned_alloc(64, 128));
        void *block = nullptr;
        if (posix_memalign(&block, 256, 100) == 0)
            add(block);
        add(memalign(32, 10));
        add(valloc(10));
        add(pvalloc(10));
        add(::operator new(40));
        add(::operator new[](opaque(70'000)));
        add(::operator new (100, std::align_val_t{128}));
        add(strdup("abc"));
        add(strndup("abcdef", 3));
    });
    ASSERT_EQ(17u, count);
    EXPECT_STREQ("abc", static_cast<char *>(made[15]));
    EXPECT_STREQ("abc", static_cast<char *>(made[16]));
    for (size_t i = 0; i < count; i++)
        EXPECT_TRUE(is_in(made[i])) << i;
    EXPECT_EQ(before + count, blocks());
    EXPECT_TRUE(aligned(made[7], 64) && aligned(made[8], 256) && aligned(made[14], 128) && aligned(made[0], 16));
    EXPECT_LE(100u, malloc_usable_size(made[0]));
    made[0] = realloc(made[0], 300'000);
    EXPECT_TRUE(is_in(made[0])) << "resized outside of the scope";
    std::thread([&] {
        for (size_t i = 0; i < count; i++)
            free(made[i]);
    }).join();
    EXPECT_EQ(before, blocks());
}

// M7.
TEST_F(scopes, blocks_of_the_process_stay_its_own) {
    open();
    size_t before = blocks();
    void *block = malloc(100), *other = malloc(3000);
    fill(block, 100, 3);
    within([&] {
        block = realloc(block, 2000);
        free(other);
    });
    EXPECT_FALSE(is_in(block));
    EXPECT_TRUE(filled(block, 100, 3));
    EXPECT_EQ(before, blocks());
    free(block);
}

// M6. Else the next one after the heap was closed would free what is no block any more.
TEST_F(scopes, setlocale_keeps_its_names_elsewhere) {
    open();
    const size_t before = blocks();
    bool set = false;
    within([&] { set = setlocale(LC_ALL, "C.UTF-8") != nullptr; });
    EXPECT_TRUE(set);
    EXPECT_EQ(before, blocks());
    discard();
    EXPECT_NE(nullptr, setlocale(LC_ALL, "C"));
}

TEST_F(scopes, they_nest_and_are_a_threads_own) {
    open();
    ty_heap *other = nullptr;
    ASSERT_EQ(TY_OK, ty_heap_create(nullptr, &other));
    void *made[5] = {};
    std::thread beside;
    within([&] {
        made[0] = malloc(10);
        if (ty_enter(other) == TY_OK) {
            made[1] = malloc(10);
            if (ty_enter(nullptr) == TY_OK) {
                made[2] = malloc(10);
                beside = std::thread([&] { made[4] = malloc(10); });
                ty_leave();
            }
            ty_leave();
        }
        made[3] = malloc(10);
    });
    beside.join();
    EXPECT_TRUE(is_in(made[0]) && is_in(made[3]));
    EXPECT_EQ(other, ty_heap_of(made[1]));
    void *plain = malloc(10);
    EXPECT_EQ(ty_heap_of(plain), ty_heap_of(made[2]));
    EXPECT_EQ(ty_heap_of(plain), ty_heap_of(made[4]));
    free(plain);
    for (void *block : made)
        free(block);
    EXPECT_EQ(TY_OK, ty_heap_destroy(other));
    EXPECT_EQ(TY_E_ARGUMENT, ty_leave());
    for (unsigned i = 0; i < TY_SCOPES_MAX; i++)
        ASSERT_EQ(TY_OK, ty_enter(nullptr));
    EXPECT_EQ(TY_E_MEMORY, ty_enter(nullptr));
    for (unsigned i = 0; i < TY_SCOPES_MAX; i++)
        ASSERT_EQ(TY_OK, ty_leave());
}

// M6.
TEST_F(scopes, exceptions_leave_them_and_lie_elsewhere) {
    open();
    size_t before = blocks();
    try {
        auto entered = scope::enter(heap_view(heap_));
        ASSERT_TRUE(entered);
        throw std::runtime_error("a text that is too long for a string without memory of its own");
    } catch (const std::exception &caught) {
        EXPECT_EQ(before, blocks());
        EXPECT_FALSE(is_in(&caught) || is_in(caught.what()));
    }
    void *block = malloc(10);
    EXPECT_FALSE(is_in(block));
    free(block);
}

// M6.
TEST_F(scopes, streams_threads_and_the_library_allocate_elsewhere) {
    open();
    size_t before = blocks(), with_file = 0, with_heap = 0;
    bool in_order = true;
    within([&] {
        FILE *file = fopen("/dev/null", "w");
        in_order &= file != nullptr && fprintf(file, "%d\n", 1) > 0;
        with_file = blocks();
        in_order &= file != nullptr && fclose(file) == 0;
        pthread_t thread;
        in_order &= pthread_create(
                        &thread, nullptr, [](void *) -> void * { return nullptr; }, nullptr) == 0;
        in_order &= pthread_join(thread, nullptr) == 0;
        ty_heap *other = nullptr; // the library's own blocks
        std::filesystem::path::value_type second[200];
        snprintf(second, sizeof second, "%s/other", folder_.c_str());
        in_order &= ty_open(second, nullptr, &other, nullptr) == TY_OK;
        in_order &= ty_snapshot(heap_) == TY_OK;
        with_heap = blocks();
        in_order &= ty_close(other) == TY_OK;
    });
    EXPECT_TRUE(in_order);
    EXPECT_EQ(before, with_file);
    EXPECT_EQ(before, with_heap);
    EXPECT_EQ(before, blocks());
}

using words = std::unordered_map<std::string, std::vector<int>>;

TEST_F(scopes, standard_containers_are_there_after_a_crash) {
    open();
    words *map = nullptr;
    within([&] {
        map = new words;
        for (int i = 0; i < 1000; i++)
            (*map)["a word that is longer than the string itself has room for " + std::to_string(i % 100)].push_back(i);
    });
    ASSERT_EQ(TY_OK, ty_root_set(heap_, "words", map));
    ASSERT_EQ(TY_OK, ty_snapshot(heap_));
    discard();
    open();
    map = static_cast<words *>(ty_root(heap_, "words"));
    ASSERT_NE(nullptr, map);
    ASSERT_EQ(100u, map->size());
    for (const auto &[word, places] : *map)
        EXPECT_TRUE(is_in(word.data()) && is_in(places.data()) && places.size() == 10);
    within([&] {
        map->erase(map->begin());
        (*map)["another"].push_back(1);
    });
    EXPECT_EQ(100u, map->size());
    size_t before = blocks();
    delete map; // in no scope
    EXPECT_GT(before, blocks() + 300);
}

// M8.
TEST_F(scopes, a_transactional_heap_needs_a_transaction_whose_stores_are_found) {
    open(TY_TRANSACTIONAL);
    EXPECT_EQ(TY_E_ARGUMENT, ty_enter(heap_));
    ty_txn_options declared = TY_TXN_OPTIONS_INIT;
    declared.stores = TY_STORES_DECLARED;
    ty_txn *txn = nullptr;
    ASSERT_EQ(TY_OK, ty_begin(heap_, &declared, &txn));
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_enter(heap_));
    ASSERT_EQ(TY_OK, ty_rollback(txn));
    std::map<int, std::string> *map = nullptr;
    auto add = [&](int from) {
        for (int i = from; i < from + 50; i++)
            (*map)[i] = std::to_string(i) + " and so many letters that they need a block of their own";
    };
    ASSERT_EQ(TY_OK, ty_begin(heap_, nullptr, &txn));
    within([&] {
        map = new std::map<int, std::string>;
        add(0);
    });
    ASSERT_EQ(TY_OK, ty_root_set(heap_, "map", map));
    ASSERT_EQ(TY_OK, ty_commit(txn));
    ASSERT_EQ(TY_OK, ty_begin(heap_, nullptr, &txn));
    within([&] { add(1000); });
    EXPECT_EQ(100u, map->size());
    ASSERT_EQ(TY_OK, ty_rollback(txn));
    EXPECT_EQ(50u, map->size());
    ASSERT_EQ(TY_OK, ty_begin(heap_, nullptr, &txn));
    within([&] { add(500); });
    ASSERT_EQ(TY_OK, ty_commit(txn));
    discard();
    open(TY_TRANSACTIONAL);
    map = static_cast<std::map<int, std::string> *>(ty_root(heap_, "map"));
    ASSERT_NE(nullptr, map);
    EXPECT_EQ(100u, map->size());
    EXPECT_EQ("549", map->at(549).substr(0, 3));
}

TEST_F(scopes, heaps_that_cannot_be_are_refused) {
    open();
    ASSERT_EQ(TY_OK, ty_close(heap_));
    EXPECT_EQ(TY_E_ARGUMENT, ty_enter(heap_)) << "closed";
    open(TY_KIND_DEFAULT, false, TY_OPEN_READ_ONLY);
    EXPECT_EQ(TY_E_PERMISSION, ty_enter(heap_));
    discard();
    path_ += "-concurrent";
    open(TY_TRANSACTIONAL, true);
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_enter(heap_)) << ty_error_text();
    EXPECT_NE(nullptr, strstr(ty_error_text(), "concurrent")) << ty_error_text();
    void *block = malloc(10);
    EXPECT_FALSE(is_in(block));
    free(block);
}

TEST_F(scopes, a_block_of_a_closed_heap_is_none) {
    open();
    void *block = nullptr, *late = nullptr;
    ASSERT_EQ(TY_OK, ty_enter(heap_));
    block = hidden(malloc(100));
    ASSERT_EQ(TY_OK, ty_close(heap_));
    late = hidden(malloc(100));
    ASSERT_EQ(TY_OK, ty_leave());
    heap_ = nullptr;
    EXPECT_EQ(nullptr, late);
    EXPECT_DEATH(free(block), "taiyen-malloc: free: cannot free");
}

// What nothing leads to, with the blocks of each site.
struct lost {
    size_t blocks = 0, bytes = 0, sites = 0;
    std::string text;
};
bool take_lost(const ty_site_use *use, void *context) {
    auto &all = *static_cast<lost *>(context);
    all.blocks += use->block_count;
    all.bytes += use->total_bytes;
    all.sites += use->site.frame_count != 0;
    all.text += use->text;
    return true;
}

struct chain {
    chain *next;
    char *text;
    uint64_t numbers[2];
};
chain *forgotten_in_the_program = nullptr;

[[gnu::noinline]] char *allocate_here(size_t bytes) {
    return static_cast<char *>(malloc(bytes));
}

TEST_F(scopes, report_by_site_what_nothing_leads_to) {
    open();
    ASSERT_EQ(TY_OK, ty_note_sites(true));
    std::vector<chain *> all(10);
    char *lost_text = nullptr;
    within([&] {
        for (chain *&one : all)
            one = static_cast<chain *>(calloc(1, sizeof(chain)));
        for (size_t n = 0; n + 1 < all.size(); n++)
            all[n]->next = all[n + 1];
        all[3]->text = static_cast<char *>(malloc(100)) + 50; // into the midst
        all[4]->next = nullptr;                               // 5 to 9 are lost, and lead to each other
        all[9]->next = all[5];
        forgotten_in_the_program = all[5];
        lost_text = allocate_here(1000);
        free(allocate_here(5000));
        lost_text = static_cast<char *>(realloc(lost_text, 3000));
    });
    ASSERT_EQ(TY_OK, ty_root_set(heap_, "chain", all[0]));
    lost found;
    ASSERT_EQ(TY_OK, ty_each_unreachable(heap_, take_lost, &found)) << ty_error_text();
    EXPECT_EQ(6u, found.blocks) << found.text;
    EXPECT_EQ(5 * ty_usable_size(all[5]) + ty_usable_size(lost_text), found.bytes);
    EXPECT_EQ(2u, found.sites) << found.text;
    EXPECT_NE(std::string::npos, found.text.find("are reached from no root")) << found.text;
    // Frees are seen also when sites are not noted any more; and a heap that is opened again reports the same.
    ASSERT_EQ(TY_OK, ty_note_sites(false));
    within([&] { free(lost_text); });
    ASSERT_EQ(TY_OK, ty_snapshot(heap_));
    discard();
    open();
    found = {};
    ASSERT_EQ(TY_OK, ty_each_unreachable(heap_, take_lost, &found));
    EXPECT_EQ(5u, found.blocks) << found.text;
    ASSERT_EQ(TY_OK, ty_root_set(heap_, "others", all[7]));
    found = {};
    ASSERT_EQ(TY_OK, ty_each_unreachable(heap_, take_lost, &found));
    EXPECT_EQ(0u, found.blocks) << found.text;
}

// Of two places that allocate, each has what it allocated last and was not freed, however many came and went.
TEST_F(scopes, sites_of_many_blocks) {
    open();
    ASSERT_EQ(TY_OK, ty_note_sites(true));
    constexpr size_t count = 20000;
    std::vector<void *> blocks(count);
    std::vector<bool> second(count);
    std::mt19937 random(7);
    size_t expected[2] = {0, 0};
    within([&] {
        for (size_t n = 0; n < 5 * count; n++) {
            const size_t at = random() % count;
            free(blocks[at]);
            blocks[at] = nullptr;
            second[at] = random() % 3 == 0;
            const size_t bytes = 8 + random() % 400; // so that addresses are no regular row
            if (random() % 4 != 0)
                blocks[at] = second[at] ? malloc(bytes) : allocate_here(bytes);
        }
    });
    for (size_t n = 0; n < count; n++)
        expected[second[n]] += blocks[n] != nullptr;
    std::vector<size_t> reported;
    ASSERT_EQ(TY_OK, ty_each_unreachable(
                         heap_,
                         [](const ty_site_use *use, void *context) {
                             static_cast<std::vector<size_t> *>(context)->push_back(use->block_count);
                             return true;
                         },
                         &reported));
    ASSERT_EQ(2u, reported.size());
    EXPECT_EQ(expected[0], reported[0]);
    EXPECT_EQ(expected[1], reported[1]);
    ASSERT_EQ(TY_OK, ty_note_sites(false));
}

// The library's own are none, though no root of the program leads there.
TEST_F(scopes, the_library_s_blocks_are_not_lost) {
    open();
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    ASSERT_EQ(TY_OK, ty_undo_attach(heap_, &options)) << ty_error_text();
    void *block = ty_alloc(heap_, 100), *freed = ty_alloc(heap_, 200);
    ASSERT_EQ(TY_OK, ty_root_set(heap_, "one", block));
    ASSERT_EQ(TY_OK, ty_undo_begin(heap_, "a block that is freed, and held"));
    ASSERT_EQ(TY_OK, ty_undo_free(heap_, freed)) << ty_error_text();
    ASSERT_EQ(TY_OK, ty_undo_end(heap_));
    lost found;
    ASSERT_EQ(TY_OK, ty_each_unreachable(heap_, take_lost, &found)) << ty_error_text();
    EXPECT_EQ(0u, found.blocks) << found.text;
    EXPECT_EQ(TY_E_ARGUMENT, ty_each_unreachable(nullptr, take_lost, &found));
    EXPECT_EQ(TY_E_ARGUMENT, ty_each_unreachable(heap_, nullptr, nullptr));
    ty_heap *volatile_heap = nullptr;
    ASSERT_EQ(TY_OK, ty_heap_create(nullptr, &volatile_heap));
    EXPECT_EQ(TY_E_ARGUMENT, ty_each_unreachable(volatile_heap, take_lost, &found));
    ASSERT_EQ(TY_OK, ty_heap_destroy(volatile_heap));
}

} // namespace
} // namespace taiyen::test
