// flame FILE.ty STEPS: a flame runs along a rod, computed in steps in time, and goes on where the last run has ended.
//
// The heat u of the rod follows du/dt = d2u/dx2 + r u (1 - u) (u - a). Cells are fine where the flame is: as it moves,
// they are split before it and joined behind it. Whether a step was too long is seen when all that has changed: a cell
// has burnt too much at once, or Newton's iteration did not converge. Then the heap goes back to the state before the
// step, and one of half the length is tried. Nothing here copies that state, or takes a change back.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <taiyen/taiyen.hpp>
#include <vector>

namespace {

constexpr double rate = 2, ignition = 0.1; // r and a
constexpr double coarsest = 4, finest = 0.1;
constexpr size_t coarse_cells = 100;
constexpr double shortest = 1e-6; // step
constexpr double lit_at = 20;
constexpr double steep = 0.04, flat = 0.005; // differences between neighbours
constexpr double hasty = 0.05;               // what a cell must not burn in one step

struct cell {
    double width, heat;
};
using rod = std::vector<cell, taiyen::allocator<cell>>;

double burnt(const rod &cells) {
    double sum = 0;
    for (const cell &each : cells)
        sum += each.width * each.heat;
    return sum;
}

double jump(const rod &cells, size_t left) {
    return left + 1 < cells.size() ? std::abs(cells[left].heat - cells[left + 1].heat) : 0;
}

// The rod with other cells. What two cells have burnt, the one that takes their place has.
rod adapted(const rod &from) {
    rod cells(from.get_allocator());
    for (size_t i = 0; i < from.size(); ++i) {
        const cell &here = from[i];
        const double beside = std::max(i > 0 ? jump(from, i - 1) : 0, jump(from, i));
        if (beside > steep && here.width > finest) {
            cells.insert(cells.end(), 2, cell{here.width / 2, here.heat});
        } else if (i + 1 < from.size() && std::max(beside, jump(from, i + 1)) < flat &&
                   here.width + from[i + 1].width <= coarsest) {
            const cell &next = from[i + 1];
            const double width = here.width + next.width;
            cells.push_back({width, (here.width * here.heat + next.width * next.heat) / width});
            ++i;
        } else {
            cells.push_back(here);
        }
    }
    return cells;
}

struct flame {
    explicit flame(taiyen::heap_view heap) : cells(coarse_cells, cell{coarsest, 0}, taiyen::allocator<cell>(heap)) {
        for (double width = coarsest; width > finest; width /= 2) {
            cells = adapted(cells);
            double place = -lit_at;
            for (cell &each : cells) {
                each.heat = 1 / (1 + std::exp(std::sqrt(rate / 2) * (place + each.width / 2)));
                place += each.width;
            }
        }
    }
    rod cells;
    double time = 0, length = 1; // of the next step
    double most_at_once = 0;     // has a cell burnt in a step
    unsigned long steps = 0, returns = 0;
};

// Newton's step towards the heat after `length`: a system of equations with three diagonals. Returns the greatest
// change.
double improve(rod &cells, const std::vector<double> &before, double length) {
    const size_t n = cells.size();
    std::vector<double> change(n), factor(n);
    auto conductance = [&](size_t i, size_t left) {
        return left + 1 < n ? 2 * length / ((cells[left].width + cells[left + 1].width) * cells[i].width) : 0;
    };
    for (size_t i = 0; i < n; ++i) {
        const double u = cells[i].heat;
        const double to_left = i > 0 ? conductance(i, i - 1) : 0, to_right = conductance(i, i);
        double missing = before[i] - u + length * rate * u * (1 - u) * (u - ignition);
        missing += i > 0 ? to_left * (cells[i - 1].heat - u + change[i - 1]) : 0;
        missing += i + 1 < n ? to_right * (cells[i + 1].heat - u) : 0;
        double pivot = 1 + to_left + to_right - length * rate * ((2 + 2 * ignition - 3 * u) * u - ignition);
        pivot -= i > 0 ? to_left * factor[i - 1] : 0;
        change[i] = missing / pivot;
        factor[i] = to_right / pivot;
    }
    double greatest = 0;
    for (size_t i = n; i-- > 0;) {
        change[i] += i + 1 < n ? factor[i] * change[i + 1] : 0;
        cells[i].heat += change[i];
        greatest = std::max(greatest, std::abs(change[i]));
    }
    return greatest;
}

// False: the step was too long, and the flame is in no state to go on from.
bool step(flame &f) {
    f.cells = adapted(f.cells);
    std::vector<double> before;
    for (const cell &each : f.cells)
        before.push_back(each.heat);
    double change = 1;
    for (int turn = 0; turn < 8 && change > 1e-9; ++turn)
        change = improve(f.cells, before, f.length);
    f.time += f.length;
    f.steps++;
    f.length *= 1.25;
    for (size_t i = 0; i < f.cells.size(); ++i)
        f.most_at_once = std::max(f.most_at_once, std::abs(f.cells[i].heat - before[i]));
    return f.most_at_once <= hasty && change <= 1e-9;
}

void run(const char *path, unsigned long steps) {
    taiyen::heap heap = taiyen::heap::open(path).value();
    flame &f = heap.root<flame>("flame", heap);
    heap.mark("start").value(); // as long as there is a mark, the next one costs what has changed
    for (const unsigned long end = f.steps + steps; f.steps < end && f.cells.back().heat < hasty;) {
        bool done = false;
        heap.attempt([&] { return done = step(f); }).value();
        if (!done) {
            f.length /= 2;
            f.returns++;
            if (f.length < shortest)
                throw std::runtime_error("no step is short enough");
        }
    }
    std::printf("after %lu steps and %lu returns: time %.3f, %zu cells, at most %.4f burnt at once\n"
                "speed %.5f; that of theory is %.5f\n",
                f.steps, f.returns, f.time, f.cells.size(), f.most_at_once, (burnt(f.cells) - lit_at) / f.time,
                std::sqrt(rate / 2) * (1 - 2 * ignition));
    heap.close().value();
}

} // namespace

int main(int argc, char **argv) {
    char *end = nullptr;
    const unsigned long steps = argc == 3 ? std::strtoul(argv[2], &end, 10) : 0;
    if (end == nullptr || *end != '\0' || end == argv[2]) {
        std::fprintf(stderr, "usage: flame FILE.ty STEPS\n");
        return 2;
    }
    try {
        run(argv[1], steps);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "flame: %s\n", error.what());
        return 1;
    }
}
