// Makes a standby of a base: docs/design/standby.md, "A standby".
#include "receiving.hpp"

#include "base_log.hpp"

#include <cstdio>
#include <taiyen/detail/fault.hpp>

namespace taiyen::standby {

namespace {

ty_status refuse_without_base(const char *heap_path) {
    return fail(TY_E_NOT_FOUND, "make a standby: the engine has no base of the present primary", heap_path,
                "put one on the primary's machine (ty_publish_base, taiyen publish --base)");
}

standby_state state_of(const message_header &base) {
    standby_state state{};
    state.position = base.position;
    state.last = {
        base.record_number, base.record_checksum, base.record_session, base.term, base.timeline, base.records_at, 0,
        base.records_at};
    memcpy(state.owner, base.owner, sizeof state.owner);
    state.replication = base.replication;
    state.begun_term = base.begun_term;
    state.begun_lsn = base.begun_lsn;
    return state;
}

ty_status make_of_base(const char *heap_path, const ty_engine &engine, const ty_open_options *open,
                       const ty_standby_options &options, lookup how, ty_standby_report *report) {
    state_folder folder;
    owned_message begin;
    records_end at;
    bool found = false, any = false;
    if (ty_status status = newest_base(engine, how, &begin, &found))
        return status;
    if (found)
        if (ty_status status = goes_on(engine, begin.read.header, &found))
            return status;
    if (ty_status status = newest_position(engine, &at, &any))
        return status;
    const message_header &base = begin.read.header;
    const message_header &now = at.newest.read.header;
    const bool is_before = base.replication == now.replication && base.term == now.term && now.begin == 0; // ST27
    if (!found || !any || !(leads_to(base, now) || is_before))
        return refuse_without_base(heap_path);
    if (ty_status status = folder.open(state_path_of(heap_path, options)))
        return status;
    if (ty_status status = folder.write(state_of(base))) // before the heap, which is of no use without it
        return status;
    base_source source(engine, begin);
    ty_restore_options restore = TY_RESTORE_OPTIONS_INIT;
    restore.open = open;
    restore.receives = true;
    ty_restore_report restored{};
    restored.struct_size = sizeof restored;
    if (ty_status status = ty_restore(&source.destination(), heap_path, &restore, &restored))
        return status;
    report->lsn = report->durable_lsn = restored.lsn;
    report->term = base.term;
    return TY_OK;
}

} // namespace

ty_status make_standby(const char *heap_path, const ty_engine &engine, const ty_open_options *open,
                       const ty_standby_options &options, ty_standby_report *report) {
    if (std::FILE *there = std::fopen(heap_path, "r")) { // its state must not be lost
        std::fclose(there);
        return fail(TY_E_EXISTS, "make a standby: there is a file of that name", heap_path,
                    "give another path, or move the file away first");
    }
    const ty_status status = make_of_base(heap_path, engine, open, options, lookup::anywhere, report);
    common::kept_failure failed;
    failed.keep(status);
    if (!is_wrong(status) || status == TY_E_NOT_FOUND || taiyen::detail::fault("damaged_base_hides_the_one_before"))
        return failed.restore();
    // ST6: a piece of it cannot be read; the base before it may still be there.
    const ty_status older = make_of_base(heap_path, engine, open, options, lookup::whole, report);
    return older == TY_E_NOT_FOUND ? failed.restore() : older;
}

} // namespace taiyen::standby
