/* Evaluation of a function, one run after another, each a loop over parts of one kind.
 *
 * An interpreted run takes many parts side by side: each line of the program for all of them, which
 * spreads the cost of reading the line and uses the processor's vector instructions. */
#include <math.h>
#include <string.h>

#include "blocks.h"

#define CASE(number, name, formula)                   \
    case number:                                      \
        for (i = 0; i < width; i++) z[i] = (formula); \
        break;

static void operate(int operation, int width, const double *restrict x, const double *restrict y,
                    double *restrict z) {
    int i;
    switch (operation) {
#include "operations.h"
    default:
        break;
    }
}

/* Evaluates `lanes` parts; copies of the last one fill the vectors to a multiple of four. */
static void side_by_side(const blocks_program *program, int lanes, const int *at,
                         const int *shared, double *v, double *out, double *own) {
    const int *line = program->lines, *end = line + 4 * program->n_lines;
    const long long row = program->row;
    const int width = (lanes + 3) & ~3;
    int i;
    for (; line < end; line += 4) {
        double *z = own + (long long)line[1] * HYBRID_LANES;
        const int *place = at + line[2];
        if (line[0] >= 0) {
            operate(line[0], width, own + (long long)line[2] * HYBRID_LANES,
                    own + (long long)line[3] * HYBRID_LANES, z);
        } else if (line[0] == HYBRID_LINE_LOAD) {
            for (i = 0; i < lanes; i++) z[i] = v[place[i * row]];
            for (; i < width; i++) z[i] = z[lanes - 1];
        } else if (line[0] == HYBRID_LINE_SHARED) {
            for (i = 0; i < width; i++) z[i] = v[shared[line[2]]];
        } else {
            double *to = line[0] == HYBRID_LINE_OUTPUT ? out : v;
            for (i = 0; i < lanes; i++) to[place[i * row]] = z[i];
        }
    }
}

static void interpret(const blocks_run *run, double *v, double *out, double *own) {
    const int *at = run->at;
    long long count = run->count, batches = (count + HYBRID_LANES - 1) / HYBRID_LANES;
    for (; batches > 0; batches--) {
        int lanes = (int)((count + batches - 1) / batches);
        side_by_side(&run->program, lanes, at, run->shared, v, out, own);
        at += lanes * (long long)run->program.row;
        count -= lanes;
    }
}

static int evaluate(const blocks_function *function, const double *const *values, int count,
                    double *out) {
    double *v = function->v, *own = function->own, *next = v;
    for (int i = 0; i < count; i++) {
        const int size = function->sizes[i];
        if (size) memcpy(next, values[i], (size_t)size * sizeof(double));
        next += size;
    }
    for (long long k = 0; k < function->n_runs; k++) {
        const blocks_run *run = &function->runs[k];
        if (run->part) run->part(run->count, run->at, run->shared, v, out, own);
        else interpret(run, v, out, own);
    }
    for (long long k = 0; k < function->n_copies; k++)
        out[function->target[k]] = v[function->source[k]];
    return 0;
}

int blocks_first(void *self, const double *x, const double *p, double *out) {
    const double *values[2] = {x, p};
    return evaluate(&((blocks_functions *)self)->first, values, 2, out);
}

int blocks_second(void *self, const double *x, const double *lam_g, const double *p, double *out) {
    const double *values[3] = {x, lam_g, p};
    return evaluate(&((blocks_functions *)self)->second, values, 3, out);
}
