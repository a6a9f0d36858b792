// From a stream to a heap.
#include "pack.hpp"

#include "io/io.hpp"
#include "workers.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace taiyen::pack {
namespace {

// A thread's unpacker and buffers.
struct tools {
    unpacker with;
    std::unique_ptr<uint8_t[]> unpacked; // chunk_bytes
    std::vector<uint8_t> items;
};

// A frame of content that is to be copied to its blocks.
struct arrival {
    frame_header header{};
    uint64_t offset = 0;
    std::optional<content_cursor> to; // in the packed heap's layout
    uint64_t block_bytes = 0;
    std::vector<uint8_t> packed;
    bool good = true;

    // Unpacks to where moves says; NULL: nowhere.
    void unpack(const ty_moves *moves, tools &own);

private:
    bool unpack_to(uint8_t *bytes, tools &own);
    bool unpack_in_place(const ty_moves &moves, tools &own);
    void from_planes_to(const ty_moves &moves, tools &own);
    void scatter(const uint8_t *bytes, uint64_t size, const ty_moves &moves);
};

bool arrival::unpack_to(uint8_t *bytes, tools &own) {
    good = own.with.unpack(codec_id{header.codec}, packed.data(), packed.size(), bytes, header.raw_bytes);
    return good;
}

void arrival::unpack(const ty_moves *moves, tools &own) {
    if (moves != nullptr && header.plane_width == 0 && unpack_in_place(*moves, own))
        return;
    if (!own.unpacked)
        own.unpacked = std::make_unique_for_overwrite<uint8_t[]>(chunk_bytes);
    if (!unpack_to(own.unpacked.get(), own) || moves == nullptr)
        return;
    if (header.plane_width != 0)
        from_planes_to(*moves, own);
    else
        scatter(own.unpacked.get(), header.raw_bytes, *moves);
}

// False: it is for more than one place.
bool arrival::unpack_in_place(const ty_moves &moves, tools &own) {
    if (!moves.is_offset() && block_bytes != 0)
        return false;
    content_cursor ahead = *to;
    content_cursor::stretch part = ahead.next(header.raw_bytes);
    if (part.bytes != header.raw_bytes)
        return false;
    void *place = moves.is_offset() ? part.address + moves.offset() : moves.moved(part.address);
    unpack_to(static_cast<uint8_t *>(place), own);
    return true;
}

// Some items at a time, so that they are still in the first-level cache when they are copied to their blocks.
void arrival::from_planes_to(const ty_moves &moves, tools &own) {
    constexpr uint64_t piece_bytes = 16 << 10;
    const uint64_t width = header.plane_width, count = header.raw_bytes / width;
    const uint64_t whole_items = items_at_once * std::max(width, block_bytes); // whole blocks, too
    const uint64_t piece = std::max(piece_bytes / whole_items, uint64_t{1}) * whole_items;
    own.items.resize(std::max(own.items.size(), piece));
    for (uint64_t done = 0; done < header.raw_bytes; done += piece) {
        uint64_t bytes = std::min(piece, header.raw_bytes - done);
        uint64_t whole = bytes / width * width; // the end of a one-block extent may be shorter
        from_planes(own.unpacked.get(), count, width, done / width, whole / width, own.items.data());
        memcpy(own.items.data() + whole, own.unpacked.get() + done + whole, bytes - whole);
        scatter(own.items.data(), bytes, moves);
    }
}

void arrival::scatter(const uint8_t *bytes, uint64_t size, const ty_moves &moves) {
    const bool is_offset = moves.is_offset();
    const ptrdiff_t by = moves.offset();
    for (uint64_t done = 0; done < size;) {
        content_cursor::stretch part = to->next(size - done);
        uint64_t step = is_offset || block_bytes == 0 ? part.bytes : block_bytes;
        for (uint64_t at = 0; at < part.bytes; at += step) {
            void *place = is_offset ? part.address + by : moves.moved(part.address + at);
            memcpy(place, bytes + done + at, step);
        }
        done += part.bytes;
    }
}

// Reads the frames of content, in order; moves NULL: only checks them.
class content_reading {
public:
    content_reading(frame_reader &in, const layout &places, const ty_moves *moves)
        : in_(in), places_(places), moves_(moves), order_(places.content_order()) {}

