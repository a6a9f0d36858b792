// Random drawing: for tests, and for the process that the demo kills.
#pragma once

#include "session.hpp"
#include <random>

namespace draw {

class random_editor {
public:
    // Expects a drawing with the layers of read_countries. Never undoes the oldest `keep` changes.
    random_editor(session &s, uint64_t seed, uint64_t keep) : session_(s), random_(seed), keep_(keep) {}

    // One change, or some that are undone or redone. Returns the commands that did it.
    std::string work();

private:
    uint64_t below(uint64_t bound) { return random_() % bound; }
    std::string number(double low, double high);
    std::string some_id(bool only_lines);
    std::string selection();
    std::string shape();
    std::string next_commands();

    session &session_;
    std::mt19937_64 random_;
    uint64_t keep_;
};

} // namespace draw
