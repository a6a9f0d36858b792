#include "journal.hpp"

#include "checksum.hpp"
#include "paths.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen {

batch *batch_create() {
    void *memory = os::internal_calloc(1, sizeof(batch));
    if (!memory)
        (void)ty_status(
            failure(TY_E_MEMORY, "note a batch of the journal").remedy("free memory, or raise the process's limits"));
    return static_cast<batch *>(memory); // all zeros is an empty batch
}

void batch_destroy(batch *b) {
    if (!b)
        return;
    b->copies.release();
    free(b);
}

void batch_list::append(batch *b) {
    (last ? last->next : first) = b;
    last = b;
    ++count;
}

void batch_list::pop() {
    batch *gone = first;
    first = gone->next;
    if (!first)
        last = nullptr;
    --count;
    batch_destroy(gone);
}

void batch_list::clear() {
    while (first)
        pop();
}

uint64_t batch_list::bytes() const {
    uint64_t sum = 0;
    for (const batch *b = first; b; b = b->next)
        sum += b->end - b->start;
    return sum;
}

uint64_t batch_list::pages() const {
    uint64_t sum = 0;
    for (const batch *b = first; b; b = b->next)
        sum += b->copies.count();
    return sum;
}

ty_status resolve_journal(const ty_storage &storage, const char *image_path, const char *given, char **resolved) {
    char *image = nullptr;
    if (ty_status status = resolve_path(storage, image_path, &image))
        return status;
    ty_status status = resolve_beside(storage, image, journal_suffix, given, resolved);
    const bool same = !status && strcmp(image, *resolved) == 0;
    free(image);
    if (!same)
        return status;
    return failure(TY_E_ARGUMENT, "use the heap's image as its journal")
        .at(*resolved)
        .remedy("give journal_path another path, or none");
}

ty_status image_is_same_file(const char *path, const ty_open_options &options, const char *other, const char **same) {
    char *image = nullptr, *journal = nullptr;
    const ty_storage &storage = *options.storage;
    ty_status status = resolve_path(storage, path, &image);
    if (!status)
        status = resolve_journal(storage, path, options.journal_path, &journal);
    if (!status)
        *same = !strcmp(image, other) ? "image" : !strcmp(journal, other) ? "journal" : nullptr;
    free(image);
    free(journal);
    return status;
}

ty_status read_batch(const storage_file &journal, const batch &b, const page_sink &sink) {
    io_buffer buffer;
    if (ty_status status = buffer.create(chunk_pages_max * page_bytes))
        return status;
    const os::array<page_copy> &items = b.copies;
    for (size_t i = 0; i < b.copies.count();) {
        size_t n = 1; // neighbours in the journal: the pages of one chunk
        while (i + n < b.copies.count() && n < chunk_pages_max &&
               items[i + n].offset == items[i].offset + n * page_bytes)
            ++n;
        if (ty_status status = journal.read(items[i].offset, buffer.data(), n * page_bytes))
            return status;
        for (size_t k = 0; k < n; ++k)
            if (checksum(buffer.data() + k * page_bytes, page_bytes) != items[i + k].sum)
                return failure(TY_E_DAMAGED, "read page %llu of epoch %llu: its checksum is wrong",
                               (unsigned long long)items[i + k].page, (unsigned long long)b.epoch)
                    .at(journal.path, items[i + k].offset)
                    .remedy("the disk changed the journal after it was written: restore from a copy");
        if (ty_status status = sink.pages(sink.context, &items[i], n, buffer.data()))
            return status;
        i += n;
    }
    return TY_OK;
}

} // namespace taiyen
