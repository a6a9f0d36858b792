// What is durable and what is unflushed after the first n events.
#include "storage_sim_disk.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen::os::sim {

namespace {

constexpr unsigned sectors_per_page = page_size / sector_bytes;

// Removes the sectors of [offset, end) from the unflushed write: durable content lies over them now.
void supersede_range(unflushed_write &old, const event &written, uint64_t offset, uint64_t end) {
    if (old.superseded.empty()) {
        old.superseded.resize(written.pages.size());
    }
    for (uint64_t i = 0; i < written.pages.size() * sectors_per_page; ++i) {
        uint64_t at = written.offset + i * sector_bytes;
        if (at >= offset && at < end) {
            old.superseded[i / sectors_per_page] |= static_cast<uint8_t>(1u << (i % sectors_per_page));
        }
    }
}

bool is_superseded(const unflushed_write &old, const event &written, const content &durable) {
    size_t superseded = static_cast<size_t>(std::count(old.superseded.begin(), old.superseded.end(), uint8_t{0xff}));
    bool grows = !old.size_superseded && written.offset + written.bytes > durable.size();
    return superseded == written.pages.size() && !grows;
}

// Applies the part of the unflushed write that durable content has not overwritten.
void apply_unflushed(const unflushed_write &one, const event &what, content &to) {
    if (one.superseded.empty() && !one.size_superseded) {
        apply_event(what, to);
        return;
    }
    for (size_t i = 0; i < what.pages.size(); ++i) {
        uint8_t superseded = one.superseded.empty() ? 0 : one.superseded[i];
        uint64_t number = what.offset / page_size + i;
        if (superseded == 0) {
            to.put(number, what.pages[i]);
        } else if (superseded != 0xff) {
            page mixed = *what.pages[i];
            const page *below = to.find(number);
            for (unsigned s = 0; s < sectors_per_page; ++s) {
                if (superseded >> s & 1) {
                    std::memcpy(&mixed.bytes[s * sector_bytes],
                                &(below ? below : zero_page().get())->bytes[s * sector_bytes], sector_bytes);
                }
            }
            to.put(number, make_page(mixed.bytes.data()));
        }
    }
    if (!one.size_superseded) {
        to.extend(what.offset + what.bytes);
    }
}

// The unflushed writes that `selects` selects become durable.
template <class Selects>
void make_file_durable(replayed_file &file, const std::vector<event> &events, Selects &&selects) {
    std::vector<unflushed_write> kept;
    for (unflushed_write &one : file.unflushed) {
        const event &what = events[one.event];
        if (!selects(one)) {
            kept.push_back(std::move(one));
            continue;
        }
        apply_unflushed(one, what, file.durable);
        bool covers = what.kind == event_kind::write || what.kind == event_kind::punch;
        for (unflushed_write &old : kept) {
            if (covers || what.kind == event_kind::size) {
                supersede_range(old, events[old.event], what.offset, covers ? what.offset + what.bytes : UINT64_MAX);
            }
            old.size_superseded = old.size_superseded || what.kind == event_kind::size;
        }
    }
    std::erase_if(kept,
                  [&](const unflushed_write &old) { return is_superseded(old, events[old.event], file.durable); });
    file.unflushed = std::move(kept);
}

// A flush of a folder makes its names durable; those of other folders stay unflushed. (S3)
void make_names_durable(replay &at, const std::string &folder, const std::vector<event> &events) {
    std::erase_if(at.unflushed_names, [&](uint64_t number) {
        if (folder_of(events[number].path) != folder && !fault("simulated_flush_covers_all_folders")) {
            return false;
        }
        apply_name(events[number], at.durable_names);
        return true;
    });
}

} // namespace

std::string folder_of(const std::string &path) {
    size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

void apply_event(const event &what, content &to) {
    switch (what.kind) {
    case event_kind::write:
        for (size_t i = 0; i < what.pages.size(); ++i) {
            to.put(what.offset / page_size + i, what.pages[i]);
        }
        to.extend(what.offset + what.bytes);
        break;
    case event_kind::size:
        to.resize(what.offset);
        break;
    case event_kind::allocate:
        to.fill_holes(what.offset, what.bytes);
        to.extend(what.offset + what.bytes);
        break;
    case event_kind::punch:
        to.punch(what.offset, what.bytes);
        break;
    default:
        break;
    }
}

// D1: names are the result of all events.
void apply_name(const event &what, name_map &names) {
    switch (what.kind) {
    case event_kind::create:
        names[what.path] = what.file;
        break;
    case event_kind::rename:
        names.erase(what.path);
        names[what.target] = what.file;
        break;
    case event_kind::remove:
        names.erase(what.path);
        break;
    default:
        break;
    }
}

// S2: what is written is unflushed until it is flushed.
void replay::step(const std::vector<event> &events) {
    const event &what = events[next_event];
    switch (what.kind) {
    case event_kind::create:
        files[what.file];
        unflushed_names.push_back(next_event);
        break;
    case event_kind::rename:
    case event_kind::remove:
        unflushed_names.push_back(next_event);
        break;
    case event_kind::flush_directory:
        make_names_durable(*this, folder_of(what.path), events);
        break;
    case event_kind::write:
    case event_kind::size:
    case event_kind::allocate:
    case event_kind::punch:
        files[what.file].unflushed.push_back({next_event, false, {}, false});
        break;
    case event_kind::flush:
        make_file_durable(files[what.file], events, [](const unflushed_write &one) {
            return !one.forgotten || fault("simulated_flush_covers_what_failed_before");
        }); // D3: not what a failed flush covered
        break;
    case event_kind::durable_write:
        make_file_durable(files[what.file], events, [&](const unflushed_write &one) {
            return one.event == what.offset || events[one.event].kind != event_kind::write ||
                   fault("simulated_durable_write_covers_others");
        });
        break;
    case event_kind::failed_durable_write:
        for (unflushed_write &one : files[what.file].unflushed) {
            one.forgotten = one.forgotten || one.event == what.offset;
        }
        break;
    case event_kind::failed_flush:
        for (unflushed_write &one : files[what.file].unflushed) {
            one.forgotten = one.forgotten || events[one.event].kind == event_kind::write;
        }
        break;
    case event_kind::broken_flush:
        break;
    }
    ++next_event;
}

} // namespace taiyen::os::sim