    ty_status run(unsigned threads, ty_progress_callback *progress, void *context) {
        uint64_t done = 0, all = places_.live_bytes();
        auto drain = [&](arrival &a) {
            done += a.header.raw_bytes;
            if (!a.good)
                status_ = refuse_stream(TY_E_DAMAGED, "a frame of it cannot be unpacked", a.offset);
            else if (progress != nullptr && !progress(done, all, context))
                status_ = ty_error_set(TY_E_BUSY, 0, "unpack a heap: stopped by its progress callback", nullptr,
                                       UINT64_MAX, "unpack it again");
            return status_ == TY_OK;
        };
        std::vector<arrival> slots(threads + (threads > 1 ? 2 : 0));
        std::vector<tools> all_tools(std::max(threads, 1u));
        job_ring<arrival> ring(slots);
        ring.run(
            threads, [this](arrival &a) { return feed(a); },
            [&](arrival &a, unsigned number) { a.unpack(moves_, all_tools[number]); }, drain);
        return status_ == TY_OK ? read_end() : status_;
    }

private:
    bool feed(arrival &a) {
        if (at_ == order_.size() || status_ != TY_OK)
            return false;
        if (!cursor_)
            cursor_.emplace(places_, order_[at_]);
        a.offset = in_.offset();
        a.block_bytes = order_[at_].block_bytes;
        a.to = cursor_;
        a.good = true;
        status_ = in_.read_frame(&a.header, &a.packed);
        if (status_ != TY_OK)
            return false;
        bool fits = a.header.type == static_cast<uint32_t>(frame_type::content) &&
                    width_is_known(a.block_bytes, a.header.plane_width) && a.header.raw_bytes != 0 &&
                    (a.block_bytes == 0 || a.header.raw_bytes % a.block_bytes == 0) &&
                    cursor_->skip(a.header.raw_bytes) == a.header.raw_bytes;
        if (!fits) {
            status_ = refuse_stream(TY_E_DAMAGED, "a frame of it makes no sense", a.offset);
            return false;
        }
        if (cursor_->at_end()) {
            cursor_.reset();
            at_++;
        }
        return true;
    }

    ty_status read_end() {
        frame_header end;
        std::vector<uint8_t> none;
        uint64_t at = in_.offset();
        if (ty_status status = in_.read_frame(&end, &none))
            return status;
        return end.type == static_cast<uint32_t>(frame_type::end) && end.raw_bytes == 0
                   ? TY_OK
                   : refuse_stream(TY_E_DAMAGED, "its end is missing", at);
    }

    frame_reader &in_;
    const layout &places_;
    const ty_moves *moves_;
    std::vector<sequence> order_;
    size_t at_ = 0;
    std::optional<content_cursor> cursor_;
    ty_status status_ = TY_OK;
};

class unpacking {
public:
    unpacking(ty_pack_reader *reader, void *context, const ty_unpack_options &options)
        : options_(options), in_(reader, context), target_(options) {}

    ty_status run(ty_heap **heap);
    void fill_report(ty_unpack_report *report) const;
    std::unique_ptr<ty_moves> take_moves() { return std::move(moves_); }
    bool gives_moves = false;

private:
    ty_status make_target();
    ty_status refuse_place() const;
    ty_status make_blocks();
    ty_status check_room() const;
    ty_status set_roots();
    ty_status fix();

