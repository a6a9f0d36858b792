// Messages that leave a heap: a ring of them in one block at a root, changed by transactions as the program's own
// blocks are. It holds no addresses.
//
// OB1: the messages that wait have the consecutive numbers from `first` to before `next`, each within the room and
//     overlapping no other.
// OB2: a message is passed to a reader once it is durable. Otherwise a crash could take it back, and another one would
//     have its number, which the receiver would take for a duplicate.
#include "outbox.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen::twophase {
namespace {

constexpr char outbox_magic[9] = "TyOutbx1";
constexpr size_t batch_bytes = size_t{1} << 20; // copied at a time
constexpr size_t room_min = 4096;

struct outbox_block {
    char magic[8];
    uint8_t stream[16]; // random
    uint64_t room;      // bytes after this head, a multiple of 8
    uint64_t first;     // the number of the oldest message that waits
    uint64_t next;      // of the next message; first == next: none waits
    uint64_t head;      // where the oldest one lies
    uint64_t tail;      // where the next one will lie
};
static_assert(sizeof(outbox_block) == 64);
// The message follows, padded to a multiple of 8. If there is room after the last one before the room's end, a head
// with the number 0 stands there: the next one lies at 0.
struct outbox_message {
    uint64_t number;
    uint64_t bytes;
};

constexpr uint64_t entry_bytes(uint64_t bytes) {
    return sizeof(outbox_message) + ((bytes + 7) & ~uint64_t{7});
}

struct root_name {
    char text[TY_ROOT_NAME_MAX + 1];
    explicit root_name(const char *name) { snprintf(text, sizeof text, "%s%s", TY_OUTBOX_ROOT, name); }
};

ty_status damaged(ty_heap *heap, const char *name) {
    return failure(TY_E_DAMAGED, "use the outbox %s: what is in it does not fit together", name)
        .at(path_of(heap))
        .remedy("do what the messages say by other means, and remove it");
}

ty_status not_found(ty_heap *heap, const char *name) {
    return failure(TY_E_NOT_FOUND, "use the outbox %s: there is none", name)
        .at(path_of(heap))
        .remedy("make it with ty_outbox_make");
}

bool is_sound(const outbox_block &box, size_t block_bytes) {
    return box.room >= room_min && box.room % 8 == 0 && box.room <= block_bytes - sizeof box && box.first >= 1 &&
           box.next >= box.first && box.head % 8 == 0 && box.tail % 8 == 0 && box.head <= box.room &&
           box.tail <= box.room;
}

ty_status find(ty_heap *heap, const char *name, outbox_block **box) {
    size_t bytes = 0;
    if (ty_status status = find_after(heap, root_name(name).text, outbox_magic, box, &bytes))
        return status;
    return *box && !is_sound(**box, bytes) ? damaged(heap, name) : TY_OK;
}
ty_status find_existing(ty_heap *heap, const char *name, outbox_block **box) {
    if (ty_status status = find(heap, name, box))
        return status;
    return *box ? TY_OK : not_found(heap, name);
}

char *room_of(outbox_block &box) {
    return reinterpret_cast<char *>(&box + 1);
}
bool has_position(const outbox_block &box, uint64_t at) {
    return box.room - at >= sizeof(outbox_message);
}

// Walks from the oldest message on. Nothing that it reads is trusted: the block may be damaged.
class walk {
public:
    explicit walk(outbox_block &box) : box_(box), number_(box.first), at_(box.head) {}

    bool at_end() const { return number_ == box_.next; }
    uint64_t number() const { return number_; }
    uint64_t position() const { return number_ == box_.next ? box_.tail : at_; }
    // The current message; NULL: none is where it should be.
    const outbox_message *message() {
        if (!has_position(box_, at_) || entry(at_)->number == 0)
            at_ = 0;
        const outbox_message *found = entry(at_);
        const uint64_t left = box_.room - at_ - sizeof *found;
        return found->number == number_ && found->bytes <= TY_MESSAGE_BYTES_MAX &&
                       entry_bytes(found->bytes) - sizeof *found <= left
                   ? found
                   : nullptr;
    }
    void pass(const outbox_message *found) {
        at_ += entry_bytes(found->bytes);
        ++number_;
    }

private:
    const outbox_message *entry(uint64_t at) const {
        return reinterpret_cast<const outbox_message *>(room_of(box_) + at);
    }

