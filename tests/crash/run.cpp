#include "run.hpp"

#include "faults.hpp"
#include "workload.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace crash {

namespace {

// What a worker process reports to its parent, in shared memory, so that it is known even when the worker crashes.
struct worker_slot {
    tally counts;
    uint64_t reported; // failures that were printed
    char exploring[160];
};

struct job {
    uint64_t workload;
    uint64_t states;
};

constexpr uint64_t reported_max = 10; // a workload

void break_promise(trace &on, canary broken) {
    taiyen::os::sim_set_broken_flush(on.disk.get(), broken == canary::flush);
    taiyen::os::sim_set_broken_durable_write(on.disk.get(), broken == canary::durable_write);
    on.undo.wrong_history = broken == canary::undo_history;
}

std::string replay_command(const run_options &options) {
    std::string text = std::string("taiyen-crash ") + options.what->name;
    text += options.broken != canary::none ? std::string(" --canary=") + canary_name(options.broken) : "";
    text += log_streams ? " --log-streams " + std::to_string(log_streams) : "";
    return text + (options.faults ? " --faults" : "") + " --replay ";
}

// The events of a trace by phase and kind: each such cell is picked as often as any other.
class rare_events {
public:
    explicit rare_events(const trace &of) : end_(of.events()) {
        std::vector<uint64_t> cells[static_cast<size_t>(phase::count) * taiyen::os::sim_event_kinds];
        for (const call &one : of.calls) {
            for (uint64_t event = std::max(one.first, of.first_event); event < one.last; ++event) {
                auto kind = static_cast<size_t>(taiyen::os::sim_event_at(of.disk.get(), event));
                cells[static_cast<size_t>(one.what) * taiyen::os::sim_event_kinds + kind].push_back(event);
            }
        }
        for (std::vector<uint64_t> &cell : cells) {
            if (!cell.empty()) {
                cells_.push_back(std::move(cell));
            }
        }
    }
    uint64_t pick(dice &random) const {
        if (cells_.empty()) {
            return end_;
        }
        const std::vector<uint64_t> &cell = cells_[random.below(cells_.size())];
        return cell[random.below(cell.size())];
    }

private:
    uint64_t end_;
    std::vector<std::vector<uint64_t>> cells_;
};

class worker {
public:
    worker(const run_options &options, const job &what, worker_slot &slot)
        : options_(options), mode_(*options.what), job_(what), slot_(slot) {}

    void run() {
        if (options_.faults) {
            for (uint64_t i = 0; slot_.counts.states < job_.states; ++i) {
                note(state{job_.workload + i, {}});
                run_faulted(mode_, job_.workload + i, slot_.counts,
                            [this](const state &which, const finding &found) { report(which, found); });
            }
            return;
        }
        trace base = start_trace();
        break_promise(base, options_.broken);
        note(state{job_.workload, {}});
        finding found = mode_.workload(job_.workload, base);
        if (found.what != verdict::sound) {
            slot_.counts.count(base.phase_at(base.events()), false, found);
            report(state{job_.workload, {}}, found);
            return;
        }
        cut_everywhere(base);
    }

private:
    // Every event gets its share of cuts, and every kind of event in every phase gets its share, since what is rare may
    // go wrong as well: a header write among a thousand page writes. In rising order, which the disk rebuilds fastest;
    // a part of the recoveries is cut again at a random event of theirs, and a part of those once more.
    void cut_everywhere(const trace &base) {
        dice random(job_.workload * 31 + 7);
        const rare_events rare(base);
        const std::vector<uint64_t> firsts = first_events(base, rare, random);
        for (uint64_t i = 0; slot_.counts.states < job_.states; ++i) {
            uint64_t event = i < firsts.size() ? firsts[i] : rare.pick(random);
            state which{job_.workload,
                        {{event, static_cast<taiyen::os::sim_cut>(i % cut_kinds), random.below(1000000)}}};
            follow(base, which, random);
        }
    }

    std::vector<uint64_t> first_events(const trace &base, const rare_events &rare, dice &random) const {
        const uint64_t wanted = std::max<uint64_t>(1, job_.states * 3 / 4);
        std::vector<uint64_t> events;
        for (uint64_t i = 0; i < wanted; ++i)
            events.push_back(i % 2 ? rare.pick(random) : i * (base.events() + 1) / wanted);
        std::sort(events.begin(), events.end());
        return events;
    }

    void follow(const trace &from, state &which, dice &random) {
        constexpr size_t deepest = 3;
        note(which);
        trace recovery;
        const cut &at = which.cuts.back();
        finding found = explore(mode_, from, at, recovery, options_.broken);
        slot_.counts.count(from.phase_at(at.event), which.cuts.size() > 1, found);
        report(which, found);
        // What a process that died left unflushed only shows when the power goes, too. That a heap is a mixture is
        // reported by a sector or two, which each of its next opens could lose, whole or not at all.
        uint64_t again = at.how == taiyen::os::sim_cut::process_death || random.one_in(3);
        again += recovery.mixture && which.cuts.size() == 1 ? 12 : 0;
        bool usable = found.what == verdict::sound && !recovery.points.empty() && !recovery.lost.ended;
        if (!usable || which.cuts.size() == deepest) {
            return;
        }
        for (; again > 0 && slot_.counts.states < job_.states; --again) {
            auto how = recovery.mixture && random.one_in(2) ? taiyen::os::sim_cut::trash
                                                            : static_cast<taiyen::os::sim_cut>(random.below(cut_kinds));
            uint64_t event = random.one_in(2)
                                 ? rare_events(recovery).pick(random)
                                 : recovery.first_event + random.below(recovery.events() - recovery.first_event + 1);
            which.cuts.push_back({event, how, random.below(1000000)});
            follow(recovery, which, random);
            which.cuts.pop_back();
        }
    }

