/* The version of a loaded library, and whether its products are rounded. */
#include "hybrid.h"

int hybrid_interface_version(void) { return HYBRID_INTERFACE_VERSION; }

/* A fused product would show here: it keeps the digits that rounding takes away. */
double hybrid_rounded_difference(double a, double b, double c) { return a * b - c; }
