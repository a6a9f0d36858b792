// Reads and checks a whole destination.
#include "restoring.hpp"

#include <algorithm>
#include <set>
#include <taiyen/pack.h>

namespace taiyen::ship {

namespace {

struct verifying {
    const ty_destination &at;
    ty_progress_callback *progress;
    ty_problem_callback *problem;
    void *context;
    uint64_t total = 0;
    uint64_t done = 0;
    uint64_t problems = 0;

    static void count(const char *text, void *self_of) {
        auto &self = *static_cast<verifying *>(self_of);
        self.problems += 1;
        if (self.problem)
            self.problem(text, self.context);
    }
    // Reports what is wrong with an object; other failures end the verification.
    ty_status keep_first(ty_status status) {
        if (status != TY_E_DAMAGED && status != TY_E_FORMAT && status != TY_E_MISMATCH)
            return status;
        count(ty_error_text(), this);
        return TY_OK;
    }
    bool add_progress(uint64_t bytes) {
        done += bytes;
        return !progress || progress(done < total ? done : total, total, context);
    }
};

ty_status stopped() {
    return fail(TY_E_BUSY, "verify what was shipped: it was stopped", "", "");
}

ty_status verify_segment(verifying &v, const object &one) {
    segment_reader reader(v.at, one.name);
    segment_frame frame;
    if (ty_status status = reader.open())
        return status;
    for (bool more = true;;) {
        if (ty_status status = reader.next(&frame, true, &more))
            return status;
        if (!more)
            return TY_OK;
        if (!v.add_progress(frame.header.stored_bytes))
            return stopped();
    }
}

struct base_reading {
    verifying &v;
    object_reader reader;
    bool stop = false;

