#include "scanned_records.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {

// In small pages: a guest whose host reclaims free memory waits longer for huge ones than for all the rest (os.md).
void scanned_records::create() {
    limit_ = std::min<size_t>(most_bytes, os::usable_memory_bytes() / 16);
    whole_ = memory_.create(limit_) == TY_OK;
}

void scanned_records::destroy() {
    memory_.destroy();
    size_ = 0;
    whole_ = false;
}

void scanned_records::add(const log_record &record) {
    size_t wanted = sizeof(record_head) + padded(record.size);
    if (!whole_)
        return;
    if (wanted > limit_ - size_ || memory_.provide(size_ + wanted) != TY_OK) {
        destroy();
        return;
    }
    char *at = memory_.as<char>() + size_;
    const record_head head{record.lsn, record.position, record.size};
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, record.bytes, record.size);
    size_ += wanted;
}

} // namespace taiyen
