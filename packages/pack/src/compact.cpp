// Compaction of a heap in place: its blocks are packed into memory, freed, and unpacked to their new places. All that
// can fail is done before the first block is freed.
#include "pack.hpp"

#include "io/io.hpp"
#include "types/descriptors.hpp"

#include <chrono>
#include <cstring>
#include <exception>
#include <taiyen/detail/fault.hpp>

namespace taiyen::pack {
namespace {

ty_status refuse(ty_status status, const char *what, const char *remedy) {
    return ty_error_set(status, 0, what, nullptr, UINT64_MAX, remedy);
}

class compaction {
public:
    compaction(ty_heap *heap, const ty_compact_options &options) : heap_(heap), options_(options) {}

    ty_status run();
    void fill_report(ty_compact_report *report) const;

private:
    ty_status check_heap();
    ty_status check_addresses() const;
    ty_status pack();
    ty_status plan();
    ty_status check_plan() const;
    void free_all();
    ty_status lay_out();
    ty_status make_durable();
    ty_status report_loss(ty_status status) const;

    static bool count_internal(const ty_block *, void *self) {
        static_cast<compaction *>(self)->internal_blocks_++;
        return true;
    }
    static bool take_extent(const ty_extent *a, void *self) {
        static_cast<compaction *>(self)->tables_ = static_cast<char *>(a->address);
        return true;
    }
    static bool first_half(uint64_t done, uint64_t total, void *self) {
        const ty_compact_options &options = static_cast<compaction *>(self)->options_;
        return options.progress == nullptr || options.progress(done, 2 * total, options.progress_context);
    }
    // An exception of the callback waits until the heap is complete again.
    static bool second_half(uint64_t done, uint64_t total, void *self) {
        auto &own = *static_cast<compaction *>(self);
        if (own.options_.progress == nullptr || own.thrown_)
            return true;
        try {
            own.options_.progress(total + done, 2 * total, own.options_.progress_context);
        } catch (...) {
            own.thrown_ = std::current_exception();
        }
        return true;
    }

