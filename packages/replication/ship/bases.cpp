// Bases: packed copies of the heap.
#include "shipper.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <taiyen/distributed.h>
#include <taiyen/pack.h>
#include <taiyen/replica.h>

namespace taiyen::ship {

uint64_t unix_ns() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

uint64_t steady_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

base_maker::~base_maker() {
    stop_ = true;
    wait();
}

void base_maker::start() {
    thread_ = std::thread([this] {
        try {
            if (ty_status status = make())
                failure_.keep(status);
        } catch (const std::exception &) {
            failure_.keep(fail(TY_E_MEMORY, "make a base", path_, "free memory of the process"));
        }
        ended_.store(true, std::memory_order_release);
    });
}

void base_maker::wait() {
    if (thread_.joinable())
        thread_.join();
}

ty_status base_maker::write(const void *bytes, size_t size, void *context) {
    auto &self = *static_cast<base_maker *>(context);
    if (self.stop_)
        return fail(TY_E_BUSY, "make a base: the shipper was closed", self.path_, "");
    return self.object_.put(bytes, size);
}

// A copy of a heap with several log streams may hold transactions whose predecessors are not in it yet: then another
// copy is made.
ty_status base_maker::copy(ty_heap **heap) {
    constexpr int tries = 20;
    ty_dtxn_resolve(); // or what is in doubt makes the copy fail
    open_.mode = TY_OPEN_COPY;
    open_.code = TY_CODE_IGNORED;
    for (int i = 0;; i++) {
        if (ty_status status = ty_open(path_.c_str(), &open_, heap, nullptr))
            return status;
        const ty_status status = ty_feed_copied(*heap, &header_.from);
        if (!status)
            return TY_OK;
        kept_failure why;
        why.keep(status);
        if (ty_status closed = ty_close(*heap))
            return closed;
        if (status != TY_E_BUSY || i == tries || stop_)
            return why.restore();
    }
}

ty_status base_maker::make() {
    ty_heap *heap = nullptr;
    if (ty_status status = copy(&heap))
        return status;
    kept_failure packing;
    if (ty_status status = pack(heap))
        packing.keep(status);
    const ty_status closed = ty_close(heap);
    return packing.status ? packing.restore() : closed;
}

ty_status base_maker::pack(ty_heap *heap) {
    header_.to = header_.from;
    header_.magic = object_magic;
    header_.version = object_version;
    header_.kind = uint32_t(object_kind::base);
    header_.timeline_lsn = header_.from.lsn;
    header_.timeline_hash = header_.from.hash;
    header_.heap_base = reinterpret_cast<uintptr_t>(ty_heap_base(heap));
    header_.first_ns = header_.last_ns = unix_ns();
    made_ns_ = steady_ns();
    header_.since_base_ns = before_ns_ ? std::max<uint64_t>(1, made_ns_ - before_ns_) : 0;
    header_.checksum = checksum_of(header_);
    if (ty_status status = object_.begin(name_of(header_)))
        return status;
    if (ty_status status = object_.put(&header_, sizeof header_))
        return status;
    ty_pack_options options = TY_PACK_OPTIONS_INIT;
    options.threads = 1; // the heap's writer needs the other processors
    return ty_pack(heap, &options, write, this, nullptr);
}

ty_status base_maker::keep(object *made) {
    *made = {name_of(header_), object_.written(), header_};
    return object_.keep();
}

} // namespace taiyen::ship
