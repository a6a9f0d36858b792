// Goal: containers in a transactional heap are committed whole or refused, whatever the obvious way to use them is; and
// std::pmr containers at a root are found again by another process, or refused. Method: maps, vectors and strings are
// made, filled, changed without an allocation and emptied in transactions of heaps that nobody said anything about; the
// heap is discarded and opened again after each. pmr containers are used by this program started again, whose code lies
// elsewhere. The story: commits of a std::map held its new nodes, and not the pointers to them.
#include "fixture.hpp"
#include "tests/shards.hpp"

#include <filesystem>
#include <map>
#include <memory_resource>
#include <set>
#include <sys/wait.h>
#include <taiyen/taiyen.hpp>
#include <unistd.h>
#include <unordered_map>

using namespace api_test;

namespace {

using map_type = std::map<int, int, std::less<int>, taiyen::allocator<std::pair<const int, int>>>;
using vector_type = std::vector<int, taiyen::allocator<int>>;
using string_type = std::basic_string<char, std::char_traits<char>, taiyen::allocator<char>>;

class cpp_containers : public testing::Test {
protected:
    void SetUp() override { open(); }
    void open() {
        taiyen::open_options options;
        options.limit_bytes = size_t{64} << 20;
        options.kind = TY_TRANSACTIONAL;
        options.log_bytes = size_t{1} << 20;
        options.track_stores = automatic;
        heap = std::make_unique<taiyen::heap>(taiyen::heap::open(files.path("c.ty"), options).value());
    }
    void die_and_open() {
        ASSERT_TRUE(heap->discard());
        open();
    }
    template <class T>
    T &found() {
        T *object = heap->find_root<T>("c").value();
        EXPECT_NE(nullptr, object);
        return *object;
    }

    folder files;
    bool automatic = false;
    std::unique_ptr<taiyen::heap> heap;
};

TEST_F(cpp_containers, a_map) {
    std::map<int, int> expected;
    heap->transact([&](taiyen::transaction &) { heap->root<map_type>("c", taiyen::allocator<int>(*heap)); }).value();
    for (int i = 0; i < 100; i++) {
        heap->transact([&](taiyen::transaction &) { found<map_type>()[i * 37 % 101] = i; }).value();
        expected[i * 37 % 101] = i;
        if (i % 10 == 0)
            die_and_open();
    }
    die_and_open();
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found<map_type>().begin(), found<map_type>().end()));
    heap->transact([&](taiyen::transaction &) {
            for (int i = 0; i < 50; i++)
                found<map_type>().erase(i);
        })
        .value();
    expected.erase(expected.begin(), expected.lower_bound(50));
    die_and_open();
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found<map_type>().begin(), found<map_type>().end()));
}

// In the first transaction of the process, which nobody knew to be one with containers.
TEST_F(cpp_containers, made_and_filled_in_one_transaction) {
    heap->transact([&](taiyen::transaction &) {
            auto &map = heap->root<map_type>("c", taiyen::allocator<int>(*heap));
            map[1] = 2;
            map[3] = 4;
        })
        .value();
    die_and_open();
    ASSERT_EQ(2u, found<map_type>().size());
    die_and_open();
    heap->transact([&](taiyen::transaction &) { heap->root<map_type>("c", taiyen::allocator<int>(*heap))[1] = 5; })
        .value();
    die_and_open();
    EXPECT_EQ(5, found<map_type>().at(1));
    EXPECT_EQ(4, found<map_type>().at(3));
}

// Stores that allocate nothing.
TEST_F(cpp_containers, a_vector_whose_elements_change) {
    heap->transact(
            [&](taiyen::transaction &) { heap->root<vector_type>("c", taiyen::allocator<int>(*heap)).assign(1000, 1); })
        .value();
    for (int i = 0; i < 10; i++) {
        die_and_open();
        heap->transact([&](taiyen::transaction &) {
                auto &vector = found<vector_type>();
                vector[size_t(i)] = i + 100;
                vector.pop_back();
            })
            .value();
    }
    die_and_open();
    ASSERT_EQ(990u, found<vector_type>().size());
    for (size_t i = 0; i < 10; i++)
        EXPECT_EQ(int(i) + 100, found<vector_type>()[i]);
}

TEST_F(cpp_containers, a_string_and_a_rollback) {
    heap->transact([&](taiyen::transaction &) {
            heap->root<string_type>("c", "a text that is too long for the string itself",
                                    taiyen::allocator<char>(*heap));
        })
        .value();
    const std::string before = found<string_type>().c_str(); // a copy in the heap would need a transaction
    heap->transact([&](taiyen::transaction &) {
            found<string_type>() += " and this is more";
            return false;
        })
        .value();
    EXPECT_EQ(before, found<string_type>().c_str());
    EXPECT_THROW(static_cast<void>(heap->transact([&](taiyen::transaction &) {
                     found<string_type>()[0] = 'X';
                     throw 1;
                 })),
                 int);
    EXPECT_EQ(before, found<string_type>().c_str());
    die_and_open();
    EXPECT_EQ(before, found<string_type>().c_str());
}

