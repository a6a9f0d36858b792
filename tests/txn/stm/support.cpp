#include "support.hpp"

#include <atomic>

namespace taiyen::test {

static std::atomic<unsigned> one_in{0};

void perturb_one_in(unsigned places) {
    one_in.store(places, std::memory_order_relaxed);
}

} // namespace taiyen::test

// The test program has the layer's code built with this in it.
void taiyen::stm::perturb() {
    thread_local taiyen::test::dice dice(taiyen::os::thread_id());
    const unsigned places = taiyen::test::one_in.load(std::memory_order_relaxed);
    if (places != 0 && dice.below(places) == 0)
        taiyen::os::yield();
}
