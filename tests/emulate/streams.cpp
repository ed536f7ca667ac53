/* streams.cpp - streams, events and graphs.
 *
 * A stream is a queue of work.  Without CGS_EMULATE_STREAMS all of it happens at once.  With it
 * nothing happens before the host waits for something, and then no more than until that is done:
 *   main-first     the stream that was made first goes on while it can, then the second, ...
 *   others-first   the one that was made last goes on while it can, then the one before, ...
 *   random         at every wait one or the other
 * So two pieces of work that neither an event nor the host keeps in order happen in either.
 * A graph is a list of calls; a stream that is captured fills one instead of its queue. */
#include <cuda_runtime.h>
#include <deque>
#include <memory>
#include <stdlib.h>

typedef std::shared_ptr<bool> mark; /* whether a stream has come to a place in its queue */
typedef std::vector<std::function<void()>> calls;
struct work {
    std::function<void()> run;
    mark after; /* of another stream, or none */
};
struct CUstream_st {
    std::deque<work> queue;
    calls *recording;
};
struct CUevent_st {
    mark last; /* none before it is recorded */
};
struct CUgraph_st {
    calls list;
};
struct CUgraphExec_st {
    calls list;
};

static std::vector<cudaStream_t> streams; /* the oldest first */
static const char *order = getenv("CGS_EMULATE_STREAMS");

static bool can_go_on(cudaStream_t s) {
    return !s->queue.empty() && (!s->queue.front().after || *s->queue.front().after);
}

static void go_on(cudaStream_t s) {
    work w = s->queue.front();
    s->queue.pop_front();
    if (w.run) w.run();
}

static void append(cudaStream_t s, const work &w) {
    s->queue.push_back(w);
    if (!order) go_on(s);
}

static bool youngest_first() {
    static unsigned seed = 1;
    if (!strcmp(order, "main-first")) return false;
    if (!strcmp(order, "others-first")) return true;
    if (strcmp(order, "random")) emulate::die("CGS_EMULATE_STREAMS=%s is no order", order);
    seed = seed * 1664525u + 1013904223u;
    return seed >> 31;
}

/* One of the streams can always go on: an event is recorded before others wait for it. */
static void wait_for(mark place) {
    if (*place) return;
    bool youngest = youngest_first();
    while (!*place) {
        cudaStream_t next = nullptr;
        for (cudaStream_t s : streams)
            if (can_go_on(s) && (youngest || !next)) next = s;
        go_on(next);
    }
}

static mark end_of(cudaStream_t s) {
    mark m = std::make_shared<bool>(false);
    append(s, {[=] { *m = true; }, nullptr});
    return m;
}

namespace emulate {
void enqueue(cudaStream_t s, std::function<void()> f) {
    if (s->recording)
        s->recording->push_back(f);
    else
        append(s, {f, nullptr});
}
} // namespace emulate

extern "C" {
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) {
    streams.push_back(*s = new CUstream_st());
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    if (s->recording) return cudaErrorStreamCaptureUnsupported;
    wait_for(end_of(s));
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
    for (cudaStream_t s : streams) wait_for(end_of(s));
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    wait_for(end_of(s));
    streams.erase(std::find(streams.begin(), streams.end(), s));
    delete s;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) {
    *e = new CUevent_st;
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    delete e;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    if (s->recording) return cudaErrorStreamCaptureUnsupported; /* here, not by CUDA */
    e->last = end_of(s);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
    if (s->recording) return cudaErrorStreamCaptureUnsupported; /* here, not by CUDA */
    append(s, {nullptr, e->last});
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    if (e->last) wait_for(e->last);
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *t, cudaEvent_t from, cudaEvent_t to) {
    if (!from->last || !to->last) return cudaErrorInvalidResourceHandle;
    if (!*from->last || !*to->last) return cudaErrorNotReady;
    *t = 1;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
    s->recording = new calls;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) {
    *g = new CUgraph_st{*s->recording};
    delete s->recording;
    s->recording = nullptr;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *e, cudaGraph_t g, unsigned long long) {
    *e = new CUgraphExec_st{g->list};
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) {
    for (auto &f : e->list) emulate::enqueue(s, f);
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    delete g;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
    delete e;
    return cudaSuccess;
}
}
