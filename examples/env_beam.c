/* env_beam.c - an environment around a simulator that exists: a ball rolls on a beam that a motor
 * tilts, in MuJoCo.
 *
 *   gcc -O2 -shared -fPIC $(pkg-config --cflags cgs) -o libbeam.so env_beam.c -lmujoco -lm
 *   cgs collect --env ./libbeam.so --out beam.h5
 *
 * A state is MuJoCo's: the positions of the joints, then their velocities.  The action is the
 * motor's torque, the goal a place of the ball along the beam.  Images are drawn from the state. */
#include <cgs/env.h>
#include <math.h>
#include <mujoco/mujoco.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { TILT, ALONG, ABOVE, ROLL, JOINTS, STATE = 2 * JOINTS };
enum { SUBSTEPS = 10 };
#define REACH 1.0  /* half of the beam's length, metres */
#define RADIUS 0.1 /* of the ball */

static const char xml[] =
    "<mujoco model='ball on a beam'>"
    "  <option timestep='0.005'/>"
    "  <worldbody>"
    "    <body name='beam'>"
    "      <joint name='tilt' type='hinge' axis='0 -1 0' damping='0.6' stiffness='2'/>"
    "      <geom type='box' size='1 .1 .02' pos='0 0 -.02' mass='1'/>"
    "      <geom type='box' size='.02 .1 .1' pos='-1 0 .1' mass='.05'/>"
    "      <geom type='box' size='.02 .1 .1' pos='1 0 .1' mass='.05'/>"
    "    </body>"
    "    <body name='ball' pos='0 0 .1'>"
    "      <joint type='slide' axis='1 0 0'/>"
    "      <joint type='slide' axis='0 0 1'/>"
    "      <joint type='hinge' axis='0 1 0' damping='.001'/>"
    "      <geom type='sphere' size='.1' mass='.2'/>"
    "    </body>"
    "  </worldbody>"
    "  <actuator><motor joint='tilt' gear='3' ctrllimited='true' ctrlrange='-1 1'/></actuator>"
    "</mujoco>";

