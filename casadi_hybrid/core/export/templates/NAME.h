/* @NAME@: a nonlinear program with its solver, min f(x, p) s.t. lbg <= g(x, p) <= ubg,
 * lbx <= x <= ubx, written by casadi_hybrid @VERSION@.
 *
 * Nothing is allocated, nothing is printed, and there are no globals but constant tables: a solve
 * lives in a @NAME@_memory, so any number of threads may solve at once, each with its own.
 *
@if cold@
 * It is the whole method of the package, with the numbers and the verdicts that Python gives.
@end@
@if warm@
 * It is the warm mode of the method: Newton steps from a start that has the multipliers of a
 * solution nearby. It does not search from nowhere; a status says where it gave up.
@end@
 *
 * Signs: L = f + lam_g'g + lam_x'x; a multiplier is positive at an active upper bound and negative
 * at an active lower one. */
#ifndef @UPPER@_H
#define @UPPER@_H

#define @UPPER@_N_X @n_x@
#define @UPPER@_N_G @n_g@
#define @UPPER@_N_P @n_p@

/* Places of arrays; C has none of length 0. */
#define @UPPER@_PLACES_G @places_g@
#define @UPPER@_PLACES_P @places_p@

/* What one solve needs, beside its stack: numbers and whole numbers of the method, then those of
 * the problem's functions. */
#define @UPPER@_NUMBERS @numbers@
#define @UPPER@_INTEGERS @integers@
#define @UPPER@_ENTRIES_J @entries_J@
@if cold@
#define @UPPER@_OWN @own@ /* of its structures; with pointers of 4 bytes that is more than they need */
@end@
#define @UPPER@_SIZE_ARG @size_arg@
#define @UPPER@_SIZE_RES @size_res@
#define @UPPER@_SIZE_IW @size_iw@
#define @UPPER@_SIZE_W @size_w@

/* How a solve ended; @NAME@_word says it in words. */
enum {
@status_members@
};
@if cold@

/* Why it has stopped, and what its point is; @NAME@_stop_word and @NAME@_point_word say it. */
enum {
@stop_members@
};
enum {
@point_members@
};
@end@

/* What a solve begins with. Begin with a copy of @NAME@_stored and change what differs. */
typedef struct {
    double x0[@UPPER@_N_X];
    double p[@UPPER@_PLACES_P];
    /* Bounds may have other values than at the export, not other kinds: a variable that was fixed
     * (lbx = ubx) or free stays so; a row that was an equation (lbg = ubg), an inequality, or
     * without any bound stays so. An absent bound is -INFINITY or INFINITY, and one side of an
     * inequality may come and go. */
    double lbx[@UPPER@_N_X], ubx[@UPPER@_N_X];
    double lbg[@UPPER@_PLACES_G], ubg[@UPPER@_PLACES_G];
    double lam_x0[@UPPER@_N_X], lam_g0[@UPPER@_PLACES_G];
    double tol;                                        /* of the scaled error */
    double feasibility, stationarity, complementarity; /* of the residuals, unscaled */
@if cold@
    /* Seconds of a clock that only goes forward, and how many a solve may take, which looks at the
     * clock between steps; 0: no limit. NULL: there is no clock and no limit but max_iter. */
    double max_time;
    double (*now)(void);
@end@
    int max_iter; /* Newton steps of all runs together */
    /* 1: the multipliers are those of a solution, also where all are zero, since no bound was
     * active; 0: where all are zero there are none. */
    int of_solution;
} @NAME@_in;

@if cold@
/* What a solve found: the best point of all runs, whatever they have come to. Where numbers were
 * refused it is the start, and stop and point say nothing. */
@end@
@if warm@
/* What a solve found. At another status than @UPPER@_SOLVED x is the last point, not a solution. */
@end@
typedef struct {
    double x[@UPPER@_N_X], f, g[@UPPER@_PLACES_G];
    double lam_x[@UPPER@_N_X], lam_g[@UPPER@_PLACES_G];
    double feasibility, stationarity, complementarity; /* residuals at x, infinite where unknown */
@if cold@
    double certificate; /* the slope of the violation where x is not feasible, else NaN: with next to
                         * none the rows contradict each other around x */
@end@
    int status;
@if cold@
    int stop, point;
@end@
    int steps;   /* Newton steps */
    int factors; /* factorizations */
} @NAME@_out;

/* The memory of one solve at a time. What is in it before a solve does not matter. */
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

/* Solves in memory that is handed in; returns out->status. `in` and `out` are apart. */
int @NAME@_solve_in(@NAME@_memory *memory, const @NAME@_in *in, @NAME@_out *out);

/* The same in static memory of its own: for one thread. Who does not call it has no such memory. */
int @NAME@_solve(const @NAME@_in *in, @NAME@_out *out);

/* A status as a sentence. */
const char *@NAME@_word(int status);
@if cold@
const char *@NAME@_stop_word(int stop);
const char *@NAME@_point_word(int point);
@end@

/* The next start: x and the multipliers of a solution. Parameters and bounds stay as they are. */
void @NAME@_next(@NAME@_in *in, const @NAME@_out *out);

/* A start beside a solution, with its multipliers, and what the package answers from there. */
extern const @NAME@_in @NAME@_stored;
extern const @NAME@_out @NAME@_expected;

#ifdef __cplusplus
}
#endif

#endif
