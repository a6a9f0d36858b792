// Goal: maps that somebody hostile made, whose lists have no end or are in several places at once, do not keep a move
// from ending, nor lead it out of live blocks. Method: maps whose keys are addresses; words of their blocks get
// addresses of other blocks of that size, and a fix calls the hooks of the maps, with nothing moved.
#include "fixture.hpp"
#include "tests/effort.hpp"
#include <random>
#include <taiyen/containers.hpp>
#include <taiyen/types.hpp>

using namespace taiyen::test;
using taiyen::atomic_txn;

namespace {

struct maps {
    taiyen::hash_map<const void *, long> numbers;
    taiyen::ordered_map<const void *, long> ranks;
};

struct heap_of_maps {
    explicit heap_of_maps(long count) {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = size_t{256} << 20;
        options.concurrent = true;
        EXPECT_EQ(ty_heap_create(&options, &heap), TY_OK) << ty_error_text();
        taiyen::heap_view(heap).atomically([&](atomic_txn &txn) {
            all = &txn.root<maps>("maps");
            for (long n = 0; n < count; ++n) {
                auto *key = reinterpret_cast<const void *>(n * 16 + 1);
                all->numbers.put(txn, key, n);
                all->ranks.put(txn, key, n);
            }
        });
        EXPECT_EQ(ty_types_root(descriptors.get(), "maps", taiyen::descriptor_of<maps>(), nullptr), TY_OK)
            << ty_error_text();
        auto note = [](const ty_block *block, void *context) {
            static_cast<heap_of_maps *>(context)->blocks.push_back(*block);
            return true;
        };
        EXPECT_EQ(ty_each_block(heap, note, this), TY_OK);
    }
    ~heap_of_maps() { EXPECT_EQ(ty_heap_destroy(heap), TY_OK); }
    heap_of_maps(const heap_of_maps &) = delete;

    // Calls the hooks.
    void expect_an_end() const {
        auto stay = [](const void *address, void *) { return const_cast<void *>(address); };
        EXPECT_EQ(ty_fix_pointers(heap, descriptors.get(), stay, nullptr, nullptr), TY_OK) << ty_error_text();
        EXPECT_EQ(ty_heap_verify(heap, nullptr, nullptr), TY_OK) << ty_error_text();
    }
    // Words that lead to the start of a block.
    std::vector<void **> links() const {
        std::vector<void **> found;
        for (const ty_block &block : blocks)
            for (auto **word = static_cast<void **>(block.address);
                 word < static_cast<void **>(block.address) + block.size_bytes / 8; ++word)
                if (ty_usable_size(*word) != 0)
                    found.push_back(word);
        return found;
    }

    ty_heap *heap = nullptr;
    maps *all = nullptr;
    descriptors_owner descriptors = new_descriptors();
    std::vector<ty_block> blocks;
};

} // namespace

TEST(hostile_maps, links_to_other_blocks) {
    for (unsigned seed = 0; seed < unsigned(effort(150)); ++seed) {
        std::mt19937 dice(seed);
        heap_of_maps one(seed % 3 ? 2000 : 5);
        std::vector<void **> links = one.links();
        for (size_t n = 1 + dice() % 20; n > 0; --n) {
            void **word = links[dice() % links.size()];
            for (int tries = 0; tries < 20; ++tries) {
                const ty_block &other = one.blocks[dice() % one.blocks.size()];
                if (seed % 2 || other.size_bytes == ty_usable_size(*word)) // of another type, or of the same
                    *word = other.address;
            }
        }
        SCOPED_TRACE(seed);
        one.expect_an_end();
    }
}

// Each list of a ring, and each that is shared; tables that lead to themselves, or all to one.
TEST(hostile_maps, rings) {
    for (int kind = 0; kind < 3; ++kind) {
        heap_of_maps one(2000);
        void *last = nullptr;
        for (void **word : one.links()) {
            ty_block in;
            ASSERT_EQ(ty_block_of(word, &in), TY_OK);
            if (kind == 0 && word == in.address) // an entry's next
                *word = in.address;
            else if (kind == 1 && ty_usable_size(*word) == in.size_bytes)
                *word = in.address;
            else if (kind == 2 && last && ty_usable_size(*word) == ty_usable_size(last))
                *word = last;
            last = *word;
        }
        one.expect_an_end();
    }
}

// What is whole is put in order, however large.
TEST(hostile_maps, whole_ones_are_put_in_order) {
    heap_of_maps one(20000);
    one.expect_an_end();
    EXPECT_EQ(one.all->numbers.size(), 20000u);
    for (long n = 0; n < 20000; n += 7) {
        EXPECT_EQ(one.all->numbers.get(reinterpret_cast<const void *>(n * 16 + 1)), n);
        EXPECT_EQ(one.all->ranks.get(reinterpret_cast<const void *>(n * 16 + 1)), n);
    }
}
