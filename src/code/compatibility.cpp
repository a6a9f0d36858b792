// The compatibility check: whether this process may open a heap. docs/design/code.md, "An open".
#include "code.hpp"

#include <cstdio>
#include <cstring>

namespace taiyen {
namespace {

constexpr const char *start_remedy =
    "start the same program by ty_pin_code (first thing in main) with the same libraries, LD_PRELOAD, LD_LIBRARY_PATH, "
    "size of /etc/ld.so.cache and ulimit -s; "
    "TY_CODE_IGNORED opens the heap for tools";

const char *name_of(ty_code code) {
    return code == TY_CODE_PINNED ? "pinned" : code == TY_CODE_MAPPED ? "mapped" : "without a record of code";
}

bool has_roots(ty_heap *heap) {
    bool found = false;
    auto note = [](const char *, void *, void *context) {
        *static_cast<bool *>(context) = true;
        return false;
    };
    static_cast<void>(heap_each_root(heap, note, &found));
    return found;
}

ty_status refuse_other_kind(ty_code wanted, ty_code is) {
    return failure(TY_E_MISMATCH, "open as %s a heap that was made %s", name_of(wanted), name_of(is))
        .remedy("leave the option code out, or make another heap");
}

// CD6: a pinned heap is opened only where its code lies as it did.
ty_status refuse_pinned(const object_match &object, bool compatible) {
    const char *name = object.before->name;
    if (object.what == match_kind::changed && !compatible)
        return failure(TY_E_MISMATCH, "open a pinned heap: %.96s is another build than wrote it", name)
            .remedy("use the build that wrote it, or, if the addresses in the heap mean the same in both, open it with "
                    "TY_CODE_COMPATIBLE once");
    return failure(TY_E_MISMATCH, "open a pinned heap: %.64s has moved from 0x%llx to 0x%llx", name,
                   (unsigned long long)object.before->load, (unsigned long long)object.now->load)
        .remedy("%s", start_remedy);
}

} // namespace

ty_status code_session::validate_unbound(ty_heap *heap) {
    const bool binds = wanted_ == TY_CODE_PINNED || wanted_ == TY_CODE_MAPPED;
    if (!binds)
        return TY_OK;
    if (wanted_ == TY_CODE_MAPPED && image_kind(heap) == TY_ARCHIVE)
        return failure(TY_E_UNSUPPORTED, "map the code of an archive heap: a crash would leave old and new words")
            .remedy("make it a snapshot heap, or use TY_CODE_PINNED");
    if (has_roots(heap))
        return refuse_other_kind(wanted_, TY_CODE_DEFAULT);
    if (reads_only())
        return TY_OK;
    if (ty_status status = persist_numbers(heap, wanted_))
        return status;
    return make_blocks(wanted_);
}

// Words that point into an object's old place, where another object lies now, are its addresses, or numbers.
ty_status code_session::check_what_was_there(ty_heap *heap, const os::array<code_number> &words) const {
    known_numbers known(heap, before_);
    for (const code_number &one : words) {
        if (known.has(reinterpret_cast<const uint64_t *>(static_cast<const char *>(heap_base(heap)) + one.offset)))
            continue;
        for (const object_match &object : matches_)
            if (object.what != match_kind::same && one.value >= object.before->begin && one.value < object.before->end)
                return failure(TY_E_MISMATCH,
                               "register code: where %.64s was, which words lead into, lies something else",
                               object.before->name)
                    .remedy("load it again before what is new, or free what leads into it");
    }
    return TY_OK;
}

// CD7, for objects at places where the record has nothing. Words that the record has as numbers stay numbers.
ty_status code_session::persist_numbers(ty_heap *heap, ty_code binding) {
    os::array<address_range> come;
    os::array<code_number> found, all;
    if (binding != TY_CODE_MAPPED)
        return TY_OK;
    for (const os::loaded_object &object : objects_)
        if (is_new(object))
            if (ty_status status = come.push({object.begin, object.end}))
                return status;
    if (ty_status status = find_numbers(heap, before_, come, &found))
        return status;
    if (ty_status status = check_what_was_there(heap, found))
        return status;
    if (found.count() == 0)
        return TY_OK;
    code_number *place = nullptr;
    if (ty_status status = all.extend(found.count() + before_.number_count, &place))
        return status;
    // A number of the record whose word has changed since does not count any more, and is listed only once.
    const auto sooner = [](const code_number &a, const code_number &b) { return a.offset < b.offset; };
    code_number *end = std::set_union(found.begin(), found.end(), before_.numbers,
                                      before_.numbers + before_.number_count, place, sooner);
    all.cut(size_t(end - place));
    return make_numbers_block(all, &numbers_block_);
}

ty_status code_session::make_blocks(ty_code binding) {
    if (ty_status status = make_objects_block(binding, objects_, &objects_block_))
        return status;
    if (binding != TY_CODE_MAPPED)
        return TY_OK;
    bool known = before_.symbols_head;
    for (const os::loaded_object &object : objects_)
        known = known && before_.table_of(build_of(object));
    return known ? TY_OK : make_symbols_block(objects_, before_, &symbols_block_);
}

// Whether the record matches what is loaded now.
bool code_session::knows_all() const {
    if (before_.count != objects_.count())
        return false;
    for (const object_match &object : matches_)
        if (object.what != match_kind::same)
            return false;
    return true;
}

// A text has 96 bytes for what happened and 256 for the rest, where the symbol's name may be long.
ty_status code_session::check_words() {
    const uint64_t lost = words_.lost + (wanted_ == TY_CODE_COMPATIBLE ? 0 : words_.unnamed);
    if (lost == 0)
        return TY_OK;
    const object_match &object = *words_.lost_object;
    const bool missing = object.what == match_kind::missing;
    const bool unknown = !missing && !before_.table_of(object.before->build);
    const bool replaced = translator_.is_replaced(words_.lost_word, object);
    char what[128];
    translator_.describe(words_.lost_word, object, what, sizeof what);
    return failure(TY_E_MISMATCH, "open a heap with %llu word%s of code that %s", (unsigned long long)lost,
                   plural(lost),
                   missing    ? "is not loaded"
                   : replaced ? "others replace"
                              : "the program has not any more")
        .remedy("%s; the first leads to %s, in the block of %zu bytes at %p",
                missing           ? "load it before ty_open (dlopen)"
                : words_.doubtful ? "use the same build, or, if it is no end of an array, TY_CODE_COMPATIBLE"
                : is_of_kernel(*object.before) ? "use the same kernel"
                : unknown ? "use the same build: of it no symbols are known, as its file was not to be read"
                : replaced
                    ? "use a build that has nothing of that name, nor a copy of it (-fPIC); load and preload the same "
                      "libraries, in the same order"
                : words_.lost != 0 ? "use a build that has it, by that name, once"
                                   : "use the same build, or, if these are no addresses to it, TY_CODE_COMPATIBLE",
                what, words_.lost_block.size_bytes, words_.lost_block.address);
}

ty_status code_session::validate_pinned() {
    const bool compatible = wanted_ == TY_CODE_COMPATIBLE;
    bool missing = false;
    for (object_match &object : matches_) {
        if (object.what != match_kind::same && is_of_kernel(*object.before))
            object.what =
                match_kind::missing; // irrelevant where no words point there: the program has no influence on it
        else if (object.what == match_kind::changed && compatible && object.now->load == object.before->load)
            object.what = match_kind::same; // the program vouches for it
        else if (object.what == match_kind::moved ||
                 (object.what == match_kind::changed && !fault("pinned_heap_opened_by_another_build")))
            return refuse_pinned(object, compatible);
        missing = missing || object.what == match_kind::missing;
    }
    if (missing) {
        if (ty_status status = translator_.create(before_, before_, matches_, objects_))
            return status;
        if (ty_status status = find_words(heap_, before_, translator_, compatible, &words_))
            return status;
        if (ty_status status = check_words())
            return status;
        if (ty_status status = check_history())
            return status;
    }
    return reads_only() || (knows_all() && !compatible) ? TY_OK : make_blocks(TY_CODE_PINNED);
}

// CD2: at low addresses a number cannot be distinguished from an address.
ty_status code_session::check_fixed() const {
    for (const object_match &object : matches_) {
        if (object.what == match_kind::same)
            continue;
        if (object.before->begin < low_end)
            return failure(TY_E_MISMATCH, "open a mapped heap: %.64s lay at a low address, and does not now",
                           object.before->name)
                .remedy("use the build that wrote it, as it was started then; link the program as a position-"
                        "independent one (-pie) for heaps that other builds are to open");
        if (object.now && object.now->begin < low_end)
            return failure(TY_E_MISMATCH, "open a mapped heap: %.64s lies at a low address now, as numbers do",
                           object.before->name)
                .remedy("start it as it was started before: not by valgrind, not linked with -no-pie");
    }
    return TY_OK;
}

// CD5: an archive heap's file does not change in one step.
ty_status code_session::check_one_step() const {
    if (reads_only() || words_.repoint.count() == 0 || image_kind(heap_) != TY_ARCHIVE)
        return TY_OK;
    return failure(TY_E_UNSUPPORTED, "repoint %zu word%s of an archive heap: a crash would leave old and new ones",
                   words_.repoint.count(), plural(words_.repoint.count()))
        .remedy("open it with the option kind TY_SNAPSHOT");
}

// CD8: an undo would put them back.
ty_status code_session::check_history() const {
    history_words found;
    if (reads_only())
        return TY_OK;
    if (ty_status status = find_in_history(heap_, matches_, translator_, &found); status || found.count == 0)
        return status;
    const bool missing = found.object->what == match_kind::missing, replaced = found.object->what == match_kind::same;
    return failure(TY_E_UNSUPPORTED, "open a heap whose undo history has %llu word%s of code that %s",
                   (unsigned long long)found.count, plural(found.count),
                   missing    ? "is not loaded"
                   : replaced ? "others replace"
                              : "has moved")
        .remedy("%s; or open the heap once with TY_CODE_IGNORED, and call ty_undo_detach with keep_history false; the "
                "first leads into %.64s",
                missing    ? "load it before ty_open (dlopen)"
                : replaced ? "use the build that wrote it"
                           : "start the program by ty_pin_code always",
                found.object->before->name);
}

ty_status code_session::validate_mapped() {
    if (mode_ == TY_OPEN_FOLLOW)
        return failure(TY_E_UNSUPPORTED, "follow a mapped heap: its words of code lead to where its writer has it")
            .remedy("TY_CODE_IGNORED follows it for programs that call nothing there; or pin its code (ty_pin_code)");
    if (knows_all())
        return TY_OK;
    if (ty_status status = check_fixed())
        return status;
    if (ty_status status = make_blocks(TY_CODE_MAPPED))
        return status;
    after_ = before_;
    if (symbols_block_.count())
        view_symbols(symbols_block_, &after_);
    if (ty_status status = translator_.create(before_, after_, matches_, objects_))
        return status;
    if (ty_status status = find_words(heap_, before_, translator_, wanted_ == TY_CODE_COMPATIBLE, &words_))
        return status;
    if (words_.numbers.count() || before_.number_count)
        if (ty_status status = make_numbers_block(words_.numbers, &numbers_block_))
            return status;
    if (ty_status status = check_words())
        return status;
    if (ty_status status = check_one_step())
        return status;
    return fault("history_not_searched_for_code") ? TY_OK : check_history();
}

// CD4: nothing in the files has changed yet.
ty_status code_session::validate(ty_heap *heap) {
    heap_ = heap;
    if (wanted_ == TY_CODE_IGNORED)
        return TY_OK;
    if (ty_status status = record_find(heap, &before_))
        return status;
    if (!before_.head && (wanted_ == TY_CODE_DEFAULT || wanted_ == TY_CODE_COMPATIBLE))
        return TY_OK;
    if (ty_status status = objects_of_process(&objects_))
        return status;
    if (!before_.head)
        return validate_unbound(heap);
    const auto binding = ty_code(before_.head->binding);
    if ((wanted_ == TY_CODE_PINNED || wanted_ == TY_CODE_MAPPED) && wanted_ != binding)
        return refuse_other_kind(wanted_, binding);
    if (ty_status status = match_objects(before_, objects_, &matches_))
        return status;
    return binding == TY_CODE_PINNED ? validate_pinned() : validate_mapped();
}

} // namespace taiyen
