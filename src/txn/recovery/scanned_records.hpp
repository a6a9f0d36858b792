// The records that an open's scan has checked, kept in memory: so the replay neither reads the log again, nor can find
// it changed, and several threads can process it.
#pragma once

#include "../changes/changes.hpp"

namespace taiyen {

class scanned_records {
public:
    // Longer logs are not kept, nor any that takes more than a sixteenth of memory. Tests lower it.
    static inline size_t most_bytes = size_t{256} << 20;

    // If there is no memory, nothing is kept either.
    void create();
    void destroy(); // also if it was never created

    void add(const log_record &record);
    // Whether all that were added are there.
    bool whole() const { return whole_; }

    // Calls record(log_record) for each record, in order, until the status is not TY_OK. There are 8 readable bytes
    // before each.
    template <class Record>
    ty_status each(Record record) const {
        for (const char *at = memory_.as<char>(), *end = at + size_; at != end;) {
            const auto &head = *reinterpret_cast<const record_head *>(at);
            if (ty_status status =
                    record(log_record{head.lsn, head.position, reinterpret_cast<const uint8_t *>(at) + sizeof head,
                                      size_t{head.size}, 0, false}))
                return status;
            at += sizeof head + padded(head.size);
        }
        return TY_OK;
    }

private:
    struct record_head {
        uint64_t lsn;
        uint64_t position;
        uint64_t size;
    };
    static size_t padded(size_t size) { return (size + 7) & ~size_t{7}; }

    arena memory_;
    size_t limit_;
    size_t size_;
    bool whole_;
};

} // namespace taiyen
