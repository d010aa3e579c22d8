/* What the core offers to whoever loads it. All names begin with hybrid_. */
#ifndef HYBRID_H
#define HYBRID_H

/* Raised whenever a function below takes or returns something else; the loader compares it. */
#define HYBRID_INTERFACE_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* HYBRID_INTERFACE_VERSION of the sources that the library was compiled from. */
int hybrid_interface_version(void);

/* a*b - c with the product rounded before the difference is taken: what a self-test asks for. */
double hybrid_rounded_difference(double a, double b, double c);

#ifdef __cplusplus
}
#endif
#endif
