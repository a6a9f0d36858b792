// Where tests let other threads run: between any two accesses to shared state. Empty in the library itself.
#pragma once

namespace taiyen::stm {

#if defined(TAIYEN_PERTURBED)
void perturb(); // defined by the test
#else
inline void perturb() {}
#endif

} // namespace taiyen::stm
