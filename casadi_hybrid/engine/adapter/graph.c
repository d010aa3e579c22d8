/* A solver in CasADi's graphs: one row of numbers in; out come the row of answers, which branch of
 * the graph has them, a zero, and the starts again.
 *
 * CasADi calls this from any thread and without Python's lock. Each call has a slot of memory to
 * itself; Python is asked only for a slot that is used for the first time, whose bounds have become
 * of other kinds, or whose functions have been compiled meanwhile. What is not solved here is left
 * to the branch that calls Python. */
#include "graph.h"

#include <math.h>
#ifdef _WIN32 /* not windows.h, which makes `near` an empty word */
__declspec(dllimport) unsigned long __stdcall GetCurrentThreadId(void);
#else
#include <pthread.h>
#endif
#include <string.h>

enum { ANSWER = 0, BRANCH = 1, ZERO = 2, STARTS = 3 };

static hybrid_pool *attached;

static const casadi_int number[] = {1, 1, 1};

void hybrid_attach_pool(hybrid_pool *pool) { attached = pool; }

casadi_int hybrid_in_graph_n_in(void) { return 1; }

casadi_int hybrid_in_graph_n_out(void) { return 4; }

const casadi_int *hybrid_in_graph_sparsity_in(casadi_int i) {
    (void)i;
    return attached->in;
}

const casadi_int *hybrid_in_graph_sparsity_out(casadi_int i) {
    if (i == ANSWER) return attached->out;
    return i == STARTS ? attached->starts : number;
}

int hybrid_in_graph_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw,
                         casadi_int *sz_w) {
    *sz_arg = 1;
    *sz_res = 4;
    *sz_iw = *sz_w = 0;
    return 0;
}

void hybrid_in_graph_incref(void) {
    __atomic_add_fetch(&attached->references, 1, __ATOMIC_SEQ_CST);
}

void hybrid_in_graph_decref(void) {
    __atomic_sub_fetch(&attached->references, 1, __ATOMIC_SEQ_CST);
}

/* The number of a slot that nobody has; where there is none, a number that is no slot's. */
int hybrid_in_graph_checkout(void) {
    hybrid_pool *pool = attached;
    int i = 0;
    while (i < pool->slots && __atomic_exchange_n(&pool->slot[i].busy, 1, __ATOMIC_ACQUIRE)) i++;
    return i;
}

void hybrid_in_graph_release(int mem) {
    if (mem < attached->slots) __atomic_store_n(&attached->slot[mem].busy, 0, __ATOMIC_RELEASE);
}

/* CasADi looks for this name to know that there is a Jacobian, and is then handed one. */
int jac_hybrid_in_graph(const double **arg, double **res, casadi_int *iw, double *w, int mem) {
    (void)arg;
    (void)res;
    (void)iw;
    (void)w;
    (void)mem;
    return 1;
}

/* The attempt after no warm start, NULL where that begins with a search for a root: see
 * attempts/solve.py. */
static const hybrid_attempt *begins_with(const hybrid_pool *pool, const hybrid_plan *plan,
                                         const hybrid_numbers *of) {
    int bounded = 0, equations = 0, open = 0;
    for (int i = 0; i < plan->n_x; i++) {
        if (!(of->lbx[i] < of->ubx[i])) continue;
        open++;
        bounded |= isfinite(of->lbx[i]) || isfinite(of->ubx[i]);
    }
    for (int i = 0; i < plan->n_g; i++) {
        if (of->lbg[i] == of->ubg[i]) equations++;
        else bounded |= isfinite(of->lbg[i]) || isfinite(of->ubg[i]);
    }
    if (pool->composite.composite && !bounded && equations && open) return &pool->composite;
    return equations > open && !pool->linear ? 0 : &pool->first;
}

/* An attempt after so many steps. One that fills the rows is not gone on with. */
static int attempt(const hybrid_pool *pool, hybrid_slot *slot, hybrid_attempt how, int steps) {
    int status;
    how.t0 = steps;
    status = (how.composite ? pool->begin_composite : pool->begin)(
        slot->plan, slot->functions, slot->numbers, &how, slot->cold_bytes, slot->cold_doubles,
        slot->cold_ints, slot->state, slot->answer);
    if (status != HYBRID_PAUSED) return status;
    return (how.composite ? pool->run_composite : pool->run)(slot->cold_bytes);
}

/* The warm mode where there is a warm start, then the barrier method. Returns a status. */
static int solve(const hybrid_pool *pool, hybrid_slot *slot) {
    const hybrid_answer *answer = slot->answer;
    int status = pool->warm(slot->plan, slot->functions, slot->numbers, slot->doubles, slot->ints,
                            slot->answer);
    if (status == HYBRID_COLD) {
        const hybrid_attempt *first = begins_with(pool, slot->plan, slot->numbers);
        if (!first) return HYBRID_BLOCKED;
        status = attempt(pool, slot, *first, 0);
    } else if (status == HYBRID_NO_SET || status == HYBRID_NOT_NEARER ||
               status == HYBRID_UNDEFINED) {
        status = attempt(pool, slot, pool->near, answer->steps);
    } else {
        return status;
    }
    return status == HYBRID_SOLVED && answer->huge ? HYBRID_LARGE : status;
}

