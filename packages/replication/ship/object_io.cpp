#include "object_io.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen::ship {

namespace {

constexpr size_t piece_bytes = size_t{1} << 20;

} // namespace

ty_status object_reader::fill(size_t wanted) {
    if (end_ - at_ >= wanted)
        return TY_OK;
    if (at_ != 0)
        memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
    end_ -= at_;
    at_ = 0;
    if (buffer_.size() < std::max(wanted, piece_bytes))
        buffer_.resize(std::max(wanted, piece_bytes));
    while (end_ < wanted) {
        size_t got = 0;
        if (ty_status status =
                from_.get(from_.context, name_.c_str(), offset_, buffer_.data() + end_, buffer_.size() - end_, &got))
            return status;
        if (got == 0)
            return TY_OK;
        got = std::min(got, buffer_.size() - end_);
        end_ += got;
        offset_ += got;
    }
    return TY_OK;
}

ty_status object_reader::take(size_t size, const uint8_t **bytes) {
    if (ty_status status = fill(size))
        return status;
    if (end_ - at_ < size)
        return fail(TY_E_DAMAGED, "read an object: it was cut off", name_, "get it from another copy");
    *bytes = buffer_.data() + at_;
    at_ += size;
    return TY_OK;
}

ty_status object_reader::some(void *buffer, size_t size, size_t *got) {
    if (ty_status status = fill(1))
        return status;
    *got = std::min(size, end_ - at_);
    if (*got)
        memcpy(buffer, buffer_.data() + at_, *got);
    at_ += *got;
    return TY_OK;
}

ty_status object_reader::header(object_header *header) {
    const uint8_t *bytes = nullptr;
    if (ty_status status = take(sizeof *header, &bytes))
        return status;
    memcpy(header, bytes, sizeof *header);
    return check_header(*header, name_);
}

bool object_reader::at_end(ty_status *status) {
    *status = fill(1);
    return !*status && end_ == at_;
}

} // namespace taiyen::ship
