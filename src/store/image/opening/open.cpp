// Opening: reading the files, checking which of them belong to the heap, and mapping its memory. Nothing is written
// before all of it is known to be sound (I7).
#include "../files/files.hpp"
#include "../snapshots/snapshots.hpp"
#include "follow.hpp"
#include "open_steps.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace taiyen {

constexpr uint64_t journal_limit_default = uint64_t{1} << 30;

ty_status image_create(const char *path, const ty_open_options &options, image **made) {
    void *memory = nullptr; // not from malloc: it holds heap addresses that are in no block (M11)
    if (os::map_memory(sizeof(image), os::memory_hint::none, &memory))
        return failure(TY_E_MEMORY, "open a heap").at(path).remedy("free memory, or raise the process's limits");
    image *im = new (memory) image{};
    im->purge = image_purge;
    im->image_path = path_with(path, "");
    ty_status status = im->image_path ? TY_OK : TY_E_MEMORY;
    if (!status)
        status = resolve_journal(*options.storage, path, options.journal_path, &im->journal_path);
    im->backing = {options.storage, nullptr, im->image_path};
    im->journal = {options.storage, nullptr, im->journal_path};
    im->read_only = opens_for_reading(options.mode);
    im->follows = options.mode == TY_OPEN_FOLLOW;
    im->shares = im->follows && options.shared;
    im->default_journal_name = !options.journal_path;
    im->background = options.background;
    im->code = options.code;
    os::random_bytes(&im->session, sizeof im->session);
    im->journal_limit_bytes = options.journal_limit_bytes;
    im->copies.bound_bytes = options.memory_bytes;
    if (status)
        image_teardown(im);
    else
        *made = im;
    return status;
}

