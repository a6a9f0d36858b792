#include "marks_file.hpp"
#include "page_sums.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

constexpr size_t staged_pages = 256;

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
    if (end > marks_pages_max)
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
    used_count_ += count;
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
    used_count_ += count;
    end_ = std::max(end_, first + count);
    return TY_OK;
}

void marks_file::free_run(const run &given) {
    for (uint64_t page = given.first; page < given.first + given.count; page++)
        used_[page / 64] &= ~(uint64_t{1} << page % 64);
    used_count_ -= given.count;
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

// What could not be written stays staged: the mark that has it may be another thread's, which goes on.
ty_status marks_file::write_staged() {
    if (staged_count_ == 0)
        return TY_OK;
    if (ty_status status = file_.write(staged_first_ * page_bytes, staged_.data(), staged_count_ * page_bytes))
        return status;
    staged_count_ = 0;
    return TY_OK;
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
    const bool one = base_runs_.count() == marks_base_runs_max;
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
    const bool one = base_runs_.count() > marks_base_runs_max; // the last one has them all
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
    next.checksum = marks_checksum(next);
    io_page page;
    memcpy(page.bytes, &next, sizeof next);
    for (uint32_t slot = 0; slot < header_slots; slot++) {
        if (slot != next.number % header_slots && fault("marks_header_in_one_slot"))
            continue;
        if (ty_status status = file_.write(slot * page_bytes, page.bytes, sizeof page))
            return status;
        if (ty_status status = file_.flush())
            return status;
    }
    header_ = next;
    return TY_OK;
}

// MK7: the header comes last, and what the one before leads to is free after it.
ty_status marks_file::save(mark_tree &tree, os::array<marks_entry> &more_base, bool named) {
    const size_t runs = base_runs_.count();
    marks_header next = header_;
    if (named && !fault("durable_marks_of_the_open_before_accepted"))
        next.previous = {};
    ty_status status = write_all(tree, more_base, &next.table);
    const stored_entries old_table = header_.table;
    if (!status && !fault("durable_mark_in_a_file_that_is_gone"))
        status = file_.check();
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
        if (base_runs_.count() > marks_base_runs_max) {
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
    if (ty_status status = file_.remove())
        return status;
    // If the name comes back after a power cut, so does a file without marks.
    static_cast<void>(os::call_whole(file_.storage->flush_directory, file_.storage->context, path_));
    return TY_OK;
}

} // namespace taiyen