    void note(const state &which) { std::strncpy(slot_.exploring, which.text().c_str(), sizeof slot_.exploring - 1); }

    void report(const state &which, const finding &found) {
        if (found.what == verdict::sound || (options_.broken != canary::none && slot_.reported == 1) ||
            slot_.reported == reported_max) {
            return;
        }
        ++slot_.reported;
        std::printf("%s: %s\n  %s%s\n", verdict_name(found.what), found.text.c_str(), replay_command(options_).c_str(),
                    which.text().c_str());
        std::fflush(stdout);
    }

    const run_options &options_;
    const mode &mode_;
    const job &job_;
    worker_slot &slot_;
};

std::vector<job> share_out(const run_options &options) {
    constexpr uint64_t states_per_job = 800;
    uint64_t count = std::max<uint64_t>(options.states / states_per_job, std::min<uint64_t>(options.states, 4));
    dice random(options.seed);
    std::vector<job> jobs;
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t share = options.states * (i + 1) / count - options.states * i / count;
        jobs.push_back({random.below(1000000000), share});
    }
    return jobs;
}

void show_progress(uint64_t done, uint64_t all) {
    if (isatty(STDERR_FILENO)) {
        std::fprintf(stderr, "\r%llu of %llu workloads explored", static_cast<unsigned long long>(done),
                     static_cast<unsigned long long>(all));
        std::fprintf(stderr, done == all ? "\n" : "");
    }
}

// A worker that died is a finding: the library crashed on what it found on the disk.
void note_death(int status, const run_options &options, worker_slot &slot) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return;
    }
    ++slot.counts.states;
    ++slot.counts.inconsistent;
    std::printf("inconsistent: the process died (%s %d)\n  %s%s\n", WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), replay_command(options).c_str(),
                slot.exploring);
}

} // namespace

const char *canary_name(canary broken) {
    static constexpr const char *names[] = {"none", "flush", "durable-write", "undo-history", "older-files"};
    return names[static_cast<size_t>(broken)];
}

const char *verdict_name(verdict what) {
    static constexpr const char *names[] = {"sound", "lost", "inconsistent", "refused"};
    return names[static_cast<size_t>(what)];
}

tally run(const run_options &options) {
    std::vector<job> jobs = share_out(options);
    size_t bytes = jobs.size() * sizeof(worker_slot);
    void *shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        std::perror("taiyen-crash: cannot share memory with its workers");
        std::exit(2);
    }
    auto *slots = static_cast<worker_slot *>(shared); // zeros are an empty tally
    std::vector<pid_t> running(jobs.size(), 0);
    size_t started = 0;
    size_t done = 0;
    while (done < jobs.size()) {
        std::fflush(stdout);
        while (started < jobs.size() && started - done < options.jobs) {
            pid_t child = fork();
            if (child == 0) {
                worker(options, jobs[started], slots[started]).run();
                std::fflush(stdout);
                _exit(0);
            }
            running[started++] = child;
        }
        int status = 0;
        pid_t ended = wait(&status);
        auto which = static_cast<size_t>(std::find(running.begin(), running.end(), ended) - running.begin());
        if (which < jobs.size()) {
            note_death(status, options, slots[which]);
        }
        show_progress(++done, jobs.size());
    }
    tally sum;
    for (size_t i = 0; i < jobs.size(); ++i) {
        sum.add(slots[i].counts);
    }
    munmap(shared, bytes);
    return sum;
}

finding replay(const state &which, const run_options &options) {
    const mode &of = *options.what;
    auto from = std::make_unique<trace>(start_trace());
    break_promise(*from, options.broken);
    finding found = (options.faults ? of.faulted_workload : of.workload)(which.workload, *from);
    std::printf("workload %llu: %llu events, %s %s\n", static_cast<unsigned long long>(which.workload),
                static_cast<unsigned long long>(from->events()), verdict_name(found.what), found.text.c_str());
    for (const cut &at : which.cuts) {
        auto recovery = std::make_unique<trace>();
        trace::range possible = from->possible_at(at.event);
        std::printf("cut before event %llu (%s), points %zu to %zu possible\n",
                    static_cast<unsigned long long>(at.event), phase_name(from->phase_at(at.event)), possible.first,
                    possible.last);
        found = explore(of, *from, at, *recovery, options.broken);
        std::printf("recovery: %llu events, %s %s\n", static_cast<unsigned long long>(recovery->events()),
                    verdict_name(found.what), found.text.c_str());
        from = std::move(recovery);
    }
    return found;
}

} // namespace crash