static void read_in(const hybrid_pool *pool, hybrid_slot *slot, const double *in) {
    size_t sides = (size_t)slot->plan->n_x + (size_t)slot->plan->n_g;
    size_t all = (size_t)pool->in[0];
    memcpy(slot->in, in, all * sizeof(double));
    if (!pool->warm_starts) memset(slot->in + (all - sides), 0, sides * sizeof(double));
}

/* The number that Python's threading.get_ident gives this thread. */
static unsigned long long this_thread(void) {
#ifdef _WIN32
    return GetCurrentThreadId();
#else
    return (unsigned long long)pthread_self();
#endif
}

/* The record of this thread, or else the oldest. */
static hybrid_record *record_of(const hybrid_pool *pool, unsigned long long me) {
    hybrid_record *oldest = 0;
    long long least = 0;
    for (int i = 0; i < pool->records; i++) {
        hybrid_record *one = &pool->record[i];
        long long stamp = __atomic_load_n(&one->stamp, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&one->thread, __ATOMIC_SEQ_CST) == me) return one;
        if (__atomic_load_n(&one->busy, __ATOMIC_SEQ_CST)) continue;
        if (!oldest || stamp < least) {
            oldest = one;
            least = stamp;
        }
    }
    return oldest;
}

/* Remembers what this thread has solved. A record that another thread takes meanwhile is left to
 * it, and another one looked for. */
static void remember(hybrid_pool *pool, const double *in) {
    unsigned long long me = this_thread();
    for (int tries = 0; tries < pool->records; tries++) {
        hybrid_record *one = record_of(pool, me);
        unsigned long long was = one ? __atomic_load_n(&one->thread, __ATOMIC_SEQ_CST) : 0;
        if (!one || __atomic_exchange_n(&one->busy, 1, __ATOMIC_ACQUIRE)) continue;
        if (__atomic_load_n(&one->thread, __ATOMIC_SEQ_CST) == was) {
            __atomic_store_n(&one->stamp, 0, __ATOMIC_SEQ_CST);
            __atomic_thread_fence(__ATOMIC_SEQ_CST); /* no number of the row goes before that */
            __atomic_store_n(&one->thread, me, __ATOMIC_SEQ_CST);
            memcpy(one->row, in, (size_t)pool->in[0] * sizeof(double));
            __atomic_store_n(&one->stamp, __atomic_add_fetch(&pool->calls, 1, __ATOMIC_SEQ_CST),
                             __ATOMIC_SEQ_CST);
            tries = pool->records;
        }
        __atomic_store_n(&one->busy, 0, __ATOMIC_RELEASE);
    }
}

/* Whether a slot has all that Python can give it. */
static int is_ready(const hybrid_slot *slot) {
    return slot->plan && !(slot->arrived && __atomic_load_n(slot->arrived, __ATOMIC_ACQUIRE));
}

/* Solves on a slot; 0 where its row of outputs is complete. */
static int solve_on(hybrid_pool *pool, int k, const double *in) {
    hybrid_slot *slot = &pool->slot[k];
    int status = HYBRID_OTHER_PATTERN;
    if (is_ready(slot)) {
        read_in(pool, slot, in);
        status = solve(pool, slot);
    }
    if (status == HYBRID_OTHER_PATTERN) {
        if (pool->prepare(k, in) || !slot->plan) return status;
        read_in(pool, slot, in);
        status = solve(pool, slot);
    }
    if (status) return status;
    slot->out[slot->plan->n_x] = slot->answer->end.f;
    pool->slope(slot->slope, slot->answer->x, slot->answer->lam_g, slot->numbers->p, slot->lam_p);
    for (int i = 0; i < slot->plan->n_p; i++) slot->lam_p[i] = -slot->lam_p[i];
    remember(pool, in);
    return HYBRID_SOLVED;
}

/* Where a graph asks for derivatives alone it does not ask for the zero, which is a part of f. They
 * hang on the branch of Python, so that one is taken then, and finds the answer there. */
int hybrid_in_graph(const double **arg, double **res, casadi_int *iw, double *w, int mem) {
    hybrid_pool *pool = attached;
    const double *in = arg[0];
    size_t n = (size_t)pool->out[0];
    int solved = 0;
    (void)iw;
    (void)w;
    if (in && res[ANSWER] && mem < pool->slots) solved = !solve_on(pool, mem, in);
    if (solved) memcpy(res[ANSWER], pool->slot[mem].out, n * sizeof(double));
    else if (res[ANSWER]) memset(res[ANSWER], 0, n * sizeof(double));
    if (res[BRANCH]) *res[BRANCH] = !solved ? 1.0 : res[ZERO] ? 0.0 : 2.0;
    if (res[ZERO]) *res[ZERO] = 0.0;
    if (res[STARTS] && in) {
        /* x0 is the first part of the row, lam_x0 and lam_g0 are the last. */
        size_t all = (size_t)pool->in[0], starts = (size_t)pool->starts[0];
        size_t n_x = (size_t)pool->n_x;
        memcpy(res[STARTS], in, n_x * sizeof(double));
        memcpy(res[STARTS] + n_x, in + (all - (starts - n_x)), (starts - n_x) * sizeof(double));
    } else if (res[STARTS]) {
        memset(res[STARTS], 0, (size_t)pool->starts[0] * sizeof(double));
    }
    return 0;
}
