// What a destination holds, by the headers of its objects.
#pragma once

#include "object_io.hpp"

namespace taiyen::ship {

struct object {
    std::string name;
    uint64_t size_bytes;
    object_header header;
};

// An object that is damaged, classified by its header or its size.
struct bad_object {
    std::string name;
    std::string problem;
};

enum class reading {
    strict, // an object that cannot be used is the result
    whole,  // damaged objects are listed in `bad`, and left out
    as_is,  // as `whole`, but a truncated segment with a good header stays: what is left of it can be read
};

struct catalog {
    std::vector<object> bases;    // by LSN
    std::vector<object> segments; // by first record; no segment lies within another one
    std::vector<object> spare;    // segments whose records are in another segment, too
    std::vector<bad_object> bad;

    // problem: called for each object that cannot be used; the object is left out. NULL: as `how` says, and an object
    // of another heap or history is the result.
    ty_status read(const ty_destination &from, reading how, ty_problem_callback *problem, void *context);
    // Whether another segment holds all transactions of a damaged segment.
    bool is_replaced(const bad_object &one) const;
    // The object that ends last; NULL if the destination is empty.
    const object *last() const;
    bool empty() const { return bases.empty() && segments.empty(); }
    // The first segment with records after the base; SIZE_MAX if there is none, also where the base is at the end of a
    // timeline.
    size_t first_after(const object &base) const;
    // Whether the segment continues where the one before it ends.
    bool follows(size_t segment) const;
    void add_segment(object one); // becomes the newest
    void add_base(object one);    // becomes the newest; replaces a base of the same name
};

bool same_heap(const object_header &a, const object_header &b);

} // namespace taiyen::ship
