/* pusht.c - PushT: a disc under PD control pushes a T-shaped block, on Chipmunk.
 *
 * Upstream's peculiarities are part of the task and preserved:
 *   - nothing has friction; damping 0 wipes the block's velocity in every substep, so it
 *     moves only while pushed and for one substep after;
 *   - the agent is kinematic: it is never deflected and passes through the walls;
 *   - the block's moment is 3000 and its centre of gravity (0, 45), see pusht.h;
 *   - actions are targets relative to the agent, in units of 100 px, never clipped;
 *   - set_state ends with one substep: the agent moves on by 0.01 v, and overlaps start to
 *     be pushed apart; the block's velocity and the contact memory are not cleared.
 * What the block does when several shapes touch it depends on the order in which the
 * engine's tree reports them, hence on the construction pose: restart builds the world in
 * upstream's default pose, reset in the sampled one. */
#include "env/pusht.h"

#include <chipmunk/chipmunk.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "env/portable.h"

const double cgs_pusht_part[2][4][2] = {{{-60, 0}, {60, 0}, {60, 30}, {-60, 30}},
                                        {{-15, 30}, {15, 30}, {15, 120}, {-15, 120}}};
const double cgs_pusht_wall[4][2][2] = {
    {{5, 506}, {5, 5}}, {{5, 5}, {506, 5}}, {{506, 5}, {506, 506}}, {{5, 506}, {506, 506}}};

static const double START[5] = {256, 400, 400, 100, 0}; /* construction pose */
static const double FARTHEST = 1e6;                     /* an agent beyond it ends its episode */

typedef struct pusht {
    cpSpace *space;
    cpBody *agent, *block;
    cpShape *shape[7]; /* walls, agent, bar, stem */
    int contacts;      /* contact points seen during the last action */
    cgs_pusht_painter painter;
} pusht;

/* ---- the world ------------------------------------------------------------------ */

/* Distributions build Chipmunk in debug mode, in which the first space of a process
 * prints a banner to standard output; a library must not. */
static void silence_banner(void) {
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere) return;
    FILE *keep = stdout;
    stdout = nowhere;
    cpSpaceFree(cpSpaceNew());
    stdout = keep;
    fclose(nowhere);
}

static pthread_once_t banner_once = PTHREAD_ONCE_INIT;

static void count_contacts(cpArbiter *arbiter, cpSpace *space, cpDataPointer user) {
    (void)space;
    ((pusht *)user)->contacts += cpArbiterGetCount(arbiter);
}

static void demolish(pusht *p) {
    if (!p->space) return;
    cpSpaceFree(p->space);
    for (int i = 0; i < 7; i++) cpShapeFree(p->shape[i]);
    cpBodyFree(p->agent);
    cpBodyFree(p->block);
    p->space = NULL;
}

/* pose: agent x, y; block x, y, angle */
static void construct(pusht *p, const double *pose) {
    demolish(p);
    pthread_once(&banner_once, silence_banner);
    cpSpace *s = p->space = cpSpaceNew();
    cpSpaceSetDamping(s, 0);
    cpCollisionHandler *handler = cpSpaceAddCollisionHandler(s, 0, 0);
    handler->postSolveFunc = count_contacts;
    handler->userData = p;

    for (int i = 0; i < 4; i++) {
        const double(*w)[2] = cgs_pusht_wall[i];
        p->shape[i] = cpSegmentShapeNew(cpSpaceGetStaticBody(s), cpv(w[0][0], w[0][1]),
                                        cpv(w[1][0], w[1][1]), PUSHT_WALL_RADIUS);
        cpSpaceAddShape(s, p->shape[i]);
    }

    p->agent = cpSpaceAddBody(s, cpBodyNewKinematic());
    cpBodySetPosition(p->agent, cpv(pose[0], pose[1]));
    p->shape[4] = cpSpaceAddShape(s, cpCircleShapeNew(p->agent, PUSHT_AGENT_RADIUS, cpvzero));

    p->block = cpBodyNew(PUSHT_MASS, PUSHT_MOMENT);
    for (int k = 0; k < 2; k++) {
        cpVect v[4];
        for (int i = 0; i < 4; i++) v[i] = cpv(cgs_pusht_part[k][i][0], cgs_pusht_part[k][i][1]);
        p->shape[5 + k] = cpPolyShapeNew(p->block, 4, v, cpTransformIdentity, 0);
    }
    cpBodySetCenterOfGravity(p->block, cpv(0, PUSHT_COG_Y));
    cpBodySetPosition(p->block, cpv(pose[2], pose[3]));
    cpBodySetAngle(p->block, pose[4]);
    cpSpaceAddBody(s, p->block);
    cpSpaceAddShape(s, p->shape[5]);
    cpSpaceAddShape(s, p->shape[6]);
}

