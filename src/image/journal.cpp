#include "journal.hpp"

#include "checksum.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen {

ty_status page_copies::reserve(size_t more) {
    if (count + more <= capacity)
        return TY_OK;
    size_t wanted = count + more > capacity * 2 ? count + more : capacity * 2;
    void *grown = realloc(items, wanted * sizeof *items);
    if (!grown)
        return failure(TY_E_MEMORY, "keep a list of %zu pages", wanted);
    items = static_cast<page_copy *>(grown);
    capacity = wanted;
    return TY_OK;
}

void page_copies::release() {
    free(items);
    *this = {};
}

batch *batch_create() {
    void *memory = calloc(1, sizeof(batch));
    if (!memory)
        (void)ty_status(failure(TY_E_MEMORY, "note a batch of the journal"));
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
        sum += b->copies.count;
    return sum;
}

ty_status write_journal_header(const storage_file &journal, const uint8_t identity[16]) {
    io_buffer buffer;
    if (ty_status status = buffer.create(page_bytes))
        return status;
    journal_header_1 header{};
    header.magic = journal_magic_1;
    header.version = image_version_1;
    memcpy(header.identity, identity, sizeof header.identity);
    header.checksum = header_checksum(header);
    memcpy(buffer.data(), &header, sizeof header);
    return journal.write(0, buffer.data(), page_bytes);
}

ty_status check_journal_header(const storage_file &journal, const uint8_t identity[16]) {
    uint64_t size = 0;
    if (ty_status status = journal.get_size(&size))
        return status;
    if (size < page_bytes)
        return failure(TY_E_DAMAGED, "use a journal of %llu bytes: it was truncated", (unsigned long long)size)
            .at(journal.path, size)
            .remedy("restore it from a copy that was made together with the image");
    io_buffer buffer;
    if (ty_status status = buffer.create(page_bytes))
        return status;
    if (ty_status status = journal.read(0, buffer.data(), page_bytes))
        return status;
    journal_header_1 header;
    memcpy(&header, buffer.data(), sizeof header);
    if (header.magic != journal_magic_1)
        return failure(TY_E_FORMAT, "use a file that is not a Taiyen journal")
            .at(journal.path, 0)
            .remedy("check the path");
    if (header.checksum != header_checksum(header))
        return failure(TY_E_DAMAGED, "use a journal with a damaged header")
            .at(journal.path, 0)
            .remedy("restore it from a copy that was made together with the image");
    if (header.version != image_version_1)
        return failure(TY_E_FORMAT, "use a journal of format version %u", header.version)
            .at(journal.path, 0)
            .remedy("use another version of the library");
    if (memcmp(header.identity, identity, sizeof header.identity))
        return failure(TY_E_MISMATCH, "use the journal of another heap")
            .at(journal.path, 0)
            .remedy("put the journal that belongs to the image in its place");
    return TY_OK;
}

ty_status journal_is_empty(const storage_file &journal, bool *empty) {
    *empty = true;
    uint64_t size = 0;
    if (ty_status status = journal.get_size(&size))
        return status;
    if (size < journal_front_1 + page_bytes)
        return TY_OK;
    io_buffer buffer;
    if (ty_status status = buffer.create(page_bytes))
        return status;
    if (ty_status status = journal.read(journal_front_1, buffer.data(), page_bytes))
        return status;
    uint64_t magic;
    memcpy(&magic, buffer.data(), sizeof magic);
    *empty = magic != chunk_magic_1;
    return TY_OK;
}

ty_status read_batch(const storage_file &journal, const batch &b, const page_sink &sink) {
    io_buffer buffer;
    if (ty_status status = buffer.create(chunk_pages_1 * page_bytes))
        return status;
    const page_copy *items = b.copies.items;
    for (size_t i = 0; i < b.copies.count;) {
        size_t n = 1; // neighbours in the journal: the pages of one chunk
        while (i + n < b.copies.count && n < chunk_pages_1 && items[i + n].offset == items[i].offset + n * page_bytes)
            ++n;
        if (ty_status status = journal.read(items[i].offset, buffer.data(), n * page_bytes))
            return status;
        for (size_t k = 0; k < n; ++k)
            if (checksum(buffer.data() + k * page_bytes, page_bytes) != items[i + k].sum)
                return failure(TY_E_DAMAGED, "read page %llu of epoch %llu: its checksum is wrong",
                               (unsigned long long)items[i + k].page, (unsigned long long)b.epoch)
                    .at(journal.path, items[i + k].offset)
                    .remedy("the disk changed the journal after it was written: restore from a copy");
        if (ty_status status = sink.pages(sink.context, items + i, n, buffer.data()))
            return status;
        i += n;
    }
    return TY_OK;
}

} // namespace taiyen
