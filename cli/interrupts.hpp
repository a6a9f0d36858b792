// Commands that go on until an interrupt (SIGINT, SIGTERM) ends them.
#pragma once

#include <cstdint>

namespace cli {

// From now on an interrupt does not end the process, but interrupted() says so.
void end_with_interrupts();
bool interrupted();
// Waits so long, or until an interrupt.
void pause_ms(uint64_t ms);

} // namespace cli