/* One model serves all worlds, from any thread: it is only read. */
static mjModel *model;
static char trouble[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void compile(void) {
    static mjVFS files;
    mj_defaultVFS(&files);
#if mjVERSION_HEADER >= 300
    mj_addBufferVFS(&files, "beam.xml", xml, (int)strlen(xml));
#else
    int slot = mj_makeEmptyFileVFS(&files, "beam.xml", (int)strlen(xml));
    memcpy(files.filedata[slot], xml, strlen(xml));
#endif
    model = mj_loadXML("beam.xml", &files, trouble, (int)sizeof trouble);
    mj_deleteVFS(&files);
}

typedef struct world {
    mjData *data;
    double wish; /* where its own policy wants the ball */
} world;

static cgs_status open_world(void *w, char *error) {
    pthread_once(&once, compile);
    if (model) ((world *)w)->data = mj_makeData(model);
    if (((world *)w)->data) return CGS_OK;
    snprintf(error, CGS_ENV_ERROR, "MuJoCo: %s", model ? "no memory" : trouble);
    return CGS_ENOMEM;
}

static void close_world(void *w) { mj_deleteData(((world *)w)->data); }

/* from the same numbers always to the same bits: nothing of earlier contacts is left */
static cgs_status set_state(void *w, const double *state, char *error) {
    mjData *d = ((world *)w)->data;
    (void)error;
    mj_resetData(model, d);
    memcpy(d->qpos, state, JOINTS * sizeof *state);
    memcpy(d->qvel, state + JOINTS, JOINTS * sizeof *state);
    mj_forward(model, d);
    return CGS_OK;
}

static void get_state(const void *w, double *state) {
    const mjData *d = ((const world *)w)->data;
    memcpy(state, d->qpos, JOINTS * sizeof *state);
    memcpy(state + JOINTS, d->qvel, JOINTS * sizeof *state);
}

static double place(cgs_env_random *random) { return 0.8 * (2 * random->uniform(random) - 1); }

/* a ball at rest on a level beam */
static cgs_status reset(void *w, cgs_env_random *random, double *goal, char *error) {
    double start[STATE] = {0};
    start[ALONG] = place(random);
    memset(goal, 0, STATE * sizeof *goal);
    goal[ALONG] = place(random);
    ((world *)w)->wish = goal[ALONG];
    return set_state(w, start, error);
}

static bool step(void *w, const double *action, const cgs_env_aim *aim) {
    mjData *d = ((world *)w)->data;
    (void)aim;
    d->ctrl[0] = action[0]; /* MuJoCo clips it */
    for (int k = 0; k < SUBSTEPS; k++) mj_step(model, d);
    for (int k = 0; k < mjNWARNING; k++)
        if (d->warning[k].number > 0) return false; /* the simulation diverged */
    return true;
}

static bool reached(const cgs_env_predicate *by, const double *state, const double *goal) {
    return fabs(state[ALONG] - goal[ALONG]) < by->distance;
}

/* tilts the beam so that the ball rolls to where it is wanted, with noise; now and then it wants
 * something else */
static void act(void *w, const double *state, const double *goal, int step_number,
                cgs_env_random *random, double *action) {
    world *me = w;
    (void)goal;
    if (step_number % 20 == 0) me->wish = place(random);
    double lean = 0.4 * (state[ALONG] - me->wish) + 0.3 * state[JOINTS + ALONG];
    double torque = 4 * (lean - state[TILT]) - 0.5 * state[JOINTS + TILT];
    action[0] = fmax(-1, fmin(1, torque + 0.5 * random->normal(random)));
}

/* ---- what it looks like ----------------------------------------------------------- */

static cgs_status render(void *w, int side, uint8_t *rgb, char *error) {
    static const uint8_t sky[3] = {235, 240, 245}, wood[3] = {150, 100, 50}, red[3] = {215, 40, 40};
    const double *q = ((world *)w)->data->qpos;
    double sine = sin(q[TILT]), cosine = cos(q[TILT]), metre = 2.6 / side;
    (void)error;
    for (int row = 0; row < side; row++)
        for (int column = 0; column < side; column++) {
            double x = (column + 0.5) * metre - 1.3, z = 1.3 - (row + 0.5) * metre;
            double along = cosine * x + sine * z, above = cosine * z - sine * x;
            bool beam = fabs(along) < REACH && above < 0 && above > -0.06;
            bool end = fabs(fabs(along) - REACH) < 0.03 && above > -0.06 && above < 0.2;
            bool ball = hypot(x - q[ALONG], z - RADIUS - q[ABOVE]) < RADIUS;
            memcpy(rgb + 3 * (row * side + column), ball ? red : beam || end ? wood : sky, 3);
        }
    return CGS_OK;
}

static void column(const void *w, const double *state, const double *goal, int index, double *out) {
    (void)w, (void)goal, (void)index;
    memcpy(out, state, STATE * sizeof *out);
}

static void probe_state(const double *state, double *out) {
    out[0] = state[ALONG];
    out[1] = state[TILT];
}

static const cgs_env_column columns[] = {{"proprio", STATE, false}};
static const cgs_env_feature features[] = {{"ball position", false}, {"beam angle", true}};

const cgs_env_class cgs_plug_in = {
    .abi_version = CGS_ENV_ABI,
    .struct_size = sizeof(cgs_env_class),
    .id = "beam",
    .version = 1,
    .can = CGS_ENV_RENDER | CGS_ENV_SET_STATE | CGS_ENV_BATCH | CGS_ENV_DETERMINISTIC,
    .summary = "a motor tilts a beam, on which a ball rolls (MuJoCo)",
    .predicate = {{"the ball is within 10 cm of its place", 0.1, 0, false},
                  {"the ball is within 5 cm of its place", 0.05, 0, false},
                  {NULL, 0, 0, false}},
    .state_dim = STATE,
    .action_dim = 1,
    .native = 64,
    .limit = 100,
    .action_range = 1,
    .columns = columns,
    .column_count = 1,
    .features = features,
    .feature_count = 2,
    .size = sizeof(world),
    .open = open_world,
    .close = close_world,
    .reset = reset,
    .set_state = set_state,
    .step = step,
    .get_state = get_state,
    .reached = reached,
    .render = render,
    .column = column,
    .probe_state = probe_state,
    .act = act,
};
