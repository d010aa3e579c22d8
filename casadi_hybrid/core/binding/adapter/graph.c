/* Solvers in CasADi's graphs: one external function, whose first argument identifies the solver.
 *
 * CasADi calls it from any thread without Python's lock. Each call has a slot of memory of its own.
 * Python is called only to prepare a slot (at its first use, for bounds of other kinds, for
 * functions compiled meanwhile), for NaN in an argument, and for Ctrl-C in a long solve. */
#include "graph.h"

#include <math.h>
#ifdef _WIN32 /* not windows.h, which makes `near` an empty word */
__declspec(dllimport) unsigned long __stdcall GetCurrentThreadId(void);
__declspec(dllimport) int __stdcall SwitchToThread(void);
#else
#include <pthread.h>
#include <sched.h>
#endif
#include <string.h>

enum { BUCKETS = 1024, SPINS = 1000 };

static hybrid_pool *pools[BUCKETS];

static hybrid_pool **bucket_of(double handle) {
    return &pools[(unsigned long long)handle % BUCKETS];
}

/* NULL for an unknown number, as in a graph that another process has written. */
static hybrid_pool *pool_of(double handle) {
    hybrid_pool *pool;
    if (!(handle >= 0.0 && handle < 0x1p53)) return 0;
    pool = __atomic_load_n(bucket_of(handle), __ATOMIC_ACQUIRE);
    while (pool && pool->handle != handle) pool = pool->next;
    return pool;
}

void hybrid_attach_pool(hybrid_pool *pool) {
    hybrid_pool **bucket = bucket_of(pool->handle);
    pool->next = *bucket;
    __atomic_store_n(bucket, pool, __ATOMIC_RELEASE);
}

HYBRID_DEFINE(hybrid_in_graph, 1 + HYBRID_INPUTS)

#define DEFINE_WIDTH(k)                    \
    void fwd##k##_hybrid_in_graph(void);   \
    void adj##k##_hybrid_in_graph(void);   \
    void fwd##k##_hybrid_in_graph(void) {} \
    void adj##k##_hybrid_in_graph(void) {}
HYBRID_EACH_WIDTH(DEFINE_WIDTH)

static void yield_to_others(void) {
#ifdef _WIN32
    SwitchToThread();
#else
    sched_yield();
#endif
}

/* The number that Python's threading.get_ident gives this thread. */
static unsigned long long this_thread(void) {
#ifdef _WIN32
    return GetCurrentThreadId();
#else
    return (unsigned long long)pthread_self();
#endif
}

/* Spin lock, held only to copy some numbers; yields if the holder seems to have lost its core. */
static void lock(int *busy) {
    for (int tries = 1; __atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE); tries++)
        if (tries % SPINS == 0) yield_to_others();
}

static void unlock(int *busy) { __atomic_store_n(busy, 0, __ATOMIC_RELEASE); }

/* Index of a free slot, now taken. */
static int take_slot(hybrid_pool *pool) {
    for (;; yield_to_others())
        for (int k = 0; k < pool->slots; k++)
            if (!__atomic_exchange_n(&pool->slot[k].busy, 1, __ATOMIC_ACQUIRE)) return k;
}

/* Stores the arguments of this thread in its record, or else in the oldest. */
static void remember(hybrid_pool *pool, const double **arg) {
    const unsigned long long me = this_thread();
    hybrid_record *record = pool->record;
    double *row;
    lock(&pool->locked);
    for (hybrid_record *r = pool->record; r < pool->record + pool->records; r++) {
        if (r->stamp && r->thread == me) {
            record = r;
            break;
        }
        if (r->stamp < record->stamp) record = r;
    }
    record->thread = me;
    record->stamp = ++pool->calls;
    row = record->row;
    for (int i = 0; i < HYBRID_INPUTS; i++) {
        const size_t size = (size_t)pool->shapes->inputs[i][0];
        if (arg[i]) memcpy(row, arg[i], size * sizeof(double));
        else memset(row, 0, size * sizeof(double));
        row += size;
    }
    unlock(&pool->locked);
}

long long hybrid_last_in_graph(hybrid_pool *pool, long long after, unsigned long long thread,
                               double *row) {
    const hybrid_record *last = 0;
    size_t size = 0;
    for (int i = 0; i < HYBRID_INPUTS; i++) size += (size_t)pool->shapes->inputs[i][0];
    lock(&pool->locked);
    for (const hybrid_record *r = pool->record; r < pool->record + pool->records; r++) {
        if (r->stamp <= after || (thread && r->thread != thread)) continue;
        last = r;
        after = r->stamp;
    }
    if (last) memcpy(row, last->row, size * sizeof(double));
    unlock(&pool->locked);
    return last ? after : 0;
}

/* Solves on a slot; returns 1 if Python has to prepare the slot first. */
static int is_unprepared(const hybrid_slot *slot, const double **arg, double **res) {
    hybrid_adapter *adapter = slot->adapter;
    if (!adapter || (slot->arrived && __atomic_load_n(slot->arrived, __ATOMIC_ACQUIRE))) return 1;
    hybrid_solve_for(adapter, arg, res);
    return adapter->status == HYBRID_BAD_NUMBERS || adapter->status == HYBRID_OTHER_PATTERN;
}

static int is_interrupted(const hybrid_slot *slot) {
    return slot->adapter && slot->adapter->functions->observer->ended;
}

static void fill_with_nan(const hybrid_pool *pool, double **res) {
    for (int i = 0; i < HYBRID_OUTPUTS; i++)
        for (casadi_int j = 0; res[i] && j < pool->shapes->outputs[i][0]; j++) res[i][j] = NAN;
}

int hybrid_in_graph(const double **arg, double **res, casadi_int *iw, double *w, int mem) {
    hybrid_pool *pool = arg[0] ? pool_of(*arg[0]) : 0;
    int k, failed, interrupted = 0;
    (void)iw;
    (void)w;
    (void)mem;
    if (!pool) return 1;
    remember(pool, arg + 1);
    k = take_slot(pool);
    failed = is_unprepared(&pool->slot[k], arg + 1, res);
    if (failed) {
        const int outcome = pool->prepare(k, arg + 1);
        interrupted = outcome == HYBRID_INTERRUPTED;
        if (outcome == HYBRID_READY) failed = is_unprepared(&pool->slot[k], arg + 1, res);
        if (outcome == HYBRID_NO_NUMBERS) {
            fill_with_nan(pool, res);
            failed = 0;
        }
    }
    interrupted |= is_interrupted(&pool->slot[k]);
    unlock(&pool->slot[k].busy);
    if (interrupted) pool->interrupt();
    return failed && !interrupted; /* CasADi would raise a failure before Ctrl-C */
}
