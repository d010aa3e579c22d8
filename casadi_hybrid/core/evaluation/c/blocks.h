/* From the list of operations of a function to parts that repeat, and their evaluation.
 *
 * No allocation, no globals: arrays are the caller's. Values are numbered in the order in which
 * they are computed. A leaf is an input or a constant: operation LEAF_INPUT or LEAF_CONSTANT, the
 * place in `a`. Another value has an operation and one or two operands, `b` < 0 where there is one.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdint.h>

/* A hash of one more number. */
static inline uint64_t blocks_mixed(uint64_t h, uint64_t more) {
    h = (h ^ more) * UINT64_C(0x9E3779B97F4A7C15);
    return h ^ (h >> 29);
}

/* The first value of the part that v is joined to so far. */
static inline int blocks_root(int *part, int v) {
    while (part[v] != v) v = part[v] = part[part[v]];
    return v;
}
static inline void blocks_join(int *part, int v, int w) {
    int r = blocks_root(part, v), s = blocks_root(part, w);
    part[r < s ? s : r] = r < s ? r : s;
}

/* --- read.c: the list as CasADi gives it ------------------------------------------------------ */

/* A std::vector of whole numbers as it lies in memory. */
typedef struct {
    const long long *begin, *end, *room;
} blocks_vector;

/* The methods of casadi::Function, called as C++ calls them. */
typedef struct {
    long long (*id)(const void *function, long long k);
    blocks_vector (*input)(const void *function, long long k);
    blocks_vector (*output)(const void *function, long long k);
    double (*constant)(const void *function, long long k);
    void (*release)(void *memory);
} blocks_casadi;

/* Instructions that are no operation: by CasADi's numbers where they are read, else by those of
 * operations.py, as all operations. */
typedef struct {
    int constant, input, output;
} blocks_special;

/* Reads n instructions: operation, the two numbers of what it reads (-1 where there is none), the
 * two of what it writes, and the value of a constant. */
void blocks_read(const blocks_casadi *casadi, const void *function, long long n,
                 const blocks_special *special, int *operation, int *in0, int *in1, int *out0,
                 int *out1, double *constant);

/* --- values.c: registers become values -------------------------------------------------------- */

enum { LEAF_INPUT = -1, LEAF_CONSTANT = -2 };

/* Each register's content at a time is a value; equal operations on equal values are one. `in_at`
 * and `out_at`: where the nonzeros of each input and output begin. `registers` and `table` (a power
 * of two, at least 2n) are room. `result`: the value of each nonzero of the outputs. Returns how
 * many values there are; *constants becomes the number of different ones, which lie in `pool`. */
long long blocks_values(long long n, const int *operation, const int *in0, const int *in1,
                        const int *out0, const int *out1, const double *constant,
                        const blocks_special *special, const int *in_at, const int *out_at,
                        int *registers, long long table_size, int *table, int *op, int *a, int *b,
                        double *pool, int *constants, int *result);

/* How often each value is read, by values that some output needs and by outputs. Zero: by none. */
void blocks_uses(long long n, const int *op, const int *a, const int *b, long long outputs,
                 const int *result, int *uses);

/* --- parts.c: which values belong together ---------------------------------------------------- */

/* Long sums: of each that has `shortest` terms or more in values with `mode` above 0, every
 * `piece`-th partial sum is cut, and so are the terms and each of the last few partial sums: what
 * is compiled does not hang on the number of terms. `length` and `down` are room. */
void blocks_sums(long long n, const int *op, const int *a, const int *b, const int *uses,
                 const unsigned char *mode, int add, int subtract, int shortest, int piece,
                 int *length, int *down, unsigned char *cut);

/* Which values hang on constants and `wide` inputs alone. */
void blocks_early(long long n, const int *op, const int *a, const int *b,
                  const unsigned char *wide, unsigned char *early);

/* The sets of inputs, `wide` ones left out, that the values of mode 2 hang on, as numbers of sets:
 * 0 none, 1 too many to tell. `at` (sets + 1), `members`: room for the sets; `table` and `memo`
 * (powers of two; memo has three numbers an entry): room for finding them. */
void blocks_supports(long long n, const int *op, const int *a, const int *b,
                     const unsigned char *mode, const unsigned char *wide, int largest,
                     long long most_sets, long long most_members, int *at, int *members,
                     long long table_size, int *table, long long memo_size, int *memo,
                     int *support);

/* Parts: values joined by what one reads of another in the same phase, where it is not cut. A phase
 * reads of itself within a part alone, so that phases one after the other have what they need.
 * `base`: the least phase of values with mode above 0 that are not `early`. `part`: the first value
 * of each one's part, -1 for leaves and for what nobody needs. */
void blocks_parts(long long n, const int *op, const int *a, const int *b, const int *uses,
                  const unsigned char *mode, const unsigned char *cut, const unsigned char *early,
                  const int *support, int *phase, int *part);

/* --- kinds.c: which parts are equal ----------------------------------------------------------- */

