/* @NAME@_solve in static memory. Leave this file out to have none. */
#include "@NAME@.h"

static @NAME@_memory memory;

int @NAME@_solve(const @NAME@_in *in, @NAME@_out *out) { return @NAME@_solve_in(&memory, in, out); }
