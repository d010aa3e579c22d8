/* Parts of one kind evaluated side by side: each line of the program for many parts at once, which
 * spreads the cost of reading the line and uses the processor's vector instructions. */
#include <math.h>

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

void blocks_lanes(const blocks_program *program, long long count, const int *at, const int *shared,
                  double *v, double *out, double *own) {
    long long pieces = (count + HYBRID_LANES - 1) / HYBRID_LANES;
    for (; pieces > 0; pieces--) {
        int lanes = (int)((count + pieces - 1) / pieces);
        side_by_side(program, lanes, at, shared, v, out, own);
        at += lanes * (long long)program->row;
        count -= lanes;
    }
}
