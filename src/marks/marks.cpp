// What marks of all kinds of heaps have in common.
#include "marks.hpp"

#include <cstring>

namespace taiyen {

ty_status mark_not_found(const char *name, const char *path) {
    return failure(TY_E_NOT_FOUND, "find the mark \"%s\"", name).at(path).remedy("ty_each_mark lists a heap's marks");
}

ty_status check_mark_name(const char *name, const char *call) {
    const size_t bytes = strnlen(name, TY_MARK_NAME_MAX + 1);
    if (bytes == 0 || bytes > TY_MARK_NAME_MAX)
        return failure(TY_E_ARGUMENT, "%s: the mark's name has %s bytes", call, bytes == 0 ? "no" : "too many")
            .remedy("a name has 1 to %u bytes", TY_MARK_NAME_MAX);
    for (size_t i = 0; i < bytes; i++)
        if (static_cast<unsigned char>(name[i]) < ' ')
            return failure(TY_E_ARGUMENT, "%s: the mark's name has a control character", call)
                .remedy("use text without them");
    return TY_OK;
}

void apply_mark(ty_heap *heap, const mark_tree &tree, const page_copies &copies, const os::page_set &pages,
                const page_source *base) {
    struct both {
        const mark_tree *tree;
        const page_copies *copies;
        const page_source *base;
        static void copy(void *context, uint64_t page, char *to) {
            auto &self = *static_cast<both *>(context);
            const uint32_t slot = self.tree->slot_of(page);
            if (slot == page_store::none && self.base != nullptr)
                self.base->copy(self.base->context, page, to);
            else
                self.copies->copy_to(to, slot);
        }
    } source{&tree, &copies, base};
    heap_replace_pages(heap, pages, {&source, both::copy}, tree.used_pages());
}

// A scan of all pages takes longer than some scans of a few.
void settle_tracker(os::tracker &tracker, os::page_ranges where, const os::page_set &pages, os::page_set &found) {
    constexpr unsigned scans_max = 1000;
    unsigned scans = tracker.method() == os::tracker_method::kernel ? 0 : scans_max;
    for (uint64_t page = pages.next(0); page < pages.page_count() && scans < scans_max; scans++) {
        uint64_t end = page + 1;
        while (end < pages.page_count() && pages.contains(end))
            end++;
        static_cast<void>(tracker.collect_part({page, end - page}, found)); // what it misses is found too often
        page = pages.next(end);
    }
    if (scans == scans_max)
        static_cast<void>(tracker.collect(where, found));
}

} // namespace taiyen
