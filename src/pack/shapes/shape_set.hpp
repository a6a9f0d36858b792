// A set of shapes: what ty_shapes is.
//
// SH1: all shapes of a set have passed check_shape(), and so have those that they lead to. Walks rely on it: offsets
// lie in the object, words are aligned, fields do not overlap, nesting ends. SH2: a call that fails leaves the set as
// it was.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <taiyen/shapes.h>
#include <unordered_map>
#include <vector>

namespace taiyen::pack {

// Bits that an address has and a tag cannot take.
inline constexpr uint64_t address_bits = 0x00007fffffffffc0;

inline constexpr size_t shape_count_max = 65536;
inline constexpr size_t field_count_max = 65536;
inline constexpr size_t shape_bytes_max = size_t{1} << 30;
inline constexpr size_t nesting_max = 64;
inline constexpr size_t name_bytes_max = 4096;
inline constexpr size_t word_bytes = 8;

// A shape that a text describes: the set owns it.
struct owned_shape {
    ty_shape shape{};
    std::string name;
    std::vector<ty_field> fields;
    std::deque<std::string> field_names;
    bool needs_trace = false;
    bool needs_moved = false;
    size_t line = 0; // of the text
    std::vector<size_t> field_lines;
};

struct set_root {
    std::string name;
    const ty_shape *shape; // NULL: bytes
    ty_count count;
};

// What is wrong with a shape.
struct problem {
    const ty_shape *shape = nullptr; // NULL: nothing
    const ty_field *field = nullptr;
    std::string text;
    explicit operator bool() const { return shape != nullptr; }
};

// One shape by itself, with the sizes of those that it nests.
problem check_shape(const ty_shape *shape);

// What follows from a shape and those nested in it.
struct shape_facts {
    bool plain = true; // neither addresses nor hooks
    uint8_t depth = 1; // of nesting
};
using facts_map = std::unordered_map<const ty_shape *, shape_facts>;

class shape_set {
public:
    ty_status add(const ty_shape *shape);
    ty_status add_root(const char *root, const ty_shape *shape, const ty_count *count);
    ty_status bind(const char *name, ty_trace_callback *trace, ty_move_callback *moved, void *context);
    // All of `texts` and `roots`, or nothing. Problems name the text's lines.
    ty_status adopt(std::vector<std::unique_ptr<owned_shape>> &texts, const std::vector<set_root> &roots);

    const ty_shape *find(std::string_view name) const;
    bool contains(const ty_shape *shape) const { return facts_.contains(shape); }
    const std::vector<const ty_shape *> &shapes() const { return order_; }
    const std::vector<set_root> &roots() const { return roots_; }
    const set_root *find_root(std::string_view name) const;
    const owned_shape *owned(const ty_shape *shape) const;
    bool is_plain(const ty_shape *shape) const { return facts_.at(shape).plain; }

private:
    problem check_new(const std::vector<const ty_shape *> &fresh, facts_map &facts) const;
    problem find_facts(const ty_shape *shape, size_t level, facts_map &facts) const;
    bool has_same(const owned_shape &text) const;
    ty_status check_names(const std::vector<const ty_shape *> &fresh) const;
    std::vector<const ty_shape *> closure(const ty_shape *shape) const;
    void insert(const std::vector<const ty_shape *> &fresh, const facts_map &facts);
    void forget_from(size_t first);

    std::vector<const ty_shape *> order_;
    std::unordered_map<std::string_view, const ty_shape *> by_name_;
    facts_map facts_;
    std::unordered_map<const ty_shape *, std::unique_ptr<owned_shape>> owned_;
    std::vector<set_root> roots_;
    // Not yet in the set, but on the way: find_facts asks it whether a shape needs hooks.
    const std::unordered_map<const ty_shape *, const owned_shape *> *arriving_ = nullptr;
};

} // namespace taiyen::pack

struct ty_shapes {
    taiyen::pack::shape_set set;
};
