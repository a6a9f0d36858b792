#include "workload.hpp"

namespace crash {

namespace {

constexpr uint64_t limit_unit = uint64_t{64} << 20;

// An archive heap is opened and closed in order for a while, and gets a journal.
void live_as_archive(session &on, dice &random, open_choice &choice) {
    choice.kind = TY_ARCHIVE;
    choice.what = phase::create;
    for (uint64_t rounds = 1 + random.below(3); rounds > 0; --rounds) {
        on.reopen(choice);
        for (uint64_t i = random.below(3); i > 0; --i) {
            on.change(random, 1 + random.below(30));
            on.snapshot();
        }
        on.change(random, random.below(10));
        on.close();
        choice.what = phase::archive;
    }
    choice.kind = TY_SNAPSHOT;
    choice.what = phase::attach;
}

} // namespace

void reopen(session &on, dice &random, open_choice &choice, phase what) {
    choice.what = what;
    if (random.one_in(3) && choice.limit_bytes < 4 * limit_unit) {
        choice.limit_bytes += limit_unit;
        choice.what = phase::raise;
    }
    on.reopen(choice);
}

trace start_trace() {
    trace made;
    made.disk.reset(taiyen::os::sim_create());
    made.points.push_back({false, {}, 0, 0, 0, 0});
    return made;
}

undo_choice choose_undo(dice &random) {
    undo_choice choice;
    choice.wanted = !random.one_in(3);
    choice.volatile_buffers = random.one_in(4);
    choice.buffer_bytes = (uint64_t{128} << 10) * (1 + random.below(3));
    choice.entries = 256 + random.below(512); // a few dozen transactions: old ones are forgotten
    return choice;
}

uint64_t choose_memory(dice &random) {
    return random.one_in(2) ? uint64_t{16} << 10 << random.below(6) : 0;
}

void random_step(session &on, dice &random, open_choice &choice) {
    on.change(random, random.below(12));
    on.undo_step(random);
    uint64_t lot = random.below(20);
    if (lot < 1) {
        on.fail_snapshot(random);
        on.compare();
    } else if (lot < 7) {
        on.snapshot();
    } else if (lot < 10) {
        on.snapshot_start();
        on.change(random, random.below(8));
        if (random.one_in(4)) {
            on.snapshot();
        }
        on.snapshot_wait();
    } else if (lot < 12) {
        for (uint64_t times = 1 + random.below(3); times > 0; --times) {
            on.write_back_early(random.one_in(2) ? 0 : 1 + random.below(40));
            on.change(random, random.below(8));
        }
    } else if (lot < 15) {
        on.work();
    } else if (lot < 17) {
        on.purge();
    } else if (lot < 19) {
        on.close();
        reopen(on, random, choice, phase::open);
    } else {
        if (random.one_in(2)) {
            on.snapshot_start();
        }
        on.discard();
        reopen(on, random, choice, phase::restore);
    }
}

finding run_workload(uint64_t seed, trace &on) {
    dice random(seed);
    open_choice choice;
    choice.what = phase::create;
    choice.staging_bytes = random.one_in(3) ? uint64_t{64} << 10 : 0;
    choice.journal_limit_bytes = random.one_in(3) ? uint64_t{512} << 10 : 0;
    choice.memory_bytes = choose_memory(random);
    bool wrong_history = on.undo.wrong_history;
    on.undo = choose_undo(random);
    on.undo.wrong_history = wrong_history;
    session live(on);
    if (random.one_in(3)) {
        live_as_archive(live, random, choice);
    } else {
        choice.kind = TY_SNAPSHOT;
    }
    live.reopen(choice);
    live.change(random, 40 + random.below(100));
    for (uint64_t rounds = 15 + random.below(25); rounds > 0 && !live.failed(); --rounds) {
        random_step(live, random, choice);
    }
    if (random.one_in(2)) {
        live.close();
    } else {
        live.discard();
    }
    return live.result();
}

} // namespace crash
