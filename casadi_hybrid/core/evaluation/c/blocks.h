/* Parts that repeat in a function: found in its list of operations, and evaluated.
 *
 * No allocation, no globals: arrays belong to the caller. Values are numbered in the order of their
 * computation. A leaf is an input or a constant: operation HYBRID_LEAF_INPUT or
 * HYBRID_LEAF_CONSTANT, its index in `a`. Any other value has an operation and one or two operands;
 * `b` < 0: one. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdint.h>

/* The hash h extended by one number. */
static inline uint64_t blocks_mixed(uint64_t h, uint64_t more) {
    h = (h ^ more) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 29);
}

/* Union-find: the first value of the part of v. */
static inline int blocks_root(int *part, int v) {
    while (part[v] != v) v = part[v] = part[part[v]];
    return v;
}
static inline void blocks_join(int *part, int v, int w) {
    int r = blocks_root(part, v), s = blocks_root(part, w);
    part[r < s ? s : r] = r < s ? r : s;
}

/* --- values.c: CasADi's instructions become values -------------------------------------------- */

/* Memory layout of a std::vector of integers. */
typedef struct {
    const long long *begin, *end, *room;
} blocks_vector;

/* Methods of casadi::Function, by the calling convention of C++, and operator delete. */
typedef struct {
    long long (*id)(const void *function, long long k);
    blocks_vector (*input)(const void *function, long long k);
    blocks_vector (*output)(const void *function, long long k);
    double (*constant)(const void *function, long long k);
    void (*release)(void *memory);
} blocks_casadi;

/* Numbers of the instructions that are no operations: CasADi's in blocks_read, else those of
 * operations.py. */
typedef struct {
    int constant, input, output;
} blocks_special;

/* Reads n instructions: operation, two operands and two results (-1: absent), and the value of a
 * constant. */
void blocks_read(const blocks_casadi *casadi, const void *function, long long n,
                 const blocks_special *special, int *operation, int *in0, int *in1, int *out0,
                 int *out1, double *constant);

enum { HYBRID_LEAF_INPUT = -1, HYBRID_LEAF_CONSTANT = -2 };

/* Static single assignment: every write to a register is a value, and equal operations on equal
 * values are one. `in_at`, `out_at`: offsets of the nonzeros of each input and output. `registers`,
 * `table` (size a power of two >= 2n, twice): work arrays. `result`: value of each nonzero of the
 * outputs. Returns the number of values; `pool` gets the *constants distinct constants. */
long long blocks_values(long long n, const int *operation, const int *in0, const int *in1,
                        const int *out0, const int *out1, const double *constant,
                        const blocks_special *special, const int *in_at, const int *out_at,
                        int *registers, long long table_size, int *table, int *op, int *a, int *b,
                        double *pool, int *constants, int *result);

/* How often each value is read by outputs and by values that an output needs. */
void blocks_uses(long long n, const int *op, const int *a, const int *b, long long outputs,
                 const int *result, int *uses);

/* --- parts.c: values that belong together ----------------------------------------------------- */

/* Cuts sums of at least `shortest` terms among values of mode > 0: every `piece`-th partial sum,
 * the terms, and each of the last few partial sums, so that the compiled code does not depend on
 * the number of terms. `length`, `down`: work arrays. */
void blocks_sums(long long n, const int *op, const int *a, const int *b, const int *uses,
                 const unsigned char *mode, int add, int subtract, int shortest, int piece,
                 int *length, int *down, unsigned char *cut);

/* Marks values that depend only on constants and `wide` inputs. */
void blocks_early(long long n, const int *op, const int *a, const int *b,
                  const unsigned char *wide, unsigned char *early);

/* Support of each value of mode 2, the set of inputs except `wide` ones it depends on, by number: 0
 * empty, 1 too large. `at` (sets + 1), `members`: the sets; `table`, `memo` (sizes powers of two;
 * an entry of memo has three numbers): work arrays. */
void blocks_supports(long long n, const int *op, const int *a, const int *b,
                     const unsigned char *mode, const unsigned char *wide, int largest,
                     long long most_sets, long long most_members, int *at, int *members,
                     long long table_size, int *table, long long memo_size, int *memo,
                     int *support);

/* Parts: connected values of one phase, without the edges that are cut. A value reads values of its
 * own phase only within its part, so the phases can be evaluated in order. `part`: first value of
 * each value's part, -1 for leaves and unused values. */
void blocks_parts(long long n, const int *op, const int *a, const int *b, const int *uses,
                  const unsigned char *mode, const unsigned char *cut, const unsigned char *early,
                  const int *support, int *phase, int *part);

/* --- kinds.c: equal parts --------------------------------------------------------------------- */

