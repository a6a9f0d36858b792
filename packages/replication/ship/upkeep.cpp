// Merging and removing. SP4: whatever is interrupted, at each moment all that is to be kept can be restored.
#include "shipper.hpp"

#include <algorithm>
#include <taiyen/detail/fault.hpp>
#include <vector>

namespace taiyen::ship {

// Their records are in another segment, which is durable.
ty_status remove_spare(const ty_destination &at, catalog &all) {
    for (size_t i = all.bad.size(); i-- > 0;)
        if (all.is_replaced(all.bad[i])) {
            if (ty_status status = at.remove(at.context, all.bad[i].name.c_str()))
                return status;
            all.bad.erase(all.bad.begin() + static_cast<ptrdiff_t>(i));
        }
    while (!all.spare.empty()) {
        if (ty_status status = at.remove(at.context, all.spare.back().name.c_str()))
            return status;
        all.spare.pop_back();
    }
    return TY_OK;
}

namespace {

struct run {
    size_t first;
    size_t count; // 0: no segments
};

// Adjacent segments of one level and one timeline. The highest level first, so that a level never has more than
// `merged` of these, and each segment is merged once a level.
run find_run(const catalog &all, const upkeep_options &options) {
    run at{0, 0};
    uint64_t bytes = 0;
    for (size_t i = 0; i < all.segments.size(); i++) {
        const object_header &header = all.segments[i].header;
        if (at.count == 0 || header.level != all.segments[at.first].header.level || !all.follows(i)) {
            at = {i, 0};
            bytes = 0;
        }
        at.count += 1;
        bytes += header.stored_bytes;
        if (bytes > options.merged_bytes)
            at = {i + 1, 0}, bytes = 0; // they are large enough
        else if (at.count == options.merged)
            return at;
    }
    return {0, 0};
}

object_header merged_header(const catalog &all, const run &of) {
    object_header header = all.segments[of.first].header;
    header.level += 1;
    for (size_t i = of.first + 1; i < of.first + of.count; i++) {
        const object_header &one = all.segments[i].header;
        header.frames += one.frames;
        header.records += one.records;
        header.raw_bytes += one.raw_bytes;
        header.stored_bytes += one.stored_bytes;
        header.first_ns = std::min(header.first_ns, one.first_ns);
        header.last_ns = std::max(header.last_ns, one.last_ns);
        if (!taiyen::detail::fault("merged_segment_ends_early") || i + 1 < of.first + of.count)
            header.to = one.to;
        header.after_base = std::max(header.after_base, one.after_base);
    }
    header.checksum = checksum_of(header);
    return header;
}

// Frame by frame, each checked.
ty_status append(const ty_destination &at, object_writer &to, const object &from) {
    segment_reader reader(at, from.name);
    segment_frame frame;
    if (ty_status status = reader.open())
        return status;
    for (;;) {
        bool more = false;
        if (ty_status status = reader.next(&frame, true, &more))
            return status;
        if (!more)
            return TY_OK;
        if (ty_status status = to.put(&frame.header, sizeof frame.header))
            return status;
        if (ty_status status = to.put(frame.stored, frame.header.stored_bytes))
            return status;
    }
}

} // namespace

ty_status merge_some(const ty_destination &at, catalog &all, const upkeep_options &options, bool *merged) {
    const run of = options.merged > 1 ? find_run(all, options) : run{0, 0};
    *merged = of.count != 0;
    if (!*merged)
        return TY_OK;
    const object_header header = merged_header(all, of);
    object_writer writer(at);
    if (ty_status status = writer.begin(name_of(header)))
        return status;
    if (ty_status status = writer.put(&header, sizeof header))
        return status;
    for (size_t i = of.first; i < of.first + of.count; i++)
        if (ty_status status = append(at, writer, all.segments[i]))
            return status;
    for (size_t i = of.first;
         i < of.first + of.count && taiyen::detail::fault("segments_removed_before_they_are_merged"); i++)
        if (ty_status status = at.remove(at.context, all.segments[i].name.c_str()))
            return status;
    if (ty_status status = writer.keep())
        return status;
    const auto first = all.segments.begin() + static_cast<ptrdiff_t>(of.first);
    all.spare.insert(all.spare.end(), first, first + static_cast<ptrdiff_t>(of.count));
    all.segments.erase(first + 1, first + static_cast<ptrdiff_t>(of.count));
    all.segments[of.first] = {name_of(header), sizeof header + header.stored_bytes, header};
    return remove_spare(at, all);
}

namespace {

// A clock that was set moves time by at most half of what is to be kept; set back again, it has moved nothing.
int64_t believed(uint64_t from_ns, uint64_t to_ns, int64_t keep_ns) {
    const int64_t most = keep_ns / 2 + keep_ns % 2;
    return std::clamp(static_cast<int64_t>(to_ns - from_ns), -most, most);
}

} // namespace

// A base is no longer needed when the one after it is as old as what is to be kept. SP8: ages are sums of the times
// between bases, up to the newest one, not the difference to the present time of a clock. Where one shipper made both
// bases, it has the time between them from a clock that nobody sets.
uint64_t floor_for_next(const catalog &all, const upkeep_options &options, uint64_t now_ns) {
    uint64_t floor = 0;
    for (const object &base : all.bases)
        floor = std::max(floor, base.header.floor);
    if (options.keep_ns == 0 || all.bases.empty())
        return floor;
    const auto keep = static_cast<int64_t>(std::min<uint64_t>(options.keep_ns, INT64_MAX / 2));
    int64_t age = std::min<int64_t>(0, believed(all.bases.back().header.first_ns, now_ns, keep));
    for (size_t i = all.bases.size() - 1; i > 0; i--) {
        if (age >= keep && all.bases.size() - i + 1 >= options.bases_min)
            return std::max(floor, all.bases[i].header.from.lsn);
        const object_header &one = all.bases[i].header;
        age += one.since_base_ns ? static_cast<int64_t>(std::min<uint64_t>(one.since_base_ns, INT64_MAX / 4))
                                 : believed(all.bases[i - 1].header.first_ns, one.first_ns, keep);
    }
    return floor;
}

// SP7: the base that names the floor is durable. Nothing that belongs to a base that is kept goes: where the base at
// the floor is missing itself, nothing goes that leads to the next one.
ty_status remove_old(const ty_destination &at, catalog &all, uint64_t *removed) {
    uint64_t floor = 0;
    for (const object &base : all.bases)
        floor = std::max(floor, base.header.floor);
    const auto is_floor = [&](const object &base) { return base.header.from.lsn == floor; };
    if (floor == 0 || std::none_of(all.bases.begin(), all.bases.end(), is_floor))
        return TY_OK;
    for (; all.bases.front().header.from.lsn < floor; ++*removed) {
        if (ty_status status = at.remove(at.context, all.bases.front().name.c_str()))
            return status;
        all.bases.erase(all.bases.begin());
    }
    // Segments before the oldest base cannot be used. The oldest go first.
    while (all.segments.size() > 1 && (all.segments.front().header.to.lsn <= all.bases.front().header.from.lsn ||
                                       taiyen::detail::fault("needed_segment_removed"))) {
        if (ty_status status = at.remove(at.context, all.segments.front().name.c_str()))
            return status;
        all.segments.erase(all.segments.begin());
        ++*removed;
    }
    return TY_OK;
}

} // namespace taiyen::ship
