// A set of type descriptors: the implementation of ty_types.
//
// SH1: all type descriptors of a set have passed check_descriptor(), and so have those that they lead to. Walks rely on
// it: offsets lie in the object, words are aligned, fields do not overlap, nesting ends. SH2: a call that fails leaves
// the set as it was.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <taiyen/types.h>
#include <unordered_map>
#include <vector>

namespace taiyen::pack {

// Bits of an address that a tag cannot use.
inline constexpr uint64_t address_bits = 0x00007fffffffffc0;

inline constexpr size_t descriptor_count_max = 65536;
inline constexpr size_t field_count_max = 65536;
inline constexpr size_t descriptor_bytes_max = size_t{1} << 30;
inline constexpr size_t nesting_max = 64;
inline constexpr size_t name_bytes_max = 4096;
inline constexpr size_t word_bytes = 8;

// A type descriptor read from a text: the set owns it.
struct owned_descriptor {
    ty_type descriptor{};
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
    const ty_type *descriptor; // NULL: bytes
    ty_count count;
};

// What is wrong with a type descriptor.
struct problem {
    const ty_type *descriptor = nullptr; // NULL: nothing
    const ty_field *field = nullptr;
    std::string text;
    explicit operator bool() const { return descriptor != nullptr; }
};

// Checks one type descriptor by itself, with the sizes of those that it nests.
problem check_descriptor(const ty_type *descriptor);

// What follows from a type descriptor and those nested in it.
struct descriptor_facts {
    bool plain = true; // neither addresses nor hooks
    uint8_t depth = 1; // of nesting
};
using facts_map = std::unordered_map<const ty_type *, descriptor_facts>;

class descriptor_set {
public:
    ty_status add(const ty_type *descriptor);
    ty_status add_root(const char *root, const ty_type *descriptor, const ty_count *count);
    ty_status bind(const char *name, ty_trace_callback *trace, ty_move_callback *moved, void *context);
    // Takes all of `texts` and `roots`, or nothing. Problems name the text's lines.
    ty_status adopt(std::vector<std::unique_ptr<owned_descriptor>> &texts, const std::vector<set_root> &roots);

    const ty_type *find(std::string_view name) const;
    bool contains(const ty_type *descriptor) const { return facts_.contains(descriptor); }
    const std::vector<const ty_type *> &descriptors() const { return order_; }
    const std::vector<set_root> &roots() const { return roots_; }
    const set_root *find_root(std::string_view name) const;
    const owned_descriptor *owned(const ty_type *descriptor) const;
    bool is_plain(const ty_type *descriptor) const { return facts_.at(descriptor).plain; }

private:
    problem check_new(const std::vector<const ty_type *> &fresh, facts_map &facts) const;
    problem find_facts(const ty_type *descriptor, size_t level, facts_map &facts) const;
    bool has_same(const owned_descriptor &text) const;
    ty_status check_names(const std::vector<const ty_type *> &fresh) const;
    std::vector<const ty_type *> closure(const ty_type *descriptor) const;
    void insert(const std::vector<const ty_type *> &fresh, const facts_map &facts);
    void forget_from(size_t first);

    std::vector<const ty_type *> order_;
    std::unordered_map<std::string_view, const ty_type *> by_name_;
    facts_map facts_;
    std::unordered_map<const ty_type *, std::unique_ptr<owned_descriptor>> owned_;
    std::vector<set_root> roots_;
    // Descriptors being added: find_facts uses it to see whether one needs hooks.
    const std::unordered_map<const ty_type *, const owned_descriptor *> *arriving_ = nullptr;
};

} // namespace taiyen::pack

struct ty_types {
    taiyen::pack::descriptor_set set;
};
