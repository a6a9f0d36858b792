#include "catalog.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen::ship {

bool same_heap(const object_header &a, const object_header &b) {
    return memcmp(a.from.heap_identity, b.from.heap_identity, sizeof a.from.heap_identity) == 0;
}

namespace {

struct named {
    std::string name;
    uint64_t size_bytes;
};

ty_status names_of(const ty_destination &from, std::vector<named> *names) {
    struct gathering {
        std::vector<named> *names;
        bool failed = false;
    } to{names};
    const auto take = [](const char *name, uint64_t size, void *context) {
        auto &gathered = *static_cast<gathering *>(context);
        try {
            if (is_object_name(name))
                gathered.names->push_back({name, size});
        } catch (const std::exception &) {
            gathered.failed = true;
        }
        return !gathered.failed;
    };
    const ty_status status = from.list(from.context, take, &to);
    if (to.failed)
        throw std::bad_alloc();
    return status;
}

// Within another object of its timeline: what an interrupted merge left.
bool is_within(const object_header &a, const object_header &b) {
    return same_timeline(a, b) && a.from.lsn >= b.from.lsn && a.to.lsn <= b.to.lsn;
}

ty_status report(ty_problem_callback *problem, void *context, ty_status status) {
    if (problem == nullptr || (!is_damage(status) && status != TY_E_MISMATCH))
        return status;
    problem(ty_error_text(), context);
    return TY_OK;
}

} // namespace

ty_status catalog::read(const ty_destination &from, reading how, ty_problem_callback *problem, void *context) {
    std::vector<named> names;
    std::vector<object> found;
    if (ty_status status = names_of(from, &names))
        return status;
    for (const named &one : names) {
        object_reader reader(from, one.name);
        object made{one.name, one.size_bytes, {}};
        ty_status status = reader.header(&made.header);
        const object_header &first = found.empty() ? made.header : found.front().header;
        if (!status && !same_heap(made.header, first))
            status = fail(TY_E_MISMATCH, "use an object of another heap than " + found.front().name, one.name,
                          "take it away from there");
        const bool readable = status == TY_OK;
        if (!status && made.header.kind == uint32_t(object_kind::segment) &&
            made.size_bytes != sizeof made.header + made.header.stored_bytes)
            status = fail(TY_E_DAMAGED, "read a segment: it was cut off, or something was appended", one.name,
                          "get it from another copy");
        if (is_damage(status)) {
            bad.push_back({one.name, ty_error_text()});
            if (how == reading::as_is && readable)
                found.push_back(std::move(made));
            if (how != reading::strict && problem == nullptr)
                continue;
        }
        if (!status) {
            found.push_back(std::move(made));
        } else if ((status = report(problem, context, status))) {
            return status;
        }
    }
    std::sort(found.begin(), found.end(), [](const object &a, const object &b) {
        const auto &x = a.header, &y = b.header;
        return x.from.lsn != y.from.lsn ? x.from.lsn < y.from.lsn : x.to.lsn > y.to.lsn; // the longest first
    });
    for (object &one : found) {
        if (one.header.kind == uint32_t(object_kind::base))
            bases.push_back(std::move(one));
        else if (!segments.empty() && is_within(one.header, segments.back().header))
            spare.push_back(std::move(one));
        else if (!segments.empty() && one.header.from.lsn < segments.back().header.to.lsn) {
            if (ty_status status = report(problem, context,
                                          fail(TY_E_MISMATCH, "use a segment that overlaps " + segments.back().name,
                                               one.name, "it is of another history: take it away from there")))
                return status;
        } else {
            segments.push_back(std::move(one));
        }
    }
    return TY_OK;
}

bool catalog::is_replaced(const bad_object &one) const {
    uint64_t first = 0, last = 0;
    if (!segment_range(one.name, &first, &last))
        return false;
    for (const object &segment : segments)
        if (segment.name != one.name && segment.header.from.lsn < first && segment.header.to.lsn >= last)
            return true;
    return false;
}

const object *catalog::last() const {
    if (segments.empty() || bases.empty())
        return !segments.empty() ? &segments.back() : !bases.empty() ? &bases.back() : nullptr;
    const ty_feed_position &segment = segments.back().header.to, &base = bases.back().header.from;
    // After the log was recreated, a timeline begins where the one before it ended.
    const bool new_log = base.log_identity != segment.log_identity;
    const bool by_base = base.lsn > segment.lsn || (base.lsn == segment.lsn && new_log);
    return by_base ? &bases.back() : &segments.back();
}

size_t catalog::first_after(const object &base) const {
    for (size_t i = 0; i < segments.size(); i++) {
        const object_header &segment = segments[i].header;
        if (segment.to.lsn <= base.header.from.lsn)
            continue;
        return segment.from.lsn <= base.header.from.lsn && segment.from.log_identity == base.header.from.log_identity
                   ? i
                   : SIZE_MAX;
    }
    return SIZE_MAX;
}

bool catalog::follows(size_t segment) const {
    if (segment == 0)
        return false;
    const object_header &before = segments[segment - 1].header, &one = segments[segment].header;
    return same_timeline(before, one) && before.to.lsn == one.from.lsn && before.to.hash == one.from.hash;
}

void catalog::add_base(object one) {
    if (!bases.empty() && bases.back().name == one.name)
        bases.pop_back();
    bases.push_back(std::move(one));
}

void catalog::add_segment(object one) {
    segments.push_back(std::move(one));
}

} // namespace taiyen::ship