/* Shape of each part, four numbers a value: operation, two operands (the index in the part, or -2 -
 * slot for a value from outside, or -1 for none), and 1 + 2 * (outputs it goes to) + (1 if another
 * part reads it), or 0 if it does not leave the part. `order`: values by parts; `begin` (parts +
 * 1): offsets in it. `elsewhere`: values that another part reads. `slots`: values that enter part
 * k, from slot_begin[k]. `kind`: kind of each part; `first`: first part of each kind. Returns the
 * number of kinds. `place`, `stamp` (n each), `table` (size a power of two >= 2 parts): work. */
long long blocks_kinds(long long n, const int *op, const int *a, const int *b, long long parts,
                       const int *begin, const int *order, const int *part_of,
                       const int *to_outputs, const unsigned char *elsewhere, int *place,
                       int *stamp, int *shape, int *slots, int *slot_begin, long long table_size,
                       int *table, int *kind, int *first);

/* --- elements.c: terms and rows that share no value ------------------------------------------- */

/* Numbers of the linear operations, and terms of a sum from which it is one over all stages. */
typedef struct {
    int add, subtract, negate, multiply, twice, divide, longest;
} blocks_linear;

/* Terms of the sums `root`, their factors, and the sum of each in `owner`; returns their number.
 * `spine`: marks the values that add them up, read by nothing else. `stack`, `pending` (values +
 * 1): work arrays; `owner`, `term`, `factor`: values + roots at most. */
long long blocks_terms(long long roots, const int *root, const int *op, const int *a, const int *b,
                       const int *uses, const double *pool, const blocks_linear *words, int *stack,
                       double *pending, unsigned char *spine, int *owner, int *term,
                       double *factor);

/* Marks values of at most `most` operations as early too: every reader has a copy of its own. */
void blocks_small(long long n, const int *op, const int *a, const int *b, int most, int *size,
                  unsigned char *early);

/* Elements: connected `live` values. `part`: element of each value, numbered by their first values,
 * -1 if not live. Returns the number of elements. */
long long blocks_elements(long long n, const int *op, const int *a, const int *b,
                          const unsigned char *live, int *part);

/* Elements one after the other, each with copies of the early values that it reads. `order`,
 * `begin`: their values. `place`: new number of each leaf; of other values, on return, the number
 * in the last element that has them. New values are numbered from `first`, below `most`; those of
 * element k from new_begin[k]. Returns their end, -1 if `most` is too small. `stamp` (filled with
 * -1), `stack`: work arrays. */
long long blocks_closed(long long elements, const int *begin, const int *order, const int *op,
                        const int *a, const int *b, const unsigned char *early, int *place,
                        int *stamp, int *stack, long long first, long long most, int *new_begin,
                        int *new_op, int *new_a, int *new_b);

/* --- lanes.c: evaluation ---------------------------------------------------------------------- */

/* Evaluates `count` parts of one kind. `at`: a row of indices for each part; `shared`: indices that
 * all parts share; `v`: inputs, constants and values passed on; `own`: memory of a part. */
typedef void (*blocks_part)(long long count, const int *at, const int *shared, double *v,
                            double *out, double *own);

/* A kind of part as lines of four numbers, to be interpreted: an operation, the register that it
 * writes, the registers that it reads; or a transfer between registers and `v` or `out`. */
typedef struct {
    const int *lines;
    int n_lines, row; /* row: indices in `at` of one part */
} blocks_program;

typedef struct {
    blocks_part part; /* NULL: interpret the program */
    const int *at, *shared;
    long long count;
    blocks_program program;
} blocks_run;

/* Transfers: from `v` by `at` or `shared`, to an output, to `v` for other parts. */
enum {
    HYBRID_LINE_LOAD = -1,
    HYBRID_LINE_SHARED = -2,
    HYBRID_LINE_OUTPUT = -3,
    HYBRID_LINE_HAND_ON = -4
};

/* Lines of a kind of `size` operations of this `shape`; returns their number. A register is reused
 * after its last read, which keeps the working memory small. `slots`: their number, then for each
 * HYBRID_LINE_LOAD or HYBRID_LINE_SHARED and the index in `at` or `shared`. `leaving`: index in
 * `at` of the first value that leaves. `last`, `where`, `unused` (slots + operations): work. */
long long blocks_lines(long long size, const int *shape, const int *slots, int leaving, int *last,
                       int *where, int *unused, int *lines, int *registers);

/* Parts evaluated side by side; `own` has this many numbers for each register. */
#define HYBRID_LANES 32

typedef struct {
    const blocks_run *runs;
    long long n_runs;
    const int *source, *target; /* copies from v to outputs */
    long long n_copies;
    int sizes[3]; /* nonzeros of the inputs, consecutive in v */
    double *v, *own;
} blocks_function;

typedef struct {
    blocks_function first, second;
} blocks_functions;

/* hybrid_first and hybrid_second of a problem; `self` is a blocks_functions. */
int blocks_first(void *self, const double *x, const double *p, double *out);
int blocks_second(void *self, const double *x, const double *lam_g, const double *p, double *out);

#endif
