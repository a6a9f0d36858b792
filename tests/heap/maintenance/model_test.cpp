// Goal: whatever is done to a heap, it behaves like the plain model of a heap: blocks that are big enough, aligned, do
// not overlap, keep their content, and are exactly those that were allocated and not freed.
// Method: seeded random operations on a heap and on a map of intervals with a pattern for each block; verify, iteration
// and look-ups are compared now and then; detach and attach in between.
#include "../heap_fixture.hpp"
#include <map>

namespace taiyen::test {
namespace {

struct model_block {
    size_t size;
    size_t usable;
    unsigned char pattern;
    bool plain; // as a plain allocation of its size gives it: neither aligned nor resized
};

class model {
public:
    model(memory_heap &memory, uint64_t seed) : memory_(memory), random_{seed} {}

    void step() {
        switch (random_.below(16)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
        case 5:
            allocate(0, false);
            break;
        case 6:
            allocate(size_t{1} << random_.below(17), random_.below(2) != 0);
            break;
        case 7:
            allocate(0, true);
            break;
        case 8:
            allocate_at();
            break;
        case 9:
        case 10:
            resize();
            break;
        case 11:
            resize_in_place();
            break;
        default:
            release();
        }
    }

    void check() {
        ASSERT_EQ(problems_of(memory_.heap), "");
        auto expected = blocks_.begin();
        struct context {
            model *self;
            std::map<char *, model_block>::iterator *at;
        } walk{this, &expected};
        ty_status status = heap_each_block(
            memory_.heap,
            [](const ty_block *block, void *argument) {
                context *c = static_cast<context *>(argument);
                EXPECT_NE(*c->at, c->self->blocks_.end());
                if (*c->at == c->self->blocks_.end())
                    return false;
                EXPECT_EQ(block->address, (*c->at)->first);
                EXPECT_EQ(block->size_bytes, (*c->at)->second.usable);
                ++*c->at;
                return true;
            },
            &walk);
        ASSERT_EQ(status, TY_OK);
        ASSERT_EQ(expected, blocks_.end());
        for (const auto &[address, block] : blocks_)
            check_content(address, block, block.size);
        check_stats();
    }

    void release_all() {
        while (!blocks_.empty())
            release();
    }

