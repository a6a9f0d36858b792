// How much the long tests do: what an ordinary run does, times TAIYEN_EFFORT (a number; `make nightly` sets it).
#pragma once

#include <algorithm>
#include <cstdlib>

namespace taiyen::test {

inline double effort_factor() {
    const char *given = std::getenv("TAIYEN_EFFORT");
    return given ? std::atof(given) : 1;
}

// So many rounds, or other things that are random; one at the least.
inline int effort(int ordinary) {
    return std::max(1, static_cast<int>(ordinary * effort_factor()));
}

// The step of a loop over all that could be tried: an ordinary run tries one of so many.
inline unsigned stride(unsigned ordinary) {
    return static_cast<unsigned>(std::max(1.0, ordinary / std::max(effort_factor(), 0.1)));
}

} // namespace taiyen::test
