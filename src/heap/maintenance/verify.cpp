// Checks every structure of a heap top-down, by the invariants' numbers (docs/design/heap.md).
#include "../tables/tables.hpp"
#include "walk.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace taiyen {
namespace {

// Pages above top whose content is checked (H7: it is zeros).
constexpr uint64_t fresh_pages_checked = 16;

class verification {
public:
    verification(ty_heap *heap, ty_problem_callback *callback, void *context)
        : heap_(heap), callback_(callback), context_(context) {}
    ty_status extent();

private:
    [[gnu::format(printf, 2, 3)]] void problem(const char *format, ...);
    void check_header();
    void check_extents();
    void check_extent(page_extent extent);
    void check_span(page_extent extent);
    void check_span_count(page_extent extent, uint32_t used);
    void check_block_extent(page_extent extent);
    void check_free(page_extent extent);
    void check_inside(uint64_t from, uint64_t end);
    void check_no_blocks(page_extent extent);
    void check_tree();
    bool check_node(uint32_t page);
    void check_above_top();
    void check_roots();
    void check_root(uint32_t number, const root_record &root);
    bool leads_to_block(uint64_t offset) const;

    ty_heap *heap_;
    ty_problem_callback *callback_;
    void *context_;
    uint64_t problems_ = 0;
    uint64_t free_runs_ = 0;
    uint64_t used_pages_ = 0;
    uint64_t nodes_ = 0;
    uint32_t last_node_ = 0;
    bool before_free_ = false;
};

void verification::problem(const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    problems_++;
    if (callback_ != nullptr)
        callback_(text, context_);
}

unsigned long long figure(uint64_t value) {
    return value;
}

template <class T>
bool all_zero(const T &fields) {
    static constexpr T zeros{};
    return memcmp(&fields, &zeros, sizeof zeros) == 0;
}

void verification::check_header() {
    const heap_header &header = *heap_->header;
    if (header.magic != heap_magic || header.layout_version != heap_layout_version || header.page_bytes != page_bytes ||
        header.limit_bytes != heap_->limit_bytes)
        problem("header: magic, version, page size or limit was changed");
    table_places places(heap_->limit_bytes);
    if (header.descriptors_offset != places.descriptors_offset || header.bitmaps_offset != places.bitmaps_offset ||
        header.heads_offset != places.heads_offset)
        problem("header: the places of the tables were changed");
    const char *text;
    if (header.class_count != heap_->class_count || !class_table_sound(header.classes, header.class_count, &text))
        problem("header: the table of size classes was changed");
    for (uint32_t i = 0; i < heap_->class_count; i++) {
        if (header.classes[i].block_bytes != heap_->classes[i].block_bytes ||
            header.classes[i].pages != heap_->classes[i].pages)
            problem("header: size class %u was changed", i);
    }
    for (uint32_t i = heap_->class_count; i < size_class_count_max; i++) {
        if (!all_zero(header.classes[i]))
            problem("header: size class %u is set, but there are %u", i, heap_->class_count);
    }
    if (header.class_table > TY_CLASSES_DENSE)
        problem("header: the kind of its size classes is unknown: %u", header.class_table);
    if (header.zero != 0 || !all_zero(header.zero_to_classes) || !all_zero(header.zero_to_end))
        problem("header: fields are set that it has not");
    if (header.service_root != 0 && !leads_to_block(header.service_root))
        problem("header: the service root leads to %#llx, where no block is",
                figure(uintptr_t(heap_->base) + header.service_root));
    if (header.top_page != top_of(heap_))
        problem("H7: the header's top is page %llu, in use are pages up to %llu", figure(header.top_page),
                figure(top_of(heap_)));
}

void verification::check_extents() {
    extent_walk walk(heap_);
    page_extent extent;
    while (walk.next(&extent)) {
        check_extent(extent);
        if (problems_ > 1000) {
            problem("too many problems: the rest of the extents is not looked at");
            return;
        }
    }
    if (!walk.damaged() && heap_->hard_pages != UINT64_MAX && used_pages_ != heap_->used_pages)
        problem("limits: blocks lie in %llu page%s, counted were %llu", figure(used_pages_), plural(used_pages_),
                figure(heap_->used_pages));
    if (!walk.damaged())
        return;
    const page_descriptor &head = heap_->descriptors[walk.page()];
    if (!is_head(heap_, walk.page()))
        problem("H1: an extent should start at page %llu, but it has no head bit", figure(walk.page()));
    else
        problem("H1: the extent at page %llu has kind %u, class %u, length %u: impossible below top %llu",
                figure(walk.page()), head.kind, head.size_class, head.length, figure(top_of(heap_)));
}

void verification::check_extent(page_extent extent) {
    uint64_t end = uint64_t{extent.first} + extent.count;
    uint64_t inner = next_head(heap_, extent.first + uint64_t{1}, end);
    if (inner != end)
        problem("H1: page %llu, inside the extent at page %u, has a head bit", figure(inner), extent.first);
    page_kind kind = kind_at(heap_, extent.first);
    if (kind != page_free)
        used_pages_ += extent.count;
    if (kind == page_span)
        check_span(extent);
    else if (kind == page_extent_head)
        check_block_extent(extent);
    else
        check_free(extent);
    before_free_ = kind == page_free;
}

void verification::check_span(page_extent extent) {
    uint32_t size_class = heap_->descriptors[extent.first].size_class;
    const class_info &info = heap_->classes[size_class];
    if (extent.first % extent.count != 0)
        problem("H4: the span at page %u does not start at a multiple of its %u pages", extent.first, extent.count);
    for (uint32_t i = 0; i < extent.count; i++) {
        const page_descriptor &page = heap_->descriptors[extent.first + i];
        if (page.kind != page_span || page.size_class != size_class)
            problem("H4: page %u of the span at page %u has kind %u, class %u; the span's class is %u",
                    extent.first + i, extent.first, page.kind, page.size_class, size_class);
        if (page.zero != 0 || page.length != 0 || page.left != 0 || page.right != 0)
            problem("H4: the descriptor of page %u of the span at page %u has fields set that spans have not",
                    extent.first + i, extent.first);
    }
    const std::atomic<uint64_t> *words = bitmap_of(heap_, extent.first);
    uint32_t used = 0;
    for (uint32_t i = 0; i < extent.count * bitmap_words_per_page; i++) {
        uint64_t word = words[i].load(std::memory_order_relaxed);
        uint64_t beyond = i < info.words ? word & ~word_mask(info, i) : word;
        if (beyond != 0)
            problem("H5: the span at page %u has %u block%s, but bits beyond are set in word %u of its bitmap",
                    extent.first, info.blocks, plural(info.blocks), i);
        used += count_bits(word & ~beyond);
    }
    check_span_count(extent, used);
}

void verification::check_span_count(page_extent extent, uint32_t used) {
    if (used == 0)
        problem("H8: the span at page %u is empty", extent.first);
    uint32_t number = heap_->writable ? number_of(heap_, extent.first) : 0;
    if (number != 0 && heap_->states[number].used != used)
        problem("H5: the span at page %u has %u bit%s set in its bitmap, but blocks allocated: %u", extent.first, used,
                plural(used), heap_->states[number].used);
}

void verification::check_block_extent(page_extent extent) {
    const page_descriptor &head = heap_->descriptors[extent.first];
    if (head.size_class != 0 || head.zero != 0 || head.left != 0 || head.right != 0)
        problem("H6: the descriptor of the extent at page %u has fields set that extents have not", extent.first);
    check_inside(extent.first + uint64_t{1}, uint64_t{extent.first} + extent.count);
    check_no_blocks(extent);
}

void verification::check_free(page_extent extent) {
    uint64_t last = uint64_t{extent.first} + extent.count - 1;
    const page_descriptor &head = heap_->descriptors[extent.first];
    const page_descriptor &tail = heap_->descriptors[last];
    if (head.size_class != 0 || head.zero != 0)
        problem("H3: the descriptor of the free extent at page %u has fields set that free extents have not",
                extent.first);
    if (extent.count > 1 && (tail.size_class != 0 || tail.zero != 0 || tail.left != 0 || tail.right != 0))
        problem(
            "H2: the descriptor of page %llu, the last of the free extent at page %u, has fields set that it has not",
            figure(last), extent.first);
    if (extent.count > 1 && (tail.kind != page_free_tail || tail.length != extent.count))
        problem("H2: the free extent at page %u has %u page%s, but its last page says kind %u, length %u", extent.first,
                extent.count, plural(extent.count), tail.kind, tail.length);
    if (before_free_)
        problem("H2: the free extent at page %u is a neighbour of the one before it", extent.first);
    if (tree_of(heap_).lower_bound(extent.count, extent.first) != extent.first)
        problem("H3: the free extent at page %u is not in the tree", extent.first);
    check_inside(extent.first + uint64_t{1}, last);
    check_no_blocks(extent);
    free_runs_++;
}

void verification::check_inside(uint64_t from, uint64_t end) {
    for (uint64_t page = from; page < end; page++) {
        if (!all_zero(heap_->descriptors[page]))
            return problem("H6: the descriptor of page %llu, inside an extent, is not zero", figure(page));
    }
}

void verification::check_no_blocks(page_extent extent) {
    const std::atomic<uint64_t> *words = bitmap_of(heap_, extent.first);
    for (uint64_t i = 0; i < uint64_t{extent.count} * bitmap_words_per_page; i++) {
        if (words[i].load(std::memory_order_relaxed) != 0)
            return problem("H5: page %llu belongs to no span, but bits of its bitmap are set",
                           figure(extent.first + i / bitmap_words_per_page));
    }
}

bool verification::check_node(uint32_t page) {
    const page_descriptor *descriptors = heap_->descriptors;
    const page_descriptor &node = descriptors[page];
    if (last_node_ != 0) {
        const page_descriptor &last = descriptors[last_node_];
        if (last.length > node.length || (last.length == node.length && last_node_ >= page))
            problem("H3: the free extent at page %u stands in the tree after the one at page %u", page, last_node_);
    }
    for (uint32_t child : {node.left, node.right}) {
        if (child != 0 && extent_tree::priority(child) > extent_tree::priority(page))
            problem("H3: the free extent at page %u stands in the tree below the one at page %u", child, page);
    }
    if (!is_head(heap_, page))
        problem("H3: the tree holds page %u, where no free extent starts", page);
    last_node_ = page;
    return ++nodes_ <= free_runs_;
}

void verification::check_tree() {
    extent_tree tree = tree_of(heap_);
    bool sound =
        tree.each([](uint32_t page, void *self) { return static_cast<verification *>(self)->check_node(page); }, this);
    if (!sound)
        problem("H3: the tree of free extents holds a page that is no free extent");
    else if (nodes_ != free_runs_)
        problem("H3: the tree holds %s free extents than the %llu that there are",
                nodes_ > free_runs_ ? "more" : "fewer", figure(free_runs_));
}

void verification::check_above_top() {
    uint64_t top = top_of(heap_);
    if (heap_->provided == 0)
        return; // not even the tables have been touched
    uint64_t end = (top + 63) / 64 * 64;
    if (end < heap_->provided)
        end = heap_->provided;
    if (end > heap_->first_table_page)
        end = heap_->first_table_page;
    uint64_t head = next_head(heap_, top, end);
    if (head != end)
        problem("H7: page %llu, above top %llu, has a head bit", figure(head), figure(top));
    check_inside(top, end);
    if (end > top)
        check_no_blocks({static_cast<uint32_t>(top), static_cast<uint32_t>(end - top)});
    if (heap_->provided < end)
        end = heap_->provided;
    for (uint64_t page = top; page < end && page < top + fresh_pages_checked; page++) {
        const char *bytes = page_address(heap_, page);
        if (bytes[0] != 0 || memcmp(bytes, bytes + 1, page_bytes - 1) != 0)
            problem("H7: page %llu, above top %llu, is not zero", figure(page), figure(top));
    }
}

// Whether the offset is that of a byte in a live block.
bool verification::leads_to_block(uint64_t offset) const {
    uint64_t page = offset / page_bytes;
    if (page < first_user_page || page >= top_of(heap_))
        return false;
    uint64_t head = head_before(heap_, page);
    page_extent extent;
    if (head < first_user_page || !extent_at_head(heap_, head, &extent) || page >= head + extent.count)
        return false;
    if (kind_at(heap_, head) != page_span)
        return kind_at(heap_, head) == page_extent_head;
    const class_info &info = heap_->classes[heap_->descriptors[head].size_class];
    uint64_t block = (offset - head * page_bytes) / info.block_bytes;
    return block < info.blocks &&
           (bitmap_of(heap_, head)[block / 64].load(std::memory_order_relaxed) >> block % 64 & 1) != 0;
}

void verification::check_root(uint32_t number, const root_record &root) {
    const char *end = static_cast<const char *>(memchr(root.name, 0, sizeof root.name));
    if (end == nullptr)
        return problem("roots: the name of root %u does not end", number);
    if (end == root.name) {
        if (!all_zero(root))
            problem("roots: root %u has no name, but is set", number);
        return;
    }
    for (const char *rest = end; rest < root.name + sizeof root.name; rest++) {
        if (*rest != 0)
            return problem("roots: root %u has bytes after the end of its name", number);
    }
    if (root.offset >= heap_->limit_bytes)
        problem("roots: root %u leads out of the heap", number);
    else if (!leads_to_block(root.offset))
        problem("roots: root %u, \"%s\", leads to %#llx, where no block is", number, root.name,
                figure(uintptr_t(heap_->base) + root.offset));
}

void verification::check_roots() {
    const heap_roots &roots = *reinterpret_cast<const heap_roots *>(heap_->base + page_bytes);
    for (uint32_t i = 0; i < root_count_max; i++) {
        check_root(i, roots.roots[i]);
        for (uint32_t k = 0; k < i; k++) {
            if (roots.roots[i].name[0] != 0 &&
                strncmp(roots.roots[i].name, roots.roots[k].name, sizeof roots.roots[i].name) == 0)
                problem("roots: roots %u and %u have the same name", k, i);
        }
    }
    if (!all_zero(roots.zero))
        problem("roots: bytes after the last one are set");
}

ty_status verification::extent() {
    check_header();
    check_extents();
    check_tree();
    check_above_top();
    check_roots();
    if (heap_->checks != nullptr)
        problems_ += heap_->checks->calls->verify(heap_, callback_, context_);
    if (problems_ == 0)
        return TY_OK;
    return failure(TY_E_DAMAGED, "verify the heap at %p: %llu problem%s", static_cast<void *>(heap_->base),
                   figure(problems_), plural(problems_))
        .remedy("restore it from a backup");
}

} // namespace

ty_status heap_verify(ty_heap *heap, ty_problem_callback *callback, void *context) {
    callback_pause paused(heap);
    return verification(heap, callback, context).extent();
}

} // namespace taiyen
