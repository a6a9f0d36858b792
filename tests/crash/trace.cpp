#include "trace.hpp"

namespace crash {

const char *phase_name(phase what) {
    static constexpr const char *names[] = {"create",  "attach",   "detach",           "raise", "open",   "restore",
                                            "archive", "snapshot", "write back early", "apply", "commit", "durable",
                                            "close"};
    static_assert(sizeof names / sizeof names[0] == static_cast<size_t>(phase::count));
    return names[static_cast<size_t>(what)];
}

phase trace::phase_at(uint64_t event) const {
    phase found = phase::create;
    for (const call &one : calls) {
        if (one.first < event && one.first < one.last) { // a call without events has no states
            found = one.what;
        }
    }
    return found;
}

bool trace::unsafe_at(uint64_t event) const {
    if (mixture) {
        return true;
    }
    for (const call &one : unsafe) {
        if (one.first < event && event < one.last) {
            return true;
        }
    }
    return false;
}

trace::range trace::possible_at(uint64_t event) const {
    range possible{0, 0};
    for (size_t i = 0; i < points.size(); ++i) {
        if (points[i].acknowledged <= event) {
            possible.first = i;
        }
        if (points[i].inherited || points[i].started < event || points[i].acknowledged <= event) {
            possible.last = i;
        }
    }
    return possible;
}

void trace::inherit(const trace &from, uint64_t event) {
    const range possible = from.possible_at(event);
    points.clear();
    for (size_t i = possible.first; i <= possible.last; ++i) {
        points.push_back(from.points[i]);
        points.back().started = 0;
        points.back().inherited = true;
        points.back().acknowledged = i == possible.first ? 0 : point::never;
    }
}

void trace::acknowledge(size_t index) {
    uint64_t now = events();
    for (size_t i = 0; i <= index; ++i) {
        if (points[i].acknowledged == point::never) {
            points[i].acknowledged = now;
        }
    }
}

} // namespace crash
