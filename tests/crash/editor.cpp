#include "editor.hpp"

namespace crash {

namespace {

uint64_t number(const void *address) {
    return reinterpret_cast<uint64_t>(address);
}

} // namespace

void *editor::note_fresh(void *made, uint64_t size) {
    if (made) {
        fresh_.insert({number(made), size});
    }
    return made;
}

void *editor::alloc(uint64_t size) {
    if (records()) {
        return note_fresh(ty_undo_alloc(heap_, size), size);
    }
    return txn_ ? alloc_zeroed(size) : ty_alloc(heap_, size);
}

void *editor::alloc_zeroed(uint64_t size) {
    if (!txn_) { // an undo's history never goes back to before the table
        return ty_alloc_zeroed(heap_, size);
    }
    // The plain call takes part in the transaction, too.
    return note_fresh(style_->one_in(4) ? ty_alloc(heap_, size) : ty_txn_alloc(txn_, size), size);
}

void *editor::alloc_aligned(uint64_t size, uint64_t alignment) {
    if (records()) {
        return note_fresh(ty_undo_alloc_aligned(heap_, size, alignment), size);
    }
    if (!txn_) {
        return ty_alloc_aligned(heap_, size, alignment);
    }
    return note_fresh(ty_txn_alloc_aligned(txn_, size, alignment), size);
}

void *editor::resize(void *block, uint64_t size) {
    if (records()) {
        void *moved = ty_undo_resize(heap_, block, size);
        return moved == block ? moved : note_fresh(moved, size);
    }
    if (!txn_) {
        return ty_resize(block, size);
    }
    bool fresh = is_fresh(block);
    uint64_t usable = ty_usable_size(block);
    void *moved = style_->one_in(4) ? ty_resize(block, size) : ty_txn_resize(txn_, block, size);
    if (moved && (fresh || moved != block)) {
        forget_fresh(block, usable);
        note_fresh(moved, size);
    }
    return moved;
}

ty_status editor::free(void *block) {
    if (records()) { // it stays where it is, so its place is no other block's
        return ty_undo_free(heap_, block);
    }
    if (!txn_) {
        return ty_free(block);
    }
    forget_fresh(block, ty_usable_size(block));
    return style_->one_in(4) ? ty_free(block) : ty_txn_free(txn_, block);
}

ty_status editor::set_root(const char *name, void *address) {
    return txn_ ? ty_txn_root_set(txn_, name, address) : ty_root_set(heap_, name, address);
}

ty_status editor::publish(const std::vector<void *> &blocks) {
    return ty_publish(txn_, blocks.data(), blocks.size());
}

bool editor::is_fresh(const void *address) const {
    auto after = fresh_.upper_bound({number(address), UINT64_MAX});
    return after != fresh_.begin() && number(address) < std::prev(after)->first + std::prev(after)->second;
}

void editor::forget_fresh(const void *block, uint64_t usable) {
    fresh_.erase(fresh_.lower_bound({number(block), 0}), fresh_.lower_bound({number(block) + usable, 0}));
}

void editor::grew(const void *address, uint64_t bytes) {
    if (records() || txn_) {
        fresh_.insert({number(address), bytes});
    }
}

// What is fresh needs no record.
void editor::announce_to_undo(const void *address, uint64_t bytes) {
    constexpr uint64_t without_need_at_most = 256;
    if (bytes == 0 || (is_fresh(address) && (bytes > without_need_at_most || !style_->one_in(4)))) {
        return;
    }
    check(ty_undo_record(heap_, address, bytes), "ty_undo_record");
}

void editor::announce(void *address, uint64_t bytes) {
    if (records()) {
        announce_to_undo(address, bytes);
        return;
    }
    if (!txn_ || bytes == 0 || (is_fresh(address) && !style_->one_in(4))) {
        return;
    }
    auto *from = static_cast<unsigned char *>(address);
    uint64_t lot = style_->below(10);
    if (lot < 2) { // an explicit log entry, which a rollback reports separately
        check(ty_on_rollback_data(txn_, from, from, bytes), "ty_on_rollback_data");
        check(ty_log_data(txn_, from, bytes), "ty_log_data");
    } else if (lot < 4) { // in pieces that overlap, and not in order
        uint64_t middle = style_->below(bytes);
        check(ty_declare(txn_, from + middle, bytes - middle), "ty_declare");
        check(ty_declare(txn_, from, middle + 1), "ty_declare");
    } else {
        check(ty_declare(txn_, from, bytes), "ty_declare");
    }
}

void editor::procedure(uint64_t id, const void *arguments, uint64_t bytes) {
    if (records()) {
        check(ty_undo_record_procedure(heap_, id, arguments, bytes, TY_OK), "ty_undo_record_procedure");
        return;
    }
    bool logged_first = style_->one_in(2);
    if (logged_first) {
        check(ty_log_procedure(txn_, id, arguments, bytes), "ty_log_procedure");
    }
    check(ty_on_rollback_procedure(txn_, id, arguments, bytes), "ty_on_rollback_procedure");
    if (!logged_first) {
        check(ty_log_procedure(txn_, id, arguments, bytes), "ty_log_procedure");
    }
}

void editor::check(ty_status status, const char *call) {
    if (status != TY_OK && problem_.empty()) {
        problem_ = std::string(call) + ": " + ty_error_text();
    }
}

} // namespace crash
