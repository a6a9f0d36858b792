// Taiyen in C++: a heap of values, header-only, C++17 and later. Part of values.hpp, which includes it.
//
// Purpose: creates values, counts references to them, and declares or records stores: everything that the containers
// store into the heap goes through a value_heap.
//
// Vocabulary: a value is *stored* when a container, or the root, has it. Blocks count how often they are stored. A
// value that was created, or removed from a container, and is stored nowhere is *loose*: store it, or discard() it.
//
// Guarantees: a call that fails changes nothing. On a transactional heap the calls take part in the calling thread's
// transaction, and declare each store before it is done; outside of one they are refused. Between record_undo(true) and
// record_undo(false) they record for the open undo transaction. Reads never store. One thread writes while no other
// reads; many may read at a time. Nothing throws, except std::bad_alloc if the process has no memory for an error's
// text, for pack(), unpack() and collect().
//
// A value is freed when its last reference is released, however deep it is, without deep recursion. Containers in
// reference cycles stay until collect() (value_collect.hpp).
#ifndef TAIYEN_VALUE_HEAP_HPP
#define TAIYEN_VALUE_HEAP_HPP

#include "detail/value_packed.hpp"
#include <taiyen/taiyen.hpp>

namespace taiyen {
inline namespace v0 {

namespace detail {
class item_writer;
}

class value_heap {
public:
    // Called for each container, tuple and array before it is freed; for a packed one, first for those within it. It
    // must not store.
    using freed_callback = void(const void *block, void *context);
    // Called for each packed container that was unpacked, with its new place.
    using unpacked_callback = void(const void *packed, value container, void *context);

    // Opens the heap's values, or creates the root for them (in a transactional heap: in the calling thread's
    // transaction). Errors: TY_E_NOT_FOUND (the heap has none, and they cannot be created: read-only, or no
    // transaction), TY_E_FORMAT (of another version), TY_E_MISMATCH, TY_E_MEMORY, TY_E_DAMAGED. O(layouts and shapes).
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
    // A stamp that changes with each change of any value of the heap, also with a rollback and an undo.
    std::uint64_t stamp() const noexcept { return space_->stamp; }
    // Switches recording for the heap's open undo transaction on or off.
    void record_undo(bool yes) noexcept { undo_ = yes; }
    // Sets the callback for blocks that are freed; NULL: none.
    void on_freed(freed_callback *callback, void *context) noexcept {
        freed_ = callback;
        freed_context_ = context;
    }

    // The same for containers that are unpacked.
    void on_unpacked(unpacked_callback *callback, void *context) noexcept {
        unpacked_ = callback;
        unpacked_context_ = context;
    }

    // The root value, from which all other stored values are reachable. Initially nothing.
    value root() const noexcept { return space_->root; }
    // Stores it; the one before is released.
    result<void> set_root(value v) {
        if (begin_write() || put(&space_->root, v))
            return error::last();
        return {};
    }

    // The values that a binding of another language stores only for its handles: a list, or of a heap that processes
    // share a dict of lists, which no other value refers to. Initially nothing. The next program removes what a crashed
    // one left there.
    value kept() const noexcept { return space_->kept; }
    // Stores it; the one before is released.
    result<void> set_kept(value v) {
        if (begin_write() || put(&space_->kept, v))
            return error::last();
        return {};
    }

    // ---- Creating values. Those with a block are loose.

    // A UTF-8 text.
    result<value> make_text(std::string_view text) {
        return text.size() <= value::short_bytes_max ? result<value>(value::short_text(text))
                                                     : make_data(value_kind::text, 0, text, false);
    }
    // Bytes.
    result<value> make_bytes(std::string_view bytes) {
        return bytes.size() <= value::short_bytes_max ? result<value>(value::short_bytes(bytes))
                                                      : make_data(value_kind::bytes, 0, bytes, false);
    }
    // An integer of any size: the magnitude, lowest byte first.
    result<value> make_integer(std::string_view magnitude, bool negative) {
        trim(magnitude);
        value word;
        if (integer_word(magnitude, negative, &word))
            return word;
        return make_data(value_kind::big_integer, 0, magnitude, negative);
    }
    // An integer.
    result<value> make_integer(std::int64_t number) {
        if (value::fits(number))
            return value::integer(number);
        const std::uint64_t magnitude =
            number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
        char bytes[8];
        std::memcpy(bytes, &magnitude, sizeof bytes);
        return make_integer({bytes, sizeof bytes}, number < 0);
    }
    // A complex number.
    result<value> make_complex(double real, double imaginary) {
        const double parts[2] = {real, imaginary};
        return make_data(value_kind::complex, 0, {reinterpret_cast<const char *>(parts), sizeof parts}, false);
    }
    // Opaque bytes, which only the user interprets, by the type number. Two are the same key if type and bytes are
    // equal.
    result<value> make_opaque(std::uint16_t type, std::string_view bytes, bool hashable = true) {
        return make_data(value_kind::opaque, type, bytes, false, hashable ? 0 : detail::flag_unhashable);
    }
    // A tuple, which stores the values.
    result<value> make_tuple(const value *values, std::size_t count);
    // An array of numbers, all zero: at most 8 dimensions with their lengths. It never moves.
    result<value> make_array(std::string_view type, std::uint32_t item_size, const std::uint64_t *shape,
                             std::uint32_t dimensions);
    // An empty container: value_kind::dict, list, set or deque.
    result<value> make_container(value_kind kind);
    // Empty records (records.hpp): of that layout, and with item_size bytes each, at most 65,535. single: for one
    // record that stands alone.
    result<value> make_records(std::uint16_t layout, std::uint16_t item_size, bool single = false);
    // The number of a layout, a text that describes the fields of records; a new layout is stored. A heap has at most
    // 65,536.
    result<std::uint16_t> keep_layout(std::string_view text);
    // The text of a layout; empty if no layout has the number.
    std::string_view layout(std::size_t number) const;
    // Frees a value with all that only it refers to, if it is loose; else, and without a block, does nothing.
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

    // Frees blocks that could not be freed when they were released, because memory was short.
    result<void> free_deferred() {
        if (begin_write())
            return error::last();
        drain();
        if (space_->dead)
            return error::last();
        return {};
    }

    // ---- Packed values (value_packed.hpp): a small dict or list, with all below it that is stored only there, takes
    // one block, with a fraction of the bytes. It reads as before; the first change unpacks it.

    // Packs a loose container, or what is below it, as far as that makes it smaller; returns the result, also loose.
    // Not packed are sets, deques, tuples with containers, and dicts with a set of keys seen for the first time.
    result<value> pack(value v);
    // A packed dict of that shape, or packed list of that many values, from written items (item_writer in
    // value_packing.hpp).
    result<value> make_packed(bool is_dict, std::uint16_t number, const detail::item_writer &items);
    // The shape number of an ordinary dict's keys; -1: none. A shape is created for keys that were seen before, or at
    // once.
    std::int32_t find_shape(value dict, bool at_once = false);
    // Unpacks a packed container, and all others in the same block; returns its new place. Any other value stays.
    // Handles of containers within the block become invalid.
    result<value> unpack(value v);
    // A storable value, for one that was read from a packed container: a copy of the text or tuple, or the container,
    // unpacked. Any other value as it is.
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

    // From a value. TY_E_ARGUMENT: the value cannot be a key.
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
    // From a text that need not be in the heap; it must live as long as the key.
    value_key text_key(std::string_view text) const { return data_key(value_kind::text, 0, text); }
    // The same for bytes.
    value_key bytes_key(std::string_view bytes) const { return data_key(value_kind::bytes, 0, bytes); }
    // The same for an integer, as in make_integer; for one that fits in a word use key().
    value_key integer_key(std::string_view magnitude, bool negative) const {
        trim(magnitude);
        value word;
        if (integer_word(magnitude, negative, &word))
            return key(word).value();
        return data_key(value_kind::big_integer, 0, magnitude, negative);
    }
    // The same for opaque bytes.
    value_key opaque_key(std::uint16_t type, std::string_view bytes) const {
        return data_key(value_kind::opaque, type, bytes);
    }

    // ---- For containers.

    // Call before the first store of a call: determines how stores are declared. Not TY_OK: the call must not store.
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
    // VA2: a store is declared before it is made. Not needed for blocks that the call has allocated.
    ty_status declare(const void *address, std::size_t bytes) {
        if (txn_)
            return ty_declare(txn_, address, bytes);
        return undo_ ? ty_undo_record(heap_, address, bytes) : TY_OK;
    }
    // Allocates a block; its content is indeterminate.
    void *allocate(std::size_t bytes) {
        return undo_ ? ty_undo_alloc(heap_, bytes) : txn_ ? ty_txn_alloc(txn_, bytes) : ty_alloc(heap_, bytes);
    }
    // Frees a block of the heap, as its kind and undo require.
    ty_status free(void *block) {
        return undo_ ? ty_undo_free(heap_, block) : txn_ ? ty_txn_free(txn_, block) : ty_free(block);
    }
    // Call with the first store of a call.
    void touch() {
        if (!detail::fault("keys_of_before_a_rollback_used"))
            look_at_stamp();
        space_->stamp = last_stamp_ = next_stamp();
    }
    // The stamp for a container that has just changed.
    std::uint32_t short_stamp() const { return static_cast<std::uint32_t>(last_stamp_); }

    // Call before a value is stored: prepares all that count() needs. alone: the call prepares no other value.
    ty_status prepare(value v, bool alone = true);
    // Call after the last prepare(), and before the first count().
    ty_status prepared();
    // Counts a store of the value.
    void count(value v);
    // Stores the value there and counts it.
    void count_at(value *slot, value v) {
        *slot = v;
        count(v);
    }
    // Call before a value is released.
    ty_status prepare_release(value v) { return v.is_block() ? declare_head(detail::head_of(v)) : TY_OK; }
    // VA1: a block counts how often it is stored. Counts one store less. A block that is stored no more stays until
    // drain(), or as a loose value if keep is set.
    void release(value v, bool keep = false) {
        if (!v.is_block())
            return;
        detail::value_head *head = detail::head_of(v);
        if (head->refs == UINT32_MAX)
            return;
        if (--head->refs == 0 && !keep)
            bury(head);
    }
    // Frees blocks whose last reference was released, and all that only they refer to. What cannot be freed now,
    // because memory is short, stays for the next call.
    void drain();
    // Removes everything from a container, and releases its body.
    ty_status clear(detail::value_container *container);
    // Queues a replaced body, or a loose block that was not handed out, for the next drain().
    void bury(detail::value_head *head);
    // Replaces a value by another one. keep: the old value stays, loose if it was stored only here.
    ty_status put(value *slot, value v, bool keep = false);
    // Creates the value of a key, as make_text and so on; the key's own value if it has one. Frequent keys share one
    // block: the result may be stored already.
    result<value> make_key(const value_key &key);
    // The heap's hash function.
    detail::value_hasher hasher() const { return detail::value_hasher(space_->seed); }
    // The block at the root of values.
    detail::value_space *space() const { return space_; }
    // Whether a live block of the heap with room for `bytes` begins there.
    bool is_live(const void *address, std::size_t bytes) const {
        ty_block block;
        return ty_heap_of(address) == heap_ && ty_block_of(address, &block) == TY_OK && block.address == address &&
               block.size_bytes >= bytes;
    }
    // Whether the heap's shapes or layouts are a valid set of values of this kind, each with room for its stated size.
    bool are_names(value names, value_kind kind) const;
    // Sets the error detail of a call that was refused.
    static error refuse(const char *what, const char *remedy, ty_status status = TY_E_ARGUMENT) {
        ty_error_set(status, 0, what, nullptr, UINT64_MAX, remedy);
        return error::last();
    }

private:
    explicit value_heap(ty_heap *heap) noexcept : heap_(heap), kind_(ty_heap_kind(heap)) {
        // Only a test for read-only: no extents are made.
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
    // VA10: a heap's stamp is another one after each change. Unique in this run: after a rollback the heap's stamp is
    // not the last one, and no stamp repeats.
    std::uint64_t next_stamp() {
        const bool known = last_stamp_ > space_->stamp && !detail::fault("stamp_repeats_after_a_rollback");
        return (known ? last_stamp_ : space_->stamp) + 1;
    }
    // VA15: no number comes twice in a run, also after a rollback or a return to a mark.
    std::uint32_t next_id() {
        const bool known = last_id_ > space_->last_id && !detail::fault("number_of_a_container_comes_again");
        return space_->last_id = last_id_ = (known ? last_id_ : space_->last_id) + 1;
    }
    // VA11: a key that is remembered is a live block. A stamp that is not the last one shows a rollback or an undo:
    // remembered blocks may be gone.
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
    void report_freed(const detail::value_head *head);

    ty_heap *heap_;
    ty_kind kind_;
    detail::value_space *space_ = nullptr;
    ty_txn *txn_ = nullptr;
    bool undo_ = false;
    bool read_only_ = false;
    std::uint32_t planned_ = 0; // containers that will be counted
    std::uint64_t last_stamp_ = 0;
    std::uint32_t last_id_ = 0;
    freed_callback *freed_ = nullptr;
    void *freed_context_ = nullptr;
    unpacked_callback *unpacked_ = nullptr;
    void *unpacked_context_ = nullptr;
    value recent_keys_[64]; // texts, by their hashes; invalid if the heap's stamp is not the last one
    struct seen_shape {
        std::uint32_t hash = 0;
        std::uint32_t dict = 0;
    };
    seen_shape seen_shapes_[64]; // by hashes of keys: the id of a dict with them; a shape is created for the second
                                 // such dict
};

} // namespace v0
} // namespace taiyen

#include "detail/value_heap_calls.hpp"
#endif
