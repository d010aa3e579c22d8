/* Functions of a problem that lie behind CasADi's buffers. */
#include <string.h>

#include "hybrid.h"
#include "linear_algebra/linear_algebra.h"

static int through(const hybrid_buffer *buffer, const double *const *values, int count,
                   double *out) {
    for (int i = 0; i < count; i++)
        if (buffer->sizes[i])
            memcpy(buffer->inputs[i], values[i], (size_t)buffer->sizes[i] * sizeof(double));
    buffer->evaluate(buffer->raw);
    hybrid_copy(buffer->size, buffer->out, out);
    return 0;
}

int hybrid_buffered_first(void *self, const double *x, const double *p, double *out) {
    const hybrid_buffers *buffers = self;
    const double *const values[] = {x, p};
    return through(&buffers->first, values, 2, out);
}

int hybrid_buffered_second(void *self, const double *x, const double *lam_g, const double *p,
                           double *out) {
    const hybrid_buffers *buffers = self;
    const double *const values[] = {x, lam_g, p};
    return through(&buffers->second, values, 3, out);
}
