// Commands that go on until an interrupt (SIGINT, SIGTERM) ends them.
#pragma once

#include <cstdint>

namespace cli {

// From now on an interrupt does not end the process, but interrupted() says so.
void end_with_interrupts();
bool interrupted();
// While it is there, an interrupt ends the process at once again: for what takes long, and may be cut off.
class ends_at_once {
public:
    ends_at_once();
    ~ends_at_once();
    ends_at_once(const ends_at_once &) = delete;
};
// Waits so long, or until an interrupt.
void pause_ms(uint64_t ms);

} // namespace cli
