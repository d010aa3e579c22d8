/* The observer of a solve: rows of iterates, a function that is called with each, and the wish to
 * end the solve. */
#include <string.h>

#include "problem/problem.h"

/* Seconds between two calls of `interrupted`. */
#define INTERVAL 0.1

/* Calls `interrupted`; before the other functions, too: an exception that a signal raises is lost
 * where Python's code begins. Returns whether the solve is to end. */
static int ask(hybrid_observer *observer) {
    if (!observer->ended && observer->interrupted)
        observer->ended = observer->interrupted(observer->self);
    return observer->ended;
}

int hybrid_is_interrupted(hybrid_observer *observer, double now) {
    if (!observer) return 0;
    if (!(now - observer->asked >= INTERVAL)) return observer->ended;
    observer->asked = now;
    return ask(observer);
}

int hybrid_observe(hybrid_observer *observer, const hybrid_view *view) {
    const int step = observer->before + (int)view->row[0];
    hybrid_view whole = *view;
    double row[HYBRID_ROW];
    if (view->row[0] == 0.0 && observer->last >= 0 && step == observer->last)
        return observer->ended; /* the start of another phase is no step */
    memcpy(row, view->row, sizeof row);
    row[0] = observer->last = step;
    row[HYBRID_ROW - 1] += observer->seconds;
    if (observer->count == observer->capacity && observer->full) {
        ask(observer);
        if (observer->full(observer->self)) observer->full = 0;
    }
    if (observer->count < observer->capacity) {
        memcpy(observer->rows + (long long)HYBRID_ROW * observer->count++, row, sizeof row);
        observer->shown++;
    }
    whole.row = row;
    if (observer->look && !ask(observer)) observer->ended = observer->look(observer->self, &whole);
    return observer->ended;
}
