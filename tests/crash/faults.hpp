// Failing disks: an operation fails, once or for ever, or the disk is full, while a workload runs; then the disk is
// good again. No snapshot may be lost, the heap must stay usable, and the next snapshot must succeed.
#pragma once

#include "explorer.hpp"

#include <vector>

namespace crash {

// Makes the disk full, or operations of one of the kinds fail. A kind that is named twice is as likely as two.
void make_bad(taiyen::os::sim_disk *disk, const std::vector<uint32_t> &kinds, dice &random);
void make_good(taiyen::os::sim_disk *disk);

// The workload on snapshot heaps.
finding run_faulted_workload(uint64_t seed, trace &on);

// Runs one faulted workload, and cuts the power a few times in what it left behind. Each is a state of the tally;
// `report` gets each.
template <class Report>
void run_faulted(const mode &of, uint64_t seed, tally &counts, Report &&report) {
    trace left = {};
    finding found = of.faulted_workload(seed, left);
    counts.count(left.phase_at(left.events()), false, found);
    report(state{seed, {}}, found);
    dice random(seed + 1);
    for (int i = 0; i < 3 && found.what == verdict::sound; ++i) {
        auto how = static_cast<taiyen::os::sim_cut>(random.below(cut_kinds));
        cut at{random.below(left.events() + 1), how, random.below(1000000)};
        trace recovery;
        finding after = explore(of, left, at, recovery);
        counts.count(left.phase_at(at.event), false, after);
        report(state{seed, {at}}, after);
    }
}

} // namespace crash
