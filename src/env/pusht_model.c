/* pusht_model.c - one substep, in the engine's order:
 * positions, contacts, masses and biases, velocity wiped, warm start, ten iterations. */
#include "env/pusht_model.h"

#include <math.h>
#include <string.h>

#include "env/portable.h"
#include "env/pusht.h"

static const double SLOP = 0.1f;              /* widened from float32, as in the engine */
static const double BIAS = 0.061259621561307; /* 1 - (float32 0.9)^(60 dt) */
static const double PARTS[2][4] = {{-60, 60, 0, 30}, {-15, 15, 30, 120}}; /* x0 x1 y0 y1 */
enum { ITERATIONS = 10, FORGOTTEN = 4, REACH = 77 /* of the block about its centre */ };

typedef struct contact {
    double n[2], r[2]; /* normal toward the block, arm from its centre */
    double mass, bias; /* effective mass, velocity that resolves the overlap */
    double pusher[2];  /* velocity of the other shape */
    double bias_push, *push;
} contact;

void cgs_pusht_model_set(cgs_pusht_model *m, const double *s) {
    memset(m, 0, sizeof *m);
    cgs_sincos(s[4], &m->sine, &m->cosine);
    m->angle = s[4];
    m->agent[0] = s[0], m->agent[1] = s[1];
    m->agent_v[0] = s[5], m->agent_v[1] = s[6];
    m->block[0] = s[2] - m->sine * PUSHT_COG_Y;
    m->block[1] = s[3] + m->cosine * PUSHT_COG_Y;
    for (int p = 0; p < 2; p++)
        for (int k = 0; k < 5; k++) m->impulses[p][k].idle = FORGOTTEN;
}

void cgs_pusht_model_get(const cgs_pusht_model *m, double *s) {
    s[0] = m->agent[0], s[1] = m->agent[1];
    s[2] = m->block[0] + m->sine * PUSHT_COG_Y;
    s[3] = m->block[1] - m->cosine * PUSHT_COG_Y;
    s[4] = cgs_wrap_turn(m->angle);
    s[5] = m->agent_v[0], s[6] = m->agent_v[1];
}

/* ---- contacts ------------------------------------------------------------------- */

/* a: point on the other shape, b: point on the block */
static void add(cgs_pusht_model *m, contact *list, int *n, const double *normal, const double *a,
                const double *b, const double *pusher, double *push) {
    contact *c = &list[(*n)++];
    memcpy(c->n, normal, sizeof c->n);
    memcpy(c->pusher, pusher, sizeof c->pusher);
    c->r[0] = b[0] - m->block[0], c->r[1] = b[1] - m->block[1];
    double arm = c->r[0] * normal[1] - c->r[1] * normal[0];
    c->mass = 1 / (1 / PUSHT_MASS + arm * arm / PUSHT_MOMENT);
    double gap = (b[0] - a[0]) * normal[0] + (b[1] - a[1]) * normal[1] + SLOP;
    c->bias = gap < 0 ? -BIAS * gap / PUSHT_DT : 0;
    c->bias_push = 0;
    c->push = push;
}

/* the cached impulse of a contact; new contacts start at zero */
static double remembered(const cgs_pusht_impulses *old, int key) {
    if (old->idle >= FORGOTTEN) return 0;
    for (int i = 0; i < old->count; i++)
        if (old->key[i] == key) return old->push[i];
    return 0;
}

/* replaces the contacts of a pair; true when they may warm-start */
static bool renew(cgs_pusht_impulses *rec, int count, const int *key) {
    cgs_pusht_impulses next = {.idle = 0, .count = count};
    for (int i = 0; i < count; i++) {
        next.key[i] = key[i];
        next.push[i] = remembered(rec, key[i]);
    }
    bool touching = rec->idle == 1; /* aged by one since the last substep */
    *rec = next;
    return touching;
}

