// Which thread of the block runs next.
#pragma once
#include "machine.h"

namespace simt {

// Runs all threads of the block that `machine` describes; returns when they have exited or the
// launch was aborted.
void run_block();

void make_ready(Thread& t);
// Suspends the current thread, whose state says what it waits for, until it is made ready.
void wait_until_ready();

// Parts of exiting that belong to collectives.cpp: a lane that is gone is waited for no longer.
void exit_leaves_warp(Warp& warp);
void exit_leaves_block();
void reset_barrier();

}  // namespace simt
