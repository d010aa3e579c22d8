#include <stdio.h>
int s_first(const double **arg, double **res, int *iw, double *w, int mem);
int s_second(const double **arg, double **res, int *iw, double *w, int mem);
static double x[%(x)d + 1], lam[%(lam)d + 1], p[%(p)d + 1], w[%(w)d], out[%(out)d];
static void read(double *to, int count) {
    for (int i = 0; i < count; i++)
        if (scanf("%%lf", to + i) != 1) to[i] = 0.0;
}
static void say(int count) {
    for (int i = 0; i < count; i++) printf("%%.17g\n", out[i]);
}
int main(void) {
    const double *first[2] = {x, p}, *second[3] = {x, lam, p};
    double *res[1] = {out};
    read(x, %(x)d);
    read(lam, %(lam)d);
    read(p, %(p)d);
    for (int i = 0; i < %(w)d; i++) w[i] = 1e300;
    if (s_first(first, res, 0, w, 0)) return 1;
    say(%(first)d);
    if (s_second(second, res, 0, w, 0)) return 2;
    say(%(second)d);
    return 0;
}