    outbox_block &box_;
    uint64_t number_;
    uint64_t at_;
};

ty_status not_yet(const char *call, const char *name, uint64_t number, uint64_t last) {
    return failure(TY_E_MISMATCH, "%s the outbox %s: the number %llu is of no message, as the last one has %llu", call,
                   name, static_cast<unsigned long long>(number), static_cast<unsigned long long>(last))
        .remedy("compare the streams' sources; if this heap was restored to an earlier time, remove the outbox and "
                "make it anew");
}

// Where `bytes` would lie; false: there is no room. *wraps: at the room's start, and the rest at its end stays empty.
bool find_room(const outbox_block &box, uint64_t bytes, bool *wraps) {
    const bool is_empty = box.first == box.next;
    *wraps = false;
    if (is_empty)
        return *wraps = true, bytes <= box.room;
    if (box.tail <= box.head) // it has wrapped already
        return bytes <= (fault("message_over_one_that_waits") ? box.room : box.head) - box.tail;
    if (bytes <= box.room - box.tail)
        return true;
    *wraps = true;
    return bytes <= box.head;
}

ty_status declare_head(ty_txn *txn, outbox_block *box) {
    return ty_declare(txn, &box->first, sizeof *box - offsetof(outbox_block, first));
}

ty_status put_at_start(ty_txn *txn, outbox_block *box) {
    if (box->first == box->next) {
        box->head = 0;
    } else if (has_position(*box, box->tail)) {
        auto *end = reinterpret_cast<outbox_message *>(room_of(*box) + box->tail);
        if (ty_status status = ty_declare(txn, end, sizeof *end))
            return status;
        *end = {0, 0};
    }
    box->tail = 0;
    return TY_OK;
}

// A message as it is copied for a reader.
struct copied {
    outbox_message head;
    char *bytes() { return reinterpret_cast<char *>(this + 1); }
};

struct batch {
    char *memory = nullptr;
    size_t room = 0;
    size_t used = 0;
    ~batch() { free(memory); }

