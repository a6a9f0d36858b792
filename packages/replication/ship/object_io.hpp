// Objects of a destination, read and written in pieces.
#pragma once

#include "object_form.hpp"

#include <taiyen/ship.h>
#include <vector>

namespace taiyen::ship {

class object_writer {
public:
    explicit object_writer(const ty_destination &to) : to_(to) {}
    object_writer(const object_writer &) = delete;
    object_writer &operator=(const object_writer &) = delete;
    ~object_writer() { drop(); }

    ty_status begin(const std::string &name) { return to_.put_begin(to_.context, name.c_str(), &object_); }
    ty_status put(const void *bytes, size_t size) {
        written_ += size;
        return to_.put_bytes(to_.context, object_, bytes, size);
    }
    ty_status keep() {
        void *object = object_;
        object_ = nullptr;
        return to_.put_end(to_.context, object, true);
    }
    void drop() {
        if (object_)
            (void)to_.put_end(to_.context, object_, false); // an object that was not finished belongs to nobody
        object_ = nullptr;
    }
    uint64_t written() const { return written_; }

private:
    const ty_destination &to_;
    void *object_ = nullptr;
    uint64_t written_ = 0;
};

class object_reader {
public:
    object_reader(const ty_destination &from, std::string name) : from_(from), name_(std::move(name)) {}

    // Exactly size bytes; TY_E_DAMAGED if the object ends before. bytes is valid until the next call.
    ty_status take(size_t size, const uint8_t **bytes);
    // At most size bytes; *got is 0 at the end.
    ty_status some(void *buffer, size_t size, size_t *got);
    ty_status header(object_header *header); // must be the first call
    bool at_end(ty_status *status);
    const std::string &name() const { return name_; }
    uint64_t offset() const { return offset_ - (end_ - at_); }

private:
    ty_status fill(size_t wanted); // fills buffer_ up to so many bytes, unless the object ends before

    const ty_destination &from_;
    std::string name_;
    std::vector<uint8_t> buffer_;
    size_t at_ = 0;
    size_t end_ = 0;
    uint64_t offset_ = 0; // of the first byte after the buffer
};

} // namespace taiyen::ship
