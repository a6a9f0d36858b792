// Taiyen in C++: a heap of values, header-only, C++17 and later. A part of values.hpp, which includes it.
//
// Purpose: makes values, keeps count of them, and knows how stores become known: everything that the containers store
// into the heap goes through a value_heap.
//
// Vocabulary: a value is *stored* when a container, or the root, has it. Blocks count how often they are stored. A
// value that was made, or taken out of a container, and is stored nowhere is *loose*: store it, or discard() it.
//
// Guarantees: a call that fails changes nothing. Of a transactional heap the calls take part in the calling thread's
// transaction, and declare each store before they make it; outside of one they are refused. Between record_undo(true)
// and record_undo(false) they record for the open transaction of undo. Reads never store. One thread writes, and nobody
// reads meanwhile; many may read at a time. Nothing throws, but std::bad_alloc where the process has no memory
// for an error's text, for pack(), unpack() and collect().
//
// What is released last is freed at once, however deep it is, without deep recursion. Containers that lead to
// themselves stay until collect() (value_collect.hpp).
#ifndef TAIYEN_VALUE_HEAP_HPP
#define TAIYEN_VALUE_HEAP_HPP

#include "taiyen.hpp"
#include "value_packed.hpp"

namespace taiyen {
inline namespace v0 {

namespace detail {
class item_writer;
}

class value_heap {
public:
    // Called for each container, tuple and array that is freed, before it is; of a packed one, for those within it
    // first. It must not store.
    using freed_callback = void(const void *block, void *context);
    // Called for each packed container that has become an ordinary one, and where it is now.
    using unpacked_callback = void(const void *packed, value container, void *context);

    // Finds the heap's values, or makes a place for them (in a transactional heap: in the calling thread's
    // transaction). Errors: TY_E_NOT_FOUND (none there, and it cannot be made: read-only, or no transaction),
    // TY_E_FORMAT (of another version), TY_E_MISMATCH, TY_E_MEMORY, TY_E_DAMAGED. O(layouts and shapes).
    static result<value_heap> open(heap_view heap) {
        value_heap opened(heap.get());
        if (opened.find_or_make())
            return error::last();
        return opened;
    }

    // The heap itself.
    ty_heap *get() const noexcept { return heap_; }
    // Whether it was opened for reading only.
    bool is_read_only() const noexcept { return read_only_; }
    // Another number after each change of any value of the heap, also after a rollback and an undo.
    std::uint64_t stamp() const noexcept { return space_->stamp; }
    // Whether what follows is recorded for the heap's open transaction of undo.
    void record_undo(bool yes) noexcept { undo_ = yes; }
    // Who is told of blocks that are freed; NULL: nobody.
    void on_freed(freed_callback *callback, void *context) noexcept {
        freed_ = callback;
        freed_context_ = context;
    }

    // The same of containers that are unpacked.
    void on_unpacked(unpacked_callback *callback, void *context) noexcept {
        unpacked_ = callback;
        unpacked_context_ = context;
    }

    // What leads to everything else that is stored. Nothing at first.
    value root() const noexcept { return space_->root; }
    // Stores it; the one before is released.
    result<void> set_root(value v) {
        if (begin_write() || put(&space_->root, v))
            return error::last();
        return {};
    }

    // What a binding of another language stores for the sake of its handles alone: a list, which nothing else leads to.
    // Nothing at first. What a program that has died left there, the next one takes out.
    value kept() const noexcept { return space_->kept; }
    // Stores it; the one before is released.
    result<void> set_kept(value v) {
        if (begin_write() || put(&space_->kept, v))
            return error::last();
        return {};
    }

    // ---- Values, made. Those with a block are loose.

    // Of a UTF-8 text.
    result<value> make_text(std::string_view text) {
        return text.size() <= value::short_bytes_max ? result<value>(value::short_text(text))
                                                     : make_data(value_kind::text, 0, text, false);
    }
    // Of bytes.
    result<value> make_bytes(std::string_view bytes) {
        return bytes.size() <= value::short_bytes_max ? result<value>(value::short_bytes(bytes))
                                                      : make_data(value_kind::bytes, 0, bytes, false);
    }
    // Of a whole number of any size: the magnitude, lowest byte first.
    result<value> make_integer(std::string_view magnitude, bool negative) {
        trim(magnitude);
        value word;
        if (integer_word(magnitude, negative, &word))
            return word;
        return make_data(value_kind::big_integer, 0, magnitude, negative);
    }
    // Of a whole number.
    result<value> make_integer(std::int64_t number) {
        if (value::fits(number))
            return value::integer(number);
        const std::uint64_t magnitude =
            number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
        char bytes[8];
        std::memcpy(bytes, &magnitude, sizeof bytes);
        return make_integer({bytes, sizeof bytes}, number < 0);
    }
    // Of a complex number.
    result<value> make_complex(double real, double imaginary) {
        const double parts[2] = {real, imaginary};
        return make_data(value_kind::complex, 0, {reinterpret_cast<const char *>(parts), sizeof parts}, false);
    }
    // Of bytes that the user understands, by the type's number. Two are one key if type and bytes are equal.
    result<value> make_opaque(std::uint16_t type, std::string_view bytes, bool hashable = true) {
        return make_data(value_kind::opaque, type, bytes, false, hashable ? 0 : detail::flag_unhashable);
    }
    // Of the values, which are stored by it.
    result<value> make_tuple(const value *values, std::size_t count);
    // Of numbers, all zero: dimensions (8 at most) with their lengths. It never moves.
    result<value> make_array(std::string_view type, std::uint32_t item_size, const std::uint64_t *shape,
                             std::uint32_t dimensions);
    // Of a container without anything in it: value_kind::dict, list, set or deque.
    result<value> make_container(value_kind kind);
    // Of records, none yet (records.hpp): of that layout, and of so many bytes each, 65,535 at most.
    // single: there is to be one, which stands alone.
    result<value> make_records(std::uint16_t layout, std::uint16_t item_size, bool single = false);
    // The number of a layout, a text that says what records are made of; it is kept if it is met for the first time. A
    // heap has 65,536 at most.
    result<std::uint16_t> keep_layout(std::string_view text);
    // The text of a layout; empty if there are not so many.
    std::string_view layout(std::size_t number) const;
    // Frees a value with all that it alone leads to, if it is loose; else, and without a block, does nothing.
    result<void> discard(value v) {
        if (!v.is_block() || is_item(v) || detail::head_of(v)->refs != 0)
            return {};
        if (begin_write() || declare_head(detail::head_of(v)))
            return error::last();
        touch();
        bury(detail::head_of(v));
        drain();
        return {};
    }

    // Frees what could not be freed when it was released, since memory was short.
    result<void> settle() {
        if (begin_write())
            return error::last();
        drain();
        if (space_->dead)
            return error::last();
        return {};
    }

    // ---- Packed values (value_packed.hpp): a small dict or list, with all below it that is stored there alone, takes
    // one block of a fraction of the bytes. It reads as before; the first change unpacks it.

    // Packs a loose container, or what is below it, as far as it gets smaller so: what it is now, loose as well. Not
    // packed are sets, deques, tuples with containers, and dicts whose keys are met for the first time.
    result<value> pack(value v);
    // Of items that were written (item_writer in value_packing.hpp): a packed dict of that shape, or list of so many.
    result<value> make_packed(bool is_dict, std::uint16_t number, const detail::item_writer &items);
    // The number of an ordinary dict's keys among the shapes; -1: none. One is made for keys that were met before, or
    // for these at once.
    std::int32_t find_shape(value dict, bool at_once = false);
    // Makes ordinary containers of a packed one, and of all that is in the same block; where it is now. What is none
    // stays. Handles of what was within the block are void.
    result<value> unpack(value v);
    // What can be stored, for what was read of a packed container: a text or tuple of its own, or the container,
    // unpacked. Everything else as it is.
    result<value> own(value v) {
        if (!is_item(v))
            return v;
        if (is_packed(v))
            return unpack(v);
        if (kind_of(v) == value_kind::tuple)
            return own_tuple(v);
        return make_data(kind_of(v), 0, data_of(v), false);
    }

    // ---- Keys.

    // Of a value. TY_E_ARGUMENT: it is no key.
    result<value_key> key(value v) const {
        if (is_item(v) && kind_of(v) == value_kind::tuple)
            return refuse("use a tuple of a packed container as a key", "use what value_heap::own() makes of it");
        if (is_item(v) && !is_packed(v))
            return data_key(kind_of(v), 0, data_of(v));
        if (!detail::is_hashable(v))
            return refuse("use a value as a key: a container or an array, or something with one in it",
                          "use texts, bytes, numbers, or tuples of these");
        value_key key;
        key.word = v;
        key.hash = detail::hash_of(hasher(), v);
        return key;
    }
    // Of a text that need not be in the heap; it is looked at as long as the key is.
    value_key text_key(std::string_view text) const { return data_key(value_kind::text, 0, text); }
    // The same of bytes.
    value_key bytes_key(std::string_view bytes) const { return data_key(value_kind::bytes, 0, bytes); }
    // The same of a whole number, as in make_integer; of one that fits key() will do.
    value_key integer_key(std::string_view magnitude, bool negative) const {
        trim(magnitude);
        value word;
        if (integer_word(magnitude, negative, &word))
            return key(word).value();
        return data_key(value_kind::big_integer, 0, magnitude, negative);
    }
    // The same of opaque bytes.
    value_key opaque_key(std::uint16_t type, std::string_view bytes) const {
        return data_key(value_kind::opaque, type, bytes);
    }

    // ---- For containers.

    // Before the first store of a call: finds out how stores become known. Not TY_OK: there is none to be made.
    ty_status begin_write() {
        txn_ = nullptr;
        if (kind_ == TY_TRANSACTIONAL) {
            txn_ = ty_current_txn(heap_);
            if (!txn_)
                return ty_error_set(TY_E_ARGUMENT, 0, "change values outside of a transaction", nullptr, UINT64_MAX,
                                    "begin one: a transactional heap changes in transactions alone");
        } else if (read_only_) {
            return ty_error_set(TY_E_PERMISSION, 0, "change values of a heap that is open for reading only", nullptr,
                                UINT64_MAX, "open it for writing");
        }
        planned_ = 0;
        return space_ ? declare(&space_->dead, sizeof space_->dead + sizeof space_->stamp) : TY_OK;
    }
    // VA2. Before bytes are stored to, but for those of blocks that the call has allocated.
    ty_status declare(const void *address, std::size_t bytes) {
        if (txn_)
            return ty_declare(txn_, address, bytes);
        return undo_ ? ty_undo_record(heap_, address, bytes) : TY_OK;
    }
    // A block; its content is indeterminate.
    void *allocate(std::size_t bytes) {
        return undo_ ? ty_undo_alloc(heap_, bytes) : txn_ ? ty_txn_alloc(txn_, bytes) : ty_alloc(heap_, bytes);
    }
    // Frees a block of the heap, as its kind and undo have it.
    ty_status free(void *block) {
        return undo_ ? ty_undo_free(heap_, block) : txn_ ? ty_txn_free(txn_, block) : ty_free(block);
    }
    // With the first store of a call.
    void touch() {
        if (!detail::fault("keys_of_before_a_rollback_used"))
            look_at_stamp();
        space_->stamp = last_stamp_ = next_stamp();
    }
    // What a container that has just changed is stamped with.
    std::uint32_t short_stamp() const { return static_cast<std::uint32_t>(last_stamp_); }

    // Before a value is stored: all that count() needs. alone: no other one is prepared by the call.
    ty_status prepare(value v, bool alone = true);
    // After the last prepare(), and before the first count().
    ty_status prepared();
    // Counts a store of the value.
    void count(value v);
    // Stores it there and counts it.
    void count_at(value *slot, value v) {
        *slot = v;
        count(v);
    }
    // Before a value is released.
    ty_status prepare_release(value v) { return v.is_block() ? declare_head(detail::head_of(v)) : TY_OK; }
    // VA1. Counts one store less. The block stays, until drain(), or for ever if it is kept.
    void release(value v, bool keep = false) {
        if (!v.is_block())
            return;
        detail::value_head *head = detail::head_of(v);
        if (head->refs == UINT32_MAX)
            return;
        if (--head->refs == 0 && !keep)
            bury(head);
    }
    // Frees what was released last, and all that it alone leads to. What cannot be freed now, since memory is short,
    // stays for the next call.
    void drain();
    // Takes everything out of a container, and gives up its body.
    ty_status clear(detail::value_container *container);
    // A body that was replaced, or a loose block that nobody was given: the next drain() frees it.
    void bury(detail::value_head *head);
    // Puts a value in the place of another one. keep: that stays, loose if it was stored only here.
    ty_status put(value *slot, value v, bool keep = false);
    // As make_text and so on, of a key; the key's own value if it has one. Keys that are used often are one block: what
    // is returned may be stored already.
    result<value> make_key(const value_key &key);
    // Hashes as this heap has them.
    detail::value_hasher hasher() const { return detail::value_hasher(space_->seed); }
    // What stands at the root of values.
    detail::value_space *space() const { return space_; }
    // Whether a live block of the heap begins there, with room for so many bytes.
    bool is_live(const void *address, std::size_t bytes) const {
        ty_block block;
        return ty_heap_of(address) == heap_ && ty_block_of(address, &block) == TY_OK && block.address == address &&
               block.size_bytes >= bytes;
    }
    // Whether the heap's shapes or layouts are a set of such values, each with room for what it says of itself.
    bool are_names(value names, value_kind kind) const;
    // Sets the error detail of a call that was refused.
    static error refuse(const char *what, const char *remedy, ty_status status = TY_E_ARGUMENT) {
        ty_error_set(status, 0, what, nullptr, UINT64_MAX, remedy);
        return error::last();
    }

private:
    explicit value_heap(ty_heap *heap) noexcept : heap_(heap), kind_(ty_heap_kind(heap)) {
        // Does nothing but look: of no extent.
        read_only_ = kind_ != TY_VOLATILE && ty_make_extents(heap, nullptr, 0, nullptr) == TY_E_PERMISSION;
    }

    static void trim(std::string_view &magnitude) {
        while (!magnitude.empty() && magnitude.back() == 0)
            magnitude.remove_suffix(1);
    }
    static bool integer_word(std::string_view magnitude, bool negative, value *word) {
        std::int64_t number = 0;
        if (magnitude.size() > 7)
            return false;
        std::memcpy(&number, magnitude.data(), magnitude.size());
        number = negative ? -number : number;
        if (!value::fits(number))
            return false;
        *word = value::integer(number);
        return true;
    }
    value_key data_key(value_kind kind, std::uint16_t type, std::string_view data, bool negative = false) const {
        value_key key;
        if (data.size() <= value::short_bytes_max && kind == value_kind::text)
            key.word = value::short_text(data);
        else if (data.size() <= value::short_bytes_max && kind == value_kind::bytes)
            key.word = value::short_bytes(data);
        key.data = data;
        key.kind = kind;
        key.type = type;
        key.negative = negative;
        key.hash = detail::hash_data(hasher(), kind, type, data, negative);
        return key;
    }
    // VA10. Unique in this run: after a rollback the heap has one that is not the last, and none comes twice.
    std::uint64_t next_stamp() {
        const bool known = last_stamp_ > space_->stamp && !detail::fault("stamp_repeats_after_a_rollback");
        return (known ? last_stamp_ : space_->stamp) + 1;
    }
    // VA11. A stamp that is not the last one tells of a rollback or an undo: blocks that are remembered may be gone.
    void look_at_stamp() {
        if (space_->stamp == last_stamp_)
            return;
        for (value &recent : recent_keys_)
            recent = value();
    }
    ty_status declare_head(const detail::value_head *head) { return declare(head, sizeof *head); }
    result<value> make_data(value_kind kind, std::uint16_t type, std::string_view data, bool negative,
                            unsigned flags = 0);
    ty_status find_or_make();
    ty_status make_space();
    ty_status empty_dead(detail::value_head *head);
    ty_status forget_suspect(detail::value_container *container);
    ty_status free_dead(detail::value_head *head);

    ty_status plan_suspect() {
        ++planned_;
        return prepared();
    }
    std::int32_t shape_number(const value *keys, std::uint32_t count, std::uint32_t dict);
    result<value> try_to_pack(value v);
    result<value> own_tuple(value v);
    void tell_freed(const detail::value_head *head);

    ty_heap *heap_;
    ty_kind kind_;
    detail::value_space *space_ = nullptr;
    ty_txn *txn_ = nullptr;
    bool undo_ = false;
    bool read_only_ = false;
    std::uint32_t planned_ = 0; // containers that are going to be counted
    std::uint64_t last_stamp_ = 0;
    freed_callback *freed_ = nullptr;
    void *freed_context_ = nullptr;
    unpacked_callback *unpacked_ = nullptr;
    void *unpacked_context_ = nullptr;
    value recent_keys_[64]; // texts, by their hashes; void if the heap's stamp is not the last one
    struct seen_shape {
        std::uint32_t hash = 0;
        std::uint32_t dict = 0;
    };
    seen_shape seen_shapes_[64]; // by hashes of keys: the id of a dict with them; a shape is made for the second one
};

} // namespace v0
} // namespace taiyen

#include "value_heap_calls.hpp"
#endif
