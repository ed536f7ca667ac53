/* bench.h - speed measurements that return numbers; printing is the caller's. */
#ifndef CGS_BENCH_BENCH_H
#define CGS_BENCH_BENCH_H

#include "core/measured.h"
#include "core/status.h"
#include "model/model.h"

/* Receives one figure: what was measured, the median of five runs with its spread, its unit. */
typedef void (*cgs_bench_fn)(void *user, const char *name, cgs_measured m, const char *unit);

/* Physics and images of every environment on one core, then collection on all, of states alone and
 * with images.
 * seconds: of one run.  scratch: a file name that does not exist yet, for the collection,
 * removed afterwards; NULL skips it. */
cgs_status cgs_bench_env(double seconds, const char *scratch, cgs_bench_fn fn, void *user);

/* Large square matrix products in f32 and bf16: the peak rate of the device. */
cgs_status cgs_bench_gemm(cgs_device *d, cgs_bench_fn fn, void *user);
/* Operations at the sizes of the published model: time, and rate of arithmetic or memory traffic.
 * seconds: shortest time of one measurement. */
cgs_status cgs_bench_ops(cgs_device *d, cgs_dtype act, double seconds, cgs_bench_fn fn, void *user);
/* What runs each matrix product that a device has prepared so far, and why; nothing on devices that
 * do not choose.  Without those that only measure (dot products of everything), and those that add
 * to a result, which take the same code. */
typedef struct cgs_bench_choice {
    char product[96]; /* "8224x192x576 bf16 to f32 A B^T": rows, length of sums, columns */
    const char *code, *why;
} cgs_bench_choice;
void cgs_bench_choices(const cgs_device *d, void (*fn)(void *user, const cgs_bench_choice *c),
                       void *user);
/* A training update of a preset ("paper", "small"): frames per second, fraction of the peak rate,
 * and the time by operation and, with `profile`, also by shape. class_bits:
 * model.encoder.class_bits. */
cgs_status cgs_bench_update(cgs_device *d, const char *preset, cgs_dtype act, int class_bits,
                            int windows, bool profile, cgs_bench_fn fn, void *user);

/* What each optional variant of a GPU's operations is worth (ops/cuda/variants.h): milliseconds of
 * an update of `windows` windows, of a solve with patch tokens, or of a batch's frames, with all of
 * them and without each.  Leaves all of them on. */
cgs_status cgs_bench_variants(cgs_device *d, int windows, cgs_bench_fn fn, void *user);

/* The measured model: "lewm", or DINO-WM on "cls" or "patch" features, with random weights. */
typedef struct cgs_bench_target {
    const char *family, *preset; /* preset: "paper" or "small" */
} cgs_bench_target;

/* Planning for one episode, and with "lewm" and "cls" on a GPU for 50: K = 128, 30 iterations or
 * 100 steps, H = 5, with every planner that asks for scores and needs no prior.  Seconds per solve,
 * fraction of the peak rate (by the arithmetic of the tape that runs), time outside the rollouts,
 * and the time of one rollout by operation. */
cgs_status cgs_bench_plan(cgs_device *d, cgs_bench_target s, cgs_dtype act, cgs_bench_fn fn,
                          void *user);

/* Latency of a planner for one episode: median, 99th percentile and maximum of `solves`, as a
 * control loop sees it.  encode: each solve begins with the image of the current frame. */
typedef struct cgs_latency_work {
    const char *planner;
    int samples, iters; /* of a solve */
    bool encode;
    int solves;
} cgs_latency_work;
#define CGS_LATENCY_WORK ((cgs_latency_work){"mppi", 128, 30, false, 200})

cgs_status cgs_bench_latency(cgs_device *d, cgs_bench_target s, cgs_dtype act,
                             const cgs_latency_work *w, cgs_bench_fn fn, void *user);

/* Planning through three architectures of one size in one process on one device, so that the ratios
 * of their times are meaningful: random weights, PushT's actions and proprioception.  Each time is
 * the median of `runs` solves after a warm-up. */
enum { CGS_ARCHITECTURES = 3, CGS_TIMED_PLANNERS = 3 };

typedef struct cgs_timing_work {
    int samples, iters, gd_steps; /* of a solve */
    int episodes;                 /* planned together by gradient descent; the others plan one */
    int runs;
} cgs_timing_work;
#define CGS_TIMING_WORK ((cgs_timing_work){128, 30, 100, 50, 5}) /* the paper's */

typedef struct cgs_solve_time {
    const char *planner;
    int episodes;
    double seconds, least, most; /* per solve and episode */
} cgs_solve_time;

typedef struct cgs_architecture_time {
    const char *method; /* "lewm", "dinowm-cls", "dinowm-patch" */
    size_t parameters;  /* without the frozen backbone */
    int latent;         /* width of a frame's latent */
    cgs_solve_time solve[CGS_TIMED_PLANNERS];
} cgs_architecture_time;

cgs_status cgs_bench_architectures(cgs_device *d, const char *size, cgs_dtype act,
                                   const cgs_timing_work *w,
                                   cgs_architecture_time out[CGS_ARCHITECTURES]);

/* Frames encoded per second; for DINO-WM by its frozen backbone. */
cgs_status cgs_bench_encode(cgs_device *d, cgs_bench_target s, cgs_dtype act, int frames,
                            cgs_bench_fn fn, void *user);
/* The target model with random weights; with_backbone: able to encode frames too. */
cgs_status cgs_bench_model(cgs_model **out, cgs_bench_target s, bool with_backbone, cgs_device *d);
/* Frames read per second in batches, from HDF5 and from a packed copy.  scratch: a file name
 * that does not exist yet; removed afterwards. */
cgs_status cgs_bench_data(const char *scratch, cgs_bench_fn fn, void *user);

#endif /* CGS_BENCH_BENCH_H */
