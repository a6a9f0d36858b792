#include "faults.hpp"

#include "workload.hpp"

namespace crash {

namespace {

using namespace taiyen::os;

// Of the operations on snapshot heaps.
const std::vector<uint32_t> &snapshot_operations() {
    static const std::vector<uint32_t> kinds = {sim_op_any,  sim_op_write,    sim_op_write, sim_op_flush, sim_op_flush,
                                                sim_op_size, sim_op_allocate, sim_op_punch, sim_op_read,  sim_op_open,
                                                sim_op_map,  sim_op_lock,     sim_op_names};
    return kinds;
}

sim_fault random_fault(const std::vector<uint32_t> &kinds, dice &random) {
    sim_fault fault;
    fault.operations = kinds[random.below(kinds.size())];
    bool frequent =
        fault.operations == sim_op_any || fault.operations == sim_op_write || fault.operations == sim_op_write_durable;
    fault.after = random.below(frequent ? 25 : 6);
    fault.forever = random.one_in(2);
    fault.status = random.one_in(2) ? TY_E_SPACE : TY_E_IO;
    return fault;
}

} // namespace

void make_bad(sim_disk *disk, const std::vector<uint32_t> &kinds, dice &random) {
    if (random.one_in(5)) {
        sim_set_capacity(disk, random.below(uint64_t{4} << 20));
    } else {
        sim_set_fault(disk, random_fault(kinds, random));
    }
}

void make_good(sim_disk *disk) {
    sim_set_capacity(disk, UINT64_MAX);
    sim_set_fault(disk, {});
}

finding run_faulted_workload(uint64_t seed, trace &on) {
    dice random(seed);
    on = start_trace();
    on.undo = choose_undo(random);
    open_choice choice;
    choice.what = phase::create;
    choice.staging_bytes = random.one_in(3) ? uint64_t{64} << 10 : 0;
    choice.journal_limit_bytes = random.one_in(3) ? uint64_t{512} << 10 : 0;
    choice.memory_bytes = choose_memory(random);
    session live(on);
    live.tolerate(true);
    if (random.one_in(6)) { // already while it is created
        make_bad(on.disk.get(), snapshot_operations(), random);
        live.reopen(choice);
        make_good(on.disk.get());
    }
    for (int times = 2; times > 0 && !live.failed(); --times) {
        if (!live.is_open()) {
            live.reopen(choice);
        }
        live.change(random, 20 + random.below(80));
        live.snapshot();
        make_bad(on.disk.get(), snapshot_operations(), random);
        for (uint64_t steps = 2 + random.below(6); steps > 0 && !live.failed(); --steps) {
            random_step(live, random, choice);
        }
        make_good(on.disk.get());
    }
    live.tolerate(false);
    if (!live.is_open()) {
        live.reopen(choice);
    }
    live.change(random, 5);
    live.snapshot();
    live.work();
    live.change(random, 5);
    if (random.one_in(2)) {
        live.close();
    } else {
        live.discard();
    }
    live.reopen(choice);
    live.close();
    return live.result();
}

} // namespace crash
