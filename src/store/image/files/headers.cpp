#include "headers.hpp"

#include "checksum.hpp"

#include <cstdio>
#include <cstring>

namespace taiyen {
namespace {

enum class slot_content { foreign, other_version, damaged, valid };

slot_content classify_slot(const image_header &header) {
    if (header.magic != image_magic)
        return slot_content::foreign;
    if (header.checksum != header_checksum(header))
        return slot_content::damaged;
    return header.version == format_version ? slot_content::valid : slot_content::other_version;
}

} // namespace

log_positions redo_point_of(const image_header &header) {
    log_positions redo_point = positions_at_begin(header.log_lsn, header.log_streams);
    redo_point.at[0].offset = header.log_position;
    redo_point.at[0].generation = header.log_generation;
    if (redo_point.count > 1)
        redo_point.at[0].lsn = header.log_first_lsn;
    for (uint64_t p = 1; p < redo_point.count; ++p)
        redo_point.at[p] = header.log_more[p - 1];
    return redo_point;
}

// I20: the redo points of several log streams are durable with their epoch. A redo point with another number of streams
//      is from a snapshot before the heap had this log.
void set_redo_point(image_header &header, const log_positions &redo_point) {
    const log_positions at_begin = positions_at_begin(redo_point.lsn, header.log_streams);
    const log_positions &fits = redo_point.count == at_begin.count ? redo_point : at_begin;
    header.log_position = fits.at[0].offset;
    header.log_generation = fits.at[0].generation;
    header.log_lsn = fits.lsn;
    header.log_first_lsn = fits.count > 1 ? fits.at[0].lsn : 0;
    for (uint64_t p = 1; p < fits.count; ++p)
        header.log_more[p - 1] = fits.at[p];
}

const char *counter_above(const image_header &header, uint64_t most) {
    const struct {
        uint64_t value;
        const char *name;
    } counters[] = {{header.number, "number"},
                    {header.durable_epoch, "epoch"},
                    {header.open.number, "number of opens"},
                    {header.log_position, "position in the log"},
                    {header.log_lsn, "lsn"}};
    for (const auto &counter : counters)
        if (counter.value > most)
            return counter.name;
    for (const stream_position &place : header.log_more)
        if (place.offset > most || place.lsn > most)
            return "place in a log stream";
    return header.log_first_lsn > most ? "lsn" : nullptr;
}

namespace {

// A valid checksum only says that the bytes are as written, not that a sane program wrote them.
const char *wrong_field(const image_header &header) {
    if (header.page_bytes != page_bytes)
        return "page size";
    if (header.kind != TY_ARCHIVE && header.kind != TY_SNAPSHOT && header.kind != TY_TRANSACTIONAL)
        return "kind";
    if ((header.log_identity != 0) != (header.kind == TY_TRANSACTIONAL))
        return "log's identity";
    if (header.state != uint32_t(image_state::closed) && header.state != uint32_t(image_state::open))
        return "state";
    if (header.limit_bytes < heap_granule_bytes || header.limit_bytes > heap_limit_max ||
        header.limit_bytes % heap_granule_bytes)
        return "limit";
    if (header.base == 0 || header.base % heap_granule_bytes ||
        header.base > (uint64_t{1} << 47) - header.limit_bytes) // not a sum, which might overflow
        return "base";
    if (header.sums_offset % page_bytes || header.sums_offset < image_pages_offset + header.limit_bytes ||
        header.sums_offset > image_file_bytes(heap_limit_max))
        return "place of the page checksums";
    if (header.journal_next % page_bytes || header.journal_next < journal_front || header.journal_next > INT64_MAX)
        return "place in the journal";
    if (header.epoch > header.durable_epoch)
        return "epoch";
    if (header.classes > TY_CLASSES_DENSE)
        return "table of size classes";
    if (header.log_empty_after_redo_point > 1)
        return "redo point in the log";
    if (header.open.number == 0)
        return "number of opens";
    if (header.log_streams == 1 || header.log_streams > log_streams_max || (header.log_streams && !header.log_identity))
        return "number of log streams";
    if (header.source.state > uint64_t(source_state::promoted) ||
        (header.source.state == uint64_t(source_state::receives)) !=
            ((header.features_read_only & feature_receives) != 0) ||
        (header.source.state == uint64_t(source_state::receives) && !header.log_identity))
        return "source of transactions";
    if (header.clear_offset % page_bytes || header.clear_bytes % page_bytes ||
        (header.clear_bytes &&
         (header.clear_offset < image_pages_offset || header.clear_bytes > header.sums_offset - image_pages_offset ||
          header.clear_offset > header.sums_offset - header.clear_bytes)))
        return "range to clear";
    return counter_above(header, counter_max);
}

ty_status check_header(const storage_file &image, const image_header &header, uint64_t file_bytes) {
    if (header.features_incompatible & ~known_features_incompatible)
        return failure(TY_E_FORMAT, "open a heap with features that this library does not know (%#llx)",
                       (unsigned long long)header.features_incompatible)
            .at(image.path)
            .remedy("use a newer version of the library");
    if (const char *field = wrong_field(header))
        return failure(TY_E_DAMAGED, "use the image's header: its %s is impossible", field)
            .at(image.path)
            .remedy("restore the file from a copy");
    uint64_t needed = header.sums_offset + sums_table_bytes(header.limit_bytes);
    if (file_bytes < needed)
        return failure(TY_E_DAMAGED, "use a truncated image: it has %llu byte%s of %llu",
                       (unsigned long long)file_bytes, plural(file_bytes), (unsigned long long)needed)
            .at(image.path, file_bytes)
            .remedy("restore the file from a copy");
    return TY_OK;
}

struct both_slots {
    image_header headers[header_slots];
    slot_content contents[header_slots];
};

ty_status read_slots(const storage_file &image, both_slots *found) {
    io_buffer buffer;
    if (ty_status status = buffer.create(header_slots * image_slot_bytes))
        return status;
    if (ty_status status = image.read(0, buffer.data(), buffer.bytes()))
        return status;
    for (uint32_t i = 0; i < header_slots; ++i) {
        image_header &header = found->headers[i];
        memcpy(&header, buffer.data() + i * image_slot_bytes, sizeof header);
        found->contents[i] = classify_slot(header);
    }
    return TY_OK;
}

bool reserved_set(const image_header &header) {
    static constexpr uint8_t zeros[sizeof header.reserved + sizeof header.log_more] = {};
    const uint32_t more = header.log_streams ? header.log_streams - 1 : 0;
    return memcmp(header.reserved, zeros, sizeof header.reserved) || (!header.log_streams && header.log_first_lsn) ||
           memcmp(header.log_more + more, zeros, (log_streams_max - 1 - more) * sizeof(stream_position));
}

// Fields that are the same in all headers of a heap.
const char *contradiction_of(const image_header &a, const image_header &b) {
    return memcmp(a.identity, b.identity, sizeof a.identity) ? "identity"
           : a.base != b.base                                ? "base"
           : a.classes != b.classes                          ? "table of size classes"
           : a.created_unix_s != b.created_unix_s            ? "time of creation"
                                                             : nullptr;
}

} // namespace

ty_status scrub_headers(const storage_file &image, void (*problem)(void *context, const char *text), void *context) {
    both_slots found;
    if (ty_status status = read_slots(image, &found))
        return status;
    char text[256];
    for (uint32_t i = 0; i < header_slots; ++i) {
        const image_header &header = found.headers[i];
        const unsigned long long offset = i * image_slot_bytes;
        const char *field = nullptr;
        if (found.contents[i] != slot_content::valid)
            snprintf(text, sizeof text,
                     "one of the image's two headers is damaged, at offset %llu; the other one serves, and the next "
                     "snapshot repairs it",
                     offset);
        else if ((field = wrong_field(header)))
            snprintf(text, sizeof text, "the image's header at offset %llu: its %s is impossible", offset, field);
        else if (header.number % header_slots != i)
            snprintf(text, sizeof text, "the image's header at offset %llu: its number is of the other slot", offset);
        else if (header.features_incompatible & ~known_features_incompatible)
            snprintf(text, sizeof text, "the image's header at offset %llu: its features are unknown", offset);
        else if (reserved_set(header) && !header.features_compatible)
            snprintf(text, sizeof text, "the image's header at offset %llu: fields are set that it has not", offset);
        else
            continue;
        problem(context, text);
    }
    const bool both = found.contents[0] == slot_content::valid && found.contents[1] == slot_content::valid;
    if (const char *field = both ? contradiction_of(found.headers[0], found.headers[1]) : nullptr) {
        snprintf(text, sizeof text, "the image's two headers, at offsets 0 and %llu, contradict each other: the %s",
                 (unsigned long long)image_slot_bytes, field);
        problem(context, text);
    }
    return TY_OK;
}

ty_status read_header(const storage_file &image, image_header *header, bool *repaired, uint64_t *other_log) {
    uint64_t file_bytes = 0;
    if (ty_status status = image.get_size(&file_bytes))
        return status;
    if (file_bytes < header_slots * image_slot_bytes)
        return failure(TY_E_FORMAT, "open a file that is too short for a heap")
            .at(image.path)
            .remedy("check the path; if the file was cut, restore it from a copy");
    both_slots found;
    if (ty_status status = read_slots(image, &found))
        return status;
    const auto &[slots, contents] = found;
    const uint32_t best = newest_slot(
        [&found](uint32_t n) { return found.contents[n] == slot_content::valid ? found.headers[n].number : 0; });
    if (best == header_slots) {
        if (contents[0] == slot_content::foreign && contents[1] == slot_content::foreign)
            return failure(TY_E_FORMAT, "open a file that is not a Taiyen heap")
                .at(image.path)
                .remedy("check the path");
        if (contents[0] == slot_content::other_version || contents[1] == slot_content::other_version)
            return failure(TY_E_FORMAT, "open a heap of format version %u, which this library does not know",
                           slots[contents[0] == slot_content::other_version ? 0 : 1].version)
                .at(image.path)
                .remedy("use another version of the library");
        return failure(TY_E_DAMAGED, "use the image's headers: both are damaged")
            .at(image.path, 0)
            .remedy("restore the file from a copy");
    }
    *repaired = contents[0] != slot_content::valid || contents[1] != slot_content::valid;
    *header = slots[best];
    const uint32_t other = 1 - best;
    if (other_log)
        *other_log = contents[other] == slot_content::valid ? slots[other].log_identity : 0;
    return check_header(image, *header, file_bytes);
}

ty_status read_code_places(const storage_file &image, code_places *places) {
    io_buffer buffer;
    *places = {};
    if (ty_status status = buffer.create(header_slots * image_slot_bytes))
        return status;
    if (ty_status status = image.read(0, buffer.data(), buffer.bytes()))
        return status;
    for (uint32_t i = 0; i < header_slots; ++i) {
        code_places slot;
        memcpy(&slot, buffer.data() + i * image_slot_bytes + code_places_offset, sizeof slot);
        if (slot.checksum == places_checksum(slot) && slot.count <= code_places_max && slot.number > places->number)
            *places = slot;
    }
    return TY_OK;
}

// CD9: words of code are reported also after other processes had the heap open.
void add_code_place(code_places &places, const os::code_zones &zones) {
    uint64_t left = 0;
    for (uint64_t n = 0; n < places.count; ++n)
        if (!(places.zones[n] == zones) && !fault("places_of_code_before_forgotten"))
            places.zones[left++] = places.zones[n];
    if (left == code_places_max)
        memmove(places.zones, places.zones + 1, --left * sizeof zones);
    places.zones[left] = zones;
    places.count = left + 1;
    memset(places.zones + places.count, 0, (code_places_max - places.count) * sizeof zones);
}

ty_status read_uncertain_header(const storage_file &image, image_header *header, bool *uncertain) {
    both_slots found;
    if (ty_status status = read_slots(image, &found))
        return status;
    const image_header *best = nullptr;
    *uncertain = false;
    for (const slot_content wanted : {slot_content::valid, slot_content::damaged}) {
        for (uint32_t i = 0; i < header_slots; ++i) {
            const image_header &slot = found.headers[i];
            if (found.contents[i] == wanted && slot.version == format_version && !wrong_field(slot) &&
                !(slot.features_incompatible & ~known_features_incompatible) && (!best || slot.number > best->number))
                best = &slot;
        }
        if (best)
            break;
        *uncertain = true;
    }
    if (best) {
        *header = *best;
        return TY_OK;
    }
    bool repaired = false;
    if (ty_status status = read_header(image, header, &repaired))
        return status; // the reason
    return failure(TY_E_FORMAT, "salvage a heap of format version %u", header->version)
        .at(image.path)
        .remedy("open it with the version of the library that wrote it, and close it");
}

ty_status flush_image(const storage_file &image, header_state &state) {
    ty_status status = image.flush();
    if (status && state.unflushed)
        state.current.number -= 1; // not believed: the next write goes to the same slot; the other one is durable
    state.unflushed = false;
    state.flush_failed = state.flush_failed || status;
    return status;
}

// I2: a slot is overwritten only while the other one is durable.
ty_status write_header(const storage_file &image, header_state &state) {
    if (state.unflushed && !fault("header_written_beside_an_unflushed_one")) {
        if (ty_status status = flush_image(image, state))
            return status;
    }
    image_header next = state.current;
    next.number += 1;
    next.checksum = header_checksum(next);
    io_page page;
    static_assert(sizeof page == image_slot_bytes);
    memcpy(page.bytes, &next, sizeof next);
    state.places.number = next.number;
    state.places.checksum = places_checksum(state.places);
    memcpy(page.bytes + code_places_offset, &state.places, sizeof state.places);
    // A failed write may have torn the slot; the number stays, so that a retry goes to the same slot.
    uint64_t slot = next.number % header_slots;
    if (ty_status status = image.write(slot * image_slot_bytes, page.bytes, sizeof page))
        return status;
    state.current = next;
    state.unflushed = true;
    return TY_OK;
}

ty_status write_header_twice(const storage_file &image, header_state &state) {
    for (uint32_t i = fault("header_written_once_after_a_checkpoint"); i < header_slots; ++i) {
        if (ty_status status = write_header(image, state))
            return status;
        if (ty_status status = flush_image(image, state))
            return status;
    }
    return TY_OK;
}

} // namespace taiyen
