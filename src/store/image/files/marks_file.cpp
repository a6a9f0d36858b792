#include "marks_file.hpp"
#include "page_sums.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

constexpr size_t staged_pages = 256;
constexpr size_t base_runs_max = 64; // then they become one
constexpr uint64_t file_pages_max = UINT32_MAX;

// Of a run, which has one at least.
uint64_t pages_of(uint64_t bytes) {
    return bytes == 0 ? 1 : (bytes + page_bytes - 1) / page_bytes;
}

uint64_t checksum_of(const marks_header &header) {
    return checksum(&header, offsetof(marks_header, checksum));
}

bool is_valid(const marks_header &header) {
    return header.magic == marks_magic && header.version == format_version && header.checksum == checksum_of(header);
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

marks_file::~marks_file() {
    file_.close();
    base_.destroy();
    free(path_);
}

ty_status marks_file::damaged(const char *what, uint64_t offset) const {
    return failure(TY_E_DAMAGED, "use the file of durable marks: %s", what)
        .at(path_, offset)
        .remedy(
            "restore it from a copy; or move it away: the heap is whole without it, but its durable marks are gone");
}

// ---- Room

ty_status marks_file::take(uint64_t count, uint64_t *first) {
    uint64_t at = lowest_, free = 0;
    for (; at < end_ && free < count; at++)
        free = (used_[at / 64] >> at % 64 & 1) != 0 ? 0 : free + 1;
    *first = at - free;
    const uint64_t end = *first + count;
    if (end > file_pages_max)
        return failure(TY_E_SPACE, "keep a page for a durable mark: there are 16 TiB of them")
            .at(path_)
            .remedy("drop marks");
    if (end > used_.count() * 64) {
        uint64_t *added = nullptr;
        if (ty_status status = used_.extend((end + 63) / 64 - used_.count(), &added))
            return status;
    }
    for (uint64_t page = *first; page < end; page++)
        used_[page / 64] |= uint64_t{1} << page % 64;
    end_ = std::max(end_, end);
    if (count == 1)
        lowest_ = end;
    return TY_OK;
}

ty_status marks_file::use(uint64_t first, uint64_t count) {
    if (first < header_slots || count > file_pages_ || first > file_pages_ - count)
        return damaged("a place in it is impossible", first * page_bytes);
    if (first + count > used_.count() * 64) {
        uint64_t *added = nullptr;
        if (ty_status status = used_.extend((first + count + 63) / 64 - used_.count(), &added))
            return status;
    }
    for (uint64_t page = first; page < first + count; page++) {
        if (used_[page / 64] >> page % 64 & 1)
            return damaged("a page is used twice", page * page_bytes);
        used_[page / 64] |= uint64_t{1} << page % 64;
    }
    end_ = std::max(end_, first + count);
    return TY_OK;
}

void marks_file::free_run(const run &given) {
    for (uint64_t page = given.first; page < given.first + given.count; page++)
        used_[page / 64] &= ~(uint64_t{1} << page % 64);
    lowest_ = std::min(lowest_, given.first);
    while (end_ > header_slots && (used_[(end_ - 1) / 64] >> (end_ - 1) % 64 & 1) == 0)
        end_--;
}

// Where there is no memory to note it, the room comes back with the next open.
void marks_file::release(uint32_t slot) {
    if (slot < header_slots)
        return;
    if (released_.count() != 0 && released_.end()[-1].first + released_.end()[-1].count == slot)
        released_.end()[-1].count++;
    else
        static_cast<void>(released_.push({slot, 1}));
}

void marks_file::release_entries(const stored_entries &entries) {
    if (entries.offset != 0)
        static_cast<void>(released_.push({entries.offset / page_bytes, pages_of(entries.bytes)}));
}

// ---- Writing

ty_status marks_file::write_staged() {
    const uint64_t count = staged_count_;
    staged_count_ = 0;
    return count != 0 ? file_.write(staged_first_ * page_bytes, staged_.data(), count * page_bytes) : TY_OK;
}

ty_status marks_file::keep(const char *page, uint32_t *slot) {
    *slot = zeros;
    if (is_zero_page(page))
        return TY_OK;
    if (staged_.data() == nullptr)
        if (ty_status status = staged_.create(staged_pages * page_bytes))
            return status;
    uint64_t at = 0;
    if (ty_status status = take(1, &at))
        return status;
    *slot = static_cast<uint32_t>(at);
    ty_status status = TY_OK;
    if (sums_.count() <= at) {
        uint64_t *added = nullptr;
        status = sums_.extend(at + 1 - sums_.count(), &added);
    }
    if (status == TY_OK && (staged_count_ == staged_pages || staged_first_ + staged_count_ != at))
        status = write_staged();
    if (status != TY_OK) {
        free_run({at, 1});
        return status;
    }
    if (staged_count_ == 0)
        staged_first_ = at;
    char *copy = staged_.data() + staged_count_++ * page_bytes;
    memcpy(copy, page, page_bytes);
    sums_[at] = checksum(copy, page_bytes);
    return TY_OK;
}

ty_status marks_file::write_run(const void *bytes, size_t count, stored_entries *stored) {
    const uint64_t pages = pages_of(count);
    io_buffer buffer;
    if (ty_status status = buffer.create(pages * page_bytes))
        return status;
    if (ty_status status = written_.reserve(1))
        return status;
    uint64_t first = 0;
    if (ty_status status = take(pages, &first))
        return status;
    written_.push_in_room({first, pages});
    if (count != 0)
        memcpy(buffer.data(), bytes, count);
    memset(buffer.data() + count, 0, pages * page_bytes - count);
    *stored = {first * page_bytes, count, checksum(bytes, count)};
    return file_.write(first * page_bytes, buffer.data(), pages * page_bytes);
}

marks_entry marks_file::entry_of(uint64_t page, uint32_t slot) const {
    return {static_cast<uint32_t>(page), slot, slot >= header_slots ? sums_[slot] : 0};
}

ty_status marks_file::write_entries(mark_tree::node &mark) {
    os::array<marks_entry> entries;
    if (ty_status status = entries.reserve(mark.entries.count()))
        return status;
    if (ty_status status = unsaved_.push(&mark))
        return status;
    for (const mark_tree::entry &kept : mark.entries)
        entries.push_in_room(entry_of(kept.page, kept.slot));
    return write_run(entries.begin(), entries.count() * sizeof(marks_entry), &mark.stored);
}

// Appends a run, or makes one of all.
ty_status marks_file::write_base(os::array<marks_entry> &more) {
    if (more.count() == 0)
        return TY_OK;
    if (ty_status status = base_runs_.reserve(1))
        return status;
    if (ty_status status = base_pages_.reserve(more.count()))
        return status;
    for (const marks_entry &kept : more)
        if (ty_status status = base_.provide(kept.page))
            return status;
    os::array<marks_entry> all;
    const bool one = base_runs_.count() == base_runs_max;
    if (one) {
        if (ty_status status = all.reserve(base_pages_.count() + more.count()))
            return status;
        for (const uint32_t page : base_pages_)
            all.push_in_room(entry_of(page, base_.get(page)));
        for (const marks_entry &kept : more)
            all.push_in_room(kept);
    }
    const os::array<marks_entry> &written = one ? all : more;
    stored_entries stored{};
    if (ty_status status = write_run(written.begin(), written.count() * sizeof(marks_entry), &stored))
        return status;
    base_runs_.push_in_room(stored);
    return TY_OK;
}

ty_status marks_file::write_table(mark_tree &tree, stored_entries *table) {
    os::array<char> bytes;
    ty_status status = TY_OK;
    marks_table head{};
    char *at = nullptr;
    if ((status = bytes.extend(sizeof head, &at)))
        return status;
    tree.visit([&](const mark_tree::node &mark) {
        marks_node stored{};
        strcpy(stored.name, mark.name);
        stored.parent = tree.at(mark.parent).order;
        stored.time_ns = mark.time_ns;
        stored.used_pages = mark.used_pages;
        stored.session = mark.session;
        stored.entries = mark.stored;
        head.nodes++;
        if ((status = bytes.extend(sizeof stored, &at)) == TY_OK)
            memcpy(at, &stored, sizeof stored);
        return status == TY_OK;
    });
    const bool one = base_runs_.count() > base_runs_max; // the last one has them all
    const stored_entries *runs = one ? base_runs_.end() - 1 : base_runs_.begin();
    const auto run_count = static_cast<uint32_t>(base_runs_.end() - runs);
    if (status || (status = bytes.extend(run_count * sizeof *runs, &at)))
        return status;
    if (run_count != 0)
        memcpy(at, runs, run_count * sizeof *runs);
    head.base_runs = run_count;
    head.current = tree.at(tree.current()).order;
    memcpy(bytes.begin(), &head, sizeof head);
    return write_run(bytes.begin(), bytes.count(), table);
}

ty_status marks_file::write_all(mark_tree &tree, os::array<marks_entry> &more_base, stored_entries *table) {
    if (ty_status status = write_staged())
        return status;
    ty_status status = TY_OK;
    tree.visit([&](mark_tree::node &mark) {
        if (mark.stored.offset == 0)
            status = write_entries(mark);
        return status == TY_OK;
    });
    if (!status)
        status = write_base(more_base);
    if (!status)
        status = write_table(tree, table);
    return status || fault("marks_header_before_what_it_leads_to") ? status : file_.flush();
}

ty_status marks_file::write_header(marks_header next) {
    next.number = header_.number + 1;
    next.checksum = checksum_of(next);
    io_page page;
    memcpy(page.bytes, &next, sizeof next);
    for (uint32_t slot = fault("marks_header_written_once"); slot < header_slots; slot++) {
        if (ty_status status = file_.write(slot * page_bytes, page.bytes, sizeof page))
            return status;
        if (ty_status status = file_.flush())
            return status;
    }
    header_ = next;
    return TY_OK;
}

// MK7.
ty_status marks_file::save(mark_tree &tree, os::array<marks_entry> &more_base, bool named) {
    const size_t runs = base_runs_.count();
    marks_header next = header_;
    if (named && !fault("durable_marks_of_the_open_before_accepted"))
        next.previous = {};
    ty_status status = write_all(tree, more_base, &next.table);
    const stored_entries old_table = header_.table;
    if (!status)
        status = write_header(next);
    if (status) { // the header may be there: what it leads to is not free before the next one is durable
        for (mark_tree::node *mark : unsaved_)
            mark->stored = {};
        base_runs_.cut(runs);
        for (const run &given : written_)
            static_cast<void>(released_.push(given));
    } else {
        release_entries(old_table);
        if (base_runs_.count() > base_runs_max) {
            for (size_t i = 0; i < runs; i++)
                release_entries(base_runs_[i]);
            base_runs_[0] = base_runs_[runs];
            base_runs_.cut(1);
        }
        for (const marks_entry &kept : more_base) {
            base_.set(kept.page, kept.slot);
            base_pages_.push_in_room(kept.page);
        }
        const uint64_t end = end_;
        for (const run &given : released_)
            free_run(given);
        released_.clear();
        if (end_ < end)
            static_cast<void>(file_.set_size(end_ * page_bytes)); // a longer file is as good
    }
    written_.clear();
    unsaved_.clear();
    return status;
}

ty_status marks_file::name_open(const open_identity &previous, const open_identity &open) {
    marks_header next = header_;
    next.previous = previous;
    next.open = open;
    return write_header(next);
}

// The process that wrote the header had flushed what it leads to. Where both slots have it, one of them stays while the
// other is written.
ty_status marks_file::make_durable(const open_identity &open) {
    marks_header same = header_;
    same.open = open;
    same.previous = {};
    header_.number--; // the same number again
    return write_header(same);
}

ty_status marks_file::create(const storage_file &image, const char *path, const image_header &heap) {
    path_ = path_with(path, "");
    char *creation_path = path_with(path, creation_suffix);
    if (path_ == nullptr || creation_path == nullptr) {
        free(creation_path);
        return TY_E_MEMORY;
    }
    page_count_ = heap.limit_bytes / page_bytes;
    ty_status status = base_.create(page_count_);
    file_.storage = image.storage;
    if (!status)
        status = file_.open_for_creation(creation_path, &image);
    if (!status) {
        header_ = {marks_magic, format_version, 0, {}, 0, heap.open, {}, heap.limit_bytes, {}, 0};
        memcpy(header_.identity, heap.identity, sizeof header_.identity);
        end_ = lowest_ = header_slots;
        status = file_.set_size(header_slots * page_bytes);
        const marks_table nothing{};
        if (!status)
            status = write_run(&nothing, sizeof nothing, &header_.table);
        written_.clear();
        if (!status)
            status = write_header(header_);
        if (!status)
            status = file_.rename_from(creation_path, path_);
        if (status)
            file_.remove_quietly(creation_path);
        file_.path = path_;
    }
    if (status)
        name_final_file(*image.storage, creation_path, path_);
    free(creation_path);
    return status;
}

ty_status marks_file::remove() {
    file_.path = path_;
    const ty_status status = file_.remove();
    if (status)
        return status;
    return os::call_whole(file_.storage->flush_directory, file_.storage->context, path_);
}

// ---- Reading

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

// MK9.
ty_status marks_file::read_header(const image_header &heap) {
    uint64_t size = 0;
    if (ty_status status = file_.get_size(&size))
        return status;
    file_pages_ = std::min(size / page_bytes, file_pages_max);
    if (size < header_slots * page_bytes)
        return damaged("it is too short", size);
    io_buffer buffer;
    if (ty_status status = buffer.create(header_slots * page_bytes))
        return status;
    if (ty_status status = file_.read(0, buffer.data(), buffer.bytes()))
        return status;
    marks_header slots[header_slots];
    for (uint32_t i = 0; i < header_slots; i++)
        memcpy(&slots[i], buffer.data() + i * page_bytes, sizeof slots[i]);
    const uint32_t newest = newest_slot([&](uint32_t n) { return is_valid(slots[n]) ? slots[n].number : 0; });
    if (newest == header_slots) {
        for (const marks_header &slot : slots)
            if (slot.magic == marks_magic && slot.version != format_version)
                return failure(TY_E_FORMAT, "use a file of durable marks of format version %u", slot.version)
                    .at(path_)
                    .remedy("use another version of the library");
        return damaged("both of its headers are", 0);
    }
    header_ = slots[newest];
    slot_damaged_ = !is_valid(slots[1 - newest]);
    if (memcmp(header_.identity, heap.identity, sizeof header_.identity) != 0 ||
        (!names_open(header_, heap.open) && !fault("durable_marks_of_another_state")))
        return failure(TY_E_MISMATCH, "use the file of durable marks: it belongs to %s",
                       memcmp(header_.identity, heap.identity, sizeof header_.identity) != 0
                           ? "another heap"
                           : "another copy of the heap, or to what it was before")
            .at(path_)
            .remedy("put the file that belongs to it back, or move this one away");
    if (header_.number >= counter_begin_max || header_.open.number >= counter_begin_max)
        return damaged("a counter is impossible", 0);
    return TY_OK;
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
        head.current > head.nodes || head.base_runs > base_runs_max)
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