/* the agent's disc against one rectangle of the block, found in the block's frame */
static bool touch_agent(cgs_pusht_model *m, int part, double *normal, double *a, double *b) {
    const double *box = PARTS[part];
    double dx = m->agent[0] - m->block[0], dy = m->agent[1] - m->block[1];
    double u = m->cosine * dx + m->sine * dy, v = m->cosine * dy - m->sine * dx + PUSHT_COG_Y;
    double qu = u < box[0] ? box[0] : u > box[1] ? box[1] : u;
    double qv = v < box[2] ? box[2] : v > box[3] ? box[3] : v;
    double nu = qu - u, nv = qv - v, square = nu * nu + nv * nv;
    if (square > PUSHT_AGENT_RADIUS * PUSHT_AGENT_RADIUS) return false;
    if (square > 0) {
        double d = sqrt(square);
        nu /= d;
        nv /= d;
    } else { /* the centre is inside: leave through the nearest side */
        double depth[4] = {u - box[0], box[1] - u, v - box[2], box[3] - v};
        int side = 0;
        for (int i = 1; i < 4; i++)
            if (depth[i] < depth[side]) side = i;
        nu = side == 0 ? 1 : side == 1 ? -1 : 0;
        nv = side == 2 ? 1 : side == 3 ? -1 : 0;
        qu -= nu * depth[side];
        qv -= nv * depth[side];
    }
    qv -= PUSHT_COG_Y;
    normal[0] = m->cosine * nu - m->sine * nv;
    normal[1] = m->sine * nu + m->cosine * nv;
    b[0] = m->block[0] + (m->cosine * qu - m->sine * qv);
    b[1] = m->block[1] + (m->sine * qu + m->cosine * qv);
    a[0] = m->agent[0] + PUSHT_AGENT_RADIUS * normal[0];
    a[1] = m->agent[1] + PUSHT_AGENT_RADIUS * normal[1];
    return true;
}

typedef struct wall_line {
    double n[2], at;       /* inward normal; n . x on the line */
    double from[2], to[2]; /* ends, so that (t.y, -t.x) points along n */
} wall_line;

static const wall_line WALLS[4] = {{{1, 0}, 5, {5, 5}, {5, 506}},
                                   {{0, 1}, 5, {506, 5}, {5, 5}},
                                   {{-1, 0}, -506, {506, 506}, {506, 5}},
                                   {{0, -1}, -506, {5, 506}, {506, 506}}};

static double clamp01(double t) { return t < 0 ? 0 : t > 1 ? 1 : t; }

/* up to two contacts of one part with one wall; returns how many */
static int touch_wall(const cgs_pusht_model *m, int part, const wall_line *wall, double a[2][2],
                      double b[2][2], int *key) {
    double x[4][2];
    int deepest = 0;
    double depth[4];
    for (int i = 0; i < 4; i++) {
        double u = cgs_pusht_part[part][i][0], v = cgs_pusht_part[part][i][1] - PUSHT_COG_Y;
        x[i][0] = m->block[0] + (m->cosine * u - m->sine * v);
        x[i][1] = m->block[1] + (m->sine * u + m->cosine * v);
        depth[i] = wall->n[0] * x[i][0] + wall->n[1] * x[i][1] - wall->at;
        if (depth[i] < depth[deepest]) deepest = i;
    }
    if (depth[deepest] > PUSHT_WALL_RADIUS) return 0;

    /* of the two edges at the deepest vertex, the one that faces the wall more */
    int before = (deepest + 3) % 4, after = (deepest + 1) % 4;
    double facing[2];
    for (int k = 0; k < 2; k++) {
        const double *s = k == 0 ? x[before] : x[deepest], *e = k == 0 ? x[deepest] : x[after];
        double ex = e[0] - s[0], ey = e[1] - s[1], length = sqrt(ex * ex + ey * ey);
        facing[k] = -(ey * wall->n[0] - ex * wall->n[1]) / length;
    }
    int is = facing[0] > facing[1] ? before : deepest, ie = facing[0] > facing[1] ? deepest : after;

    const double *n = wall->n, *ws = wall->from, *we = wall->to, *es = x[is], *ee = x[ie];
    double cws = ws[0] * n[1] - ws[1] * n[0], cwe = we[0] * n[1] - we[1] * n[0];
    double ces = es[0] * n[1] - es[1] * n[0], cee = ee[0] * n[1] - ee[1] * n[0];
    int count = 0;
    for (int k = 0; k < 2; k++) {
        double t = clamp01(((k == 0 ? cee : ces) - cws) / (cwe - cws));
        double s = clamp01(((k == 0 ? cws : cwe) - ces) / (cee - ces));
        double gap = 0;
        for (int i = 0; i < 2; i++) {
            a[count][i] = ws[i] + t * (we[i] - ws[i]) + PUSHT_WALL_RADIUS * n[i];
            b[count][i] = es[i] + s * (ee[i] - es[i]);
            gap += (b[count][i] - a[count][i]) * n[i];
        }
        if (gap > 0) continue;
        key[count++] = k == 0 ? ie : 4 + is; /* wall end and vertex */
    }
    return count;
}