namespace {

ty_open_options with_defaults(const ty_open_options &given) {
    ty_open_options options = given;
    if (!options.storage)
        options.storage = ty_storage_default();
    if (!options.staging_bytes || !options.journal_limit_bytes) {
        uint64_t memory = std::min<uint64_t>(memory_for(options.memory_bytes), os::reserve_advised_max());
        if (!options.staging_bytes)
            options.staging_bytes = memory / 4;
        if (!options.journal_limit_bytes) // an open after a crash has it in memory
            options.journal_limit_bytes = std::min(journal_limit_default, memory / 4);
    }
    if (options.limit_bytes)
        options.limit_bytes = (options.limit_bytes + heap_granule_bytes - 1) / heap_granule_bytes * heap_granule_bytes;
    return options;
}

ty_recovery_state classify_files(const image_header &header, const journal_scan &scan, bool copied) {
    if (header.state == uint32_t(image_state::closed))
        return scan.batches.count ? TY_RECOVERY_CLOSED_BATCHES : TY_RECOVERY_CLOSED;
    if (copied)
        return TY_RECOVERY_IN_USE;
    if (scan.discarded)
        return TY_RECOVERY_CRASHED_WRITING;
    return scan.batches.count ? TY_RECOVERY_CRASHED_BATCHES : TY_RECOVERY_CRASHED;
}

// Adds a journal to an archive heap. A crash in between leaves an archive heap and an empty journal.
ty_status attach_journal(image &im, image_opening &state) {
    image_header &header = im.header.current;
    bool made = false;
    if (ty_status status = create_journal(im, &made))
        return status;
    header.kind = uint32_t(TY_SNAPSHOT);
    header.journal_next = journal_front;
    set_log(header, state.log);
    if (ty_status status = write_header_twice(im.backing, im.header))
        return status;
    state.report.attached = true;
    return TY_OK;
}

// MK10: the heap will be as at the mark. What journal and log hold does not matter.
ty_status choose_mark(image &im, image_opening &state) {
    if (ty_status status = durable_choose_view(im, state.options.mark))
        return status;
    state.journal.scan.batches.clear();
    set_log(im.header.current, {});
    im.kind = TY_SNAPSHOT;
    return TY_OK;
}

// Opens the files of an existing heap, from its name to its memory.
ty_status open_files(image &im, image_opening &state) {
    if (ty_status status = im.backing.open(im.image_path, im.read_only ? 0 : TY_FILE_WRITE))
        return status;
    image_header &header = im.header.current;
    if (ty_status status = im.follows ? follow_stand(im, &header) : lock_image(im))
        return status;
    if (!im.follows)
        if (ty_status status = read_header(im.backing, &header, &state.report.header_repaired, &state.other_log))
            return status;
    if (ty_status status = im.follows ? follow_check(im, header) : check_features(im))
        return status;
    im.kind = ty_kind(header.kind);
    if (ty_status status = read_code_places(im.backing, &im.header.places))
        return status;
    im.code_before = im.header.places;
    bool closed = header.state == uint32_t(image_state::closed);
    state.report.maybe_inconsistent = im.kind == TY_ARCHIVE && !closed;
    const journal_use use = im.follows ? journal_use::look : im.read_only ? journal_use::read : journal_use::write;
    if (ty_status status = has_journal(im.kind) ? read_journal(im.journal, im.journal_path, use, header, &state.journal)
                                                : check_no_journal(*im.journal.storage, im.journal_path, header))
        return status;
    if (ty_status status = im.read_only ? TY_OK : check_counters(im, state))
        return status;
    im.head = state.journal.head;
    im.sums_may_be_torn = !closed;
    if (ty_status status = im.follows ? TY_OK : durable_open(im)) // marks are the writer's
        return status;
    if (ty_status status = state.options.mark != nullptr ? choose_mark(im, state) : TY_OK)
        return status;
    state.report.found = classify_files(header, state.journal.scan, im.follows || state.options.mode == TY_OPEN_COPY);
    state.report.image_epoch = header.epoch;
    return TY_OK;
}

ty_status check_with_hook(const image &im, image_opening &state, image_log log) {
    log.service_word = state.service_word;
    log.heap = im.heap;
    return state.hook->check(state.hook->context, log, false, &state.log);
}

// A heap with a log is opened by a layer that knows logs, once the heap's own files are known to be sound.
ty_status ask_for_log(const image &im, image_opening &state) {
    const image_header &header = im.header.current;
    state.log.identity = header.log_identity;
    if (state.hook)
        return check_with_hook(im, state, log_with(im, state.journal.scan.batches));
    if (header.kind != TY_TRANSACTIONAL)
        return TY_OK;
    return failure(TY_E_UNSUPPORTED, "open a heap that has a log as one that has none")
        .at(im.image_path)
        .remedy("open it through the transaction layer");
}

// A detach died between its two headers: the older one still names a log, and the newer one may not be durable. A power
// cut must not leave the older one when another log has replaced the one that it names.
ty_status finish_detach(image &im, const image_opening &state) {
    if (ty_status status = make_journal_durable(im, state.journal.scan.batches))
        return status;
    if (ty_status status = make_image_durable(im, false)) // the older one was read
        return status;
    return write_header_twice(im.backing, im.header);
}

bool detach_unfinished(const image &im, const image_opening &state) {
    return state.hook && state.other_log && !im.header.current.log_identity && state.log.identity;
}

// Creates the log that the header is to name. Except for an unfinished detach, this precedes any other write: where the
// log was missing, a header that does not need it must not be torn first, as the other header may need it.
ty_status make_log(image &im, const image_opening &state) {
    if (detach_unfinished(im, state))
        if (ty_status status = finish_detach(im, state))
            return status;
    return state.hook ? state.hook->make(state.hook->context) : TY_OK;
}

// Whether the heap's pages already lie in the image where they will be after the open.
bool pages_stay(const image &im, uint64_t limit_bytes) {
    return im.read_only || (limit_bytes == im.header.current.limit_bytes && im.header.current.clear_bytes == 0);
}

// Takes the heap's memory, or checks that it can be taken. Reading a log needs it.
ty_status check_memory(image &im, image_opening &state, uint64_t limit_bytes, bool checkpoints) {
    if (state.hook && state.hook->again && !pages_stay(im, limit_bytes))
        return failure(TY_E_MISMATCH, "write to a heap whose limit is being raised").at(im.image_path);
    const bool may_take_log = state.options.kind == TY_TRANSACTIONAL && im.header.current.kind != TY_TRANSACTIONAL;
    if (pages_stay(im, limit_bytes) && !checkpoints) {
        if (ty_status status = take_memory(im, state))
            return status;
        if (may_take_log)
            read_service_word(im.heap, state);
        return TY_OK;
    }
    if (ty_status status = fault("address_taken_after_the_first_write") ? TY_OK : probe_address(im, limit_bytes))
        return status;
    return probe_heap(im, state);
}

// Threads and staging memory, before any file is changed (I7).
ty_status make_ready(image &im, const image_opening &state) {
    if (ty_status status = im.fork.start())
        return status;
    if (ty_status status = im.read_only ? TY_OK : im.overwritten.start())
        return status;
    if (im.read_only || !has_journal(im.kind))
        return TY_OK;
    if (ty_status status = im.writer.ring.create(state.options.staging_bytes))
        return status;
    // Once a process, and before its first thread if possible: with several threads, the kernel takes 10 ms to register
    // it.
    static_cast<void>(os::process_barrier_available());
    return worker_start(im); // they have nothing to do before the heap is open
}

// The layer above takes what it needs, as early as possible: its part of the memory must be in place. Then it may
// refuse the heap.
ty_status start_client(image &im, image_opening &state) {
    const bool grows = im.heap && !im.read_only && heap_limit(im.heap) != im.mapped_bytes;
    if (!im.heap || grows)
        return TY_OK;
    if (state.log.identity && !state.client_started) {
        state.client_started = true;
        if (ty_status status = state.hook->start(state.hook->context, im.heap))
            return status;
    }
    const bool late = fault("code_checked_after_the_first_write") && !im.read_only && !state.begun;
    if (!state.hook || !state.hook->validate || state.validated || late)
        return TY_OK;
    state.validated = true;
    return state.hook->validate(state.hook->context, im.heap);
}

// Changes what the header says: a log or none.
ty_status change_header(image &im, image_opening &state) {
    image_header &header = im.header.current;
    if (header.log_identity == state.log.identity)
        return TY_OK;
    im.log_is_new = state.log.identity != 0;
    set_log(header, state.log);
    return write_header_twice(im.backing, im.header);
}

// A missing journal or log is created before anything else: the older header may need one, and the newer one is
// unflushed while it is written again. The newer one says that none is needed; until a file exists, it must stay (I3).
// A recreated log is not the one that the older header names: then that header is written first (change_header).
ty_status make_files_durable(image &im, image_opening &state) {
    const uint64_t named_log = im.header.current.log_identity;
    const bool replaces_log = named_log && state.log.identity && named_log != state.log.identity;
    bool made = false;
    if (ty_status status = make_name_durable(im))
        return status;
    if ((replaces_log && !fault("log_made_anew_beside_an_unflushed_header")) ||
        (state.journal.missing && !fault("journal_made_anew_beside_an_unflushed_header")))
        if (ty_status status = flush_image(im.backing, im.header))
            return status;
    if (state.journal.missing)
        if (ty_status status = create_journal(im, &made))
            return status;
    state.report.journal_recreated = state.journal.missing;
    ty_status status = make_log(im, state);
    if (!status)
        status = start_client(im, state);
    if (status) {
        if (made && !detach_unfinished(im, state)) // nothing else was written yet (I7)
            im.journal.remove_quietly(im.journal_path);
        return status;
    }
    if ((status = make_journal_durable(im, state.journal.scan.batches)))
        return status;
    if (!replaces_log && (status = make_image_durable(im, state.report.header_repaired)))
        return status;
    if ((status = durable_make_durable(im)))
        return status;
    return renew_batches(im, state.journal.scan.batches);
}

// Everything that refuses the open does so here, if possible: nothing is changed yet (I7).
ty_status check_all(image &im, image_opening &state, uint64_t limit_bytes, bool attaches, bool checkpoints) {
    if (im.read_only)
        if (ty_status status = check_fits_reader(im, state))
            return status;
    if (attaches)
        if (ty_status status = check_attach(im))
            return status;
    if (ty_status status = make_ready(im, state))
        return status;
    if (state.hook && state.hook->again)
        if (ty_status status = state.hook->lock_log(state.hook->context))
            return status;
    if (ty_status status = check_memory(im, state, limit_bytes, checkpoints))
        return status;
    return ask_for_log(im, state);
}

// Changes the files as the open asks, or completes changes that an earlier open left unfinished.
ty_status change_files(image &im, image_opening &state) {
    uint64_t limit_bytes = std::max(state.options.limit_bytes, im.header.current.limit_bytes);
    bool attaches = im.kind == TY_ARCHIVE && has_journal(state.options.kind) && !im.read_only;
    bool checkpoints = exceeds_memory(state) && !im.read_only && !(state.hook && state.hook->again);
    if (ty_status status = durable_check_growth(im, limit_bytes))
        return status;
    if (attaches)
        im.kind = TY_SNAPSHOT; // for its memory: the header follows
    if (fault("files_changed_before_all_are_checked") && !im.read_only)
        if (ty_status status = make_image_durable(im, state.report.header_repaired))
            return status;
    if (ty_status status = check_all(im, state, limit_bytes, attaches, checkpoints); status || im.read_only)
        return status;
    if (im.journal.is_open() && !attaches)
        if (ty_status status = im.journal.protect(im.backing)) // N4: the image's permissions may have changed
            return status;
    if (ty_status status = make_files_durable(im, state))
        return status;
    if (ty_status status = finish_clearing(im))
        return status;
    if (attaches)
        if (ty_status status = attach_journal(im, state))
            return status;
    if (ty_status status = change_header(im, state))
        return status;
    im.kind = ty_kind(im.header.current.kind);
    if (checkpoints)
        if (ty_status status = checkpoint_early(im, state))
            return status;
    if (limit_bytes > im.header.current.limit_bytes) {
        if (ty_status status = grow_files(im, limit_bytes))
            return status;
        state.report.grown = true;
    }
    return TY_OK;
}

// The files now say that the heap is open: the heap starts.
ty_status start_heap(image &im, image_opening &state) {
    if (im.follows)
        return follow_start(im);
    if (im.read_only)
        return TY_OK;
    if (ty_status status = durable_start(im))
        return status;
    if (ty_status status = begin_open(im, state))
        return status;
    os::lock_guard guard(im.work); // from here on the checkpointer owns the header
    im.checkpoint_wanted = im.waiting.first != nullptr;
    im.changed.notify_all();
    return TY_OK;
}

// The heap itself finishes a growth; what it moved becomes durable with a snapshot of its own.
ty_status grow_heap(image &im) {
    if (im.read_only || heap_limit(im.heap) == im.mapped_bytes)
        return TY_OK;
    if (ty_status status = heap_grow(im.heap, im.mapped_bytes))
        return status;
    uint64_t epoch = 0;
    if (ty_status status = image_snapshot_start(im.heap, nullptr, nullptr, &epoch))
        return status;
    return has_journal(im.kind) ? image_snapshot_wait(im.heap, epoch) : TY_OK;
}

const char *found_text(ty_recovery_state found) {
    switch (found) {
    case TY_RECOVERY_CREATED:
        return "created";
    case TY_RECOVERY_CLOSED:
        return "was closed in order";
    case TY_RECOVERY_CLOSED_BATCHES:
        return "was closed in order, with snapshots still to checkpoint to the image";
    case TY_RECOVERY_CRASHED:
        return "its process died between snapshots";
    case TY_RECOVERY_CRASHED_WRITING:
        return "its process died while a snapshot was being written; that one never counted";
    case TY_RECOVERY_CRASHED_BATCHES:
        return "its process died with snapshots still to checkpoint to the image";
    case TY_RECOVERY_IN_USE:
        return "is open elsewhere: a copy";
    }
    return "";
}

void fill_report(const image &im, image_opening &state) {
    ty_report &report = state.report;
    report.struct_size = sizeof report;
    report.kind = im.kind;
    report.duration_ns = os::now_ns() - state.started_ns;
    if (im.tracking)
        report.tracking = tracking_of(im.tracker.method());
    char restored[96] = "";
    if (report.batches_restored)
        snprintf(restored, sizeof restored, ", with %llu page%s of %llu snapshot%s from the journal",
                 (unsigned long long)report.pages_restored, plural(report.pages_restored),
                 (unsigned long long)report.batches_restored, plural(report.batches_restored));
    const char *mark = state.options.mark;
    int length = snprintf(
        report.text, sizeof report.text, "%s; epoch %llu%s%s%s%s%s%s%s%s%s", found_text(report.found),
        (unsigned long long)report.epoch, restored, mark ? "; as at the mark \"" : "", mark ? mark : "",
        mark ? "\"" : "", report.maybe_inconsistent ? "; an archive heap that died: its content may be a mixture" : "",
        report.header_repaired ? "; one header of the image was damaged, the other served" : "",
        report.journal_recreated ? "; the journal was missing or old, and not needed" : "",
        report.attached ? "; a journal was attached" : "", report.grown ? "; the limit was raised" : "");
    if (length < 0)
        report.text[0] = '\0';
}

ty_status create(image &im, image_opening &state) {
    im.kind = state.options.kind == TY_KIND_DEFAULT ? TY_SNAPSHOT : state.options.kind;
    if (!state.options.limit_bytes)
        state.options.limit_bytes = heap_limit_default;
    state.report.found = TY_RECOVERY_CREATED;
    state.report.created = true;
    if (ty_status status = make_ready(im, state))
        return status;
    if (ty_status status = create_files(im, state.options, state.hook))
        return status;
    state.log.identity = im.header.current.log_identity;
    return TY_OK;
}

ty_status open_or_create(image &im, image_opening &state) {
    ty_open_mode mode = state.options.mode;
    if (mode != TY_CREATE_NEW) {
        ty_status status = open_files(im, state);
        if (status != TY_E_NOT_FOUND || im.backing.is_open() || mode != TY_OPEN_OR_CREATE) {
            if (status || (status = change_files(im, state)))
                return status;
            return im.heap ? TY_OK : take_memory(im, state);
        }
    }
    if (ty_status status = create(im, state))
        return status;
    state.made = true;
    return start_memory(im, state);
}

void take_over_batches(image &im, image_opening &state) {
    const image_header &header = im.header.current;
    state.report.batches_restored = state.journal.scan.batches.count + state.checkpointed_batches;
    state.report.pages_restored = state.journal.scan.batches.pages() + state.checkpointed_pages;
    state.report.batches_discarded = state.journal.scan.discarded;
    const batch *newest = state.journal.scan.batches.last;
    os::lock_guard guard(im.work);
    im.durable_epoch = newest ? newest->epoch : header.epoch;
    state.report.epoch = im.durable_epoch; // a growth continues to an epoch of its own
    im.durable_nonce = newest ? newest->nonce : header.nonce;
    im.durable_redo_point = newest ? newest->redo_point : redo_point_of(header);
    im.journal_end = newest ? newest->end : header.journal_next;
    const bool has_redo_points = header.log_streams && !fault("entries_where_the_redo_point_is");
    im.chunk_pages = has_redo_points ? chunk_pages_max_with_streams
                                     : chunk_pages_max; // I20: each chunk has room for the redo points
    im.waiting = state.journal.scan.batches;
    state.journal.scan.batches = {};
}

// The redo point must be durable before anything that needs it is built on it.
ty_status mark_open(image &im, const image_opening &state) {
    if (state.options.code != TY_CODE_IGNORED) // else words of code do not depend on this process
        add_code_place(im.header.places, os::find_code_zones());
    im.header.current.state = uint32_t(image_state::open);
    im.header.current.log_empty_after_redo_point = 0;
    im.header.current.owner_process = os::process_id();
    im.header.current.holds = im.backing.can_be_held() ? holds_heeded : 0;
    // An archive's pages may reach the disk at any moment from now on: both headers must say so before (I16).
    if (im.kind == TY_ARCHIVE)
        return archive_mark_open(im);
    if (ty_status status = write_header(im.backing, im.header))
        return status;
    // The log's first commit may reach the disk, after which a missing log is a loss. A snapshot heap's first batch
    // makes the redo point durable (I8).
    return im.kind == TY_SNAPSHOT ? TY_OK : name_open(im, state.hook);
}

} // namespace

