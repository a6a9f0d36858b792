#include "common/interrupts.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>

namespace cli {

namespace {

volatile std::sig_atomic_t interrupt = 0;

void handle(void (*handler)(int)) {
    struct sigaction how {};
    how.sa_handler = handler;
    how.sa_flags = SA_RESTART; // a line being written is completed; pauses end all the same
    sigaction(SIGINT, &how, nullptr);
    sigaction(SIGTERM, &how, nullptr);
}

} // namespace

void end_with_interrupts() {
    handle([](int) { interrupt = 1; });
}

ends_at_once::ends_at_once() {
    handle(SIG_DFL);
}

ends_at_once::~ends_at_once() {
    end_with_interrupts();
}

bool interrupted() {
    return interrupt != 0;
}

void pause_ms(uint64_t ms) {
    constexpr uint64_t slice_ms = 200; // an interrupt right before nanosleep does not end the sleep
    for (uint64_t waited = 0; waited < ms && !interrupt; waited += slice_ms) {
        const auto slice = static_cast<long>(std::min(slice_ms, ms - waited));
        const std::timespec time{0, slice * 1'000'000};
        nanosleep(&time, nullptr);
    }
}

} // namespace cli
