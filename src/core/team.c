/* team.c - a leader, helpers, and how they wait for each other.
 *
 * A parallel region opens when the leader writes the job and then the gate, which counts the
 * helpers that entered.  It closes at the first barrier or when the leader has nothing left to do;
 * a helper that comes later finds it closed and waits for the next.  So the leader waits only for
 * helpers that hold work.
 *
 * Waiting: waking a sleeping thread costs tens of microseconds, a hundred times per update, so
 * waiting threads spin for a while before they sleep.
 *
 * Contention: where another program competes for a helper's core, the scheduler preempts the helper
 * for some milliseconds, and the leader stalls until the helper's piece of work is done: no faster
 * than one thread.  So a helper that detects contention yields before it is preempted.  It works in
 * slices that the scheduler lets a thread finish, pauses as long as it worked, which earns it the
 * next slice, and avoids the leader's core, where the scheduler likes to wake it. */
#define _GNU_SOURCE /* syscall, sched_getcpu */
#include "core/team.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/threads.h"

/* loops between two barriers; one more adds a barrier of its own */
enum { LOOPS = 8 };
/* a thread's share is handed out in about this many pieces */
enum { PIECES = 8 };

/* seconds */
#define PATIENT 2e-3  /* spin this long for the next region, then sleep */
#define CROWDED 60e-3 /* for how long a preemption is remembered; until then ... */
#define STEADY 5e-3   /* ... the leader spins this long: asleep it would give up its core ... */
#define HURRIED 20e-6 /* ... and a helper in a region this long ... */
#define SEEKING 50e-6 /* ... and outside of one */
#define SLICE 0.5e-3  /* a helper works this long, and pauses as long */
#define IDLE 20e-3    /* after so many pauses without work it sleeps */
#define LOOK 5e-3     /* how often a thread checks: was it preempted ... */
#define LOST 0.2      /* ... for more than this share of the time since? */

/* a number that grows, and threads that wait for it to */
typedef struct mark {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} mark;

typedef struct counter {
    _Alignas(64) _Atomic size_t taken;
} counter;

/* The gate: how many helpers entered, and which may: members below a bound. */
#define CLOSED 0x80000000u
#define COUNT 0xffffu
enum { BOUND = 16, MOST = 0x7fff };

typedef struct team {
    /* the job, written while the gate is closed */
    cgs_job *work;
    void *context;
    int threads;
    _Alignas(64) _Atomic uint32_t gate;
    mark opened, gone, met; /* regions opened, helpers that left, barriers passed */
    _Alignas(64) _Atomic uint32_t arrived;
    _Atomic double crowded_until;
    pid_t leader;      /* its thread ... */
    _Atomic int where; /* ... and the core that it was last seen on */
    _Atomic bool over;
    int size;         /* the leader and its helpers */
    counter *counter; /* (LOOPS, size) */
    pthread_t *helper;
} team;

/* what a thread knows of itself */
typedef struct self {
    team *team; /* in whose region it is, or NULL */
    int member;
    bool apart;                 /* in a region, but works alone */
    size_t loop;                /* since the last meeting */
    team *own;                  /* that it leads */
    double looked, used, slept; /* clock and CPU time at its last check; asleep since */
    double outside;             /* when it left its last region as leader */
} self;
static _Thread_local self me;

static inline void relax(void) {
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb");
#endif
}

/* ---- neighbours ---------------------------------------------------------------------------- */

static double cpu_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void look_from(double now) {
    me.looked = now;
    me.used = cpu_time();
    me.slept = 0;
}

/* Notes whether this thread was preempted lately. */
static void look_around(team *t, double now) {
    double elapsed = now - me.looked - me.slept;
    if (elapsed < LOOK) return;
    bool lost = elapsed - (cpu_time() - me.used) > LOST * elapsed;
    look_from(now);
    if (lost) atomic_store_explicit(&t->crowded_until, now + CROWDED, memory_order_relaxed);
}