ty_status begin_open(image &im, image_opening &state) {
    if (state.begun)
        return TY_OK;
    if (has_journal(im.kind)) {
        uint64_t size = 0;
        if (ty_status status = im.journal.get_size(&size))
            return status;
        im.writer.allocated_end = size / page_bytes * page_bytes;
    }
    state.begun = true;
    return mark_open(im, state);
}

heap_owner snapshot_owner(image &im) {
    heap_owner owner{};
    owner.context = &im;
    owner.create_table = create_claimed_table;
    owner.provide = [](void *, void *address, size_t bytes) {
        os::dump(address, bytes, true);
        return TY_OK;
    };
    // Free pages lose their private copies; what the image holds shows then, and is not needed either, but by a revert.
    owner.give_back = [](void *context, void *address, size_t bytes) {
        note_given_back(*static_cast<image *>(context), address, bytes);
        (void)os::decommit(address, bytes);
        return false;
    };
    return owner;
}

ty_status image_open(const char *path, const ty_open_options &given, const image_open_hook *hook, ty_heap **heap,
                     ty_report *report) {
    image_opening state;
    state.hook = hook;
    state.options = with_defaults(given);
    image *im = nullptr;
    if (ty_status status = image_create(path, state.options, &im))
        return status;
    ty_status status = open_or_create(*im, state);
    if (!status) {
        take_over_batches(*im, state);
        if (!(status = start_heap(*im, state)) && !(status = grow_heap(*im)) && !(status = start_client(*im, state)))
            leave_unused_out_of_dumps(*im);
    }
    if (status) {
        ty_error error = keep_error();
        error.status = status;
        if (state.client_started)
            state.hook->give_up(state.hook->context);
        if (state.made)
            remove_files(*im);
        if (state.before && im->heap)
            give_memory_back(*im, *state.before);
        image_teardown(im);
        return report_again(error);
    }
    if (state.before)
        image_release(im->before = state.before);
    fill_report(*im, state);
    if (report)
        *report = state.report;
    *heap = im->heap;
    return TY_OK;
}

} // namespace taiyen