static void close_world(void *world) {
    pusht *p = world;
    demolish(p);
    cgs_pusht_painter_free(&p->painter);
}

static cgs_status restart(void *world, char *error) {
    (void)error;
    construct(world, START);
    return CGS_OK;
}

static cgs_status set_state(void *world, const double *s, char *error) {
    (void)error;
    pusht *p = world;
    cpBodySetVelocity(p->agent, cpv(s[5], s[6]));
    cpBodySetPosition(p->agent, cpv(s[0], s[1]));
    /* the angle turns the block about its centre of gravity, the position then places its
     * origin: in this order the pose is exact */
    cpBodySetAngle(p->block, s[4]);
    cpBodySetPosition(p->block, cpv(s[2], s[3]));
    p->contacts = 0;
    cpSpaceStep(p->space, PUSHT_DT);
    return CGS_OK;
}

static void sample_pose(cgs_rng *rng, double *s) {
    s[2] = cgs_rng_range(rng, 100, 400);
    s[3] = cgs_rng_range(rng, 100, 400);
    s[4] = cgs_rng_range(rng, -2 * CGS_PI, 2 * CGS_PI);
    s[0] = cgs_rng_range(rng, 50, 450);
    s[1] = cgs_rng_range(rng, 50, 450);
    s[5] = s[6] = 0;
}

static cgs_status reset(void *world, cgs_env_random *random, double *goal, char *error) {
    cgs_rng *rng = cgs_env_rng(random);
    double start[7], to[7];
    sample_pose(rng, start);
    sample_pose(rng, to);
    construct(world, start);
    set_state(world, to, error); /* upstream moves to the goal to render it */
    set_state(world, start, error);
    memcpy(goal, to, sizeof to);
    goal[4] = cgs_wrap_turn(to[4]);
    return CGS_OK;
}

static bool step(void *world, const double *action, const cgs_env_aim *aim) {
    (void)aim;
    pusht *p = world;
    cpVect at = cpBodyGetPosition(p->agent);
    double gx = at.x + PUSHT_ACTION_SCALE * action[0], gy = at.y + PUSHT_ACTION_SCALE * action[1];
    p->contacts = 0;
    for (int i = 0; i < PUSHT_SUBSTEPS; i++) {
        cpVect x = cpBodyGetPosition(p->agent), v = cpBodyGetVelocity(p->agent);
        v.x += (PUSHT_KP * (gx - x.x) - PUSHT_KV * v.x) * PUSHT_DT;
        v.y += (PUSHT_KP * (gy - x.y) - PUSHT_KV * v.y) * PUSHT_DT;
        cpBodySetVelocity(p->agent, v);
        cpSpaceStep(p->space, PUSHT_DT);
    }
    at = cpBodyGetPosition(p->agent);
    return fabs(at.x) < FARTHEST && fabs(at.y) < FARTHEST;
}

/* ---- what it shows -------------------------------------------------------------- */

static void get_state(const void *world, double *s) {
    const pusht *p = world;
    cpVect a = cpBodyGetPosition(p->agent), v = cpBodyGetVelocity(p->agent);
    cpVect b = cpBodyGetPosition(p->block);
    s[0] = a.x;
    s[1] = a.y;
    s[2] = b.x;
    s[3] = b.y;
    s[4] = cgs_wrap_turn(cpBodyGetAngle(p->block));
    s[5] = v.x;
    s[6] = v.y;
}

