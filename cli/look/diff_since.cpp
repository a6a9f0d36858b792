#include "look/diff_since.hpp"
#include "common/numbers.hpp"

#include "common/terminal.hpp"
#include "common/text.hpp"
#include "look/reading.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace cli {

namespace {

struct kept_entry {
    ty_log_entry_kind kind;
    uint64_t address;
    uint64_t size_bytes;
    std::string name;
};

struct changes {
    uint64_t transactions = 0;
    uint64_t procedures = 0;
    std::map<uint64_t, uint64_t> made; // sizes by address
    std::map<uint64_t, uint64_t> resized;
    std::set<uint64_t> freed;
    std::map<uint64_t, uint64_t> data; // bytes by address, one entry per write
    std::map<std::string, uint64_t> roots;

    void apply(const kept_entry &entry) {
        switch (entry.kind) {
        case TY_LOG_ALLOC:
            made[entry.address] = entry.size_bytes;
            break;
        case TY_LOG_FREE:
            if (made.erase(entry.address) == 0)
                freed.insert(entry.address);
            resized.erase(entry.address);
            break;
        case TY_LOG_RESIZE:
            if (!made.contains(entry.address))
                resized[entry.address] = entry.size_bytes;
            break;
        case TY_LOG_DATA:
            data[entry.address] = std::max(data[entry.address], entry.size_bytes);
            break;
        case TY_LOG_ROOT:
            roots[entry.name] = entry.address;
            break;
        case TY_LOG_PROCEDURE:
            ++procedures;
            break;
        default:
            break;
        }
    }
};

// Collects log entries; those of a prepared transaction count once its outcome says so.
class collector {
public:
    static bool take(const ty_log_entry *entry, void *self) {
        static_cast<collector *>(self)->take(*entry);
        return true;
    }
    // committed: whether the transaction that the log ends with, and leaves in doubt, counts.
    const changes &end(bool committed) {
        end_transaction();
        if (committed)
            commit(held_, held_count_);
        return done_;
    }

private:
    void take(const ty_log_entry &entry) {
        switch (entry.kind) {
        case TY_LOG_TRANSACTION:
            end_transaction();
            ++count_;
            break;
        case TY_LOG_PREPARED:
        case TY_LOG_PENDING:
            waits_ = true;
            break;
        case TY_LOG_OUTCOME:
            if (entry.size_bytes != 0)
                commit(held_, held_count_);
            held_.clear();
            held_count_ = 0;
            count_ = 0; // the outcome's own record changes nothing
            break;
        default:
            entries_.push_back({entry.kind, entry.address, entry.size_bytes,
                                entry.kind == TY_LOG_ROOT
                                    ? std::string(static_cast<const char *>(entry.bytes), entry.size_bytes)
                                    : std::string()});
        }
    }
    void commit(const std::vector<kept_entry> &entries, uint64_t count) {
        for (const kept_entry &entry : entries)
            done_.apply(entry);
        done_.transactions += count;
    }
    void end_transaction() {
        if (waits_) {
            held_.insert(held_.end(), entries_.begin(), entries_.end());
            held_count_ += count_;
        } else {
            commit(entries_, count_);
        }
        entries_.clear();
        count_ = 0;
        waits_ = false;
    }

    changes done_;
    std::vector<kept_entry> entries_, held_;
    uint64_t count_ = 0, held_count_ = 0;
    bool waits_ = false;
};

struct changed_block {
    char sign;
    uint64_t address;
    uint64_t size_bytes; // 0: not known any more
    uint64_t written_bytes;
};

struct since {
    ty_info info{};
    changes log;
    uint64_t count[128] = {}; // of blocks, by sign
    std::vector<changed_block> shown;
    std::vector<std::pair<uint64_t, uint64_t>> pages; // ranges that wait in the journal: the first page and how many
    uint64_t page_count = 0;

