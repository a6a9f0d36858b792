// What an open for writing stores in the heap: the record, and words repointed to where the code is now.
#include "code.hpp"

#include <cstdio>
#include <cstring>

namespace taiyen {
namespace {

// A block and its root. If it fits, it takes the place of the previous one: a heap may be full.
struct new_block {
    const os::array<char> &content;
    const char *root;
    const code_head *before;
    bool has_addresses; // of code: memory of the previous one, allocated again, may stay unwritten, and be scanned

    void *place_of_before(ty_heap *heap) const {
        ty_block block;
        const bool fits = before && heap_find_block(heap, before, &block) && block.size_bytes >= content.count();
        return fits ? const_cast<code_head *>(before) : nullptr;
    }
    void write(void *place) const { memcpy(place, content.begin(), content.count()); }
};

ty_status put(ty_heap *heap, const new_block &block) {
    if (block.content.count() == 0)
        return TY_OK;
    if (void *place = block.place_of_before(heap)) {
        block.write(place);
        return TY_OK;
    }
    void *place = heap_alloc(heap, block.content.count());
    if (!place)
        return TY_E_MEMORY;
    block.write(place);
    if (ty_status status = heap_root_set(heap, block.root, place); status || !block.before)
        return status;
    auto *before = const_cast<code_head *>(block.before);
    if (block.has_addresses)
        memset(static_cast<void *>(before), 0, before->bytes);
    return heap_free(before);
}

ty_status put(ty_heap *heap, ty_txn *txn, const new_block &block) {
    if (block.content.count() == 0)
        return TY_OK;
    if (void *place = block.place_of_before(heap)) {
        if (ty_status status = txn_declare(txn, place, block.content.count()))
            return status;
        block.write(place);
        return TY_OK;
    }
    void *place = txn_alloc(txn, block.content.count(), 0);
    if (!place)
        return TY_E_MEMORY;
    block.write(place);
    if (ty_status status = txn_root_set(txn, block.root, place); status || !block.before)
        return status;
    auto *before = const_cast<code_head *>(block.before);
    if (block.has_addresses) {
        if (ty_status status = txn_declare(txn, before, before->bytes))
            return status;
        memset(static_cast<void *>(before), 0, before->bytes);
    }
    return txn_free(txn, before);
}

ty_status repoint(ty_txn *txn, const os::array<repointing> &words) {
    for (const repointing &one : words) {
        if (ty_status status =
                fault("repointed_words_in_no_record") && txn ? TY_OK : txn_declare(txn, one.word, sizeof *one.word))
            return status;
        *one.word = one.value;
    }
    return TY_OK;
}

void add_text(ty_report &report, const char *text) {
    const size_t length = strlen(report.text);
    snprintf(report.text + length, sizeof report.text - length, "%s", text);
}

} // namespace

// CD5: words and record change in one transaction.
ty_status code_session::persist_in_transaction(ty_heap *heap) {
    ty_txn_options options = TY_TXN_OPTIONS_INIT;
    options.stores = TY_STORES_DECLARED;
    ty_txn *txn = nullptr;
    if (ty_status status = txn_begin(heap, options, &txn))
        return status;
    ty_status status = put(heap, txn, {symbols_block_, symbols_root_name, before_.symbols_head, false});
    if (!status)
        status = put(heap, txn, {numbers_block_, numbers_root_name, before_.numbers_head, true});
    if (!status)
        status = put(heap, txn, {objects_block_, code_root_name, before_.head, true});
    if (!status)
        status = repoint(txn, words_.repoint);
    if (!status && !(status = txn_commit(txn)))
        return TY_OK;
    const ty_error error = keep_error();
    if (txn_current(heap) == txn) // else the failed commit has ended it
        static_cast<void>(txn_rollback(txn));
    return report_again(error);
}

// CD5: words and record change in one step.
ty_status code_session::persist(ty_heap *heap) {
    if (changes_nothing())
        return TY_OK;
    if (image_kind(heap) == TY_TRANSACTIONAL)
        return persist_in_transaction(heap);
    if (ty_status status = put(heap, {symbols_block_, symbols_root_name, before_.symbols_head, false}))
        return status;
    if (ty_status status = put(heap, {numbers_block_, numbers_root_name, before_.numbers_head, true}))
        return status;
    if (ty_status status = put(heap, {objects_block_, code_root_name, before_.head, true}))
        return status;
    for (const repointing &one : words_.repoint)
        *one.word = one.value;
    return TY_OK;
}

ty_status code_session::persist_durably(ty_heap *heap) {
    if (changes_nothing())
        return TY_OK;
    if (ty_status status = persist(heap); status || image_kind(heap) == TY_TRANSACTIONAL)
        return status;
    uint64_t epoch = 0;
    if (ty_status status = txn_snapshot_start(heap, &epoch))
        return status;
    return txn_snapshot_wait(heap, epoch);
}

// An open for reading has private memory, whose pages are protected against stores.
ty_status code_session::repoint_private() {
    char *open = nullptr;
    ty_status status = TY_OK;
    for (const repointing &one : words_.repoint) {
        char *page = reinterpret_cast<char *>(uintptr_t(one.word) / os::page_bytes * os::page_bytes);
        if (page != open) {
            if (open && (status = os::protect(open, os::page_bytes, false)))
                return status;
            if ((status = os::protect(page, os::page_bytes, true)))
                return status;
            open = page;
        }
        *one.word = one.value;
    }
    return open ? os::protect(open, os::page_bytes, false) : TY_OK;
}

namespace {

#if defined(TAIYEN_DEBUG)
constexpr bool looks_always = true;
#else
constexpr bool looks_always = false;
#endif

// CD9: reports words of code in a heap without a record.
void add_faults(ty_heap *heap, ty_report &report) {
    auto count_one = [](const ty_code_word *, void *context) {
        ++*static_cast<uint64_t *>(context);
        return true;
    };
    uint64_t count = 0;
    if (looks_always ? each_code_word(heap, count_one, &count) : count_near_code_words(heap, &count))
        return; // damaged: a call that uses the block reports it
    report.lost_code_words = count;
    if (count == 0)
        return;
    char text[96];
    snprintf(text, sizeof text, "; %llu word%s lead into code of a process that had it open: see the option code",
             (unsigned long long)count, plural(count));
    add_text(report, text);
}

} // namespace

void code_session::fill_report(ty_heap *heap, ty_report &report) const {
    report.code = code_of(heap);
    report.code_words = words_.repoint.count();
    if (report.code == TY_CODE_DEFAULT && !report.created)
        add_faults(heap, report);
    char text[64];
    if (report.code_words) {
        snprintf(text, sizeof text, "; %llu word%s repointed to where the code is now",
                 (unsigned long long)report.code_words, plural(report.code_words));
        add_text(report, text);
    }
}

ty_status code_session::finish(ty_heap **heap, ty_report *report) {
    const ty_status status = reads_only() ? repoint_private() : persist_durably(*heap);
    if (status) {
        const ty_error error = keep_error();
        static_cast<void>(txn_discard(*heap));
        *heap = nullptr;
        return report_again(error, status);
    }
    if (report)
        fill_report(*heap, *report);
    return TY_OK;
}

// CD10.
ty_status code_session::repoint_again(ty_heap *heap) {
    const os::lock_guard alone(image_code_record_lock(heap));
    const ty_status status = validate(heap);
    return status ? status : persist(heap);
}

namespace {

// As it is in the record, without what only the running process has.
os::loaded_object kept_object(const code_object &before) {
    os::loaded_object object{};
    object.load = before.load;
    object.begin = before.begin;
    object.end = before.end;
    object.build_bytes = uint32_t(before.build.count);
    object.program = is_program(before);
    object.of_kernel = is_of_kernel(before);
    object.gone = true;
    memcpy(object.build, before.build.bytes, sizeof object.build);
    memcpy(object.name, before.name, sizeof object.name);
    return object;
}

bool overlap(const os::loaded_object &a, const os::loaded_object &b) {
    return a.begin < b.end && b.begin < a.end;
}

} // namespace

// Whether the record does not have it in that place.
bool code_session::is_new(const os::loaded_object &object) const {
    return std::none_of(matches_.begin(), matches_.end(),
                        [&](const object_match &one) { return one.what == match_kind::same && one.now == &object; });
}

// Objects that are gone stay in the record: words may point into them, and they may be loaded again. But not where
// another object lies now.
ty_status code_session::register_objects(ty_heap *heap) {
    if (image_kind(heap) == TY_TRANSACTIONAL && // before it waits for threads that wait for this thread's transaction
        !fault("code_registered_within_a_transaction"))
        if (ty_status status = txn_begin_check(heap))
            return status;
    const os::lock_guard alone(image_code_record_lock(heap)); // what is read here is freed by the next registration
    if (ty_status status = record_find(heap, &before_); status || !before_.head)
        return status;
    if (ty_status status = objects_of_process(&objects_))
        return status;
    if (ty_status status = match_objects(before_, objects_, &matches_))
        return status;
    const auto binding = ty_code(before_.head->binding);
    const size_t loaded = objects_.count();
    if (std::none_of(objects_.begin(), objects_.end(), [this](const auto &one) { return is_new(one); }))
        return TY_OK;
    if (ty_status status = persist_numbers(heap, binding))
        return status;
    for (const object_match &object : matches_) {
        const os::loaded_object kept = kept_object(*object.before);
        bool free = true;
        for (size_t n = 0; n < loaded; ++n)
            free = free && !overlap(objects_[n], kept);
        if (free)
            if (ty_status status = objects_.push(kept))
                return status;
    }
    if (ty_status status = make_blocks(binding))
        return status;
    return persist_durably(heap);
}

// CD11.
ty_status check_words_as_recorded(ty_heap *heap, const char *call) {
    if (heap_image_of(heap) == nullptr || !image_is_read_only(heap) || image_code_option(heap) == TY_CODE_IGNORED ||
        code_of(heap) != TY_CODE_MAPPED || fault("copy_of_words_that_were_repointed"))
        return TY_OK;
    return failure(TY_E_UNSUPPORTED, "%s that is open for reading, and whose addresses of code were repointed", call)
        .remedy("open it with the option code TY_CODE_IGNORED for that, or use `taiyen branch` or `taiyen pack`");
}

ty_code code_of(ty_heap *heap) {
    const void *address = heap_root(heap, code_root_name);
    ty_block block;
    if (!address || !heap_find_block(heap, address, &block) || block.size_bytes < sizeof(code_head))
        return TY_CODE_DEFAULT;
    const auto *head = static_cast<const code_head *>(address);
    return head->magic == code_magic && head->version == code_version ? ty_code(head->binding) : TY_CODE_DEFAULT;
}

} // namespace taiyen