    static ty_status read(void *bytes, size_t size, size_t *got, void *context) {
        auto &self = *static_cast<base_reading *>(context);
        if (ty_status status = self.reader.some(bytes, size, got))
            return status;
        self.stop = !self.v.add_progress(*got);
        return self.stop ? stopped() : TY_OK;
    }
};

ty_status verify_base(verifying &v, const object &one) {
    base_reading from{v, object_reader(v.at, one.name)};
    object_header header{};
    if (ty_status status = from.reader.header(&header))
        return status;
    ty_status status = ty_verify_pack(base_reading::read, &from, nullptr, nullptr, nullptr);
    if (status == TY_E_DAMAGED || status == TY_E_FORMAT) {
        ty_error why{};
        ty_error_detail(&why);
        return fail(status, why.operation, one.name, "get the object from another copy");
    }
    if (!status && !from.reader.at_end(&status) && !status)
        status = fail(TY_E_DAMAGED, "read a base: something was appended to it", one.name, "get it from another copy");
    return status;
}

// SP7: each base that another object names is there, except those that are no longer kept.
ty_status verify_bases(verifying &v, const catalog &all) {
    std::set<uint64_t> wanted;
    uint64_t floor = 0;
    for (const object &base : all.bases)
        floor = std::max(floor, base.header.floor);
    if (floor)
        wanted.insert(floor);
    for (const auto *objects : {&all.bases, &all.segments})
        for (const object &one : *objects)
            if (one.header.after_base > floor)
                wanted.insert(one.header.after_base - 1);
    for (const object &base : all.bases)
        wanted.erase(base.header.from.lsn);
    for (uint64_t lsn : wanted) {
        const std::string name = base_name(lsn);
        bool reported = false; // it is there, and damaged
        for (const bad_object &bad : all.bad)
            reported = reported || bad.name == name;
        if (reported)
            continue;
        if (ty_status status =
                v.keep_first(fail(TY_E_MISMATCH, "use what is after a base up to the next one: the base is missing",
                                  name, "get it from another copy")))
            return status;
    }
    return TY_OK;
}

bool ends_at(const catalog &all, uint64_t lsn) {
    const auto ends = [&](const object &one) { return one.header.to.lsn == lsn; };
    return std::any_of(all.segments.begin(), all.segments.end(), ends) ||
           std::any_of(all.bases.begin(), all.bases.end(), ends);
}

// SP7: what was before a timeline is there up to where it ended, except what is no longer kept.
ty_status verify_ends(verifying &v, const catalog &all) {
    std::set<uint64_t> wanted;
    for (const auto *objects : {&all.bases, &all.segments})
        for (const object &one : *objects)
            if (const uint64_t after = one.header.timeline_after; after && !all.bases.empty() &&
                                                                  after - 1 > all.bases.front().header.from.lsn &&
                                                                  !ends_at(all, after - 1))
                wanted.insert(after - 1);
    for (const uint64_t lsn : wanted)
        if (ty_status status = v.keep_first(fail(TY_E_MISMATCH,
                                                 "use what was shipped up to transaction " + std::to_string(lsn) +
                                                     ", before a gap: the segment that ends there is missing",
                                                 "", "get it from another copy")))
            return status;
    return TY_OK;
}

// Within a timeline nothing is missing, and the segments after a base are there.
ty_status verify_order(verifying &v, const catalog &all) {
    if (ty_status status = verify_bases(v, all))
        return status;
    if (ty_status status = verify_ends(v, all))
        return status;
    for (size_t i = 0; i < all.segments.size(); i++) {
        const object_header &one = all.segments[i].header;
        const bool begins = one.from.lsn == one.timeline_lsn && one.from.hash == one.timeline_hash;
        const bool after_removal = i == 0 && !all.bases.empty() && all.bases.front().header.from.lsn >= one.from.lsn;
        if (!all.follows(i) && !begins && !after_removal)
            if (ty_status status = v.keep_first(fail(TY_E_MISMATCH, "use a segment: the one before it is missing",
                                                     all.segments[i].name, "get that from another copy")))
                return status;
    }
    for (const object &base : all.bases) {
        const bool last = all.segments.empty() || all.segments.back().header.to.lsn <= base.header.from.lsn;
        bool at_end_of_timeline = last;
        for (const auto *objects : {&all.bases, &all.segments})
            for (const object &one : *objects)
                at_end_of_timeline = at_end_of_timeline || one.header.timeline_after == base.header.from.lsn + 1 ||
                                     (objects == &all.segments && one.header.to.lsn == base.header.from.lsn);
        if (!at_end_of_timeline && all.first_after(base) == SIZE_MAX)
            if (ty_status status = v.keep_first(fail(TY_E_MISMATCH, "use a base: the segment after it is missing",
                                                     base.name, "get that from another copy")))
                return status;
    }
    return TY_OK;
}

} // namespace

ty_status verify_objects(const ty_destination &at, ty_progress_callback *progress, ty_problem_callback *problem,
                         void *context) {
    verifying v{at, progress, problem, context};
    catalog all;
    if (ty_status status = all.read(at, reading::strict, verifying::count, &v))
        return status;
    for (const auto *objects : {&all.bases, &all.segments, &all.spare})
        for (const object &one : *objects)
            v.total += one.size_bytes;
    for (const object &one : all.bases)
        if (ty_status status = v.keep_first(verify_base(v, one)))
            return status;
    for (const auto *objects : {&all.segments, &all.spare})
        for (const object &one : *objects)
            if (ty_status status = v.keep_first(verify_segment(v, one)))
                return status;
    if (ty_status status = verify_order(v, all))
        return status;
    if (v.problems)
        return fail(TY_E_DAMAGED, "use all that was shipped: " + std::to_string(v.problems) + " problems", "",
                    "what the problems name cannot be restored from");
    return all.bases.empty() ? fail(TY_E_NOT_FOUND, "restore from what was shipped: a base", "",
                                    "nothing is damaged: ship until there is one (ty_ship_all)")
                             : TY_OK;
}

} // namespace taiyen::ship
