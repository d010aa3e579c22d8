/* The solver of @NAME@: its functions and its plan, handed to the core. */
#include <math.h>
#include <string.h>

#include "@NAME@.h"
#include "core/hybrid.h"

extern const hybrid_plan @NAME@_plan;

/* Version of the core that this file needs; it does not link with another one. */
extern const int @MARK@;

/* @NAME@_functions.c */
int @NAME@_first(const double **arg, double **res, int *iw, double *w, int mem);
int @NAME@_second(const double **arg, double **res, int *iw, double *w, int mem);
@if cold@

/* Options of the phases of a solve. */
static const hybrid_options options = {
@options@};
@end@

/* x, p -> f, grad f, g, J, one after the other. */
static int first(void *self, const double *x, const double *p, double *out) {
    @NAME@_memory *memory = self;
    memory->arg[0] = x;
    memory->arg[1] = p;
    memory->res[0] = out;
    memory->res[1] = out + 1;
    memory->res[2] = out + @g_at@;
    memory->res[3] = out + @J_at@;
    return @NAME@_first(memory->arg, memory->res, memory->iw, memory->w, 0);
}

/* x, lam_g, p -> the Hessian of L. */
static int second(void *self, const double *x, const double *lam_g, const double *p, double *out) {
    @NAME@_memory *memory = self;
    memory->arg[0] = x;
    memory->arg[1] = lam_g;
    memory->arg[2] = p;
    memory->res[0] = out;
    return @NAME@_second(memory->arg, memory->res, memory->iw, memory->w, 0);
}

/* The working set of a solution at which nothing is active. */
static const signed char no_side_x[@UPPER@_N_X], no_side_g[@UPPER@_PLACES_G];

static int all_zero(const double *v, int count) {
    while (count > 0)
        if (v[--count] != 0.0) return 0;
    return 1;
}

int @NAME@_solve_in(@NAME@_memory *memory, const @NAME@_in *in, @NAME@_out *out) {
    hybrid_functions functions = {.first = first, .second = second, .self = memory};
    hybrid_numbers numbers = {
        .x0 = in->x0, .p = in->p, .lbx = in->lbx, .ubx = in->ubx, .lbg = in->lbg, .ubg = in->ubg,
        .lam_x0 = in->lam_x0, .lam_g0 = in->lam_g0, .tol = in->tol, .max_iter = in->max_iter,
        .feasibility = in->feasibility, .stationarity = in->stationarity,
        .complementarity = in->complementarity,
    };
    hybrid_answer answer = {
        .status = @MARK@, .x = out->x, .g = out->g, .lam_x = out->lam_x, .lam_g = out->lam_g,
        .gradient = memory->gradient, .gradient0 = memory->gradient0,
        .J = memory->J, .J0 = memory->J0,
    };
    answer.end.f = answer.end.feasibility = INFINITY;
    answer.end.stationarity = answer.end.complementarity = INFINITY;
@if cold@
    answer.stop = HYBRID_STOP_STALLED;
    answer.point = HYBRID_UNDEFINED_POINT;
    answer.certificate = NAN;
    functions.now = in->now;
    if (in->now) numbers.max_time = in->max_time;
@end@
    if (in->of_solution && all_zero(in->lam_x0, @UPPER@_N_X) &&
        all_zero(in->lam_g0, @UPPER@_N_G)) {
        numbers.side_x = no_side_x;
        numbers.side_g = no_side_g;
    }
    /* The output is the start until there is a better point. */
    memcpy(out->x, in->x0, sizeof out->x);
    memset(out->g, 0, sizeof out->g);
    memcpy(out->lam_x, in->lam_x0, sizeof out->lam_x);
    memcpy(out->lam_g, in->lam_g0, sizeof out->lam_g);
@if cold@
    out->status = hybrid_solve(&@NAME@_plan, &functions, &numbers, &options, memory->own,
                                   memory->numbers, memory->integers, &answer);
    if (out->status != HYBRID_BAD_NUMBERS && out->status != HYBRID_OTHER_PATTERN)
        out->status = answer.point == HYBRID_KKT_POINT ? @UPPER@_SOLVED : @UPPER@_UNSOLVED;
    out->stop = answer.stop;
    out->point = answer.point;
    out->certificate = answer.certificate;
@end@
@if warm@
    out->status = hybrid_sqp(&@NAME@_plan, &functions, &numbers, memory->numbers,
                              memory->integers, &answer);
@end@
    out->f = answer.end.f;
    out->feasibility = answer.end.feasibility;
    out->stationarity = answer.end.stationarity;
    out->complementarity = answer.end.complementarity;
    out->steps = answer.steps;
    out->factors = answer.factors;
    return out->status;
}

void @NAME@_next(@NAME@_in *in, const @NAME@_out *out) {
    memcpy(in->x0, out->x, sizeof in->x0);
    memcpy(in->lam_x0, out->lam_x, sizeof in->lam_x0);
    memcpy(in->lam_g0, out->lam_g, sizeof in->lam_g0);
    in->of_solution = 1;
}

const char *@NAME@_word(int status) {
    switch (status) {
@status_cases@
    default: return "no status of this solver";
    }
}
@if cold@

const char *@NAME@_stop_word(int stop) {
    switch (stop) {
@stop_cases@
    default: return "no reason of this solver";
    }
}

const char *@NAME@_point_word(int point) {
    switch (point) {
@point_cases@
    default: return "no point of this solver";
    }
}
@end@
