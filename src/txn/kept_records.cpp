#include "kept_records.hpp"

#include <cstring>

namespace taiyen {

void kept_records::create() {
    whole_ = memory_.create(most_bytes) == TY_OK;
    if (whole_)
        os::advise_huge(memory_.as<char>(), most_bytes);
}

void kept_records::destroy() {
    memory_.destroy();
    size_ = 0;
    whole_ = false;
}

void kept_records::add(uint64_t position, const uint8_t *bytes, size_t size) {
    size_t wanted = sizeof(record_head) + padded(size);
    if (!whole_)
        return;
    if (wanted > most_bytes - size_ || memory_.provide(size_ + wanted) != TY_OK) {
        destroy();
        return;
    }
    char *at = memory_.as<char>() + size_;
    const record_head head{position, size};
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, bytes, size);
    size_ += wanted;
}

} // namespace taiyen
