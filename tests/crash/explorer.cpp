#include "explorer.hpp"

#include "workload.hpp"

#include <sstream>

namespace crash {

namespace {

// ty_read_info and ty_scrub look at the files without changing them.
void read_info(session &on, const trace &recovery, bool must_exist) {
    uint64_t before = recovery.events();
    ty_info info{};
    info.struct_size = sizeof info;
    ty_status status = ty_read_info(heap_path, taiyen::os::sim_storage(recovery.disk.get()), &info);
    if (status != TY_OK && (must_exist || status != TY_E_NOT_FOUND)) {
        on.fail(verdict::refused, std::string("read info: ") + ty_error_text());
    }
    if (recovery.events() != before) {
        on.fail(verdict::inconsistent, "reading the parameters changed the disk");
    }
}

void scrub(session &on, const trace &recovery) {
    uint64_t before = recovery.events();
    std::string problem;
    ty_status status = ty_scrub(
        heap_path, taiyen::os::sim_storage(recovery.disk.get()), nullptr,
        [](const char *text, void *context) { *static_cast<std::string *>(context) = text; }, &problem);
    if (status != TY_OK) {
        on.fail(verdict::inconsistent, "scrub: " + (problem.empty() ? std::string(ty_error_text()) : problem));
    }
    if (recovery.events() != before) {
        on.fail(verdict::inconsistent, "scrub changed the disk");
    }
}

// How the user opens the heap after the cut: as before, or at once with a raised limit, or attaching a journal.
open_choice choose(const trace &from, const cut &at, dice &random) {
    open_choice choice;
    choice.what = phase::restore;
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
void go_on(session &on, const trace &recovery, dice &random) {
    open_choice choice;
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
        scrub(on, recovery);
    }
}

} // namespace

std::string state::text() const {
    std::ostringstream out;
    out << workload;
    for (size_t i = 0; i < cuts.size(); ++i) {
        out << (i ? '/' : ':') << cuts[i].event << ':' << static_cast<int>(cuts[i].how) << ':' << cuts[i].seed;
    }
    return out.str();
}

std::optional<state> state::parse(const std::string &text) {
    std::istringstream in(text);
    state parsed;
    char separator = 0;
    if (!(in >> parsed.workload)) {
        return {};
    }
    while (in >> separator) {
        cut one{};
        int how = 0;
        char colon[2] = {};
        if (!(in >> one.event >> colon[0] >> how >> colon[1] >> one.seed) || colon[0] != ':' || colon[1] != ':' ||
            how < 0 || how > static_cast<int>(taiyen::os::sim_cut::process_death)) {
            return {};
        }
        one.how = static_cast<taiyen::os::sim_cut>(how);
        parsed.cuts.push_back(one);
    }
    return parsed;
}

namespace {

using taiyen::os::sim_cut;

// After the death of a process alone, what was in doubt still is: a power cut may yet take it away.
void inherit(const trace &from, uint64_t event, trace &recovery) {
    trace::range possible = from.possible_at(event);
    recovery.first_event = event;
    for (size_t i = possible.first; i <= possible.last; ++i) {
        recovery.points.push_back(from.points[i]);
        recovery.points.back().started = 0;
        recovery.points.back().acknowledged = i == possible.first ? 0 : point::never;
    }
}

finding recover(const trace &from, const cut &at, trace &recovery) {
    dice random(at.seed);
    session live(recovery);
    bool must_exist = from.points[from.possible_at(at.event).first].exists;
    if (random.one_in(4) && !from.unsafe_at(at.event)) {
        read_info(live, recovery, must_exist);
    }
    live.open(choose(from, at, random), from, at.event);
    if (live.is_open() && !live.failed()) {
        go_on(live, recovery, random);
    }
    return live.result();
}

} // namespace

finding explore(const trace &from, const cut &at, trace &recovery) {
    bool unsafe = from.unsafe_at(at.event); // the kernel would keep a dead process's pages; the simulation does not
    sim_cut how = at.how == sim_cut::process_death && unsafe ? sim_cut::keep_all : at.how;
    recovery.disk.reset(taiyen::os::sim_power_cut(from.disk.get(), at.event, how, at.seed));
    if (how == sim_cut::process_death) {
        inherit(from, at.event, recovery);
    }
    finding found = recover(from, at, recovery);
    std::string leftovers = clear_leftovers();
    if (found.what == verdict::sound && !leftovers.empty()) {
        found = {verdict::inconsistent, "no heap is open, but there is " + leftovers};
    }
    return found;
}

void tally::count(phase in, bool second, const finding &found) {
    ++states;
    ++(second ? again : first)[static_cast<size_t>(in)];
    lost += found.what == verdict::lost;
    inconsistent += found.what == verdict::inconsistent;
    refused += found.what == verdict::refused;
}

void tally::add(const tally &other) {
    states += other.states;
    lost += other.lost;
    inconsistent += other.inconsistent;
    refused += other.refused;
    for (size_t i = 0; i < phases; ++i) {
        first[i] += other.first[i];
        again[i] += other.again[i];
    }
}

} // namespace crash
