// Bases in an engine: a shipper's object (ship.h) in pieces. ty_ship_step writes it, ty_restore reads it.
#pragma once

#include "engine_io.hpp"

#include <taiyen/ship.h>

namespace taiyen::standby {

ty_status publish_base(const char *heap_path, const ty_engine &engine, const ty_open_options *open, uint64_t *lsn);

// A destination that holds one base, for reading.
class base_source {
public:
    base_source(const ty_engine &engine, const owned_message &begin);
    base_source(const base_source &) = delete;
    base_source &operator=(const base_source &) = delete;
    const ty_destination &destination() const { return table_; }

private:
    ty_status get(uint64_t offset, void *buffer, size_t size, size_t *got);
    ty_status next_piece();
    ty_status read_piece(uint64_t after);
    void rewind();

    const ty_engine &engine_;
    message_header begin_;
    uint64_t begin_at_;
    std::string name_;
    owned_message piece_; // the last one read
    uint64_t offset_ = 0; // of that piece
    size_t size_ = 0;
    bool ended_ = false;
    ty_destination table_{};
};

} // namespace taiyen::standby
