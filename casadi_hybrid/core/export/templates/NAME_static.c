/* @NAME@_solve in static memory; leave this file out for a program without it. */
#include "@NAME@.h"

static @NAME@_memory memory;

int @NAME@_solve(const @NAME@_in *in, @NAME@_out *out) { return @NAME@_solve_in(&memory, in, out); }