    ty_heap *heap_;
    const ty_compact_options &options_;
    memory_sink stream_;
    memory_source source_{nullptr, 0};
    frame_reader in_{read_memory, &source_};
    stream_header header_{};
    std::vector<root> roots_;
    std::unique_ptr<ty_moves> moves_;
    char *tables_ = nullptr; // the heap's last extent: no block lies after its start
    std::exception_ptr thrown_;
    uint64_t internal_blocks_ = 0;
    uint64_t fixed_ = 0;
    bool fix_failed_ = false;
};

ty_status compaction::check_heap() {
    ty_kind kind = ty_heap_kind(heap_);
    if (kind == TY_TRANSACTIONAL)
        return refuse(TY_E_UNSUPPORTED, "compact a transactional heap",
                      "open it as a snapshot heap (kind TY_SNAPSHOT), compact it, and open it as transactional again");
    if (ty_status status = ty_each_internal_block(heap_, count_internal, this))
        return status;
    if (internal_blocks_ != 0)
        return refuse(TY_E_BUSY, "compact a heap that has undo in it", "detach undo (ty_undo_detach), without history");
    void *probe = ty_alloc(heap_, 1); // checks that the heap may be written to
    if (probe == nullptr) {
        ty_error error;
        ty_error_detail(&error);
        return error.status;
    }
    if (ty_status status = ty_free(probe))
        return status;
    return ty_each_extent(heap_, take_extent, this);
}

// PK7: no heap is left with wrong addresses.
ty_status compaction::check_addresses() const {
    bool has_descriptors = options_.types != nullptr || ty_root(heap_, TY_TYPES_ROOT) != nullptr;
    if (!has_descriptors || (options_.types == nullptr && options_.fix != nullptr))
        return options_.fix != nullptr || options_.force ? TY_OK : check_descriptors(heap_, nullptr);
    ty_status status = check_descriptors(heap_, options_.types);
    return status == TY_E_MISMATCH && options_.force ? TY_OK : status;
}

ty_status compaction::pack() {
    ty_pack_options options = TY_PACK_OPTIONS_INIT;
    options.threads = options_.threads;
    options.progress = first_half;
    options.progress_context = this;
    ty_pack_report report;
    return pack_heap(heap_, options, write_memory, &stream_, &report);
}

ty_status compaction::plan() {
    source_ = {stream_.bytes, stream_.size};
    layout places;
    if (ty_status status = read_tables(in_, &header_, &places, &roots_))
        return status;
    if (ty_status status = lay_out_again(std::move(places), heap_, &moves_))
        return status;
    return check_plan();
}

ty_status compaction::check_plan() const {
    if (moves_->used_bytes() > static_cast<uint64_t>(tables_ - static_cast<char *>(ty_heap_base(heap_))))
        return refuse(TY_E_MEMORY, "compact a heap: its blocks would need more room than it has",
                      "it is nearly full of few blocks of many sizes: raise its limit");
    for (const root &one : roots_)
        if (moves_->moved(reinterpret_cast<void *>(header_.base + one.offset)) == nullptr)
            return refuse(TY_E_MISMATCH, ("compact a heap: the root \"" + one.name + "\" leads to no block").c_str(),
                          "remove the root, or let it lead to a live block");
    return TY_OK;
}

void compaction::free_all() {
    const layout &old = moves_->old();
    for (const extent &a : old.extents)
        for (uint64_t i = 0; i < a.blocks; i++)
            if (old.is_live(a, i))
                static_cast<void>(ty_free(old.address(a) + i * a.block_bytes)); // cannot fail: ty_each_extent has shown
                                                                                // the block as live
}

// A place that is longer than its block was still has bytes of other blocks at its end.
void clear_longer_places(const ty_moves &moves) {
    const layout &old = moves.old();
    for (const extent &a : old.extents)
        for (uint64_t i = 0; i < a.blocks && moves.new_block_bytes(a) > a.block_bytes; i++)
            if (old.is_live(a, i))
                memset(moves.block(a, i), 0, moves.new_block_bytes(a));
}

ty_status compaction::lay_out() {
    std::vector<uint64_t> bits;
    std::vector<ty_extent> extents = moves_->new_extents(&bits);
    size_t made;
    if (ty_status status = ty_make_extents(heap_, extents.data(), extents.size(), &made))
        return status;
    clear_longer_places(*moves_);
    if (ty_status status =
            read_content(in_, moves_->old(), moves_.get(), threads_for(options_.threads), second_half, this))
        return status;
    for (const root &one : roots_)
        if (ty_status status = ty_root_set(heap_, one.name.c_str(),
                                           moves_->moved(reinterpret_cast<void *>(header_.base + one.offset))))
            return status;
    if (options_.types != nullptr || options_.fix == nullptr)
        if (ty_status status =
                fix_by_descriptors(heap_, *moves_, options_.types, options_.fix != nullptr, true, &fixed_))
            return status;
    ty_status status = options_.fix != nullptr ? options_.fix(heap_, moves_.get(), options_.fix_context) : TY_OK;
    fix_failed_ = status != TY_OK;
    return status;
}

ty_status compaction::make_durable() {
    if (ty_heap_kind(heap_) != TY_VOLATILE)
        if (ty_status status = ty_snapshot(heap_))
            return status;
    return ty_heap_purge(heap_, nullptr);
}

// Some blocks have moved and others have not: the heap is lost.
ty_status compaction::report_loss(ty_status status) const {
    const char *remedy = "the heap is lost: it has no files, or its file was changed in place";
    if (ty_heap_kind(heap_) == TY_SNAPSHOT)
        remedy = "discard the heap (ty_discard, not ty_close): its files hold what it was before";
    return ty_error_set(status, 0,
                        fix_failed_ ? "compact a heap: the fix callback failed" : "compact a heap: it was half moved",
                        nullptr, UINT64_MAX, remedy);
}

// PK9: the old heap is durable before its blocks are freed, and the next snapshot is of the compacted heap.
ty_status compaction::run() {
    if (ty_status status = check_heap())
        return status;
    if (ty_status status = check_addresses())
        return status;
    if (ty_status status = pack())
        return status;
    if (ty_status status = plan())
        return status;
    if (ty_heap_kind(heap_) == TY_SNAPSHOT)
        if (ty_status status = ty_snapshot(heap_))
            return status;
    free_all();
    if (taiyen::detail::fault("compact_saves_an_empty_heap") && ty_heap_kind(heap_) == TY_SNAPSHOT)
        if (ty_status status = ty_snapshot(heap_))
            return status;
    if (ty_status status = lay_out())
        return report_loss(status);
    ty_status status = make_durable();
    if (thrown_)
        std::rethrow_exception(thrown_);
    return status;
}

void compaction::fill_report(ty_compact_report *report) const {
    report->live_blocks = header_.live_blocks;
    report->live_bytes = header_.live_bytes;
    report->moved_blocks = moves_->moved_blocks();
    report->old_used_bytes = moves_->old().end_page() * stream_page_bytes;
    report->used_bytes = moves_->used_bytes();
    report->fixed_pointers = fixed_;
}

} // namespace

ty_status compact_heap(ty_heap *heap, const ty_compact_options &options, ty_compact_report *report) {
    auto started = std::chrono::steady_clock::now();
    compaction work(heap, options);
    if (ty_status status = work.run())
        return status;
    work.fill_report(report);
    report->duration_ns = static_cast<uint64_t>((std::chrono::steady_clock::now() - started).count());
    return TY_OK;
}

} // namespace taiyen::pack
