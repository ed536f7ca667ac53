#!/usr/bin/env python3
"""Writes a synthetic study of architectures into a folder: LeWM and DINO-WM on PushT, and timing.

    report_frozen.py FOLDER [ORIGIN]

ORIGIN is what the lines say of the backbone (stand-in).  All numbers are made up.
"""
import json, os, random, sys

folder = sys.argv[1]
origin = sys.argv[2] if len(sys.argv) > 2 else "stand-in"
rng = random.Random(3)
os.makedirs(folder, exist_ok=True)
lines = []
for family in "dinowm-cls", "dinowm-patch", "lewm":
    for role, gain in ("", 0.0), ("-ts", 0.05), ("-cgs", 0.25):
        method = family + role
        dino = family != "lewm"
        for seed in "0", "1", "42":
            for planner in "mppi", "cem", "gd", "zero":
                for K in (32, 64, 128) if planner in ("mppi", "cem") else (None,):
                    settings = {"model": "models/" + method, "method": method, "weights": "0" * 16,
                                "env": "pusht", "dataset": "synthetic.h5", "start_seed": seed,
                                "starts": "s" + seed, "history": "native", "planner": planner,
                                "horizon": 5, "seed": seed, "device": "cpu", "precision": "f32"}
                    if dino:
                        settings["backbone"] = origin
                    if K:
                        settings.update(samples=K, iters=30, sigma=1)
                    if planner == "mppi":
                        settings["tau"] = 0.015 if dino else 4
                    if planner == "cem":
                        settings["elites"] = K // 4
                    if planner == "gd":
                        settings.update(steps=100, lr=0.1)
                    outcomes = [{"episode": i, "step": i, "solves": 2, "seconds": 0.02,
                                 "success": rng.random() < 0.4 + gain} for i in range(50)]
                    lines.append({"format": "cgs-eval", "version": 1, "hash": "0" * 16,
                                  "settings": settings, "episodes": 50, "outcomes": outcomes})
with open(folder + "/results.jsonl", "w") as f:
    f.writelines(json.dumps(l) + "\n" for l in lines)

TIMES = {"lewm": (0.02, 0.01, 0.002), "dinowm-cls": (0.04, 0.03, 0.008), "dinowm-patch": (0.5, 0.45, 0.1)}
models = []
for method, seconds in TIMES.items():
    models.append({"method": method, "parameters": 1000, "latent": 192, "planners": [
        {"planner": p, "episodes": 1, "seconds": s, "least": 0.9 * s, "most": 1.1 * s,
         "ratio": s / TIMES["lewm"][i]} for i, (p, s) in enumerate(zip(("cem", "mppi", "gd"), seconds))]})
with open(folder + "/timing.json", "w") as f:
    json.dump({"format": "cgs-timing", "version": 1, "command": "cgs bench architectures", "env": "pusht",
               "device": "cpu", "precision": "bf16", "size": "small", "samples": 128, "iters": 30,
               "gd_steps": 100, "runs": 5, "solves": 2, "models": models}, f)
