// Reports stores that were not declared.
#include "write_faults.hpp"

#include <algorithm>

namespace taiyen {
namespace {

// A line of text, built without the C library: a fault handler may not call it.
class line {
public:
    line &add(const char *text) {
        while (*text != 0 && length_ < sizeof text_ - 1)
            text_[length_++] = *text++;
        return *this;
    }
    line &add(uint64_t number, unsigned base) {
        char digits[24];
        size_t at = sizeof digits - 1;
        digits[at] = 0;
        do {
            digits[--at] = "0123456789abcdef"[number % base];
            number /= base;
        } while (number != 0);
        return add(digits + at);
    }
    line &add(const void *address) { return add("0x").add(reinterpret_cast<uintptr_t>(address), 16); }
    void write() {
        text_[length_++] = '\n';
        os::write_standard_error(text_, length_);
    }

private:
    char text_[240];
    size_t length_ = 0;
};

thread_local os::caught *thrown_by_callback = nullptr;

// After an exception the program is not called again: nothing more is reported.
void call_back(const txn_runtime &rt, const ty_undeclared_write &store) {
    os::caught *thrown =
        store.in_transaction && !fault("exception_leaves_a_commit_in_its_middle") ? thrown_by_callback : nullptr;
    if (thrown == nullptr)
        return rt.undeclared_write(&store, rt.undeclared_store_context);
    os::not_cancelable whole; // the transaction is neither under way nor over (Y5: callbacks are not cancelled)
    auto call = [&] { rt.undeclared_write(&store, rt.undeclared_store_context); };
    if (!thrown->any())
        thrown->run(call);
}

void report(const txn_runtime &rt, const ty_undeclared_write &store) {
    if (rt.undeclared_write != nullptr)
        return call_back(rt, store);
    line text;
    if (store.in_transaction)
        text.add("taiyen: a transaction changed ")
            .add(store.bytes, 10)
            .add(store.bytes == 1 ? " byte and did not declare it, at " : " bytes and did not declare them, at ");
    else
        text.add("taiyen: a store outside of any transaction, at ");
    text.add(store.address);
    if (store.block.address != nullptr)
        text.add(", in the block at ")
            .add(store.block.address)
            .add(" of ")
            .add(store.block.size_bytes, 10)
            .add(" byte")
            .add(plural(store.block.size_bytes));
    if (store.instruction != nullptr)
        text.add(", by the instruction at ").add(store.instruction);
    text.write();
}

// Notes words of a live block that differ, if the transaction should have declared them.
ty_status note_unknown(void *context, const before_image_difference &found) {
    ty_txn *txn = static_cast<ty_txn *>(context);
    uint64_t end = found.words.end();
    uint32_t number = txn->block_numbers.find(word_at(*txn->rt, found.block.address));
    if (number != word_table::none) {
        const touched_block &block = txn->blocks.begin()[number];
        if (block.words_wanted == 0) // freed: its content does not matter
            return TY_OK;
        end = std::min(end, block.word + block.words_before); // what is new of it is compared with zeros
    }
    uint64_t first = found.words.first();
    return first < end ? txn->found.push({range_entry::pack(first, end - first), found.words.before}) : TY_OK;
}

// Reports the bytes from the first to the last that differ, in consecutive words that all differ.
void report_words(const ty_txn *txn, uint64_t first, uint64_t end, const uint64_t *before) {
    const char *now = address_of(*txn->rt, first);
    const char *then = reinterpret_cast<const char *>(before);
    size_t from = 0;
    size_t to = (end - first) * 8;
    while (now[from] == then[from])
        from++;
    while (now[to - 1] == then[to - 1])
        to--;
    ty_undeclared_write store{const_cast<char *>(now) + from, to - from, {}, true, nullptr};
    if (!heap_find_block(txn->rt->heap, store.address, &store.block))
        store.block = {};
    report(*txn->rt, store);
}

// Reports where the words [first, end), none of them declared, differ.
void report_undeclared(const ty_txn *txn, uint64_t first, uint64_t end, const uint64_t *before) {
    const uint64_t *now = reinterpret_cast<const uint64_t *>(txn->rt->base) + first;
    uint64_t count = end - first;
    for (uint64_t at = 0; (at = next_difference(now, before, at, count)) < count;) {
        uint64_t row = at;
        while (at < count && now[at] != before[at])
            at++;
        report_words(txn, first + row, first + at, before + row);
    }
}

} // namespace

undeclared_write_guard::undeclared_write_guard() : outer_(thrown_by_callback) {
    thrown_by_callback = &thrown_;
}

// Y6: nothing stays locked after a callback has thrown.
ty_status undeclared_write_guard::end(ty_status status) {
    thrown_by_callback = outer_;
    thrown_.rethrow();
    return status;
}

void undeclared_stores_in(ty_txn *txn) {
    // A procedure uses plain stores.
    if (txn->has_procedure || txn->parts.count != 0)
        return;
    const range_entry *next;
    size_t count;
    txn->found.count = 0;
    if (txn->ranges.merged(&next, &count) != TY_OK ||
        write_faults_each_difference(*txn->rt, note_unknown, txn) != TY_OK)
        return; // there is no memory for the report
    const range_entry *declared_end = next + count;
    for (const range_entry &found : txn->found) {
        uint64_t at = found.first();
        while (next != declared_end && next->end() <= at)
            next++;
        for (const range_entry *declared = next; at < found.end(); declared++) {
            bool last = declared == declared_end || declared->first() >= found.end();
            uint64_t end = last ? found.end() : std::max(declared->first(), at);
            report_undeclared(txn, at, end, found.before + (at - found.first()));
            if (last)
                break;
            at = std::max(at, declared->end());
        }
    }
}

void undeclared_store_outside(const txn_runtime &rt, const void *address, const void *instruction) {
    report(rt, {const_cast<void *>(address), 0, {}, false, const_cast<void *>(instruction)});
}

} // namespace taiyen
