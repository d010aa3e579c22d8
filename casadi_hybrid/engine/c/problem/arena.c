/* Memory that is handed out piece by piece, so that its size is known beforehand. */
#include "problem/problem.h"

double *hybrid_allocate(hybrid_arena *arena, long long count) {
    double *at = arena->doubles ? arena->doubles + arena->used_doubles : 0;
    arena->used_doubles += count;
    return at;
}

int *hybrid_allocate_ints(hybrid_arena *arena, long long count) {
    int *at = arena->ints ? arena->ints + arena->used_ints : 0;
    arena->used_ints += count;
    return at;
}