    ty_status provide(size_t bytes) {
        if (bytes <= room)
            return TY_OK;
        free(memory);
        memory = static_cast<char *>(ty_plugin_malloc(bytes));
        room = memory ? bytes : 0;
        return memory ? TY_OK
                      : failure(TY_E_MEMORY, "read an outbox: %zu bytes for messages", bytes)
                            .remedy("free memory, or raise the process's limits");
    }
};

struct source_text {
    char text[33];
};
source_text text_of(const uint8_t *stream) {
    source_text made;
    for (int i = 0; i < 16; ++i)
        snprintf(made.text + 2 * i, 3, "%02x", stream[i]);
    return made;
}

struct reading {
    const char *name;
    uint64_t after;
    uint64_t last; // the last message of this call; 0: not known yet
    source_text source;
    batch copies;
};

// Copies as many messages as fit, but at least one.
ty_status copy_some(ty_heap *heap, reading *one) {
    heap_reader look(heap);
    outbox_block *box;
    if (ty_status status = look.status())
        return status;
    if (ty_status status = find_existing(heap, one->name, &box))
        return status;
    if (one->after >= box->next)
        return not_yet("read", one->name, one->after, box->next - 1);
    if (one->after + 1 < box->first)
        return failure(TY_E_NOT_FOUND, "read the outbox %s after %llu: messages before %llu are forgotten", one->name,
                       static_cast<unsigned long long>(one->after), static_cast<unsigned long long>(box->first))
            .remedy("only what a receiver has may be forgotten: ask it for what it has");
    one->source = text_of(box->stream);
    one->last = one->last ? std::min(one->last, box->next - 1) : box->next - 1;
    one->copies.used = 0;
    for (walk at(*box); !at.at_end() && at.number() <= one->last;) {
        const outbox_message *found = at.message();
        if (!found)
            return damaged(heap, one->name);
        if (at.number() > one->after) {
            const size_t bytes = entry_bytes(found->bytes), used = one->copies.used;
            if (used && used + bytes > one->copies.room)
                break;
            if (ty_status status =
                    used ? TY_OK : one->copies.provide(std::max(bytes, std::min(batch_bytes, box->room))))
                return status;
            memcpy(one->copies.memory + used, found, bytes);
            one->copies.used += bytes;
        }
        at.pass(found);
    }
    return TY_OK;
}

// False: the callback has ended the reading.
bool call_back(reading *one, ty_message_callback *callback, void *context) {
    for (size_t at = 0; at < one->copies.used;) {
        auto *each = reinterpret_cast<copied *>(one->copies.memory + at);
        const ty_message message{one->source.text, each->head.number, each->bytes(), each->head.bytes};
        one->after = each->head.number;
        if (!callback(&message, context))
            return false;
        at += entry_bytes(each->head.bytes);
    }
    return true;
}

// Moves the waiting messages to a new block. The old one is freed.
ty_status move_to(ty_txn *txn, outbox_block *old, outbox_block *made, const char *name) {
    memcpy(made->stream, old->stream, sizeof made->stream);
    made->first = old->first;
    made->next = old->next;
    for (walk at(*old); !at.at_end();) {
        const outbox_message *found = at.message();
        if (!found)
            return damaged(ty_txn_heap(txn), name);
        const uint64_t bytes = entry_bytes(found->bytes);
        if (bytes > made->room - made->tail)
            return failure(TY_E_SPACE, "make the outbox %s smaller than what waits in it", name)
                .remedy("give it more room, or forget something first");
        memcpy(room_of(*made) + made->tail, found, bytes);
        made->tail += bytes;
        at.pass(found);
    }
    return ty_txn_free(txn, old);
}

ty_status is_more(ty_heap *heap, const char *name, uint64_t after, bool *more) {
    heap_reader look(heap);
    outbox_block *box;
    if (ty_status status = look.status())
        return status;
    if (ty_status status = find_existing(heap, name, &box))
        return status;
    *more = box->next > after && box->next - 1 != after;
    return box->next > after ? TY_OK : not_yet("wait for", name, after, box->next - 1);
}

uint64_t used_bytes(const outbox_block &box) {
    if (box.first == box.next)
        return 0;
    return box.tail > box.head ? box.tail - box.head : box.room - box.head + box.tail;
}

} // namespace

ty_status outbox_make(ty_txn *txn, const char *name, size_t bytes) {
    ty_heap *heap = ty_txn_heap(txn);
    outbox_block *old;
    if (bytes < room_min || bytes > SIZE_MAX / 2)
        return failure(TY_E_ARGUMENT, "make an outbox of %zu bytes", bytes).remedy("give it at least %zu", room_min);
    if (ty_status status = find(heap, name, &old))
        return status;
    const uint64_t room = (bytes + 7) & ~size_t{7};
    auto *made = static_cast<outbox_block *>(ty_txn_alloc_aligned(txn, sizeof(outbox_block) + room, 16));
    if (!made)
        return TY_E_MEMORY;
    memcpy(made->magic, outbox_magic, sizeof made->magic);
    made->room = room;
    made->first = made->next = 1;
    made->head = made->tail = 0;
    random_bytes(made->stream, sizeof made->stream);
    ty_status status = old ? move_to(txn, old, made, name) : TY_OK;
    if (!status)
        status = ty_txn_root_set(txn, root_name(name).text, made);
    if (!status)
        return TY_OK;
    const ty_error error = keep_error();
    [[maybe_unused]] const ty_status freed = ty_txn_free(txn, made); // else a rollback takes it back
    return report_again(error, status);
}

ty_status outbox_remove(ty_txn *txn, const char *name) {
    outbox_block *box;
    if (ty_status status = find_existing(ty_txn_heap(txn), name, &box))
        return status;
    if (ty_status status = ty_txn_root_set(txn, root_name(name).text, nullptr))
        return status;
    return ty_txn_free(txn, box);
}