    size_t count() const { return blocks_.size(); }
    const std::map<char *, model_block> &blocks() const { return blocks_; }

private:
    size_t random_size() {
        switch (random_.below(40)) {
        case 0:
            return random_.below(20) == 0 ? random_.below(600'000) : random_.below(60'000);
        case 1:
        case 2:
            return random_.below(40'000);
        case 3:
            return 0;
        default:
            return random_.below(random_.below(4) == 0 ? 4096 : 512);
        }
    }

    void check_content(const char *address, const model_block &block, size_t bytes) {
        for (size_t i = 0; i < bytes; i += i + 64 < bytes ? 61 : 1)
            ASSERT_EQ(static_cast<unsigned char>(address[i]), static_cast<unsigned char>(block.pattern + i / 64));
    }

    static void fill(char *address, const model_block &block) {
        for (size_t i = 0; i < block.size; i++)
            address[i] = static_cast<char>(block.pattern + i / 64);
    }

    void add(char *address, size_t size, bool plain) {
        size_t usable = heap_usable_size(address);
        ASSERT_GE(usable, size);
        auto after = blocks_.lower_bound(address);
        if (after != blocks_.end()) {
            ASSERT_LE(address + usable, after->first);
        }
        if (after != blocks_.begin()) {
            auto before = std::prev(after);
            ASSERT_LE(before->first + before->second.usable, address);
        }
        model_block block{size, usable, static_cast<unsigned char>(random_.next()), plain};
        fill(address, block);
        blocks_[address] = block;
    }

    void allocate(size_t alignment, bool zeroed) {
        size_t size = random_size();
        char *address = static_cast<char *>(heap_alloc(memory_.heap, size, alignment, zeroed));
        ASSERT_NE(address, nullptr) << ty_error_text();
        size_t natural = size != 0 && size % 16 == 0 ? 16 : 8;
        ASSERT_EQ(reinterpret_cast<uintptr_t>(address) % (alignment != 0 ? alignment : natural), 0u);
        if (zeroed) {
            for (size_t i = 0; i < size; i++)
                ASSERT_EQ(address[i], 0);
        }
        add(address, size, alignment == 0);
    }

    std::map<char *, model_block>::iterator pick() {
        if (blocks_.empty())
            return blocks_.end();
        char *lowest = blocks_.begin()->first;
        char *highest = blocks_.rbegin()->first;
        auto found = blocks_.lower_bound(lowest + random_.below(static_cast<uint64_t>(highest - lowest) + 1));
        return found == blocks_.end() ? blocks_.begin() : found;
    }

    void release() {
        auto found = pick();
        if (found == blocks_.end())
            return;
        check_content(found->first, found->second, found->second.size);
        ASSERT_EQ(heap_free(found->first), TY_OK) << ty_error_text();
        ASSERT_EQ(heap_free(found->first), TY_E_ARGUMENT);
        blocks_.erase(found);
    }

    // Frees a block and allocates it again by its address; and what is in use cannot be allocated.
    void allocate_at() {
        auto found = pick();
        if (found == blocks_.end())
            return;
        auto [address, block] = *found;
        if (!block.plain)
            return; // the size alone does not lead to such a block
        ASSERT_EQ(heap_alloc_at(memory_.heap, address, block.size), TY_E_EXISTS);
        ASSERT_EQ(heap_free(address), TY_OK);
        blocks_.erase(found);
        ASSERT_EQ(heap_alloc_at(memory_.heap, address, block.size), TY_OK) << ty_error_text();
        add(address, block.size, true);
    }

    void resize() {
        auto found = pick();
        if (found == blocks_.end())
            return;
        auto [address, block] = *found;
        size_t size = random_.below(3) == 0 ? random_size() : random_.below(2 * block.size + 100);
        char *moved = static_cast<char *>(heap_resize(address, size));
        ASSERT_NE(moved, nullptr) << ty_error_text();
        check_content(moved, block, size < block.size ? size : block.size);
        blocks_.erase(found);
        add(moved, size, false);
    }

    void resize_in_place() {
        auto found = pick();
        if (found == blocks_.end())
            return;
        auto [address, block] = *found;
        size_t size = random_.below(2 * block.size + 100);
        if (heap_resize_in_place(address, size) != TY_OK) {
            ASSERT_EQ(heap_usable_size(address), block.usable);
            return;
        }
        check_content(address, block, size < block.size ? size : block.size);
        blocks_.erase(found);
        add(address, size, false);
    }

    void check_stats() {
        ty_heap_stats stats{};
        stats.struct_size = sizeof stats;
        ASSERT_EQ(heap_get_stats(memory_.heap, &stats), TY_OK);
        size_t bytes = 0;
        for (const auto &entry : blocks_)
            bytes += entry.second.usable;
        ASSERT_EQ(stats.live_blocks, blocks_.size());
        ASSERT_EQ(stats.live_bytes, bytes);
        ASSERT_GE(stats.availability, 0);
        ASSERT_LE(stats.availability, 1);
    }

    memory_heap &memory_;
    random_source random_;
    std::map<char *, model_block> blocks_;
};

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t seeds = 1;
constexpr int steps = 10'000;
#else
constexpr uint64_t seeds = 4;
constexpr int steps = 60'000;
#endif

class heap_model : public testing::TestWithParam<ty_class_table> {};

TEST_P(heap_model, random_operations) {
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        memory_heap memory(GetParam());
        model plain(memory, seed);
        for (int i = 0; i < steps && !HasFatalFailure(); i++) {
            plain.step();
            if (i % (steps / 6) == 0)
                plain.check();
            if (i % (steps / 3) == steps / 4)
                memory.reattach();
        }
        ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
        plain.check();
        plain.release_all();
        plain.check();
        ty_heap_stats stats{};
        ASSERT_EQ(heap_get_stats(memory.heap, &stats), TY_OK);
        ASSERT_EQ(stats.free_extents, 1u) << "all free pages are one run again";
        ASSERT_GT(stats.availability, 0.95);
    }
}

INSTANTIATE_TEST_SUITE_P(tables, heap_model, testing::Values(TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE));

} // namespace
} // namespace taiyen::test
