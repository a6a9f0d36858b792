// The file of durable marks as it is found: all that is read is checked.
#include "marks_file.hpp"
#include "page_sums.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

bool is_valid(const marks_header &header) {
    return header.magic == marks_magic && header.version == format_version && header.checksum == marks_checksum(header);
}

// A name that a program may have given, or none.
bool is_possible_name(const char (&name)[TY_MARK_NAME_MAX + 1]) {
    const size_t bytes = strnlen(name, sizeof name);
    for (size_t i = 0; i < sizeof name; i++)
        if (i < bytes ? static_cast<unsigned char>(name[i]) < ' ' : name[i] != '\0')
            return false;
    return bytes < sizeof name;
}

} // namespace

ty_status marks_file::open(const ty_storage &storage, const char *path, const image_header &heap, bool writes) {
    file_.storage = &storage;
    path_ = path_with(path, "");
    if (path_ == nullptr)
        return TY_E_MEMORY;
    if (ty_status status = file_.open(path_, writes ? TY_FILE_WRITE : 0))
        return status;
    page_count_ = heap.limit_bytes / page_bytes;
    if (ty_status status = base_.create(page_count_))
        return status;
    return read_header(heap);
}

ty_status marks_file::read_slots(marks_header (&slots)[header_slots]) const {
    io_buffer buffer;
    if (ty_status status = buffer.create(header_slots * page_bytes))
        return status;
    if (ty_status status = file_.read(0, buffer.data(), buffer.bytes()))
        return status;
    for (uint32_t i = 0; i < header_slots; i++)
        memcpy(&slots[i], buffer.data() + i * page_bytes, sizeof slots[i]);
    return TY_OK;
}

bool marks_file::is_unchanged() const {
    marks_header now[header_slots];
    return !file_.is_open() || (read_slots(now) == TY_OK && memcmp(now, slots_, sizeof now) == 0);
}

ty_status marks_file::read_header(const image_header &heap) {
    uint64_t size = 0;
    if (ty_status status = file_.get_size(&size))
        return status;
    if (size < header_slots * page_bytes)
        return damaged("it is too short", size);
    if (ty_status status = read_slots(slots_))
        return status;
    if (ty_status status = file_.get_size(&size)) // it may have grown before the header was written
        return status;
    file_pages_ = std::min(size / page_bytes, marks_pages_max);
    const uint32_t newest = newest_slot([&](uint32_t n) { return is_valid(slots_[n]) ? slots_[n].number : 0; });
    if (newest == header_slots) {
        for (const marks_header &slot : slots_)
            if (slot.magic == marks_magic && slot.version != format_version)
                return failure(TY_E_FORMAT, "use a file of durable marks of format version %u", slot.version)
                    .at(path_)
                    .remedy("use another version of the library");
        const bool foreign = slots_[0].magic != marks_magic && slots_[1].magic != marks_magic;
        return foreign ? failure(TY_E_FORMAT, "use a file that is not one of durable marks")
                             .at(path_)
                             .remedy("move it away, and put the heap's own back, if it has one")
                       : damaged("both of its headers are", 0);
    }
    header_ = slots_[newest];
    slot_damaged_ = !is_valid(slots_[1 - newest]);
    if (header_.number >= counter_begin_max || header_.open.number >= counter_begin_max)
        return damaged("a counter is impossible", 0);
    return check_belongs(heap);
}

// MK9: the image says which open wrote it last.
ty_status marks_file::check_belongs(const image_header &heap) const {
    const bool same_heap = memcmp(header_.identity, heap.identity, sizeof header_.identity) == 0;
    if (same_heap && header_.limit_bytes == heap.limit_bytes &&
        (names_open(header_, heap.open) || fault("durable_marks_of_another_state")))
        return TY_OK;
    return failure(TY_E_MISMATCH, "use the file of durable marks: it belongs to %s",
                   same_heap ? "another copy of the heap, or to what it was before" : "another heap")
        .at(path_)
        .remedy("put the file that belongs to it back, or move this one away");
}

