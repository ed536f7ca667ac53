"""Closed-loop control with a trained world model, from Python; does what mpc_loop.c does.

    PYTHONPATH=python python3 examples/mpc_loop.py MODEL_DIR [ENV] [SEED]
"""
import sys

import cgs

if len(sys.argv) < 2:
    sys.exit("usage: mpc_loop.py MODEL_DIR [ENV] [SEED]")
env = sys.argv[2] if len(sys.argv) > 2 else "tworooms"
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0

agent = cgs.Agent(sys.argv[1], planner="cem", samples=128, iters=10)
sim = cgs.Sim(env, size=agent.image_size)
sim.reset(seed)
agent.goal_image(sim.render_goal())  # what the camera would see at the goal

actions = 0
for turn in range(10):
    plan = agent.plan(sim.render(), advanced=int(turn > 0), deadline=0.5)
    for action in plan.actions[0]:  # the first block; the next search starts from the others
        sim.step(action)
        actions += 1
        if sim.success:
            break
    print(f"turn {turn:2}: {plan.iterations:2} iterations, cost {plan.cost:10.4f}, "
          f"{1e3 * plan.seconds:6.1f} ms")
    if sim.success:
        break
print("reached the goal" if sim.success else "did not reach the goal", "after", actions, "actions")
