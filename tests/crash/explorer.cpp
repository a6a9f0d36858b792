#include "explorer.hpp"

#include "lost_files.hpp"

#include <sstream>

namespace crash {

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

using taiyen::os::sim_cut;

namespace {

// Whether the open that came after a loss was cut before it had made anything durable: so it could not yet make good
// what is unflushed.
bool cut_at_once(const trace &from, uint64_t event) {
    for (uint64_t i = from.first_event; i < event; ++i) {
        if (taiyen::os::sim_event_at(from.disk.get(), i) == taiyen::os::sim_event::flush) {
            return false;
        }
    }
    return true;
}

} // namespace

finding explore(const mode &of, const trace &from, const cut &at, trace &recovery, canary broken) {
    bool unsafe = from.unsafe_at(at.event); // the kernel would keep a dead process's pages; the simulation does not
    sim_cut how = at.how == sim_cut::process_death && unsafe ? sim_cut::keep_all : at.how;
    recovery.disk.reset(taiyen::os::sim_power_cut(from.disk.get(), at.event, how, at.seed));
    recovery.undo = from.undo;
    if (how == sim_cut::process_death) { // what was unflushed still is: a power cut may yet take it away
        recovery.first_event = at.event;
        recovery.inherit(from, at.event);
    }
    if (from.lost.how && cut_at_once(from, at.event)) {
        recovery.lost = from.lost;
    } else if (broken == canary::older_files) {
        put_older_files_back(from, at.event, at.seed, recovery);
    } else if (broken == canary::none) {
        lose_files(from, at.event, at.seed, recovery);
    }
    finding found = of.recover(from, at, recovery);
    if (found.what != verdict::sound && recovery.lost.how) {
        found.text += std::string(" (") + recovery.lost.name + " was " + recovery.lost.how + ")";
    }
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