TEST_F(cpp_containers, of_a_heap_opened_as_automatic) {
    automatic = true;
    die_and_open();
    heap->transact([&](taiyen::transaction &txn) {
            auto &map = heap->root<map_type>("c", taiyen::allocator<int>(*heap));
            txn.declare(map).value();
            map[1] = 2;
        })
        .value();
    die_and_open();
    EXPECT_EQ(1u, found<map_type>().size());
}

// What was declared before cannot be taken over: refused before anything is stored, with what to do.
TEST_F(cpp_containers, after_a_declaration) {
    auto *word = static_cast<uint64_t *>(nullptr);
    heap->transact([&](taiyen::transaction &txn) {
            word = static_cast<uint64_t *>(txn.alloc(64).value());
            txn.set_root("word", word).value();
        })
        .value();
    heap->transact([&](taiyen::transaction &) { heap->root<map_type>("c", taiyen::allocator<int>(*heap))[1] = 2; })
        .value();
    map_type *map = &found<map_type>();
    ASSERT_EQ(TY_OK, ty_set_stores(heap->get(), TY_STORES_DECLARED)); // as if nobody had used it yet
    std::string text;
    try {
        static_cast<void>(heap->transact([&](taiyen::transaction &txn) {
            txn.declare(*word).value();
            *word = 7;
            (*map)[2] = 3;
        }));
        ADD_FAILURE() << "not refused";
    } catch (const taiyen::exception &e) {
        text = e.what();
    }
    EXPECT_NE(std::string::npos, text.find("track_stores")) << text;
    EXPECT_EQ(0u, *word);
    EXPECT_EQ(1u, map->size());
    heap->transact([&](taiyen::transaction &txn) { // the next one is automatic
            txn.declare(*word).value();
            *word = 7;
            (*map)[2] = 3;
        })
        .value();
    die_and_open();
    EXPECT_EQ(2u, found<map_type>().size());
    EXPECT_EQ(7u, *static_cast<uint64_t *>(ty_root(heap->get(), "word")));
}

// Who declares all says so, and it stays so.
TEST_F(cpp_containers, declared_by_the_program) {
    taiyen::txn_options declared;
    declared.stores = TY_STORES_DECLARED;
    heap->transact(
            [&](taiyen::transaction &) { heap->root<vector_type>("c", taiyen::allocator<int>(*heap)).reserve(100); })
        .value();
    heap->transact(
            [&](taiyen::transaction &txn) {
                EXPECT_EQ(TY_STORES_DECLARED, ty_txn_stores(txn.get()));
                auto &vector = found<vector_type>();
                txn.declare(vector).value();
                txn.declare_bytes(vector.data(), vector.capacity() * sizeof(int)).value();
                vector.push_back(5);
                EXPECT_EQ(TY_STORES_DECLARED, ty_txn_stores(txn.get()));
            },
            declared)
        .value();
    die_and_open();
    ASSERT_EQ(1u, found<vector_type>().size());
    EXPECT_EQ(5, found<vector_type>()[0]);
}

// Heaps without containers are as before.
TEST_F(cpp_containers, plain_structs_are_declared) {
    heap->transact([&](taiyen::transaction &txn) {
            EXPECT_EQ(TY_STORES_DEFAULT, ty_txn_stores(txn.get()));
            txn.set_root("c", txn.alloc(64).value()).value();
        })
        .value();
    heap->transact([&](taiyen::transaction &txn) {
            uint64_t &word = *heap->find_root<uint64_t>("c").value();
            txn.declare(word).value();
            word = 9;
            EXPECT_EQ(TY_STORES_DEFAULT, ty_txn_stores(txn.get()));
        })
        .value();
}

// ---- std::pmr

using words_type = std::pmr::unordered_map<std::pmr::string, std::pmr::map<int, std::pmr::vector<std::pmr::string>>>;

TEST_F(cpp_containers, a_pmr_container_with_another_resource_is_refused) {
    taiyen::heap plain = taiyen::heap::open(files.path("pmr.ty")).value();
    for (std::pmr::memory_resource *resource : {plain.resource(), std::pmr::new_delete_resource()}) {
        auto made = plain.find_or_make_root<words_type>("words", resource);
        ASSERT_FALSE(made);
        EXPECT_EQ(TY_E_MISMATCH, made.status());
        EXPECT_NE(std::string::npos, made.error().text().find("lasting_resource")) << made.error().text();
        EXPECT_EQ(nullptr, ty_root(plain.get(), "words"));
    }
    plain.close().value();
}

