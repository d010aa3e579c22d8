#include <stdio.h>
#include "NAME_control.h"
static NAME_controller controller;
static int back(const NAME_inputs *inputs, NAME_outputs *outputs) {
    double *u = (double *)outputs;
    (void)inputs;
    u[0] = 100.0;
    return 0;
}
static double ticks(void) {
    static double now;
    return now += 1.0;
}
int main(int argc, char **argv) {
    NAME_inputs inputs = NAME_written;
    NAME_outputs outputs;
    double *v = (double *)&inputs, *u = (double *)&outputs, plan[NAME_NUMBERS];
    int i, by, count;
    (void)argv, (void)ticks;
    NAME_begin(&controller);
    if (argc > 1) controller.fallback = back;
    while (scanf("%d", &controller.in.max_iter) == 1) {
        for (i = 0; i < UPPER_INPUTS; i++)
            if (scanf("%lf", v + i) != 1) return 1;
        CHANGE
        by = NAME_step(&controller, &inputs, &outputs);
        printf("%d %d", by, controller.out.status);
        for (i = 0; i < UPPER_OUTPUTS; i++) printf(" %.17g", u[i]);
        count = NAME_read(&controller, UPPER_READ_PLACE, plan);
        for (i = 0; i < count; i++) printf(" %.17g", plan[i]);
        printf("\n");
    }
    return 0;
}
