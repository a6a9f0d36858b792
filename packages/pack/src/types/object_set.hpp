// A set of (aligned address, number of a type descriptor): objects in a block other than those of the block's own type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace taiyen::pack {

class object_set {
public:
    // Whether it was new.
    bool insert(const void *object, uint32_t id) {
        if ((size_ + 1) * 2 > slots_.size())
            grow();
        return put(key_of(object, id));
    }
    bool empty() const { return size_ == 0; }
    // In order of address.
    std::vector<uint64_t> sorted() const {
        std::vector<uint64_t> keys;
        keys.reserve(size_);
        for (uint64_t key : slots_)
            if (key != 0)
                keys.push_back(key);
        std::sort(keys.begin(), keys.end());
        return keys;
    }
    static char *object_of(uint64_t key) { return reinterpret_cast<char *>(key >> id_bits << 3); }
    static uint32_t id_of(uint64_t key) { return static_cast<uint32_t>(key & ((1u << id_bits) - 1)); }

private:
    static constexpr unsigned id_bits = 20; // a set has at most 65,536 type descriptors; addresses have 47 bits

    static uint64_t key_of(const void *object, uint32_t id) {
        return reinterpret_cast<uint64_t>(object) >> 3 << id_bits | id;
    }
    bool put(uint64_t key) {
        size_t at = (key * 0x9e3779b97f4a7c15) >> 20 & (slots_.size() - 1);
        while (slots_[at] != 0) {
            if (slots_[at] == key)
                return false;
            at = (at + 1) & (slots_.size() - 1);
        }
        slots_[at] = key;
        ++size_;
        return true;
    }
    void grow() {
        std::vector<uint64_t> old(slots_.empty() ? 64 : slots_.size() * 2);
        old.swap(slots_);
        size_ = 0;
        for (uint64_t key : old)
            if (key != 0)
                put(key);
    }

    std::vector<uint64_t> slots_;
    size_t size_ = 0;
};

} // namespace taiyen::pack