    const ty_unpack_options &options_;
    frame_reader in_;
    target target_;
    stream_header header_{};
    std::vector<root> roots_;
    layout places_;
    std::unique_ptr<ty_moves> moves_;
    void *base_ = nullptr;
    uint64_t fixed_ = 0;
    uint64_t lost_roots_ = 0;
};

// PK7: no heap is unpacked to another address if nothing fixes its addresses.
ty_status unpacking::fix() {
    if (!moves_->moves_anything())
        return TY_OK;
    if (options_.types != nullptr || options_.fix == nullptr) {
        bool others = options_.fix != nullptr || gives_moves;
        if (ty_status status =
                fix_by_descriptors(target_.heap(), *moves_, options_.types, others, options_.force, &fixed_))
            return status;
    }
    return options_.fix != nullptr ? options_.fix(target_.heap(), moves_.get(), options_.fix_context) : TY_OK;
}

ty_status unpacking::make_target() {
    auto classes = static_cast<ty_class_table>(header_.classes);
    if (options_.layout == TY_LAYOUT_LINE || options_.layout == TY_LAYOUT_PACKED)
        classes = options_.layout == TY_LAYOUT_LINE ? TY_CLASSES_CACHE_LINE : TY_CLASSES_DENSE;
    uint64_t limit = options_.limit_bytes != 0 ? options_.limit_bytes : header_.limit_bytes;
    auto old_base = reinterpret_cast<void *>(header_.base);
    auto kind = static_cast<ty_kind>(header_.kind);
    void *first = options_.place == TY_PLACE_OTHER ? options_.base : old_base;
    ty_status status = target_.create(limit, first, classes, kind);
    if (status == TY_E_ADDRESS && options_.place == TY_PLACE_EITHER)
        status = target_.create(limit, nullptr, classes, kind);
    if (status == TY_E_ADDRESS && options_.place == TY_PLACE_SAME)
        return refuse_place();
    if (status != TY_OK)
        return status;
    base_ = ty_heap_base(target_.heap());
    return TY_OK;
}

ty_status unpacking::refuse_place() const {
    char what[96];
    snprintf(what, sizeof what, "unpack a heap where it was, at 0x%llx", static_cast<unsigned long long>(header_.base));
    return ty_error_set(TY_E_ADDRESS, 0, what, nullptr, UINT64_MAX,
                        "unpack it elsewhere (TY_PLACE_EITHER), or close what is there");
}

ty_status unpacking::make_blocks() {
    if (options_.layout == TY_LAYOUT_SAME)
        moves_ = std::make_unique<ty_moves>(std::move(places_), static_cast<char *>(base_));
    else if (ty_status status = lay_out_again(std::move(places_), target_.heap(), &moves_))
        return status;
    if (ty_status status = check_room())
        return status;
    std::vector<uint64_t> bits;
    std::vector<ty_extent> extents = moves_->new_extents(&bits);
    size_t made;
    ty_status status = ty_make_extents(target_.heap(), extents.data(), extents.size(), &made);
    return status == TY_E_ARGUMENT ? refuse_stream(TY_E_DAMAGED, "it has extents that no heap has", 0) : status;
}

ty_status unpacking::check_room() const {
    ty_heap_stats empty{};
    empty.struct_size = sizeof empty;
    if (ty_status status = ty_heap_get_stats(target_.heap(), &empty))
        return status;
    if (moves_->used_bytes() <= first_block_page * stream_page_bytes + empty.largest_free_bytes)
        return TY_OK;
    return ty_error_set(TY_E_MEMORY, 0, "unpack a heap: its blocks lie beyond the limit that was given", nullptr,
                        UINT64_MAX, "give a higher limit, or defragment it");
}

// A root may lead into a block, or to a freed one: that has no place in a new layout.
ty_status unpacking::set_roots() {
    for (const root &one : roots_) {
        void *address = moves_->moved(reinterpret_cast<void *>(header_.base + one.offset));
        if (address == nullptr && moves_->is_offset())
            address = static_cast<char *>(base_) + one.offset;
        if (address == nullptr) {
            lost_roots_++;
            continue;
        }
        if (ty_status status = ty_root_set(target_.heap(), one.name.c_str(), address))
            return status;
    }
    return TY_OK;
}

ty_status unpacking::run(ty_heap **heap) {
    if (ty_status status = read_tables(in_, &header_, &places_, &roots_))
        return status;
    if (ty_status status = make_target())
        return status;
    if (ty_status status = make_blocks())
        return status;
    if (ty_status status = set_roots())
        return status;
    if (ty_status status = read_content(in_, moves_->old(), moves_.get(), threads_for(options_.threads),
                                        options_.progress, options_.progress_context))
        return status;
    if (ty_status status = in_.end())
        return status;
    if (ty_status status = fix())
        return status;
    return target_.finish(heap);
}

void unpacking::fill_report(ty_unpack_report *report) const {
    report->kind = target_.kind();
    report->moved = moves_->moves_anything();
    report->old_base = reinterpret_cast<void *>(header_.base);
    report->base = base_;
    report->live_blocks = header_.live_blocks;
    report->live_bytes = header_.live_bytes;
    report->moved_blocks = moves_->moved_blocks();
    report->old_used_bytes = moves_->old().end_page() * stream_page_bytes;
    report->used_bytes = moves_->used_bytes();
    report->fixed_pointers = fixed_;
    report->packed_bytes = in_.offset();
    report->lost_roots = lost_roots_;
}

void say(ty_unpack_report *r) {
    static const char *const kinds[] = {"", "a volatile", "an archive", "a snapshot", "a transactional"};
    int length = snprintf(r->text, sizeof r->text, "%llu blocks of %llu bytes unpacked into %s heap at %p",
                          static_cast<unsigned long long>(r->live_blocks),
                          static_cast<unsigned long long>(r->live_bytes), kinds[r->kind], r->base);
    if (r->moved && length > 0 && static_cast<size_t>(length) < sizeof r->text)
        snprintf(r->text + length, sizeof r->text - static_cast<size_t>(length),
                 "; they were at %p; %llu lie elsewhere in it; used %llu bytes, were %llu; %llu pointers fixed",
                 r->old_base, static_cast<unsigned long long>(r->moved_blocks),
                 static_cast<unsigned long long>(r->used_bytes), static_cast<unsigned long long>(r->old_used_bytes),
                 static_cast<unsigned long long>(r->fixed_pointers));
}

} // namespace

