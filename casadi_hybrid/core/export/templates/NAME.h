/* @NAME@: a nonlinear program with its solver, min f(x, p) s.t. lbg <= g(x, p) <= ubg,
 * lbx <= x <= ubx, written by casadi_hybrid @VERSION@.
 *
 * No allocation, no output, no globals but constant tables. A solve works in a @NAME@_memory: any
 * number of threads may solve at once, each with its own memory.
 *
@if cold@
 * The whole method of the package, with the same numbers and verdicts as in Python.
@end@
@if warm@
 * The warm mode of the method: Newton steps from a start with the multipliers of a solution nearby.
 * It does not search from an arbitrary start; a status tells why it failed.
@end@
 *
 * Signs: L = f + lam_g'g + lam_x'x; a multiplier is positive at an active upper bound and negative
 * at an active lower one. */
#ifndef @UPPER@_H
#define @UPPER@_H

#define @UPPER@_N_X @n_x@
#define @UPPER@_N_G @n_g@
#define @UPPER@_N_P @n_p@

/* Lengths of arrays, 1 in place of 0, which C does not allow. */
#define @UPPER@_PLACES_G @places_g@
#define @UPPER@_PLACES_P @places_p@

/* Memory of one solve besides its stack: numbers and integers of the method, then the work arrays
 * of the problem's functions. */
#define @UPPER@_NUMBERS @numbers@
#define @UPPER@_INTEGERS @integers@
#define @UPPER@_ENTRIES_J @entries_J@
@if cold@
#define @UPPER@_OWN @own@ /* for structures of the method; enough for pointers of 4 or 8 bytes */
@end@
#define @UPPER@_SIZE_ARG @size_arg@
#define @UPPER@_SIZE_RES @size_res@
#define @UPPER@_SIZE_IW @size_iw@
#define @UPPER@_SIZE_W @size_w@

/* Status of a solve, see @NAME@_word. */
enum {
@status_members@
};
@if cold@

/* Reason to stop, and the kind of the point; see @NAME@_stop_word and @NAME@_point_word. */
enum {
@stop_members@
};
enum {
@point_members@
};
@end@

/* Input of a solve. Start from a copy of @NAME@_stored and change the values that differ. */
typedef struct {
    double x0[@UPPER@_N_X];
    double p[@UPPER@_PLACES_P];
    /* Bounds may have other values than at the export, but not other kinds: a variable stays fixed
     * (lbx = ubx) or free; a row stays an equation (lbg = ubg), an inequality, or without bounds.
     * An absent bound is -INFINITY or INFINITY; one side of an inequality may come and go. */
    double lbx[@UPPER@_N_X], ubx[@UPPER@_N_X];
    double lbg[@UPPER@_PLACES_G], ubg[@UPPER@_PLACES_G];
    double lam_x0[@UPPER@_N_X], lam_g0[@UPPER@_PLACES_G];
    double tol;                                        /* tolerance of the scaled error */
    double feasibility, stationarity, complementarity; /* tolerances of unscaled residuals */
@if cold@
    /* Time limit in seconds, checked between steps, 0: none; and a monotonic clock in seconds,
     * NULL: none, and no time limit. */
    double max_time;
    double (*now)(void);
@end@
    int max_iter; /* Newton steps of all phases together */
    /* 1: the multipliers are those of a solution, even if all are zero (no active bound);
     * 0: multipliers that are all zero are no guess. */
    int of_solution;
} @NAME@_in;

@if cold@
/* Output of a solve: the best point of all phases. For refused numbers it is the start, and stop
 * and point have no meaning. */
@end@
@if warm@
/* Output of a solve. Unless status is @UPPER@_SOLVED, x is the last point and no solution. */
@end@
typedef struct {
    double x[@UPPER@_N_X], f, g[@UPPER@_PLACES_G];
    double lam_x[@UPPER@_N_X], lam_g[@UPPER@_PLACES_G];
    double feasibility, stationarity, complementarity; /* residuals at x, infinite if unknown */
@if cold@
    double certificate; /* slope of the violation at an infeasible x, else NaN; near zero the rows
                         * contradict each other around x */
@end@
    int status;
@if cold@
    int stop, point;
@end@
    int steps;   /* Newton steps */
    int factors; /* factorizations */
} @NAME@_out;

/* Memory of one solve at a time; its contents before a solve do not matter. */
typedef struct {
@if cold@
    double own[@UPPER@_OWN];
@end@
    double numbers[@UPPER@_NUMBERS];
    int integers[@UPPER@_INTEGERS];
    double gradient[@UPPER@_N_X], gradient0[@UPPER@_N_X];
    double J[@UPPER@_ENTRIES_J], J0[@UPPER@_ENTRIES_J];
    double w[@UPPER@_SIZE_W];
    int iw[@UPPER@_SIZE_IW];
    const double *arg[@UPPER@_SIZE_ARG];
    double *res[@UPPER@_SIZE_RES];
} @NAME@_memory;

#ifdef __cplusplus
extern "C" {
#endif

/* Solves in the memory of the caller; returns out->status. `in` and `out` do not overlap. */
int @NAME@_solve_in(@NAME@_memory *memory, const @NAME@_in *in, @NAME@_out *out);

/* Solves in static memory, for one thread. Programs that do not call it have no such memory. */
int @NAME@_solve(const @NAME@_in *in, @NAME@_out *out);

/* A status as a sentence. */
const char *@NAME@_word(int status);
@if cold@
const char *@NAME@_stop_word(int stop);
const char *@NAME@_point_word(int point);
@end@

/* Next start: x and the multipliers of a solution. Parameters and bounds stay as they are. */
void @NAME@_next(@NAME@_in *in, const @NAME@_out *out);

/* A start near a solution, with its multipliers, and the answer of the package from there. */
extern const @NAME@_in @NAME@_stored;
extern const @NAME@_out @NAME@_expected;

#ifdef __cplusplus
}
#endif

#endif