static int detect(cgs_pusht_model *m, contact *list, bool *warm) {
    static const double still[2] = {0, 0};
    double dx = m->agent[0] - m->block[0], dy = m->agent[1] - m->block[1];
    double reach = REACH + PUSHT_AGENT_RADIUS;
    bool agent_near = dx * dx + dy * dy < reach * reach;
    int n = 0;
    /* agent and bar, agent and stem, walls and bar, walls and stem */
    for (int pair = 0; pair < 10; pair++) {
        int part = pair < 2 ? pair : (pair - 2) / 4, other = pair < 2 ? 0 : 1 + (pair - 2) % 4;
        cgs_pusht_impulses *rec = &m->impulses[part][other];
        if (rec->idle < FORGOTTEN) rec->idle++;
        double normal[2], a[2][2], b[2][2];
        int key[2] = {0, 0}, count = 0;
        if (other == 0) {
            if (agent_near) count = touch_agent(m, part, normal, a[0], b[0]);
        } else {
            const wall_line *w = &WALLS[other - 1];
            double away = w->n[0] * m->block[0] + w->n[1] * m->block[1] - w->at;
            if (away < REACH + PUSHT_WALL_RADIUS) count = touch_wall(m, part, w, a, b, key);
            memcpy(normal, w->n, sizeof normal);
        }
        if (count == 0) continue;
        bool again = renew(rec, count, key);
        for (int i = 0; i < count; i++) {
            warm[n] = again;
            add(m, list, &n, normal, a[i], b[i], other == 0 ? m->agent_v : still, &rec->push[i]);
        }
    }
    return n;
}

/* ---- impulses ------------------------------------------------------------------- */

static void apply(double *v, double *w, const contact *c, double push) {
    double jx = push * c->n[0], jy = push * c->n[1];
    v[0] += jx / PUSHT_MASS;
    v[1] += jy / PUSHT_MASS;
    *w += (c->r[0] * jy - c->r[1] * jx) / PUSHT_MOMENT;
}

static double along(const double *v, double w, const contact *c, double px, double py) {
    return c->n[0] * (v[0] - w * c->r[1] - px) + c->n[1] * (v[1] + w * c->r[0] - py);
}

void cgs_pusht_model_substep(cgs_pusht_model *m) {
    for (int i = 0; i < 2; i++) {
        m->agent[i] += m->agent_v[i] * PUSHT_DT;
        m->block[i] += (m->v[i] + m->bias_v[i]) * PUSHT_DT;
        m->bias_v[i] = 0;
    }
    double turn = (m->w + m->bias_w) * PUSHT_DT;
    m->bias_w = 0;
    if (turn != 0) {
        m->angle += turn;
        cgs_sincos(m->angle, &m->sine, &m->cosine);
    }

    contact list[20];
    bool warm[20];
    int n = detect(m, list, warm);
    m->v[0] = m->v[1] = m->w = 0;
    if (n == 0) return;
    m->contacts += n;
    for (int i = 0; i < n; i++)
        if (warm[i]) apply(m->v, &m->w, &list[i], *list[i].push);

    for (int it = 0; it < ITERATIONS; it++)
        for (int i = 0; i < n; i++) {
            contact *c = &list[i];
            double mend = c->bias - along(m->bias_v, m->bias_w, c, 0, 0), old = c->bias_push;
            c->bias_push = fmax(old + mend * c->mass, 0);
            apply(m->bias_v, &m->bias_w, c, c->bias_push - old);

            double speed = along(m->v, m->w, c, c->pusher[0], c->pusher[1]);
            old = *c->push;
            *c->push = fmax(old - speed * c->mass, 0);
            apply(m->v, &m->w, c, *c->push - old);
        }
}

void cgs_pusht_model_step(cgs_pusht_model *m, const double *action) {
    double goal[2];
    for (int i = 0; i < 2; i++) goal[i] = m->agent[i] + PUSHT_ACTION_SCALE * action[i];
    m->contacts = 0;
    for (int k = 0; k < PUSHT_SUBSTEPS; k++) {
        for (int i = 0; i < 2; i++)
            m->agent_v[i] +=
                (PUSHT_KP * (goal[i] - m->agent[i]) - PUSHT_KV * m->agent_v[i]) * PUSHT_DT;
        cgs_pusht_model_substep(m);
    }
}
