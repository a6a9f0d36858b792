// A bit for each aligned word of a range of addresses. Memory for bits that were never set is not touched.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace taiyen::pack {

class word_bits {
public:
    void cover(const char *begin, const char *end) {
        begin_ = begin;
        size_t words = static_cast<size_t>(end - begin) / 8;
        bits_.reset(static_cast<uint64_t *>(calloc(words / 64 + 1, sizeof(uint64_t))));
        if (!bits_)
            throw std::bad_alloc();
    }
    bool test(const void *word) const { return (bits_[number(word) / 64] >> (number(word) % 64) & 1) != 0; }
    // Whether it was clear.
    bool set(const void *word) {
        uint64_t &bits = bits_[number(word) / 64];
        uint64_t bit = uint64_t{1} << (number(word) % 64);
        bool fresh = (bits & bit) == 0;
        bits |= bit;
        return fresh;
    }

private:
    struct release {
        void operator()(uint64_t *bits) const { free(bits); }
    };
    size_t number(const void *word) const { return static_cast<size_t>(static_cast<const char *>(word) - begin_) / 8; }

    const char *begin_ = nullptr;
    std::unique_ptr<uint64_t[], release> bits_;
};

} // namespace taiyen::pack
