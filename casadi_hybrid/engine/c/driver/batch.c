/* Many solves on one plan, one after the other. Threads that share them have nothing in common but
 * what is read. */
#include <math.h>

#include "hybrid.h"

/* Points the numbers at their row. */
static void row_in(const hybrid_plan *plan, const double *at, hybrid_numbers *numbers) {
    numbers->x0 = at;
    numbers->p = numbers->x0 + plan->n_x;
    numbers->lbx = numbers->p + plan->n_p;
    numbers->ubx = numbers->lbx + plan->n_x;
    numbers->lbg = numbers->ubx + plan->n_x;
    numbers->ubg = numbers->lbg + plan->n_g;
    numbers->lam_x0 = numbers->ubg + plan->n_g;
    numbers->lam_g0 = numbers->lam_x0 + plan->n_x;
}

/* Points the answer at its row, and `f` and `lam_p` at theirs. */
static void row_out(const hybrid_plan *plan, double *at, hybrid_answer *answer, double **f,
                    double **lam_p) {
    answer->x = at;
    *f = answer->x + plan->n_x;
    answer->g = *f + 1;
    answer->lam_x = answer->g + plan->n_g;
    answer->lam_g = answer->lam_x + plan->n_x;
    *lam_p = answer->lam_g + plan->n_g;
    answer->gradient = *lam_p + plan->n_p;
    answer->J = answer->gradient + plan->n_x;
    answer->gradient0 = answer->J + plan->nnz_J;
    answer->J0 = answer->gradient0 + plan->n_x;
}

void hybrid_solve_batch(const hybrid_plan *plan, const hybrid_functions *functions,
                        const hybrid_slope *slope, const hybrid_numbers *common,
                        const hybrid_options *options, void *bytes, double *doubles, int *ints,
                        const hybrid_batch *batch, long long begin, long long end) {
    hybrid_numbers numbers = *common;
    long long sides = (long long)plan->n_x + plan->n_g;
    for (long long k = begin; k < end; k++) {
        hybrid_answer *answer = &batch->answers[k];
        double *f, *lam_p;
        int status;
        row_in(plan, batch->numbers + k * batch->numbers_each, &numbers);
        row_out(plan, batch->outputs + k * batch->outputs_each, answer, &f, &lam_p);
        numbers.side_x = batch->with_sides[k] ? batch->sides + k * sides : 0;
        numbers.side_g = batch->with_sides[k] ? numbers.side_x + plan->n_x : 0;
        status = hybrid_solve(plan, functions, &numbers, options, bytes, doubles, ints, answer);
        if (functions->observer && functions->observer->ended) return;
        if (status == HYBRID_BAD_NUMBERS || status == HYBRID_OTHER_PATTERN) continue;
        *f = answer->end.f;
        if (slope->evaluate(slope->self, answer->x, answer->lam_g, numbers.p, lam_p))
            for (int i = 0; i < plan->n_p; i++) lam_p[i] = NAN;
        for (int i = 0; i < plan->n_p; i++) lam_p[i] = -lam_p[i];
    }
}
