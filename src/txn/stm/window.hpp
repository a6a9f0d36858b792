// The window of a transaction (taiyen/detail/atomic_window.h), as the library and its tests compile it. Q1: its
// ty_detail_read() reads the orec before and after the word, and takes no word of a commit after the start.
#pragma once

#include "perturb.hpp"
#include "src/os/os.hpp"

#define TY_DETAIL_PERTURB() ::taiyen::stm::perturb()
#define TY_DETAIL_FAULT(site) ::taiyen::fault(site)
#ifdef TAIYEN_DETAIL_ATOMIC_WINDOW_H
#error "include it before what programs include"
#endif
#include <taiyen/detail/atomic_window.h>
