// What a destination holds, by the headers of its objects.
#pragma once

#include "object_io.hpp"

namespace taiyen::ship {

struct object {
    std::string name;
    uint64_t size_bytes;
    object_header_1 header;
};

// An object that is damaged, as its header or its size says.
struct bad_object {
    std::string name;
    std::string problem;
};

enum class reading {
    strict, // what cannot be used is the result
    whole,  // damaged objects are told in `bad`, and left out
    as_is,  // the same; but a segment with a good header that was cut stays: what is left of it can be read
};

struct catalog {
    std::vector<object> bases;    // by LSN
    std::vector<object> segments; // by first record; none within another one
    std::vector<object> spare;    // segments whose records are in another one, too
    std::vector<bad_object> bad;

    // problem: told of each object that cannot be used, which is left out; NULL: as `how` says, and what is of another
    // heap or history is the result.
    ty_status read(const ty_destination &from, reading how, ty_problem_callback *problem, void *context);
    // Of a damaged segment: whether all its transactions are in another one.
    bool is_replaced(const bad_object &one) const;
    // Where the last of them ends; NULL: there is none.
    const object *last() const;
    bool empty() const { return bases.empty() && segments.empty(); }
    // The first segment that has records behind the base, or SIZE_MAX. Where the base is at the end of a timeline: that
    // is none, too.
    size_t first_behind(const object &base) const;
    // Whether the segment goes on where the one before it ends.
    bool follows(size_t segment) const;
    void add_segment(object one); // the newest
    void add_base(object one);    // the same; in the place of one that has its name
};

bool same_heap(const object_header_1 &a, const object_header_1 &b);

} // namespace taiyen::ship
