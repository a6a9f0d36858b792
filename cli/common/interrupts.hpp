// For commands that run until an interrupt (SIGINT, SIGTERM) ends them.
#pragma once

#include <cstdint>

namespace cli {

// From now on, an interrupt does not end the process: interrupted() reports it.
void end_with_interrupts();
bool interrupted();
// While it exists, an interrupt ends the process at once again: for long work that may be cut off.
class ends_at_once {
public:
    ends_at_once();
    ~ends_at_once();
    ends_at_once(const ends_at_once &) = delete;
};
// Waits so long, or until an interrupt.
void pause_ms(uint64_t ms);

} // namespace cli
