// The power cut: decides what becomes of everything unflushed, and builds a new disk from the outcome.
#include "storage_sim_disk.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace taiyen::os {

namespace {

using namespace sim;

// splitmix64: small, and the same everywhere, so that a seed means the same cut on every machine.
class dice {
public:
    explicit dice(uint64_t seed) : state_(seed) {}
    uint64_t roll() {
        state_ += 0x9e3779b97f4a7c15u;
        uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t bound) { return roll() % bound; }
    bool coin() { return roll() >> 63; }

private:
    uint64_t state_;
};

// What a cut does with one unflushed event. Whole events are kept or dropped more often than single sectors, since
// "everything but this write" and "nothing but this write" are the outcomes that find most mistakes.
class verdict {
public:
    verdict(sim_cut cut, uint64_t seed, const std::vector<uint64_t> &unflushed) : cut_(cut), dice_(seed) {
        if (cut == sim_cut::prefix && !unflushed.empty()) {
            uint64_t kept = dice_.below(unflushed.size() + 1);
            first_lost_ = kept < unflushed.size() ? unflushed[kept] : UINT64_MAX;
        }
    }

    // For names, sizes, allocations, punches and the growth by a write.
    bool keeps(uint64_t event) {
        switch (cut_) {
        case sim_cut::keep_all:
            return true;
        case sim_cut::drop_all:
            return false;
        case sim_cut::prefix:
            return event < first_lost_;
        default:
            return dice_.coin();
        }
    }

    // Called once before a write's pages are queried.
    void start_write(uint64_t event, size_t pages) {
        torn_ = cut_ == sim_cut::prefix && event == first_lost_;
        torn_sectors_ = torn_ ? dice_.below(pages * 8 + 1) : 0;
        grows_ = torn_ ? torn_sectors_ == pages * 8 || dice_.coin() : keeps(event);
        uint64_t lot = dice_.below(8);
        mode_ = lot < 3 ? 0 : lot < 6 ? 255 : -1; // dropped, kept, sector by sector
    }
    bool grows() const { return grows_; }

    // The sectors of a written page that reached the disk, as a bit mask.
    uint8_t sectors(uint64_t event, size_t page) {
        switch (cut_) {
        case sim_cut::keep_all:
            return 0xff;
        case sim_cut::drop_all:
            return 0;
        case sim_cut::prefix: {
            if (!torn_) {
                return event < first_lost_ ? 0xff : 0;
            }
            uint64_t before = page * 8;
            uint64_t here = torn_sectors_ > before ? std::min<uint64_t>(torn_sectors_ - before, 8) : 0;
            return static_cast<uint8_t>((1u << here) - 1);
        }
        default:
            return mode_ >= 0 ? static_cast<uint8_t>(mode_) : static_cast<uint8_t>(dice_.roll());
        }
    }

