// Where tests let other threads run: between any two accesses to what threads share. Nothing in the library itself.
#pragma once

namespace taiyen::stm {

#if defined(TAIYEN_PERTURBED)
void perturb(); // the test's
#else
inline void perturb() {}
#endif

} // namespace taiyen::stm