static bool reached(const cgs_env_predicate *p, const double *s, const double *g) {
    double square = 0; /* agent, then block */
    for (int i = p->object_only ? 2 : 0; i < 4; i++) square += (g[i] - s[i]) * (g[i] - s[i]);
    double turn = fmod(fabs(g[4] - s[4]), 2 * CGS_PI);
    if (2 * CGS_PI - turn < turn) turn = 2 * CGS_PI - turn;
    return sqrt(square) < p->distance && turn < p->angle;
}

static int contacts_of(const pusht *p) {
    return (p->contacts + PUSHT_SUBSTEPS - 1) / PUSHT_SUBSTEPS;
}

int cgs_pusht_contacts(const cgs_env *e) { return contacts_of(e->world); }

static void column(const void *world, const double *s, const double *goal, int index, double *out) {
    (void)goal;
    if (index == 0) {
        out[0] = s[0], out[1] = s[1], out[2] = s[5], out[3] = s[6];
    } else {
        out[0] = contacts_of(world);
    }
}

static void probe_state(const double *s, double *out) { memcpy(out, s, 5 * sizeof *out); }

/* the engine's own drawing hook is its one public view of the contacts of a substep */
static void note_tick(cpVect a, cpVect b, cpSpaceDebugColor color, cpDataPointer user) {
    (void)color;
    cgs_pusht_scene *s = user;
    if (s->ticks == (int)(sizeof s->tick / sizeof s->tick[0])) return;
    double(*t)[2] = s->tick[s->ticks++];
    t[0][0] = a.x, t[0][1] = a.y, t[1][0] = b.x, t[1][1] = b.y;
}

static void scene_of(const pusht *p, cgs_pusht_scene *scene) {
    cpVect a = cpBodyGetPosition(p->agent), b = cpBodyGetPosition(p->block);
    scene->agent[0] = a.x, scene->agent[1] = a.y;
    scene->block[0] = b.x, scene->block[1] = b.y;
    scene->angle = cpBodyGetAngle(p->block);
    scene->ticks = 0;
    cpSpaceDebugDrawOptions options = {
        .drawSegment = note_tick, .flags = CP_SPACE_DEBUG_DRAW_COLLISION_POINTS, .data = scene};
    cpSpaceDebugDraw(p->space, &options);
}

void cgs_pusht_scene_of(cgs_env *e, cgs_pusht_scene *scene) { scene_of(e->world, scene); }

static cgs_status render(void *world, int side, uint8_t *rgb, char *error) {
    cgs_pusht_scene scene;
    scene_of(world, &scene);
    return cgs_env_said(error, cgs_pusht_paint(&((pusht *)world)->painter, &scene, side, rgb));
}

static const cgs_env_column columns[] = {{"proprio", 4, false}, {"n_contacts", 1, true}};
static const cgs_env_feature features[] = {{"agent position", false},
                                           {"agent position", false},
                                           {"block position", false},
                                           {"block position", false},
                                           {"block angle", true}};

const cgs_env_class cgs_pusht_class = {
    CGS_ENV_OURS,
    .id = "pusht",
    .version = 1,
    .summary = "a disc pushes a T-shaped block over a plane (Chipmunk)",
    .predicate =
        {{"the joint distance of agent and block position to the goal is below 20 px and the "
          "block's angle is within 20 degrees",
          20, CGS_PI / 9, false},
         {"the joint distance of agent and block position to the goal is below 10 px and the "
          "block's angle is within 10 degrees",
          10, CGS_PI / 18, false},
         {"the block is closer than 10 px and turned less than 10 degrees, wherever the agent is",
          10, CGS_PI / 18, true}},
    .state_dim = 7,
    .action_dim = 2,
    .native = 224,
    .limit = 245,
    .action_range = 1,
    .columns = columns,
    .column_count = 2,
    .features = features,
    .feature_count = 5,
    .size = sizeof(pusht),
    .open = restart,
    .close = close_world,
    .restart = restart,
    .reset = reset,
    .set_state = set_state,
    .step = step,
    .get_state = get_state,
    .reached = reached,
    .render = render,
    .column = column,
    .probe_state = probe_state,
};
