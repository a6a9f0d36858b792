// What a part of the record holds: the operations, and the words that may have changed.
//
// Blocks take precedence: all words of an allocated block are compared with zeros, none of a freed block are read.
// These are the overlays; declared ranges count where no overlay lies.
#include "write_faults.hpp"

#include <algorithm>

namespace taiyen {
namespace {

constexpr uint64_t piece_max = uint64_t{1} << 31; // words that one word_range can hold

enum class overlay_kind : bool { zeros = false, drop = true };

ty_status push_overlay(ty_txn *txn, uint64_t first, uint64_t end, overlay_kind kind) {
    for (; first < end; first += std::min(end - first, piece_max)) {
        uint32_t count = static_cast<uint32_t>(std::min(end - first, piece_max));
        word_range piece{first, count, kind == overlay_kind::drop, nullptr, nullptr};
        if (ty_status status = txn->overlays.push(piece))
            return status;
    }
    return TY_OK;
}

record_operation block_operation(operation_kind kind, const touched_block &block, uint64_t words) {
    return {kind, block.word, words * 8, 0, 0, false, nullptr, 0};
}

// Compares a block as it is now (or will be, with the last part) with what the record says of it so far.
ty_status collect_block(ty_txn *txn, const touched_block &block, bool last) {
    uint64_t wanted = last ? block.words_wanted : std::max(block.words, block.words_logged);
    uint64_t logged = block.words_logged;
    ty_status status = TY_OK;
    if (wanted == 0) {
        if (logged != 0)
            status = txn->operations.push(block_operation(operation_kind::free, block, 0));
        return status == TY_OK ? push_overlay(txn, block.word, block.word + block.words, overlay_kind::drop) : status;
    }
    if (logged == 0) {
        status = txn->operations.push(block_operation(operation_kind::alloc, block, block.words));
        if (status == TY_OK && wanted < block.words)
            status = txn->operations.push(block_operation(operation_kind::resize, block, wanted));
    } else if (wanted != logged) {
        status = txn->operations.push(block_operation(operation_kind::resize, block, wanted));
    }
    if (status == TY_OK && wanted > logged)
        status = push_overlay(txn, block.word + logged, block.word + wanted, overlay_kind::zeros);
    if (status == TY_OK && block.words > wanted)
        status = push_overlay(txn, block.word + wanted, block.word + block.words, overlay_kind::drop);
    return status;
}

// Removals first, so that there is room for the others.
ty_status collect_roots(ty_txn *txn) {
    for (bool removals : {true, false}) {
        for (const touched_root &root : txn->roots) {
            if (root.now == root.logged || (root.now == nullptr) != removals)
                continue;
            uint64_t word = root.now != nullptr ? word_at(*txn->rt, root.now) : 0;
            if (ty_status status = txn->operations.push({operation_kind::root, word, 0, 0, 0, root.now == nullptr,
                                                         root.name, static_cast<uint32_t>(strlen(root.name))}))
                return status;
        }
    }
    return TY_OK;
}

ty_status collect_operations(ty_txn *txn, bool last) {
    txn->operations.count = txn->overlays.count = 0;
    if (txn->has_procedure) {
        record_operation procedure{};
        procedure.kind = operation_kind::procedure;
        procedure.procedure = txn->procedure;
        procedure.bytes = txn->payloads.begin() + txn->procedure_payload;
        procedure.byte_count = static_cast<uint32_t>(txn->procedure_bytes);
        if (ty_status status = txn->operations.push(procedure))
            return status;
    }
    for (const touched_block &block : txn->blocks)
        if (ty_status status = collect_block(txn, block, last))
            return status;
    return collect_roots(txn);
}

// Cuts out of the ranges, which come in rising order, what the overlays cover.
class range_writer {
public:
    explicit range_writer(ty_txn *txn)
        : base_(txn->rt->base), out_(txn->words.begin()), overlay_(txn->overlays.begin()), end_(txn->overlays.end()) {}

    void put(uint64_t first, uint64_t count, const uint64_t *before) {
        const uint64_t end = first + count;
        for (;;) {
            uint64_t from = std::min(std::max(first, covered_), end);
            uint64_t to = overlay_ != end_ ? std::min(std::max(overlay_->first, from), end) : end;
            if (from < to)
                write(from, to - from, before == nullptr, before != nullptr ? before + (from - first) : nullptr);
            if (overlay_ == end_ || overlay_->first >= end)
                return;
            put_overlay();
        }
    }
    word_range *finish() {
        while (overlay_ != end_)
            put_overlay();
        return out_;
    }

private:
    void write(uint64_t first, uint64_t count, bool whole, const uint64_t *before) {
        const uint64_t *now = reinterpret_cast<const uint64_t *>(base_) + first;
        *out_++ = {first, static_cast<uint32_t>(count), whole, before, now};
    }
    void put_overlay() {
        if (!overlay_->whole)
            write(overlay_->first, overlay_->count, false, nullptr);
        covered_ = overlay_->first + overlay_->count;
        overlay_++;
    }

    const char *base_;
    word_range *out_;
    const word_range *overlay_;
    const word_range *end_;
    uint64_t covered_ = 0;
};

} // namespace

ty_status part_collect(ty_txn *txn, bool last, record_part *part) {
    const range_entry *entries;
    size_t count;
    if (ty_status status = collect_operations(txn, last))
        return status;
    if (ty_status status =
            txn->tracked ? write_faults_ranges(txn, &entries, &count) : txn->ranges.merged(&entries, &count))
        return status;
    // Each overlay splits at most one range.
    if (ty_status status = txn->words.memory.provide((count + 2 * txn->overlays.count) * sizeof(word_range)))
        return status;
    std::sort(txn->overlays.begin(), txn->overlays.end(),
              [](const word_range &a, const word_range &b) { return a.first < b.first; });
    range_writer writer(txn);
    for (size_t i = 0; i < count; i++)
        writer.put(entries[i].first(), entries[i].count(), entries[i].before);
    txn->words.count = static_cast<size_t>(writer.finish() - txn->words.begin());
    *part = {txn->operations.begin(), txn->operations.count, txn->words.begin(), txn->words.count};
    return TY_OK;
}

// It is not known here what the procedure does to declared words, nor when. So they are logged whole from now on:
// whatever bytes a recovery finds after the procedure, they become those of the commit.
ty_status part_close(ty_txn *txn) {
    record_part part;
    if (ty_status status = part_collect(txn, false, &part))
        return status;
    bool first = txn->parts.count == 0;
    if (ty_status status = txn->parts.memory.provide(txn->parts.count + record_bound(part)))
        return status;
    size_t bytes = record_encode(part, first, txn->parts.end());
    size_t whole = txn->ranges.whole_count();
    for (size_t i = 0; i < part.range_count; i++) {
        if (ty_status status = txn->ranges.add_whole(part.ranges[i].first, part.ranges[i].count)) {
            txn->ranges.cut_whole(whole);
            return status;
        }
    }
    txn->ranges.start_comparison(txn->ranges.put_barrier(), whole);
    txn->parts.count += bytes;
    for (touched_block &block : txn->blocks)
        block.words_logged = std::max(block.words, block.words_logged);
    for (touched_root &root : txn->roots)
        root.logged = root.now;
    return TY_OK;
}

} // namespace taiyen
