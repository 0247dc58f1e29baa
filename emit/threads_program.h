/* threads_program.h -- the fixed part of the pool of threads that `emit-c --parallel` adds.
 *
 * A thread waits for a job in a loop for some tens of microseconds, which is longer than most gaps
 * between two jobs of a call, and then sleeps.  Memory is allocated when the pool starts only. */
#ifndef ETC_THREADS_PROGRAM_H
#define ETC_THREADS_PROGRAM_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* A thread looks this often for a change before it sleeps. */
#define TURNS 4000

typedef struct Pool Pool;

typedef struct Worker {
    Pool *pool;
    int32_t first; /* the first index of a job that it computes */
    pthread_t thread;
} Worker;

struct Pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    void (*part)(void *argument, int32_t i); /* the job; NULL: the threads end */
    void *argument;
    int32_t n;          /* the indices of the job */
    uint32_t job;       /* the number of the job */
    int32_t busy;       /* the threads that have not finished the job */
    int32_t asleep;     /* the threads that wait for `wake` */
    int32_t is_waiting; /* the caller waits for `done` */
    int32_t threads;    /* the number of threads, with the caller */
    Worker *worker;
};

static void pool_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Computes every index that belongs to the thread whose first index is given. */
static void pool_compute(const Pool *p, int32_t first)
{
    for (int32_t i = first; i < p->n; i += p->threads) {
        p->part(p->argument, i);
    }
}

/* Waits until the number of the job is no longer `seen`. */
static void pool_await_job(Pool *p, uint32_t seen)
{
    for (int turn = 0; turn < TURNS; turn++) {
        if (__atomic_load_n(&p->job, __ATOMIC_SEQ_CST) != seen) {
            return;
        }
        pool_pause();
    }
    (void)pthread_mutex_lock(&p->lock);
    (void)__atomic_add_fetch(&p->asleep, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&p->job, __ATOMIC_SEQ_CST) == seen) {
        (void)pthread_cond_wait(&p->wake, &p->lock);
    }
    (void)__atomic_sub_fetch(&p->asleep, 1, __ATOMIC_SEQ_CST);
    (void)pthread_mutex_unlock(&p->lock);
}

static void *pool_work(void *argument)
{
    const Worker *w = (const Worker *)argument;
    Pool *p = w->pool;
    for (uint32_t seen = 0; 1; seen++) {
        pool_await_job(p, seen);
        if (p->part == NULL) {
            return NULL;
        }
        pool_compute(p, w->first);
        if ((__atomic_sub_fetch(&p->busy, 1, __ATOMIC_SEQ_CST) == 0) &&
            (__atomic_load_n(&p->is_waiting, __ATOMIC_SEQ_CST) != 0)) {
            (void)pthread_mutex_lock(&p->lock);
            (void)pthread_cond_signal(&p->done);
            (void)pthread_mutex_unlock(&p->lock);
        }
    }
}

/* Gives the threads a new job. */
static void pool_publish(Pool *p)
{
    __atomic_store_n(&p->busy, p->threads - 1, __ATOMIC_SEQ_CST);
    (void)__atomic_add_fetch(&p->job, 1U, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&p->asleep, __ATOMIC_SEQ_CST) > 0) {
        (void)pthread_mutex_lock(&p->lock);
        (void)pthread_cond_broadcast(&p->wake);
        (void)pthread_mutex_unlock(&p->lock);
    }
}

static int pool_is_busy(Pool *p)
{
    return __atomic_load_n(&p->busy, __ATOMIC_SEQ_CST) > 0;
}

static void pool_await_end(Pool *p)
{
    for (int turn = 0; (turn < TURNS) && pool_is_busy(p); turn++) {
        pool_pause();
    }
    if (pool_is_busy(p)) {
        (void)pthread_mutex_lock(&p->lock);
        __atomic_store_n(&p->is_waiting, 1, __ATOMIC_SEQ_CST);
        while (pool_is_busy(p)) {
            (void)pthread_cond_wait(&p->done, &p->lock);
        }
        __atomic_store_n(&p->is_waiting, 0, __ATOMIC_SEQ_CST);
        (void)pthread_mutex_unlock(&p->lock);
    }
}

static void pool_run(void *pool, void (*part)(void *argument, int32_t i), void *argument, int32_t n)
{
    Pool *p = (Pool *)pool;
    p->part = part;
    p->argument = argument;
    p->n = n;
    pool_publish(p);
    pool_compute(p, 0);
    pool_await_end(p);
}

/* Ends the threads and frees the pool. */
static void pool_stop(Pool *p)
{
    p->part = NULL;
    pool_publish(p);
    for (int32_t i = 1; i < p->threads; i++) {
        (void)pthread_join(p->worker[i].thread, NULL);
    }
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->wake);
    (void)pthread_cond_destroy(&p->done);
    free(p->worker);
    free(p);
}

static Pool *pool_new(int32_t n)
{
    Pool *p = (Pool *)calloc(1, sizeof *p);
    Worker *worker = (n >= 1) ? (Worker *)calloc((size_t)n, sizeof *worker) : NULL;
    if ((p == NULL) || (worker == NULL)) {
        free(p);
        free(worker);
        return NULL;
    }
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->wake, NULL);
    (void)pthread_cond_init(&p->done, NULL);
    p->worker = worker;
    p->threads = 1;
    return p;
}

/* Returns a pool of n threads, one of which is the caller; NULL: they cannot be started. */
static Pool *pool_start(int32_t n)
{
    Pool *p = pool_new(n);
    while ((p != NULL) && (p->threads < n)) {
        Worker *w = &p->worker[p->threads];
        w->pool = p;
        w->first = p->threads;
        if (pthread_create(&w->thread, NULL, pool_work, w) != 0) {
            pool_stop(p);
            p = NULL;
        } else {
            p->threads++;
        }
    }
    return p;
}

#endif
