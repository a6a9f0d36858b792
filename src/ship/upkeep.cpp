// Merging and removing. SP4: at each moment, whatever is interrupted, all can be restored to that is to be kept.
#include "shipper.hpp"

#include <algorithm>

namespace taiyen::ship {

// Their records are in another segment, which is durable.
ty_status remove_spare(const ty_destination &at, catalog &all) {
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
    size_t count; // 0: none
};

// Segments of one level, side by side and of one line. The highest level first, so that these are never more than
// `merged`, and each is merged once a level.
run find_run(const catalog &all, const upkeep_options &options) {
    run at{0, 0};
    uint64_t bytes = 0;
    for (size_t i = 0; i < all.segments.size(); i++) {
        const object_header_1 &header = all.segments[i].header;
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

object_header_1 merged_header(const catalog &all, const run &of) {
    object_header_1 header = all.segments[of.first].header;
    header.level += 1;
    for (size_t i = of.first + 1; i < of.first + of.count; i++) {
        const object_header_1 &one = all.segments[i].header;
        header.frames += one.frames;
        header.records += one.records;
        header.raw_bytes += one.raw_bytes;
        header.stored_bytes += one.stored_bytes;
        header.first_ns = std::min(header.first_ns, one.first_ns);
        header.last_ns = std::max(header.last_ns, one.last_ns);
        header.to = one.to;
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
    const object_header_1 header = merged_header(all, of);
    object_writer writer(at);
    if (ty_status status = writer.begin(name_of(header)))
        return status;
    if (ty_status status = writer.put(&header, sizeof header))
        return status;
    for (size_t i = of.first; i < of.first + of.count; i++)
        if (ty_status status = append(at, writer, all.segments[i]))
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

// How many of the oldest bases are of no more use: there is a newer one that is as old as what is to be kept.
size_t old_bases(const catalog &all, const upkeep_options &options, uint64_t now_ns) {
    if (options.keep_ns == 0 || now_ns < options.keep_ns)
        return 0;
    size_t old = 0;
    while (old + 1 < all.bases.size() && all.bases.size() - old > options.bases_min &&
           all.bases[old + 1].header.first_ns <= now_ns - options.keep_ns)
        old++;
    return old;
}

} // namespace

ty_status remove_old(const ty_destination &at, catalog &all, const upkeep_options &options, uint64_t now_ns,
                     uint64_t *removed) {
    for (size_t old = old_bases(all, options, now_ns); old > 0; old--, ++*removed) {
        if (ty_status status = at.remove(at.context, all.bases.front().name.c_str()))
            return status;
        all.bases.erase(all.bases.begin());
    }
    // Segments before the oldest base lead from nowhere. The oldest first.
    while (options.keep_ns && !all.bases.empty() && all.segments.size() > 1 &&
           all.segments.front().header.to.sequence <= all.bases.front().header.from.sequence) {
        if (ty_status status = at.remove(at.context, all.segments.front().name.c_str()))
            return status;
        all.segments.erase(all.segments.begin());
        ++*removed;
    }
    return TY_OK;
}

} // namespace taiyen::ship
