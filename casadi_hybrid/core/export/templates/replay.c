/* Solves the problems that it reads: x0, p, lbx, ubx, lbg, ubg, lam_x0, lam_g0, of_solution of
 * each, separated by blanks. Every answer is a line: status, steps, f, x, g, lam_x, lam_g. */
#include <stdio.h>

#include "@NAME@.h"

static int read(double *to, int count) {
    int i;
    for (i = 0; i < count; i++)
        if (scanf("%lf", &to[i]) != 1) return 0;
    return 1;
}

static void show(const double *from, int count) {
    int i;
    for (i = 0; i < count; i++) printf(" %.17g", from[i]);
}

int main(void) {
    double of_solution;
    static @NAME@_in in;
    static @NAME@_out out;
    in = @NAME@_stored; /* for the tolerances */
    while (read(in.x0, @UPPER@_N_X) && read(in.p, @UPPER@_N_P) && read(in.lbx, @UPPER@_N_X) &&
           read(in.ubx, @UPPER@_N_X) && read(in.lbg, @UPPER@_N_G) && read(in.ubg, @UPPER@_N_G) &&
           read(in.lam_x0, @UPPER@_N_X) && read(in.lam_g0, @UPPER@_N_G) &&
           read(&of_solution, 1)) {
        in.of_solution = of_solution != 0.0;
        @NAME@_solve(&in, &out);
        printf("%d %d %.17g", out.status, out.steps, out.f);
        show(out.x, @UPPER@_N_X);
        show(out.g, @UPPER@_N_G);
        show(out.lam_x, @UPPER@_N_X);
        show(out.lam_g, @UPPER@_N_G);
        printf("\n");
    }
    return ferror(stdin) ? 1 : 0;
}
