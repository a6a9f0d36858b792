// Transactional heaps, and snapshot heaps that a log is attached to: the workload, how they are opened after a cut, and
// used from there on.
#include "faults.hpp"
#include "txn_session.hpp"
#include "workload.hpp"

namespace crash {

namespace {

using namespace taiyen::os;

void transactions(txn_session &on, dice &random, uint64_t times) {
    for (; times > 0 && !on.failed(); --times) {
        on.transaction(random);
    }
}

// The log is removed; the heap lives without it for a while, and gets another.
void live_without_log(txn_session &on, dice &random, open_choice &choice) {
    choice.kind = TY_SNAPSHOT;
    reopen(on, random, choice, phase::detach);
    choice.kind = TY_KIND_DEFAULT;
    if (on.is_open() && on.kind() == TY_TRANSACTIONAL) { // one was in doubt
        return;
    }
    for (uint64_t steps = random.below(3); steps > 0 && on.is_open(); --steps) {
        random_step(on, random, choice);
    }
    if (on.is_open()) {
        random.one_in(2) ? on.close() : on.discard();
    }
    choice.kind = TY_TRANSACTIONAL;
    reopen(on, random, choice, phase::attach);
    choice.kind = TY_KIND_DEFAULT;
}

void close_and_open(txn_session &on, dice &random, open_choice &choice) {
    bool in_order = random.one_in(2);
    in_order ? on.close() : on.discard();
    if (on.is_open()) { // a close that failed
        return;
    }
    if (random.one_in(5)) {
        live_without_log(on, random, choice);
    } else {
        reopen(on, random, choice, in_order ? phase::open : phase::restore);
    }
}

void take_snapshot(txn_session &on, dice &random) {
    if (random.one_in(2)) {
        on.snapshot();
        return;
    }
    on.snapshot_start();
    transactions(on, random, random.below(3));
    if (random.one_in(4)) {
        on.burst(random);
    }
    on.snapshot_wait();
    if (random.one_in(4)) { // what was appended meanwhile is not to be written over
        on.fill_ring(random);
    }
}

void random_txn_step(txn_session &on, dice &random, open_choice &choice) {
    if (on.is_open() && on.kind() == TY_SNAPSHOT) { // a fault kept the log from being attached
        on.close();
        choice.kind = TY_TRANSACTIONAL;
        reopen(on, random, choice, phase::attach);
        choice.kind = TY_KIND_DEFAULT;
        return;
    }
    uint64_t lot = random.below(42);
    if (lot < 1) {
        on.fill_ring(random);
    } else if (lot < 2) {
        on.fail_snapshot(random);
        on.compare();
    } else if (lot < 19) {
        transactions(on, random, 1 + random.below(4));
    } else if (lot < 21) {
        on.commit_two(random);
    } else if (lot < 23) {
        on.burst(random);
    } else if (lot < 25) {
        on.reserve(random);
    } else if (lot < 26) {
        on.cancel(random);
    } else if (lot < 29) {
        on.poll(random);
    } else if (lot < 32) {
        on.make_durable(random);
    } else if (lot < 35) {
        take_snapshot(on, random);
    } else if (lot < 36) {
        on.write_back_early(random.one_in(2) ? 0 : 1 + random.below(40));
    } else if (lot < 38) {
        on.work();
    } else if (lot < 39) {
        on.purge();
    } else {
        close_and_open(on, random, choice);
    }
}

open_choice first_choice(dice &random) {
    open_choice choice;
    choice.kind = TY_TRANSACTIONAL;
    choice.what = phase::create;
    choice.staging_bytes = random.one_in(3) ? uint64_t{64} << 10 : 0;
    choice.journal_limit_bytes = random.one_in(3) ? uint64_t{512} << 10 : 0;
    choice.memory_bytes = choose_memory(random);
    return choice;
}

finding run_txn_workload(uint64_t seed, trace &on) {
    dice random(seed);
    open_choice choice = first_choice(random);
    txn_session live(on);
    if (random.one_in(4)) { // it is a snapshot heap first
        choice.kind = TY_SNAPSHOT;
        live.reopen(choice);
        live.change(random, 20 + random.below(40));
        live.close();
        choice.kind = TY_TRANSACTIONAL;
        choice.what = phase::attach;
    }
    live.reopen(choice);
    choice.kind = TY_KIND_DEFAULT;
    transactions(live, random, 20 + random.below(20));
    for (uint64_t rounds = 40 + random.below(60); rounds > 0 && !live.failed(); --rounds) {
        random_txn_step(live, random, choice);
    }
    random.one_in(2) ? live.close() : live.discard();
    return live.result();
}

// As the user might open it: as before, raised, with a log where it had none or the other way round.
open_choice choose(const trace &from, const cut &at, dice &random) {
    open_choice choice;
    choice.what = phase::restore;
    choice.memory_bytes = choose_memory(random);
    phase cut_in = from.phase_at(at.event);
    bool exists = from.points[from.possible_at(at.event).first].exists;
    bool changing = cut_in == phase::attach || cut_in == phase::detach || cut_in == phase::create;
    if (!exists) {
        choice.kind = random.one_in(4) ? TY_SNAPSHOT : TY_TRANSACTIONAL;
    } else if (changing ? !random.one_in(3) : random.one_in(8)) {
        choice.kind = random.one_in(2) ? TY_SNAPSHOT : TY_TRANSACTIONAL;
    }
    if (exists && random.one_in(6)) {
        choice.limit_bytes *= 2 + random.below(3);
    }
    return choice;
}

// The heap must not only be right but also good for more, and what is committed now must be found.
void go_on(txn_session &on, dice &random) {
    open_choice choice;
    choice.memory_bytes = choose_memory(random);
    for (uint64_t steps = 1 + random.below(4); steps > 0 && !on.failed(); --steps) {
        random_txn_step(on, random, choice);
    }
    if (on.is_open() && on.kind() == TY_TRANSACTIONAL) {
        on.commit_one(random);
        transactions(on, random, random.below(3));
    }
    random.one_in(2) ? on.close() : on.discard();
    on.reopen(choice);
    on.compare();
    on.close();
    if (random.one_in(4)) {
        on.scrub();
    }
}

finding recover(const trace &from, const cut &at, trace &recovery) {
    dice random(at.seed);
    txn_session live(recovery);
    bool must_exist = from.points[from.possible_at(at.event).first].exists;
    if (random.one_in(4) && !recovery.lost.how) {
        live.read_info(must_exist);
    }
    if (random.one_in(4) && !recovery.lost.how) {
        live.read_log();
    }
    live.open(choose(from, at, random), from, at.event);
    if (live.is_open() && !live.failed()) {
        go_on(live, random);
    }
    return live.result();
}

const std::vector<uint32_t> &operations_of_transactions() {
    static const std::vector<uint32_t> kinds = {
        sim_op_any,           sim_op_write, sim_op_flush,    sim_op_write_durable, sim_op_write_durable,
        sim_op_write_durable, sim_op_size,  sim_op_allocate, sim_op_punch,         sim_op_read,
        sim_op_open,          sim_op_map,   sim_op_lock,     sim_op_names};
    return kinds;
}

// Faults may have left it closed, or without its log.
void make_transactional(txn_session &live, open_choice &choice) {
    if (!live.is_open() || live.kind() != TY_TRANSACTIONAL) {
        live.close();
        choice.kind = TY_TRANSACTIONAL;
        live.reopen(choice);
    }
}

finding run_faulted_txn_workload(uint64_t seed, trace &on) {
    dice random(seed);
    on = start_trace();
    open_choice choice = first_choice(random);
    txn_session live(on);
    live.tolerate(true);
    if (random.one_in(6)) { // already while it is created
        make_bad(on.disk.get(), operations_of_transactions(), random);
        live.reopen(choice);
        make_good(on.disk.get());
    }
    for (int times = 2; times > 0 && !live.failed(); --times) {
        make_transactional(live, choice);
        transactions(live, random, 10 + random.below(20));
        make_bad(on.disk.get(), operations_of_transactions(), random);
        for (uint64_t steps = 3 + random.below(12); steps > 0 && !live.failed(); --steps) {
            random_txn_step(live, random, choice);
        }
        make_good(on.disk.get());
    }
    live.tolerate(false);
    make_transactional(live, choice);
    live.commit_one(random); // the disk is good again: so is the log
    live.make_durable(random);
    live.snapshot();
    live.work();
    transactions(live, random, 5);
    random.one_in(2) ? live.close() : live.discard();
    choice.kind = TY_KIND_DEFAULT;
    live.reopen(choice);
    live.close();
    return live.result();
}

} // namespace

const mode transactional_mode = {"transactional",
                                 {canary::flush, canary::durable_write, canary::older_files},
                                 3,
                                 run_txn_workload,
                                 run_faulted_txn_workload,
                                 recover};

} // namespace crash
