// From a heap to a stream.
#include "pack.hpp"

#include "io/io.hpp"
#include "workers.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <taiyen/taiyen.h>

namespace taiyen::pack {
namespace {

constexpr const char *call_name = "pack a heap";

// Holds a read section of a transactional heap, so that no transaction is in progress.
class read_section {
public:
    explicit read_section(ty_heap *heap) : heap_(heap) {}
    ~read_section() {
        if (held_)
            ty_read_end(heap_);
    }
    read_section(const read_section &) = delete;

    ty_status begin() {
        if (ty_heap_kind(heap_) != TY_TRANSACTIONAL)
            return TY_OK;
        if (ty_current_txn(heap_) != nullptr || ty_current_atomic_txn(heap_) != nullptr)
            return ty_error_set(TY_E_BUSY, 0, "pack a heap in a transaction", nullptr, UINT64_MAX,
                                "commit or roll it back first");
        ty_status status = ty_read_begin(heap_);
        held_ = status == TY_OK;
        return status == TY_E_ARGUMENT ? TY_OK : status; // open read-only: no transaction writes
    }

private:
    ty_heap *heap_;
    bool held_ = false;
};

class packing {
public:
    packing(ty_heap *heap, const ty_pack_options &options, ty_pack_writer *writer, void *context)
        : heap_(heap), options_(options), codec_(codec_of(options.codec)), out_(writer, context) {}

    ty_status run();
    void fill_report(ty_pack_report *report) const;

private:
    static bool take_internal(const ty_block *block, void *self) {
        static_cast<packing *>(self)->internal_.push_back(block->address);
        return true;
    }
    static bool take_root(const char *name, void *address, void *self);
    static bool take_extent(const ty_extent *extent, void *self);
    ty_status write_all();
    ty_status write_header();
    ty_status write_content();
    bool report_progress(uint64_t done) const {
        return options_.progress == nullptr || options_.progress(done, live_bytes_, options_.progress_context);
    }

