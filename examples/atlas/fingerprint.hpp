// A 128-bit fingerprint of content. Fingerprints of records add up, in any order, to the fingerprint of a set.
#pragma once

#include <cstdint>

namespace demo {

struct city;

struct fingerprint {
    uint64_t low;
    uint64_t high;

    fingerprint &operator+=(const fingerprint &other) {
        low += other.low;
        high += other.high;
        return *this;
    }
    fingerprint &operator-=(const fingerprint &other) {
        low -= other.low;
        high -= other.high;
        return *this;
    }
    bool operator==(const fingerprint &) const = default;
};

// The fingerprint of a city's content: its texts, country, place and edition; not of its address in memory.
fingerprint fingerprint_of(const city &place);

} // namespace demo