TEST_F(cpp_containers, a_pmr_container_in_transactions) {
    for (int i = 0; i < 5; i++) {
        heap->transact([&](taiyen::transaction &) {
                auto &vector = heap->root<std::pmr::vector<int>>("c", heap->lasting_resource().value());
                vector.push_back(i);
            })
            .value();
        die_and_open();
    }
    auto &vector = *heap->find_root<std::pmr::vector<int>>("c").value();
    EXPECT_EQ((std::vector<int>{0, 1, 2, 3, 4}), std::vector<int>(vector.begin(), vector.end()));
}

// Readers once stored into the resource, whose page is read-only.
TEST_F(cpp_containers, a_pmr_container_is_read) {
    for (ty_kind kind : {TY_SNAPSHOT, TY_TRANSACTIONAL}) {
        taiyen::open_options options;
        options.kind = kind;
        std::string path = files.path(kind == TY_SNAPSHOT ? "read.ty" : "read-transactional.ty");
        taiyen::heap writer = taiyen::heap::open(path, options).value();
        auto fill = [&] {
            writer.root<words_type>("words", writer.lasting_resource().value())["a"][1].emplace_back("one");
            std::memset(ty_root(writer.get(), "taiyen.memory_resource"), 1, sizeof(void *)); // as another process's
        };
        if (kind == TY_SNAPSHOT)
            fill();
        else
            writer.transact([&](taiyen::transaction &) { fill(); }).value();
        writer.close().value();
        options.mode = TY_OPEN_READ_ONLY;
        taiyen::heap reader = taiyen::heap::open(path, options).value();
        EXPECT_THROW(static_cast<void>(reader.lasting_resource().value()->allocate(8)), std::bad_alloc);
        auto found = reader.find_root<words_type>("words");
        ASSERT_TRUE(found) << found.error().text();
        EXPECT_EQ("one", found.value()->at("a").at(1).front());
        EXPECT_EQ(found.value(), &reader.root<words_type>("words", reader.lasting_resource().value()));
        reader.close().value();
    }
}

// One run of the program below. The exit code is the number of words that it found.
int use_words(const char *path) {
    auto heap = taiyen::heap::open(path).value();
    auto &words = heap.root<words_type>("words", heap.lasting_resource().value());
    size_t before = words.size();
    for (const auto &[key, rows] : words)
        if (rows.size() != 1 || rows.begin()->second.size() != 1)
            return 100;
    std::pmr::string key("a long string that does not fit in the string itself, run ", heap.resource());
    key += std::to_string(before);
    words[key][int(before)].emplace_back("another long string, in a vector in a map in an unordered_map");
    if (before >= 2)
        words.erase(words.begin());
    heap.close().value();
    return int(before);
}

TEST_F(cpp_containers, a_pmr_container_in_another_process) {
    const char *again = getenv("TAIYEN_TEST_PMR");
    if (again) {
        const int words = use_words(again);
        heap->close().value();
        std::filesystem::remove_all(files.path(""));
        _exit(words);
    }
    std::string path = files.path("words.ty");
    for (int expected : {0, 1, 2, 2}) {
        pid_t child = fork();
        if (child == 0) {
            setenv("TAIYEN_TEST_PMR", path.c_str(), 1);
            taiyen::test::leave_shards();
            execl("/proc/self/exe", "test_api", "--gtest_filter=cpp_containers.a_pmr_container_in_another_process",
                  static_cast<char *>(nullptr));
            _exit(99);
        }
        int status = -1;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        ASSERT_TRUE(WIFEXITED(status)) << status;
        ASSERT_EQ(expected, WEXITSTATUS(status));
    }
}

} // namespace

TEST(cpp_allocators, align_no_bytes_too) {
    for (ty_class_table table : {TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE}) {
        taiyen::heap_options options;
        options.classes = table;
        taiyen::heap heap = taiyen::heap::create(options).value();
        taiyen::allocator<long double> numbers(heap.view());
        for (size_t i = 0; i < 5; i++) {
            EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers.allocate(0)) % 16, 0u);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(heap.resource()->allocate(0, 16)) % 16, 0u);
            for (size_t size : {0u, 16u, 48u, 65536u, 70'000u})
                EXPECT_EQ(reinterpret_cast<uintptr_t>(ty_alloc(heap.get(), size)) % 16, 0u) << size;
        }
        EXPECT_EQ(ty_heap_destroy(heap.release()), TY_OK);
    }
}