ty_status marks_file::read_run(const stored_entries &stored, os::array<char> &bytes) const {
    uint64_t size = 0;
    if (ty_status status = file_.get_size(&size))
        return status;
    if (stored.bytes > size || stored.offset > size - stored.bytes || stored.offset % page_bytes != 0)
        return damaged("it is cut short", size);
    io_buffer buffer;
    char *to = nullptr;
    if (ty_status status = buffer.create(pages_of(stored.bytes) * page_bytes))
        return status;
    if (ty_status status = bytes.extend(stored.bytes, &to))
        return status;
    if (ty_status status = file_.read(stored.offset, buffer.data(), buffer.bytes()))
        return status;
    if (stored.bytes != 0)
        memcpy(to, buffer.data(), stored.bytes);
    return checksum(to, stored.bytes) == stored.sum ? TY_OK
                                                    : damaged("the checksum of a table is wrong", stored.offset);
}

// Entries as they are stored: their pages are those of the heap, rising, and their slots are used once.
template <class Function>
static ty_status each_entry(const os::array<char> &bytes, Function &&function) {
    marks_entry kept;
    for (size_t at = 0; at < bytes.count(); at += sizeof kept) {
        memcpy(&kept, bytes.begin() + at, sizeof kept);
        if (ty_status status = function(kept))
            return status;
    }
    return TY_OK;
}

ty_status marks_file::load_run(const stored_entries &stored, os::array<char> &bytes) {
    if (stored.bytes % sizeof(marks_entry) != 0)
        return damaged("a table is impossible", stored.offset);
    if (ty_status status = use(stored.offset / page_bytes, pages_of(stored.bytes)))
        return status;
    if (ty_status status = read_run(stored, bytes))
        return status;
    return each_entry(bytes, [&](const marks_entry &kept) {
        if (kept.page >= page_count_ || kept.slot == none)
            return damaged("an entry is impossible", stored.offset);
        if (kept.slot < header_slots)
            return TY_OK;
        if (ty_status status = use(kept.slot, 1))
            return status;
        if (sums_.count() <= kept.slot) {
            uint64_t *added = nullptr;
            if (ty_status status = sums_.extend(kept.slot + 1 - sums_.count(), &added))
                return status;
        }
        sums_[kept.slot] = kept.sum;
        return TY_OK;
    });
}

ty_status marks_file::load_mark(mark_tree &tree, const marks_node &stored, const os::array<uint32_t> &numbers,
                                uint32_t *made) {
    os::array<char> bytes;
    os::array<mark_tree::entry> entries;
    if (!is_possible_name(stored.name) || stored.parent >= numbers.count())
        return damaged("a mark is impossible", header_.table.offset);
    if (ty_status status = load_run(stored.entries, bytes))
        return status;
    if (ty_status status = entries.reserve(bytes.count() / sizeof(marks_entry)))
        return status;
    ty_status status = each_entry(bytes, [&](const marks_entry &kept) {
        if (entries.count() != 0 && entries.end()[-1].page >= kept.page)
            return damaged("entries are not in order", stored.entries.offset);
        entries.push_in_room({kept.page, kept.slot, none});
        return TY_OK;
    });
    if (status)
        return status;
    mark_tree::node fields{};
    strcpy(fields.name, stored.name);
    fields.time_ns = stored.time_ns;
    fields.used_pages = stored.used_pages;
    fields.session = stored.session;
    fields.stored = stored.entries;
    status = tree.restore(fields, entries, numbers[stored.parent], made);
    return status == TY_E_EXISTS ? damaged("two marks have one name", header_.table.offset) : status;
}

