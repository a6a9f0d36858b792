// Moves the blocks of a heap without the library's help: as unpacking and defragmenting do.
#pragma once

#include "fixture.hpp"

#include <algorithm>
#include <map>
#include <random>

namespace taiyen::test {

inline std::vector<ty_block> blocks_of(ty_heap *heap) {
    std::vector<ty_block> blocks;
    auto note = [](const ty_block *block, void *context) {
        static_cast<std::vector<ty_block> *>(context)->push_back(*block);
        return true;
    };
    EXPECT_EQ(ty_each_block(heap, note, &blocks), TY_OK);
    return blocks;
}

// From each old block to its new place.
struct move_map {
    struct moved_block {
        size_t bytes;
        char *to;
    };
    std::map<char *, moved_block> blocks;

    static void *moved(const void *address, void *context) {
        auto &blocks = static_cast<move_map *>(context)->blocks;
        auto *at = static_cast<char *>(const_cast<void *>(address));
        auto found = blocks.upper_bound(at);
        if (found == blocks.begin())
            return nullptr;
        --found;
        return at < found->first + found->second.bytes ? found->second.to + (at - found->first) : nullptr;
    }
    void *operator()(const void *address) { return moved(address, this); }
};

inline void move_roots(ty_heap *from, ty_heap *to, move_map &moved) {
    std::vector<std::pair<std::string, void *>> roots;
    auto note = [](const char *name, void *address, void *context) {
        static_cast<std::vector<std::pair<std::string, void *>> *>(context)->emplace_back(name, address);
        return true;
    };
    ASSERT_EQ(ty_each_root(from, note, &roots), TY_OK);
    for (const auto &[name, address] : roots)
        ASSERT_EQ(ty_root_set(to, name.c_str(), moved(address)), TY_OK);
}

// Into another heap, in an order that dice give.
template <class dice_type>
move_map move_to(ty_heap *from, ty_heap *to, dice_type &dice) {
    move_map moved;
    std::vector<ty_block> blocks = blocks_of(from);
    std::shuffle(blocks.begin(), blocks.end(), dice);
    for (const ty_block &block : blocks) {
        auto *place = static_cast<char *>(ty_alloc_zeroed(to, block.size_bytes));
        memcpy(place, block.address, block.size_bytes);
        moved.blocks[static_cast<char *>(block.address)] = {block.size_bytes, place};
    }
    move_roots(from, to, moved);
    return moved;
}

// Within the heap: blocks of one size change places, so that each old address is some block's new one.
template <class dice_type>
move_map move_within(ty_heap *heap, dice_type &dice) {
    move_map moved;
    std::map<size_t, std::vector<char *>> sizes;
    for (const ty_block &block : blocks_of(heap))
        sizes[block.size_bytes].push_back(static_cast<char *>(block.address));
    for (auto &[bytes, blocks] : sizes) {
        std::vector<char *> places = blocks;
        std::shuffle(places.begin(), places.end(), dice);
        std::vector<std::vector<char>> contents;
        for (char *block : blocks)
            contents.emplace_back(block, block + bytes);
        for (size_t n = 0; n < blocks.size(); ++n) {
            memcpy(places[n], contents[n].data(), bytes);
            moved.blocks[blocks[n]] = {bytes, places[n]};
        }
    }
    move_roots(heap, heap, moved);
    return moved;
}

} // namespace taiyen::test
