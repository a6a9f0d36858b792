// New heaps. The image is created under another name and renamed once it is whole (I6).
#include "../files/files.hpp"
#include "open_steps.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

constexpr uintptr_t base_alignment = uintptr_t{1} << 30; // distance between places for new heaps
constexpr int place_attempts = 64;

// Whether the heap's name is taken: checked again once PATH-creating is locked, since its previous owner may have
// finished meanwhile.
ty_status check_name_free(const image &im) {
    storage_file probe{im.backing.storage};
    ty_status status = probe.open(im.image_path, 0);
    if (status == TY_E_NOT_FOUND)
        return TY_OK;
    if (status)
        return status;
    probe.close();
    return failure(TY_E_EXISTS, "create a heap: there is a file of that name").at(im.image_path).remedy("open it");
}

// What has such a name may be taken for what a crash left of a creation, and removed.
ty_status check_name_possible(const image &im) {
    const size_t length = strlen(im.image_path), end = strlen(creation_suffix);
    if (length < end || strcmp(im.image_path + length - end, creation_suffix) != 0)
        return TY_OK;
    return failure(TY_E_ARGUMENT, "create a heap with a name that ends in %s", creation_suffix)
        .at(im.image_path)
        .remedy("files that are being made have such names: use another one");
}

// Maps the new image: at the base asked for, or at a place derived from the identity.
ty_status map_new(image &im, void *wanted_base) {
    image_header &header = im.header.current;
    uint32_t flags = TY_MAP_WRITE | (im.kind == TY_ARCHIVE ? TY_MAP_SHARED : 0);
    if (wanted_base) {
        header.base = uintptr_t(wanted_base);
        return im.backing.map(wanted_base, header.limit_bytes, image_pages_offset, flags);
    }
    os::address_zone zone = os::persistent_zone();
    if (header.limit_bytes > zone.high - zone.low)
        return failure(TY_E_ADDRESS, "find %llu bytes of address space", (unsigned long long)header.limit_bytes)
            .remedy("use a smaller limit");
    uint64_t places = (zone.high - zone.low - header.limit_bytes) / base_alignment + 1;
    ty_status status = TY_E_ADDRESS;
    for (uint64_t attempt = 0; status == TY_E_ADDRESS && attempt < place_attempts; ++attempt) {
        uint64_t place = checksum(header.identity, sizeof header.identity, attempt) % places;
        header.base = zone.low + place * base_alignment;
        status = im.backing.map(reinterpret_cast<void *>(header.base), header.limit_bytes, image_pages_offset, flags);
    }
    return status;
}

// The pages that formatting touched are written to their places directly: there is nothing to protect yet.
ty_status write_formatted_pages(const image &im) {
    page_sums sums;
    if (ty_status status = sums.start(im.backing, im.header.current.sums_offset))
        return status;
    io_buffer buffer;
    if (ty_status status = buffer.create(heap_header_pages * page_bytes))
        return status;
    memcpy(buffer.data(), im.base, buffer.bytes());
    if (ty_status status = im.backing.write(image_pages_offset, buffer.data(), buffer.bytes()))
        return status;
    for (uint64_t page = 0; page < heap_header_pages; ++page)
        if (ty_status status = sums.set(page, checksum(buffer.data() + page * page_bytes, page_bytes)))
            return status;
    return sums.write();
}

ty_status format_heap(image &im, const ty_open_options &options) {
    image_header &header = im.header.current;
    im.base = reinterpret_cast<char *>(header.base);
    im.mapped_bytes = header.limit_bytes;
    note_file_system(im);
    heap_owner owner = im.kind == TY_ARCHIVE ? archive_owner(im) : heap_owner{};
    if (ty_status status = fill_holes(im, 0, heap_header_pages))
        return status;
    if (ty_status status = heap_format(im.base, header.limit_bytes, options.classes, owner))
        return status;
    return im.kind == TY_ARCHIVE ? im.backing.write_back(im.base, im.mapped_bytes) : write_formatted_pages(im);
}

bool journal_exists(const image &im) {
    storage_file probe{im.journal.storage};
    ty_status status = probe.open(im.journal_path, 0);
    probe.close();
    return status != TY_E_NOT_FOUND;
}

} // namespace

// N4: the journal gets the access rights of the image.
ty_status create_journal(image &im, bool *made) {
    *made = false;
    im.journal.close(); // one that is ignored
    const bool replaces = journal_exists(im);
    char *creation_path = path_with(im.journal_path, creation_suffix);
    if (!creation_path)
        return TY_E_MEMORY;
    ty_status status =
        im.journal.open_for_creation(creation_path, fault("journal_open_to_all") ? nullptr : &im.backing);
    if (!status) {
        if (!(status = write_first_header(im.journal, im.header.current, &im.head)) && !(status = im.journal.flush()))
            status = im.journal.rename_from(creation_path, im.journal_path);
        if (status)
            im.journal.remove_quietly(creation_path);
    }
    if (status)
        name_final_file(*im.journal.storage, creation_path, im.journal_path);
    free(creation_path);
    im.journal.path = im.journal_path;
    if (status)
        im.journal.close();
    *made = !status && !replaces;
    return status;
}