ty_status marks_file::load_base(const stored_entries &stored) {
    os::array<char> bytes;
    if (ty_status status = load_run(stored, bytes))
        return status;
    if (ty_status status = base_runs_.push(stored))
        return status;
    return each_entry(bytes, [&](const marks_entry &kept) {
        if (ty_status status = base_.provide(kept.page))
            return status;
        if (base_.get(kept.page) != none)
            return damaged("a page of the base is there twice", stored.offset);
        base_.set(kept.page, kept.slot);
        return base_pages_.push(kept.page);
    });
}

ty_status marks_file::load(mark_tree &tree) {
    os::array<char> bytes;
    marks_table head{};
    lowest_ = header_slots;
    if (ty_status status = use(header_.table.offset / page_bytes, pages_of(header_.table.bytes)))
        return status;
    if (ty_status status = read_run(header_.table, bytes))
        return status;
    if (bytes.count() >= sizeof head)
        memcpy(&head, bytes.begin(), sizeof head);
    if (bytes.count() != sizeof head + uint64_t{head.nodes} * sizeof(marks_node) +
                             uint64_t{head.base_runs} * sizeof(stored_entries) ||
        head.current > head.nodes || head.base_runs > marks_base_runs_max)
        return damaged("its table is impossible", header_.table.offset);
    const char *at = bytes.begin() + sizeof head;
    os::array<uint32_t> numbers; // of the tree, by order
    if (ty_status status = numbers.push(mark_tree::base))
        return status;
    for (uint32_t i = 0; i < head.nodes; i++, at += sizeof(marks_node)) {
        marks_node stored;
        uint32_t made = 0;
        memcpy(&stored, at, sizeof stored);
        if (ty_status status = load_mark(tree, stored, numbers, &made))
            return status;
        if (ty_status status = numbers.push(made))
            return status;
    }
    for (uint32_t i = 0; i < head.base_runs; i++, at += sizeof(stored_entries)) {
        stored_entries stored;
        memcpy(&stored, at, sizeof stored);
        if (ty_status status = load_base(stored))
            return status;
    }
    tree.move_to(numbers[head.current]);
    return TY_OK;
}

// Neighbours in the file together.
ty_status marks_file::read(const place *places, size_t count, char *to) const {
    for (size_t i = 0, n = 0; i < count; i += n) {
        n = 1;
        if (places[i].slot < header_slots) {
            memset(to + i * page_bytes, 0, page_bytes);
            continue;
        }
        while (i + n < count && places[i + n].slot == places[i].slot + n)
            n++;
        if (ty_status status = file_.read(places[i].slot * page_bytes, to + i * page_bytes, n * page_bytes))
            return status;
        for (size_t k = i; k < i + n; k++)
            if (checksum(to + k * page_bytes, page_bytes) != sums_[places[k].slot])
                return damaged("the checksum of a page is wrong", places[k].slot * page_bytes);
    }
    return TY_OK;
}

// Each damaged copy is reported; those that are read together are read one by one then.
ty_status marks_file::check_copies(mark_tree &tree, void (*problem)(void *context, const char *text),
                                   void *context) const {
    os::array<place> places;
    io_buffer buffer;
    if (ty_status status = buffer.create(piece_pages * page_bytes))
        return status;
    ty_status status = TY_OK;
    for (const uint32_t page : base_pages_)
        if ((status = places.push({page, base_.get(page)})))
            return status;
    tree.visit([&](const mark_tree::node &mark) {
        for (const mark_tree::entry &kept : mark.entries)
            if ((status = places.push({kept.page, kept.slot})))
                return false;
        return true;
    });
    for (size_t i = 0; i < places.count() && !status; i += piece_pages) {
        const size_t n = std::min<size_t>(piece_pages, places.count() - i);
        if (read(&places[i], n, buffer.data()) == TY_OK)
            continue;
        for (size_t k = 0; k < n; k++)
            if (read(&places[i + k], 1, buffer.data()) != TY_OK)
                problem(context, ty_error_text());
    }
    return status;
}

} // namespace taiyen