    bool any() const { return log.transactions != 0 || page_count != 0; }
};

ty_status read_pages(ty_heap *heap, since &found) {
    heap_metrics metrics;
    if (ty_status status = metrics.read(heap))
        return status;
    constexpr uint64_t step = 1 << 16;
    std::vector<uint64_t> bits(step / 64);
    const uint64_t pages = metrics.stats.limit_bytes / page_bytes; // the tables lie after the touched part
    for (uint64_t first = 0; first < pages && found.page_count < metrics.waiting_pages; first += step) {
        const uint64_t count = std::min(step, pages - first);
        if (ty_status status = ty_dirty_bitmap(heap, first, count, bits.data()))
            return status;
        for (uint64_t page = first; page < first + count; ++page) {
            if ((bits[(page - first) / 64] >> (page % 64) & 1) == 0)
                continue;
            ++found.page_count;
            if (!found.pages.empty() && found.pages.back().first + found.pages.back().second == page)
                ++found.pages.back().second;
            else
                found.pages.emplace_back(page, 1);
        }
    }
    return TY_OK;
}

void add_blocks(ty_heap *heap, size_t shown_max, since &found) {
    std::map<uint64_t, changed_block> all;
    for (const auto &[address, size] : found.log.made)
        all[address] = {'+', address, size, 0};
    for (const uint64_t address : found.log.freed)
        if (!all.contains(address))
            all[address] = {'-', address, 0, 0};
    for (const auto &[address, size] : found.log.resized)
        all[address] = {'~', address, size, 0};
    for (const auto &[address, bytes] : found.log.data) {
        ty_block block{};
        const auto *at = reinterpret_cast<const void *>(address);
        if (ty_heap_of(at) != heap || ty_block_of(at, &block) != TY_OK)
            continue; // it was freed later
        const uint64_t begin = reinterpret_cast<uintptr_t>(block.address);
        changed_block &one = all.try_emplace(begin, changed_block{'~', begin, block.size_bytes, 0}).first->second;
        one.size_bytes = block.size_bytes;
        one.written_bytes += bytes;
        if (one.sign == '-')
            one.sign = '~'; // another block was allocated there
    }
    for (const auto &[address, one] : all) {
        ++found.count[+one.sign];
        if (found.shown.size() < shown_max)
            found.shown.push_back(one);
    }
}

ty_status look(const heap_files &files, size_t shown_max, since &found) {
    const ty_open_options options = files.options();
    found.info.struct_size = sizeof found.info;
    if (ty_status status = ty_read_info(files.path.c_str(), &options, &found.info))
        return status;
    collector entries;
    if (found.info.kind == TY_TRANSACTIONAL)
        if (ty_status status = ty_log_read(files.path.c_str(), &options, nullptr, collector::take, &entries))
            return status;
    read_heap heap;
    ty_report report{};
    report.struct_size = sizeof report;
    if (ty_status status = heap.open(files, &report))
        return status;
    found.log = entries.end(report.in_doubt != 0 && report.outcome == TY_OUTCOME_COMMIT);
    add_blocks(heap, shown_max, found);
    if (found.info.kind != TY_ARCHIVE)
        if (ty_status status = read_pages(heap, found))
            return status;
    return heap.close();
}

void print_json(const heap_files &files, const since &found) {
    json::document one{{"path", files.path},
                       {"same", !found.any()},
                       {"epoch", json::wide(found.info.epoch)},
                       {"image_epoch", json::wide(found.info.image_epoch)},
                       {"transactions", json::wide(found.log.transactions)},
                       {"procedures", json::wide(found.log.procedures)},
                       {"roots", json::document::array()},
                       {"new_blocks", json::wide(found.count['+'])},
                       {"gone_blocks", json::wide(found.count['-'])},
                       {"changed_blocks", json::wide(found.count['~'])},
                       {"blocks", json::document::array()},
                       {"waiting_pages", json::wide(found.page_count)},
                       {"page_ranges", json::document::array()}};
    for (const auto &[name, address] : found.log.roots)
        one["roots"].push_back({{"name", name}, {"address", text::hex(address)}});
    for (const changed_block &block : found.shown) {
        json::document entry{{"change", std::string(1, block.sign)}, {"address", text::hex(block.address)}};
        if (block.sign != '-')
            entry["size_bytes"] = json::wide(block.size_bytes);
        entry["written_bytes"] = json::wide(block.written_bytes);
        one["blocks"].push_back(entry);
    }
    for (const auto &[first, count] : found.pages)
        one["page_ranges"].push_back({{"first", json::wide(first)}, {"count", json::wide(count)}});
    json::print(one);
}

void print_log(const since &found) {
    print_line("log", text::counted(found.log.transactions, "transaction") + " since snapshot " +
                          text::count(found.info.epoch) +
                          (found.log.procedures != 0 ? ", with " + text::counted(found.log.procedures, "procedure") +
                                                           " whose changes the log does not contain"
                                                     : ""));
    for (const auto &[name, address] : found.log.roots)
        print_line("root", text::printable(name) +
                               (address != 0 ? " leads to " + text::hex(address) : std::string(" is removed")));
    print_line("blocks", text::count(found.count['+']) + " new, " + text::count(found.count['-']) + " gone, " +
                             text::count(found.count['~']) + " changed");
    uint64_t all = found.count['+'] + found.count['-'] + found.count['~'];
    for (const changed_block &block : found.shown) {
        std::string line = std::string(1, block.sign) + " " + text::hex(block.address);
        if (block.sign != '-')
            line += "  " + text::counted(block.size_bytes, "byte") + ", " + text::counted(block.written_bytes, "byte") +
                    " written";
        print_line("", in(block.sign == '+' ? ink::good : block.sign == '-' ? ink::bad : ink::strong, line));
    }
    if (found.shown.size() < all)
        print_line("", "and " + text::count(all - found.shown.size()) + " more; --shown COUNT shows more");
}

void print_words(const heap_files &files, const since &found, size_t shown_max) {
    std::printf("%s: %s\n", in(ink::strong, text::printable(files.path)).c_str(),
                found.any() ? "an open has something to do" : "nothing has changed since the last snapshot");
    if (found.info.kind == TY_TRANSACTIONAL)
        print_log(found);
    if (found.page_count == 0)
        return;
    print_line("journal", "the image holds snapshot " + text::count(found.info.image_epoch) + ", the journal number " +
                              text::count(found.info.epoch) + ": " + text::counted(found.page_count, "page") +
                              " to checkpoint");
    size_t shown = 0;
    for (const auto &[first, count] : found.pages) {
        if (shown++ == shown_max) {
            print_line("", "and " + text::count(found.pages.size() - shown_max) + " ranges more");
            break;
        }
        const uint64_t address = reinterpret_cast<uintptr_t>(found.info.base) + first * page_bytes;
        print_line("", text::counted(count, "page") + " at " + text::hex(address));
    }
}

} // namespace

int diff_since(const request &given, size_t shown_max) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    since found;
    if (ty_status status = look(files, shown_max, found)) {
        static_cast<void>(refuse(files, given, status));
        return exit_cannot; // 1 means that something has changed
    }
    if (given.json)
        print_json(files, found);
    else
        print_words(files, found, shown_max);
    return found.any() ? exit_problems : exit_fine;
}

} // namespace cli