static bool crowded(team *t, double now) {
    return now < atomic_load_explicit(&t->crowded_until, memory_order_relaxed);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void grow(mark *m) {
    atomic_fetch_add(&m->value, 1);
    if (atomic_load(&m->sleepers)) syscall(SYS_futex, &m->value, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/* Spins until the mark is no longer at `seen`, at most until `end`: did it change? */
static bool changes_until(mark *m, uint32_t seen, double end) {
    do {
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(&m->value, memory_order_acquire) != seen) return true;
            relax();
        }
    } while (cgs_now() < end);
    return false;
}

static void sleep_until_changed(mark *m, uint32_t seen) {
    double begun = cgs_now();
    atomic_fetch_add(&m->sleepers, 1);
    while (atomic_load(&m->value) == seen)
        syscall(SYS_futex, &m->value, FUTEX_WAIT_PRIVATE, seen, NULL);
    atomic_fetch_sub(&m->sleepers, 1);
    me.slept += cgs_now() - begun;
}

/* until the mark is no longer at `seen` */
static void await(team *t, mark *m, uint32_t seen) {
    double now = cgs_now(), patience = PATIENT;
    if (crowded(t, now)) patience = me.member == 0 ? STEADY : HURRIED;
    if (!changes_until(m, seen, now + patience)) sleep_until_changed(m, seen);
}

/* ---- helpers --------------------------------------------------------------------------------- */

static bool come_in(team *t) {
    uint32_t gate = atomic_load_explicit(&t->gate, memory_order_relaxed);
    while (!(gate & CLOSED) && (uint32_t)me.member < gate >> BOUND)
        if (atomic_compare_exchange_weak_explicit(&t->gate, &gate, gate + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* what a helper remembers from region to region */
typedef struct shift {
    double begun; /* of its slice */
    double idle;  /* pauses without work in a row */
    int avoids;   /* the core that it avoids, or NOWHERE */
} shift;
enum { NOWHERE = -1 };

/* To wake in time and not be preempted within a slice: systems with configurable slices (Linux 6.12
 * and later) are asked for one of that length. */
static void request_slices(void) {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t slice, deadline, period;
    } a = {.size = sizeof a};
    prctl(PR_SET_TIMERSLACK, 1000UL);
    if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0 || a.policy != SCHED_OTHER) return;
    a.slice = (uint64_t)(SLICE * 1e9);
    syscall(SYS_sched_setattr, 0, &a, 0);
}

/* leaves `core` to the leader, unless there is no other */
static void keep_off(const team *t, shift *s, int core) {
    cpu_set_t cores;
    if (core == s->avoids) return;
    s->avoids = core;
    if (sched_getaffinity(t->leader, sizeof cores, &cores) != 0) return;
    if (core >= 0 && core < CPU_SETSIZE) CPU_CLR((unsigned)core, &cores);
    if (CPU_COUNT(&cores) > 0) sched_setaffinity(0, sizeof cores, &cores);
}

/* Waits for the next region under contention. */
static void await_contended(team *t, shift *s, uint32_t seen) {
    double now = cgs_now();
    keep_off(t, s, atomic_load_explicit(&t->where, memory_order_relaxed));
    if (now - s->begun < SLICE) {
        if (!changes_until(&t->opened, seen, now + SEEKING)) sleep_until_changed(&t->opened, seen);
        s->idle = 0;
        return;
    }
    nanosleep(&(struct timespec){0, (long)(SLICE * 1e9)}, NULL);
    s->begun = cgs_now();
    me.slept += s->begun - now;
    bool worked = atomic_load_explicit(&t->opened.value, memory_order_acquire) != seen;
    s->idle = worked ? 0 : s->idle + SLICE;
    if (s->idle < IDLE) return;
    sleep_until_changed(&t->opened, seen);
    *s = (shift){.begun = cgs_now(), .avoids = s->avoids};
}

static void await_region(team *t, shift *s, uint32_t seen) {
    double now = cgs_now();
    look_around(t, now);
    if (crowded(t, now)) {
        await_contended(t, s, seen);
        return;
    }
    keep_off(t, s, NOWHERE);
    await(t, &t->opened, seen);
    s->begun = cgs_now();
}

typedef struct beginning {
    team *team;
    int member;
} beginning;

static void *help(void *p) {
    beginning b = *(beginning *)p;
    team *t = b.team;
    shift s = {.begun = cgs_now(), .avoids = NOWHERE};
    free(p);
    me.member = b.member;
    request_slices();
    look_from(s.begun);
    for (;;) {
        uint32_t seen = atomic_load_explicit(&t->opened.value, memory_order_acquire);
        if (atomic_load_explicit(&t->over, memory_order_acquire)) return NULL;
        if (come_in(t)) {
            seen = atomic_load_explicit(&t->opened.value, memory_order_acquire);
            me.team = t;
            me.loop = 0;
            t->work(t->context);
            me.team = NULL;
            grow(&t->gone);
        }
        await_region(t, &s, seen);
    }
}

/* ---- teams --------------------------------------------------------------------------------- */

static pthread_key_t leaving;
static pthread_once_t leaving_once = PTHREAD_ONCE_INIT;

static void disband(void *p) {
    team *t = p;
    if (!t) return;
    atomic_store_explicit(&t->over, true, memory_order_release);
    grow(&t->opened);
    for (int i = 1; i < t->size; i++) pthread_join(t->helper[i], NULL);
    free(t->counter);
    free(t->helper);
    free(t);
}

static void disband_own(void) {
    disband(me.own);
    me.own = NULL;
    pthread_setspecific(leaving, NULL);
}

static void make_key(void) { pthread_key_create(&leaving, disband); }

/* with as many helpers as the system allows, NULL with none */
static team *assemble(int threads) {
    size_t n = (size_t)threads;
    team *t = aligned_alloc(64, sizeof *t);
    counter *c = aligned_alloc(64, LOOPS * n * sizeof *c);
    pthread_t *helper = calloc(n, sizeof *helper);
    sigset_t all, before;
    if (!t || !c || !helper) {
        free(t);
        free(c);
        free(helper);
        return NULL;
    }
    *t = (team){.gate = CLOSED, .size = 1, .counter = c, .helper = helper};
    t->leader = (pid_t)syscall(SYS_gettid);
    t->where = NOWHERE;
    for (size_t i = 0; i < LOOPS * n; i++) atomic_init(&c[i].taken, 0);
    sigfillset(&all); /* signals are for the threads of the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; t->size < threads; t->size++) {
        beginning *b = malloc(sizeof *b);
        if (b) *b = (beginning){t, t->size};
        if (b && pthread_create(&helper[t->size], NULL, help, b) == 0) continue;
        free(b);
        break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return t;
}

/* the calling thread's team, made or enlarged */
static team *own_team(int threads) {
    if (me.own && me.own->size >= threads) return me.own;
    pthread_once(&leaving_once, make_key);
    if (me.own) disband_own();
    me.own = assemble(threads);
    pthread_setspecific(leaving, me.own);
    me.outside = cgs_now();
    look_from(me.outside);
    return me.own;
}

/* ---- regions ------------------------------------------------------------------------------- */

int cgs_member(void) { return me.team || me.apart ? me.member : 0; }

/* outside of its team, if it is in one */
static void leave(cgs_job *work, void *context, bool apart) {
    self outside = me;
    me.team = NULL;
    me.apart = apart;
    work(context);
    me.team = outside.team;
    me.apart = outside.apart;
    me.loop = outside.loop;
}

static void alone(cgs_job *work, void *context) { leave(work, context, false); }

void cgs_apart(cgs_job *work, void *context) { leave(work, context, me.team || me.apart); }

static void clear_counters(team *t, size_t loops) {
    for (size_t i = 0; i < loops * (size_t)t->size; i++)
        atomic_store_explicit(&t->counter[i].taken, 0, memory_order_relaxed);
}

void cgs_together(int threads, cgs_job *work, void *context) {
    if (threads <= 0) threads = cgs_threads();
    if (threads > MOST) threads = MOST;
    team *t = threads > 1 && !me.team ? own_team(threads) : NULL;
    if (!t) {
        alone(work, context);
        return;
    }
    double begun = cgs_now();
    me.slept += begun - me.outside; /* whatever it waited for */
    look_around(t, begun);
    if (crowded(t, begun)) atomic_store_explicit(&t->where, sched_getcpu(), memory_order_relaxed);
    t->work = work;
    t->context = context;
    t->threads = threads;
    uint32_t gone = atomic_load_explicit(&t->gone.value, memory_order_relaxed);
    me.team = t;
    me.member = 0;
    me.loop = 0;
    atomic_store_explicit(&t->gate, (uint32_t)threads << BOUND, memory_order_release);
    grow(&t->opened);
    work(context);
    uint32_t inside = atomic_fetch_or(&t->gate, CLOSED) & COUNT;
    for (uint32_t now;
         (now = atomic_load_explicit(&t->gone.value, memory_order_acquire)) != gone + inside;)
        await(t, &t->gone, now);
    clear_counters(t, me.loop < LOOPS ? me.loop : LOOPS);
    me.team = NULL;
    me.outside = cgs_now();
}

void cgs_meet(void) {
    team *t = me.team;
    if (!t) return;
    uint32_t inside = (atomic_fetch_or(&t->gate, CLOSED) & COUNT) + 1;
    uint32_t met = atomic_load_explicit(&t->met.value, memory_order_acquire);
    size_t loops = me.loop < LOOPS ? me.loop : LOOPS;
    me.loop = 0;
    if (atomic_fetch_add(&t->arrived, 1) + 1 == inside) {
        clear_counters(t, loops);
        atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
        grow(&t->met);
    } else {
        await(t, &t->met, met);
    }
}

/* ---- shared loops -------------------------------------------------------------------------- */

cgs_piece cgs_pieces(size_t n) {
    cgs_piece p = {.n = n, .alone = !me.team, .share = 0};
    if (p.alone) return p;
    if (me.loop == LOOPS) cgs_meet();
    p.loop = me.loop++;
    return p;
}

bool cgs_next_piece(cgs_piece *p) {
    const team *t = me.team;
    if (p->alone) {
        bool first = p->end == 0 && p->n > 0;
        p->end = p->n;
        return first;
    }
    size_t T = (size_t)t->threads;
    for (; p->share < t->threads; p->share++) {
        size_t who = ((size_t)me.member + (size_t)p->share) % T;
        size_t from = who * p->n / T, to = (who + 1) * p->n / T,
               size = (to - from + PIECES - 1) / PIECES;
        _Atomic size_t *taken = &t->counter[p->loop * (size_t)t->size + who].taken;
        if (from == to || atomic_load_explicit(taken, memory_order_relaxed) >= to - from) continue;
        size_t at = from + atomic_fetch_add_explicit(taken, size, memory_order_relaxed);
        if (at >= to) continue;
        p->first = at;
        p->end = at + size < to ? at + size : to;
        return true;
    }
    return false;
}

bool cgs_next_single(cgs_piece *p) {
    if (p->alone) return cgs_next_piece(p);
    p->first = atomic_fetch_add_explicit(&me.team->counter[p->loop * (size_t)me.team->size].taken,
                                         1, memory_order_relaxed);
    p->end = p->first + 1;
    return p->first < p->n;
}
