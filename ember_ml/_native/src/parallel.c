/* Static split of independent items over threads.
 *
 * Threads live for one call: no pool survives a fork or keeps a processor busy between calls.
 * Callers pass threads = 1 for work that takes less than a few times the cost of a thread.
 */
#include <pthread.h>

#include "kernels.h"

enum { MAX_THREADS = 256 };

typedef struct {
    ember_task task;
    void *arguments;
    idx begin, end;
} range;

static void *run(void *pointer) {
    range *r = pointer;
    r->task(r->arguments, r->begin, r->end);
    return 0;
}

void ember_parallel(ember_task task, void *arguments, idx items, int threads) {
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    if (threads > items) threads = (int)items;
    if (threads <= 1) {
        if (items > 0) task(arguments, 0, items);
        return;
    }
    pthread_t started[MAX_THREADS];
    range ranges[MAX_THREADS];
    int is_started[MAX_THREADS];
    for (int i = 0; i < threads; i++) {
        ranges[i] = (range){task, arguments, items * i / threads, items * (i + 1) / threads};
        is_started[i] = i > 0 && pthread_create(&started[i], 0, run, &ranges[i]) == 0;
    }
    for (int i = 0; i < threads; i++)
        if (!is_started[i]) run(&ranges[i]); /* the first, and those that could not start */
    for (int i = 1; i < threads; i++)
        if (is_started[i]) pthread_join(started[i], 0);
}
