/* mpc_loop.c - closed-loop control with a trained world model, through the public API alone.
 *
 *   cc mpc_loop.c $(pkg-config --cflags --libs cgs) -o mpc_loop
 *   ./mpc_loop MODEL_DIR [ENV] [SEED]
 *
 * The robot here is simulated.  Every turn the agent gets the camera image and plans five action
 * blocks of five actions each within a deadline; the robot executes the first block, and the
 * next search starts from what is left of the plan. */
#include <cgs/cgs.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURNS = 10 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != CGS_OK) {                                                                    \
            fprintf(stderr, "mpc_loop: %s\n", cgs_last_error());                                   \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

int main(int argc, char **argv) {
    const char *env = argc > 2 ? argv[2] : "tworooms";
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    if (argc < 2) {
        fprintf(stderr, "usage: mpc_loop MODEL_DIR [ENV] [SEED]\n");
        return 2;
    }

    cgs_agent *agent;
    cgs_agent_options options = {.planner = "cem", .samples = 128, .iters = 10};
    TRY(cgs_agent_create(&agent, argv[1], &options));
    cgs_agent_info info = cgs_agent_describe(agent);

    /* a random start and goal; the goal image is what the camera would see there */
    cgs_sim *sim, *there;
    TRY(cgs_sim_create(&sim, env));
    TRY(cgs_sim_create(&there, env));
    cgs_sim_info world = cgs_sim_describe(sim);
    if (world.action_dim != info.action_dim) {
        fprintf(stderr, "mpc_loop: the model acts with %d numbers, %s with %d\n", info.action_dim,
                env, world.action_dim);
        return 1;
    }
    size_t frame = (size_t)info.image_size * (size_t)info.image_size * 3;
    uint8_t *picture = malloc(frame);
    double *plan = malloc(sizeof *plan * (size_t)(info.horizon * info.frameskip * info.action_dim));
    if (!picture || !plan) return 1;
    TRY(cgs_sim_reset(sim, seed));
    TRY(cgs_sim_set_state(there, cgs_sim_goal(sim), world.state_dim));
    TRY(cgs_sim_render(there, info.image_size, picture));
    TRY(cgs_agent_goal_image(agent, picture));

    int actions = 0, reached = 0;
    for (int turn = 0; turn < TURNS && !reached; turn++) {
        cgs_plan_report report;
        TRY(cgs_sim_render(sim, info.image_size, picture));
        cgs_observation now = {.frames = picture, .count = 1, .advanced = turn > 0};
        TRY(cgs_agent_plan(agent, &now, 0.5, plan, &report));
        for (int k = 0; k < info.frameskip && !reached; k++, actions++) {
            TRY(cgs_sim_step(sim, plan + k * info.action_dim, info.action_dim));
            reached = cgs_sim_success(sim);
        }
        printf("turn %2d: %2d iterations%s, cost %10.4f, %6.1f ms, state %.1f %.1f\n", turn,
               report.iterations, report.cut ? " (deadline)" : "", report.cost,
               1e3 * report.seconds, cgs_sim_state(sim)[0], cgs_sim_state(sim)[1]);
    }
    printf("%s after %d actions (%s)\n", reached ? "reached the goal" : "did not reach the goal",
           actions, world.success);

    free(picture);
    free(plan);
    cgs_sim_destroy(sim);
    cgs_sim_destroy(there);
    cgs_agent_destroy(agent);
    return 0;
}