/* The shape of each part, four numbers a value: its operation, two operands (of the part by their
 * place in it, others as -2 - slot, -1 for none), and, where it is read from outside the part, to
 * how many outputs it goes, twice, with one added where other parts read it, plus one; else 0.
 * `order`: the values by parts; `begin` (parts + 1): where each begins in it. `elsewhere`: whether a
 * value is read by another part. `slots`: the values behind the slots, those of part k from
 * slot_begin[k]. `kind`: of each part, numbered as they come; `first`: the first part of each.
 * Returns the number of kinds. `place`, `stamp` (n each), `table` (a power of two, at least twice
 * the parts) are room. */
long long blocks_kinds(long long n, const int *op, const int *a, const int *b, long long parts,
                       const int *begin, const int *order, const int *part_of,
                       const int *to_outputs, const unsigned char *elsewhere, int *place,
                       int *stamp, int *shape, int *slots, int *slot_begin, long long table_size,
                       int *table, int *kind, int *first);

/* --- elements.c: what shares no value with the rest ------------------------------------------- */

/* The numbers of what is linear, and from how many terms on a sum is that of all stages. */
typedef struct {
    int add, subtract, negate, multiply, twice, divide, longest;
} blocks_linear;

/* The terms of the sums that the values `root` are, with their factors, and in `owner` which sum each
 * is in; returns how many. `spine`: the values that add them up, which nobody else reads. Of `stack`
 * and `pending` as many as there are values are room; `owner`, `term` and `factor` have at most as
 * many as there are values and roots. */
long long blocks_terms(long long roots, const int *root, const int *op, const int *a, const int *b,
                       const int *uses, const double *pool, const blocks_linear *words, int *stack,
                       double *pending, unsigned char *spine, int *owner, int *term,
                       double *factor);

/* Values of at most `most` operations, each copied for who reads it: they join nothing either. */
void blocks_small(long long n, const int *op, const int *a, const int *b, int most, int *size,
                  unsigned char *early);

/* Values joined by what one reads of another, where both are `live`. `part`: the element of each,
 * in the order of their first values, -1 for what is not live. Returns how many there are. */
long long blocks_elements(long long n, const int *op, const int *a, const int *b,
                          const unsigned char *live, int *part);

/* The elements one after the other, each with copies of its own of the early values that it reads.
 * `order`, `begin`: their values. `place`: of leaves, their new numbers, and of the others, in the
 * end, those in the element that has them last. New values are numbered from `first` on, below
 * `most`; those of element k from new_begin[k]. Returns their end, -1 where there is no room.
 * `stamp` (-1) and `stack` are room. */
long long blocks_closed(long long elements, const int *begin, const int *order, const int *op,
                        const int *a, const int *b, const unsigned char *early, int *place,
                        int *stamp, int *stack, long long first, long long most, int *new_begin,
                        int *new_op, int *new_a, int *new_b);

/* --- run.c: evaluation ------------------------------------------------------------------------ */

/* `count` parts of one kind: rows of places in `at`, places that all share in `shared`; `v` has
 * inputs, constants and what parts hand to each other, `own` is memory of one part. */
typedef void (*blocks_part)(long long count, const int *at, const int *shared, double *v,
                            double *out, double *own);

/* The same as a list of lines of four numbers, for who has no compiler: an operation, the register
 * that it makes, those that it reads; or what lanes.c says of what comes in and goes out. */
typedef struct {
    const int *lines;
    int n_lines, row; /* row: numbers in `at` of one part */
} blocks_program;

typedef struct {
    blocks_part part; /* NULL: by the list */
    const int *at, *shared;
    long long count;
    blocks_program program;
} blocks_run;

/* Lines that are no operation: what comes in and goes out. */
enum { LINE_LOAD = -1, LINE_SHARED = -2, LINE_OUTPUT = -3, LINE_HAND_ON = -4 };

/* The lines of a kind of `size` operations, four numbers each in `shape`; returns how many there
 * are. A register is free again after the last line that reads it, so that what is at hand stays
 * small. `slots`: how many, then for each LINE_LOAD or LINE_SHARED and the place in `at` or
 * `shared`. `leaving`: the place in `at` of the first number that leaves. `last`, `where` (slots and
 * operations each) and `unused` (as many) are room. */
long long blocks_lines(long long size, const int *shape, const int *slots, int leaving, int *last,
                       int *where, int *unused, int *lines, int *registers);

/* How many parts are evaluated side by side; `own` has so many numbers for each register. */
#define BLOCKS_LANES 32

/* `count` parts by their list. */
void blocks_lanes(const blocks_program *program, long long count, const int *at, const int *shared,
                  double *v, double *out, double *own);

typedef struct {
    const blocks_run *runs;
    long long n_runs;
    const int *from, *to; /* outputs that are inputs or constants: where in v, and where to */
    long long n_copies;
    int sizes[3];         /* of the inputs, which lie in v one after the other */
    double *v, *own;
} blocks_function;

typedef struct {
    blocks_function first, second;
} blocks_functions;

/* As the engine calls the functions of a problem; `self` is a blocks_functions. */
int blocks_first(void *self, const double *x, const double *p, double *out);
int blocks_second(void *self, const double *x, const double *lam_g, const double *p, double *out);

#endif
