/* An example: one solve from the stored start, compared with Python's answer. */
#include <math.h>
#include <stdio.h>

#include "@NAME@.h"

int main(void) {
    static @NAME@_in in;
    static @NAME@_out out;
    double largest = 0.0;
    int i;
    in = @NAME@_stored;
    /* A controller sets in.p and the bounds here. */
    @NAME@_solve(&in, &out);
    printf("status %d: %s\n", out.status, @NAME@_word(out.status));
    printf("%d Newton steps, %d factorizations, f = %.17g\n", out.steps, out.factors, out.f);
    printf("residuals: feasibility %.2g, stationarity %.2g, complementarity %.2g\n",
           out.feasibility, out.stationarity, out.complementarity);
    for (i = 0; i < @UPPER@_N_X && i < 8; i++) printf("x[%d] = %.17g\n", i, out.x[i]);
    for (i = 0; i < @UPPER@_N_X; i++) {
        double size = fabs(@NAME@_expected.x[i]);
        double difference = fabs(out.x[i] - @NAME@_expected.x[i]) / (size > 1.0 ? size : 1.0);
        if (!(difference <= largest)) largest = difference;
    }
    printf("largest difference of x from Python's answer: %.2g\n", largest);
    return out.status == @UPPER@_SOLVED && largest <= @closeness@ ? 0 : 1;
}
