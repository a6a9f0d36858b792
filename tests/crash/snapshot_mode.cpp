// Snapshot heaps, and archive heaps that become such: how they are opened after a cut, and used from there on.
#include "faults.hpp"
#include "workload.hpp"

namespace crash {

namespace {

// How the user opens the heap after the cut: as before, or at once with a raised limit, or attaching a journal.
open_choice choose(const trace &from, const cut &at, dice &random) {
    open_choice choice;
    choice.what = phase::restore;
    choice.memory_bytes = choose_memory(random);
    phase cut_in = from.phase_at(at.event);
    bool exists = from.points[from.possible_at(at.event).first].exists;
    if (!exists) {
        choice.kind = random.one_in(3) ? TY_ARCHIVE : TY_KIND_DEFAULT;
    } else if (!from.unsafe_at(at.event) && (cut_in == phase::attach || cut_in == phase::archive)) {
        choice.kind = random.one_in(2) ? TY_SNAPSHOT : TY_KIND_DEFAULT;
    }
    if (exists && random.one_in(6)) {
        choice.limit_bytes *= 2 + random.below(3);
    }
    return choice;
}

// The heap must not only be right but also good for more: changes, snapshots, apply, close and open.
void go_on(session &on, dice &random) {
    open_choice choice;
    choice.memory_bytes = choose_memory(random);
    if (on.report().kind == TY_ARCHIVE) {
        on.change(random, random.below(6));
        on.snapshot();
        on.close();
    } else {
        for (uint64_t steps = 1 + random.below(3); steps > 0 && !on.failed(); --steps) {
            random_step(on, random, choice);
        }
        on.change(random, random.below(6));
        on.snapshot();
        if (random.one_in(2)) {
            on.close();
        } else {
            on.discard();
        }
    }
    on.reopen(choice);
    on.close();
    if (random.one_in(4)) {
        on.scrub();
    }
}

finding recover(const trace &from, const cut &at, trace &recovery) {
    dice random(at.seed);
    session live(recovery);
    bool must_exist = from.points[from.possible_at(at.event).first].exists;
    if (random.one_in(4) && !from.unsafe_at(at.event) && !recovery.lost.how) {
        live.read_info(must_exist);
    }
    live.open(choose(from, at, random), from, at.event);
    if (live.is_open() && !live.failed()) {
        live.undo_walk(random);
        go_on(live, random);
    }
    return live.result();
}

} // namespace

const mode snapshot_mode = {
    "snapshot", {canary::flush, canary::undo_history, canary::older_files}, 3, run_workload, run_faulted_workload,
    recover};

} // namespace crash