    ty_heap *heap_;
    const ty_pack_options &options_;
    codec_id codec_;
    frame_writer out_;
    layout places_;
    std::vector<root> roots_;
    std::vector<const void *> internal_;
    uint64_t live_bytes_ = 0;
    bool packed_ = false;
    ty_status status_ = TY_OK;
};

bool packing::take_root(const char *name, void *address, void *self) {
    auto &p = *static_cast<packing *>(self);
    if (address != nullptr)
        p.roots_.push_back({name, reinterpret_cast<uint64_t>(address) - p.places_.base});
    return true;
}

// The control extent is the last one: at its callback, all extents are known and the heap is still stopped.
bool packing::take_extent(const ty_extent *a, void *self) {
    auto &p = *static_cast<packing *>(self);
    if (a->kind != TY_EXTENT_CONTROL) {
        p.places_.add(*a);
    } else if (reinterpret_cast<uint64_t>(a->address) != p.places_.base) {
        p.packed_ = true;
        p.status_ = p.write_all();
    }
    return true;
}

ty_status packing::run() {
    void *probe = malloc(64);
    bool internal_malloc = probe != nullptr && ty_heap_of(probe) == heap_;
    free(probe);
    if (internal_malloc)
        return ty_error_set(TY_E_UNSUPPORTED, 0, "pack the heap after malloc", nullptr, UINT64_MAX,
                            "keep what is to be packed in a heap of its own");
    if (ty_status status = ty_check_code(heap_))
        return status;
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    if (ty_status status = ty_heap_get_stats(heap_, &stats))
        return status;
    places_.base = reinterpret_cast<uint64_t>(stats.base);
    places_.limit_bytes = stats.limit_bytes;
    if (ty_status status = ty_each_internal_block(heap_, take_internal, this))
        return status;
    read_section section(heap_);
    if (ty_status status = section.begin())
        return status;
    if (ty_status status = ty_each_extent(heap_, take_extent, this))
        return status;
    return packed_ ? status_ : ty_error_set(TY_E_DAMAGED, 0, call_name, nullptr, UINT64_MAX, "verify the heap");
}

// PK4: only live blocks of the program are in a stream.
ty_status packing::write_all() {
    for (const void *block : internal_)
        places_.leave_out(block);
    places_.drop_empty();
    live_bytes_ = places_.live_bytes();
    if (ty_status status = ty_each_root(heap_, take_root, this))
        return status;
    packer with(codec_, options_.level);
    if (ty_status status = write_header())
        return status;
    if (ty_status status = write_extents(places_, with, out_))
        return status;
    if (ty_status status = write_roots(roots_, with, out_))
        return status;
    if (ty_status status = write_content())
        return status;
    return out_.put_table(frame_type::end, {}, with);
}

ty_status packing::write_header() {
    stream_header header{};
    header.magic = stream_magic;
    header.version = stream_version;
    header.base = places_.base;
    header.limit_bytes = places_.limit_bytes;
    header.kind = ty_heap_kind(heap_);
    header.classes = ty_heap_class_table(heap_);
    header.extents = places_.extents.size();
    header.roots = roots_.size();
    header.live_blocks = places_.live_blocks();
    header.live_bytes = live_bytes_;
    header.packed_unix_s = static_cast<uint64_t>(time(nullptr));
    header.checksum = checksum_of(&header, offsetof(stream_header, checksum));
    return out_.put(&header, sizeof header);
}

ty_status packing::write_content() {
    struct slot : chunk {
        std::unique_ptr<packer> with;
        uint32_t raw_bytes = 0;
    };
    unsigned threads = threads_for(options_.threads);
    std::vector<slot> slots(threads + (threads > 1 ? 2 : 0));
    for (slot &one : slots)
        one.with = std::make_unique<packer>(codec_, options_.level);
    std::vector<sequence> order = places_.content_order();
    size_t at = 0;
    std::optional<content_cursor> cursor;
    uint64_t done = 0;
    ty_status status = TY_OK;
    auto feed = [&](slot &s) {
        if (at == order.size())
            return false;
        if (!cursor)
            cursor.emplace(places_, order[at]);
        s.from = cursor;
        s.block_bytes = order[at].block_bytes;
        s.raw_bytes = static_cast<uint32_t>(cursor->skip(chunk_of(s.block_bytes)));
        if (cursor->at_end()) {
            cursor.reset();
            at++;
        }
        return true;
    };
    auto drain = [&](slot &s) {
        status = out_.put_frame(s.header, s.frame);
        done += s.raw_bytes;
        if (status == TY_OK && !report_progress(done))
            status = ty_error_set(TY_E_BUSY, 0, "pack a heap: stopped by its progress callback", nullptr, UINT64_MAX,
                                  "pack it again");
        return status == TY_OK;
    };
    job_ring<slot> ring(slots);
    ring.run(
        threads, feed, [](slot &s, unsigned) { s.pack(*s.with, s.raw_bytes); }, drain);
    return status;
}

void packing::fill_report(ty_pack_report *report) const {
    report->live_blocks = places_.live_blocks();
    report->live_bytes = live_bytes_;
    report->packed_bytes = out_.written();
    report->internal_blocks = internal_.size();
}

} // namespace

codec_id codec_of(ty_codec codec) {
    return codec == TY_CODEC_LZ4 ? codec_id::lz4 : codec == TY_CODEC_ZSTD ? codec_id::zstd : codec_id::none;
}

ty_status pack_heap(ty_heap *heap, const ty_pack_options &options, ty_pack_writer *writer, void *context,
                    ty_pack_report *report) {
    auto started = std::chrono::steady_clock::now();
    packing work(heap, options, writer, context);
    ty_status status = work.run();
    if (status == TY_OK) {
        work.fill_report(report);
        report->duration_ns = static_cast<uint64_t>((std::chrono::steady_clock::now() - started).count());
    }
    return status;
}

} // namespace taiyen::pack