    uint8_t trashed() {
        return cut_ == sim_cut::trash && dice_.below(8) == 0 ? static_cast<uint8_t>(dice_.roll() & dice_.roll()) : 0;
    }
    uint64_t garbage() { return dice_.roll(); }

private:
    sim_cut cut_;
    dice dice_;
    uint64_t first_lost_ = UINT64_MAX;
    bool torn_ = false;
    bool grows_ = false;
    uint64_t torn_sectors_ = 0;
    int mode_ = 0;
};

// One page of a write: its surviving sectors over the old content. (S2: an unflushed sector is old, new, or trash. S4:
// the seed alone decides.)
void cut_page(const page_ref &written, uint64_t number, uint8_t kept, uint8_t trash, verdict &chosen, content &to) {
    if (kept == 0xff && trash == 0) {
        to.put(number, written);
        return;
    }
    if (kept == 0 && trash == 0) {
        return;
    }
    const page *old = to.find(number);
    auto mixed = old ? std::make_shared<page>(*old) : std::make_shared<page>();
    for (unsigned s = 0; s < 8; ++s) {
        unsigned char *sector = mixed->bytes.data() + s * sector_bytes;
        if (trash >> s & 1) {
            for (unsigned i = 0; i < sector_bytes; i += 8) {
                uint64_t noise = chosen.garbage();
                std::memcpy(sector + i, &noise, 8);
            }
        } else if (kept >> s & 1) {
            std::memcpy(sector, written->bytes.data() + s * sector_bytes, sector_bytes);
        }
    }
    to.put(number, std::move(mixed));
}

// S1: a flushed sector survives.
content cut_file(const replayed_file &file, const std::vector<event> &events, verdict &chosen) {
    content result = file.durable;
    for (const unflushed_write &one : file.unflushed) {
        const event &what = events[one.event];
        if (what.kind != event_kind::write) {
            if (chosen.keeps(one.event) || (what.kind == event_kind::size && fault("simulated_size_durable_at_once"))) {
                apply_event(what, result);
            }
            continue;
        }
        chosen.start_write(one.event, what.pages.size());
        for (size_t i = 0; i < what.pages.size(); ++i) {
            auto open = static_cast<uint8_t>(
                one.superseded.empty() || fault("simulated_cut_tears_flushed_sectors") ? 0xff : ~one.superseded[i]);
            uint8_t kept = chosen.sectors(one.event, i) & open;
            uint8_t trash = chosen.trashed() & open;
            cut_page(what.pages[i], what.offset / page_size + i, kept, trash, chosen, result);
        }
        if (chosen.grows() && !one.size_superseded) {
            result.extend(what.offset + what.bytes);
        }
    }
    result.drop_beyond_size();
    return result;
}

// In each folder, a prefix of the changes of names survives. (S3)
name_map cut_names(const replay &at, const std::vector<event> &events, verdict &chosen) {
    name_map names = at.durable_names;
    std::set<std::string> over;
    for (uint64_t number : at.unflushed_names) {
        std::string folder = folder_of(events[number].path);
        if (over.contains(folder)) {
            continue;
        }
        if (chosen.keeps(number)) {
            apply_name(events[number], names);
        } else if (!fault("simulated_names_survive_out_of_order")) {
            over.insert(folder);
        }
    }
    return names;
}

std::vector<uint64_t> unflushed_in_time(const replay &at) {
    std::vector<uint64_t> all = at.unflushed_names;
    for (const auto &[number, file] : at.files) {
        for (const unflushed_write &one : file.unflushed) {
            all.push_back(one.event);
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

// Moves the disk's cursor to the event: forwards by single steps, backwards from a checkpoint. (D2)
const replay &replay_at(const sim_disk &disk, uint64_t event) {
    constexpr uint64_t checkpoint_every = 256;
    if (disk.cursor.next_event > event || event - disk.cursor.next_event > checkpoint_every) {
        auto after = disk.checkpoints.upper_bound(event);
        if (after == disk.checkpoints.begin()) {
            disk.cursor = disk.start;
        } else if (disk.cursor.next_event > event || std::prev(after)->first > disk.cursor.next_event) {
            disk.cursor = std::prev(after)->second;
        }
    }
    while (disk.cursor.next_event < event) {
        disk.cursor.step(disk.events);
        if (disk.cursor.next_event % checkpoint_every == 0) {
            disk.checkpoints.try_emplace(disk.cursor.next_event, disk.cursor);
        }
    }
    return disk.cursor;
}

// The disk as another process finds it after the process that used it died: its history continues.
sim_disk *continue_disk(const sim_disk &disk, uint64_t event) {
    sim_disk *result = sim_create();
    result->start = disk.start;
    result->cursor = disk.start;
    result->next_file = disk.next_file;
    result->events.assign(disk.events.begin(), disk.events.begin() + static_cast<ptrdiff_t>(event));
    result->names = disk.start.durable_names;
    std::map<file_number, content> contents;
    for (const auto &[number, file] : disk.start.files) {
        contents[number] = file.durable;
    }
    for (const auto &what : result->events) {
        apply_event(what, contents[what.file]);
        apply_name(what, result->names);
    }
    for (const auto &[path, number] : result->names) {
        auto file = std::make_unique<live_file>();
        file->path = path;
        file->now = contents.at(number);
        result->live[number] = std::move(file);
    }
    return result;
}

} // namespace

sim_disk *sim_power_cut(const sim_disk *disk, uint64_t event, sim_cut cut, uint64_t seed) {
    lock_guard guard(disk->lock);
    event = std::min<uint64_t>(event, disk->events.size());
    if (cut == sim_cut::process_death) {
        return continue_disk(*disk, event);
    }
    const replay &at = replay_at(*disk, event);
    verdict chosen(cut, seed, unflushed_in_time(at));

    sim_disk *result = sim_create();
    result->names = cut_names(at, disk->events, chosen);
    result->next_file = disk->next_file;
    for (const auto &[path, number] : result->names) {
        auto file = std::make_unique<live_file>();
        file->path = path;
        file->now = cut_file(at.files.at(number), disk->events, chosen);
        result->start.files[number].durable = file->now;
        result->live[number] = std::move(file);
    }
    result->start.durable_names = result->names;
    result->cursor = result->start;
    return result;
}

} // namespace taiyen::os