namespace {

// Its heap may need the journal even if it is empty: a heap that died is not opened without it.
ty_status refuse_other_heap(const image &im, const journal_trace &trace) {
    char identity[2 * sizeof trace.heap_identity + 1];
    for (size_t i = 0; i < sizeof trace.heap_identity; ++i)
        snprintf(identity + 2 * i, 3, "%02x", trace.heap_identity[i]);
    if (im.default_journal_name)
        return failure(TY_E_MISMATCH, "make a journal: one is there, of a heap without an image, %s", identity)
            .at(im.journal_path)
            .remedy("put the image that belongs to it back, or move the journal away");
    return failure(TY_E_MISMATCH, "make a journal: there is one of another heap, %s", identity)
        .at(im.journal_path)
        .remedy("give each heap a journal of its own with journal_path; move this one away only if its heap is gone");
}

} // namespace

// I7: an open that is refused has changed nothing. A creation that died may leave a journal, which looks like that of a
//     heap that died before its first batch. It is recognized by its name, beside a missing image.
ty_status check_journal_place(image &im) {
    ty_status status = im.journal.open(im.journal_path, TY_FILE_WRITE);
    if (status == TY_E_NOT_FOUND)
        return TY_OK;
    journal_trace trace;
    const bool log_is_empty =
        im.kind == TY_TRANSACTIONAL || fault("creation_takes_the_journal_of_a_heap"); // or refused by now
    if (status || (status = im.journal.lock(true)) || (status = read_journal_trace(im.journal, log_is_empty, &trace)) ||
        !trace.found)
        return status;
    const uint8_t *identity = im.header.current.identity;
    const bool ours = !memcmp(trace.heap_identity, identity, sizeof trace.heap_identity);
    if (trace.used || (!ours && !im.default_journal_name && !fault("journal_of_another_heap_replaced")))
        return refuse_other_heap(im, trace);
    return TY_OK;
}

void remove_files(image &im) {
    im.backing.remove_quietly(im.image_path); // first: the other files then belong to no heap
    if (has_journal(im.kind) && im.journal.is_open())
        im.journal.remove_quietly(im.journal_path);
}

namespace {

// Called first of all: an existing log may be another heap's, whose journal does not mention it.
ty_status check_log(image &im, const image_open_hook *hook) {
    if (im.kind != TY_TRANSACTIONAL)
        return TY_OK;
    image_log_choice log{};
    if (hook)
        if (ty_status status = hook->check(hook->context, log_with(im, {}), true, &log))
            return status;
    if (!log.identity)
        return failure(TY_E_UNSUPPORTED, "create a heap with a log, without a log")
            .at(im.image_path)
            .remedy("create it through the transaction layer");
    set_log(im.header.current, log);
    return TY_OK;
}

// The log of the layer above is created last before the header: on any failure or crash before the image has its name,
// it is a log of no heap, and empty.
ty_status make_log(const image &im, const image_open_hook *hook) {
    return im.kind == TY_TRANSACTIONAL ? hook->make(hook->context) : TY_OK;
}

} // namespace

namespace {

void fill_header(image &im, const ty_open_options &options) {
    image_header &header = im.header.current;
    header.magic = image_magic;
    header.version = format_version;
    header.page_bytes = page_bytes;
    os::random_bytes(header.identity, sizeof header.identity);
    header.open.number = 1;
    os::random_bytes(&header.open.random, sizeof header.open.random);
    header.limit_bytes = options.limit_bytes;
    header.kind = uint32_t(im.kind);
    header.state = uint32_t(image_state::closed);
    header.classes = uint32_t(options.classes);
    header.created_unix_s = os::unix_time_s();
    header.holds = im.backing.can_be_held() ? holds_heeded : 0;
    header.journal_next = journal_front;
    header.sums_offset = image_pages_offset + header.limit_bytes;
    os::random_bytes(&header.nonce, sizeof header.nonce);
}

ty_status format_new(void *context, image &im) {
    const auto &options = *static_cast<const ty_open_options *>(context);
    const ty_status status = map_new(im, options.base);
    return status ? status : format_heap(im, options);
}

} // namespace

ty_status create_files(image &im, ty_open_options &options, const image_open_hook *hook) {
    return create_files(im, options, hook, {&options, format_new, nullptr});
}

// I26: its name comes last.
ty_status create_files(image &im, const ty_open_options &options, const image_open_hook *hook,
                       const new_content &content) {
    image_header &header = im.header.current;
    if (ty_status status = check_name_possible(im))
        return status;
    fill_header(im, options);
    char *creation_path = path_with(im.image_path, creation_suffix);
    if (!creation_path)
        return TY_E_MEMORY;
    ty_status status = im.backing.open_for_creation(creation_path, content.like);
    bool made = !status, made_journal = false;
    if (!status && !(status = check_name_free(im))) {
        if (!(status = im.backing.set_size(image_file_bytes(header.limit_bytes))) &&
            !(status = content.write(content.context, im)) && !(status = flush_image(im.backing, im.header)) &&
            !(status = check_log(im, hook)) && !(status = has_journal(im.kind) ? durable_check_place(im) : TY_OK) &&
            !(status = has_journal(im.kind) ? check_journal_place(im) : TY_OK) &&
            !(status = has_journal(im.kind) ? create_journal(im, &made_journal) : TY_OK) &&
            !(status = make_log(im, hook)) &&
            !(status = fault("image_named_before_it_is_whole") ? TY_OK : write_header_twice(im.backing, im.header)))
            status = im.backing.rename_from(creation_path, im.image_path);
        if (!status && fault("image_named_before_it_is_whole"))
            status = write_header_twice(im.backing, im.header);
        if (status && made_journal) // not one that existed before
            im.journal.remove_quietly(im.journal_path);
        im.backing.path = im.image_path;
    }
    if (status && made)
        im.backing.remove_quietly(creation_path);
    if (status)
        name_final_file(*im.backing.storage, creation_path, im.image_path);
    free(creation_path);
    return status;
}

} // namespace taiyen