ty_status outbox_put(ty_txn *txn, const char *name, const void *bytes, size_t size, uint64_t *number) {
    outbox_block *box;
    bool wraps;
    if (size > TY_MESSAGE_BYTES_MAX)
        return failure(TY_E_ARGUMENT, "put a message of %zu bytes", size)
            .remedy("put %u at the most: a large thing in parts, or where it can be found", TY_MESSAGE_BYTES_MAX);
    if (ty_status status = find_existing(ty_txn_heap(txn), name, &box))
        return status;
    const uint64_t taken = entry_bytes(size);
    if (!find_room(*box, taken, &wraps))
        return failure(TY_E_SPACE, "put a message of %zu bytes: the outbox %s is full", size, name)
            .at(path_of(ty_txn_heap(txn)))
            .remedy("wait until a receiver has taken what is in it, or make it larger (ty_outbox_make)");
    auto *place = reinterpret_cast<outbox_message *>(room_of(*box) + (wraps ? 0 : box->tail));
    if (ty_status status = ty_declare(txn, place, taken))
        return status;
    if (ty_status status = declare_head(txn, box))
        return status;
    if (ty_status status = wraps ? put_at_start(txn, box) : TY_OK)
        return status;
    *place = {box->next, size};
    if (size)
        memcpy(place + 1, bytes, size);
    memset(reinterpret_cast<char *>(place + 1) + size, 0, taken - sizeof *place - size);
    box->tail += taken;
    if (number)
        *number = box->next;
    ++box->next;
    return TY_OK;
}

ty_status outbox_read(ty_heap *heap, const char *name, uint64_t after, ty_message_callback *callback, void *context) {
    reading one{name, after, 0, {}, {}};
    do {
        bool durable = false;
        if (ty_status status = copy_some(heap, &one))
            return status;
        if (one.copies.used == 0)
            return TY_OK;
        const bool lasts = !fault("message_given_before_it_is_durable");
        if (ty_status status = ty_durable(heap, 0, lasts, &durable)) // OB2: what leaves an outbox is durable
            return status;
        if (!call_back(&one, callback, context))
            return TY_OK;
    } while (one.after < one.last);
    return TY_OK;
}

ty_status outbox_wait(ty_heap *heap, const char *name, uint64_t after, uint32_t timeout_ms, bool *more) {
    const uint64_t until = now_ns() + uint64_t{timeout_ms} * 1000000;
    for (;;) {
        ty_txn_stats stats{};
        uint64_t durable;
        stats.struct_size = sizeof stats;
        if (ty_status status =
                ty_get_txn_stats(heap, &stats)) // before the check: a message put after that ends the wait
            return status;
        if (ty_status status = is_more(heap, name, after, more))
            return status;
        const uint64_t now = now_ns();
        if (*more || now >= until)
            return TY_OK;
        if (ty_status status = ty_plugin_wait_beyond(heap, stats.lsn, until - now, &durable))
            return status;
    }
}

ty_status outbox_forget(ty_txn *txn, const char *name, uint64_t through) {
    outbox_block *box;
    if (ty_status status = find_existing(ty_txn_heap(txn), name, &box))
        return status;
    if (through >= box->next)
        return not_yet("forget messages of", name, through, box->next - 1);
    walk at(*box);
    while (!at.at_end() && at.number() <= through) {
        const outbox_message *found = at.message();
        if (!found)
            return damaged(ty_txn_heap(txn), name);
        at.pass(found);
    }
    if (at.number() == box->first)
        return TY_OK;
    if (ty_status status = declare_head(txn, box))
        return status;
    box->first = at.number();
    box->head = at.position();
    return TY_OK;
}

ty_status outbox_get_info(ty_heap *heap, const char *name, ty_outbox_info *info) {
    heap_reader look(heap, true);
    outbox_block *box;
    if (ty_status status = look.status())
        return status;
    if (ty_status status = find_existing(heap, name, &box))
        return status;
    memset(info->source, 0, sizeof info->source);
    memcpy(info->source, text_of(box->stream).text, sizeof(source_text));
    info->first = box->first;
    info->next = box->next;
    info->used_bytes = used_bytes(*box);
    info->size_bytes = box->room;
    return TY_OK;
}

} // namespace taiyen::twophase
