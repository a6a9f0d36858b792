// Archive heaps: opened, changed, snapshotted and closed, again and again. Where the power fails while one is open, the
// next open says that the content may be a mixture, and so does every open after it until the heap is closed; what it
// does not say that of must be whole.
#include "faults.hpp"
#include "workload.hpp"

namespace crash {

namespace {

using namespace taiyen::os;

void use(session &on, dice &random) {
    for (uint64_t i = random.below(3); i > 0; --i) {
        on.change(random, 1 + random.below(12));
        on.snapshot();
    }
    on.change(random, 1 + random.below(6));
}

open_choice first_choice() {
    open_choice choice;
    choice.kind = TY_ARCHIVE;
    choice.what = phase::create;
    return choice;
}

finding workload(uint64_t seed, trace &on) {
    dice random(seed);
    on.undo = choose_undo(random);
    open_choice choice = first_choice();
    session live(on);
    live.reopen(choice);
    live.change(random, 20 + random.below(30));
    for (uint64_t rounds = 4 + random.below(4); rounds > 0 && !live.failed(); --rounds) {
        use(live, random);
        live.close();
        reopen(live, random, choice, phase::open);
    }
    live.close();
    return live.result();
}

// A snapshot, a close or an open fails; the heap is used further, and its process dies, or closes it.
finding faulted_workload(uint64_t seed, trace &on) {
    static const std::vector<uint32_t> kinds = {sim_op_write, sim_op_write, sim_op_flush, sim_op_flush, sim_op_any};
    dice random(seed);
    on = start_trace();
    on.undo = choose_undo(random);
    open_choice choice = first_choice();
    session live(on);
    live.reopen(choice);
    live.change(random, 20 + random.below(30));
    live.snapshot();
    live.tolerate(true);
    make_bad(on.disk.get(), kinds, random);
    for (uint64_t times = 1 + random.below(3); times > 0 && !live.failed(); --times) {
        if (!live.is_open())
            live.reopen(choice);
        use(live, random);
        live.close();
    }
    make_good(on.disk.get());
    use(live, random);
    if (random.one_in(2))
        live.close();
    live.discard();
    return live.result();
}

finding recover(const trace &from, const cut &at, trace &recovery) {
    dice random(at.seed);
    session live(recovery);
    open_choice choice;
    choice.what = phase::restore;
    if (!from.points[from.possible_at(at.event).first].exists)
        choice.kind = TY_ARCHIVE;
    live.open(choice, from, at.event);
    if (live.is_open() && !live.failed()) {
        use(live, random);
        live.close();
        live.reopen(choice);
        live.close();
    }
    return live.result();
}

} // namespace

const mode archive_mode = {"archive", {canary::flush}, 1, workload, faulted_workload, recover};

} // namespace crash