ty_status lay_out_again(layout &&old, ty_heap *heap, std::unique_ptr<ty_moves> *moves) {
    ty_size_class classes[size_classes_max];
    size_t count = 0;
    if (ty_status status = ty_heap_size_classes(heap, classes, size_classes_max, &count))
        return status;
    auto *base = static_cast<char *>(ty_heap_base(heap));
    *moves = std::make_unique<ty_moves>(std::move(old), base, classes, std::min(count, size_classes_max));
    return TY_OK;
}

ty_status read_content(frame_reader &from, const layout &places, const ty_moves *moves, unsigned threads,
                       ty_progress_callback *progress, void *progress_context) {
    content_reading content(from, places, moves);
    return content.run(threads, progress, progress_context);
}

ty_status unpack_heap(ty_pack_reader *reader, void *context, const ty_unpack_options &options, ty_heap **heap,
                      std::unique_ptr<ty_moves> *moves, ty_unpack_report *report) {
    auto started = std::chrono::steady_clock::now();
    unpacking work(reader, context, options);
    work.gives_moves = moves != nullptr;
    if (ty_status status = work.run(heap))
        return status;
    work.fill_report(report);
    report->duration_ns = static_cast<uint64_t>((std::chrono::steady_clock::now() - started).count());
    say(report);
    if (moves != nullptr)
        *moves = work.take_moves();
    return TY_OK;
}

ty_status verify_stream(ty_pack_reader *reader, void *context, ty_progress_callback *progress, void *progress_context,
                        stream_header *header) {
    frame_reader in(reader, context);
    layout places;
    std::vector<root> roots;
    if (ty_status status = read_tables(in, header, &places, &roots))
        return status;
    if (ty_status status = read_content(in, places, nullptr, threads_for(0), progress, progress_context))
        return status;
    return in.end();
}

} // namespace taiyen::pack
