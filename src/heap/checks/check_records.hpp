// The records of a checked heap's blocks, in volatile tables apart from them. All under the checks' lock.
#pragma once

#include "../heap.hpp"

namespace taiyen {

// C1: each record is of a block that is allocated in the persistent metadata: `real` is its offset from the base. The
// block that the program sees lies in it.
struct check_record {
    uint64_t real; // 0: the slot is empty
    uint64_t real_bytes;
    uint64_t user;
    uint64_t user_bytes; // as requested, but at least 1
    uint32_t site;       // 0: not recorded
    uint32_t freed_site;
    uint32_t thread;
    uint32_t freed_thread;
    bool freed;   // it is in the quarantine
    bool guarded; // its last page is inaccessible; once it is freed, all its pages
    uint64_t data_end() const { return real + real_bytes - (guarded ? os::page_bytes : 0); }
};

// A hash table by the blocks' offsets: open addressing, at most three quarters full.
class record_table {
public:
    void stop();
    // The pointer is valid until the next change.
    check_record *find(uint64_t real) const;
    ty_status add(const check_record &record); // must not be there. Expected: TY_E_MEMORY
    void remove(check_record *record);
    uint64_t count() const { return count_; }
    // All slots: at(0) to at(places() - 1); those with real 0 are empty.
    uint64_t places() const { return places_; }
    check_record &at(uint64_t place) const { return records_[place]; }

private:
    uint64_t home_of(uint64_t real) const;
    void put(const check_record &record);
    ty_status grow();

    check_record *records_ = nullptr;
    uint64_t places_ = 0; // a power of two
    uint64_t count_ = 0;
};

// Freed blocks, in order of their frees. Their records describe them.
class quarantine {
public:
    ty_status start(uint64_t bytes_max);
    void stop();
    bool takes(const check_record &record) const { return record.real_bytes <= bytes_max_ / 4; }
    void put(const check_record &record); // if takes() is true for it
    bool over() const { return bytes_ > bytes_max_ || count_ == places; }
    bool empty() const { return count_ == 0; }
    uint64_t oldest() const { return reals_[first_]; }
    void drop_oldest(const check_record &record);
    uint64_t count() const { return count_; }
    uint64_t bytes() const { return bytes_; }

private:
    static constexpr uint32_t places = 1u << 16;
    uint64_t *reals_ = nullptr; // a ring
    uint32_t first_ = 0;
    uint32_t count_ = 0;
    uint64_t bytes_ = 0;
    uint64_t bytes_max_ = 0;
};

} // namespace taiyen
