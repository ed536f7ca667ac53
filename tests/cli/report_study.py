#!/usr/bin/env python3
"""Writes a synthetic study into a folder: every file that cgs report draws, with made-up numbers.

    report_study.py FOLDER [--hostile]

The numbers are invented so that each figure has something to show; none was measured.  With
--hostile, every name is an attempt to inject markup.
"""
import json, math, os, random, struct, sys, zlib

folder = sys.argv[1]
hostile = "--hostile" in sys.argv
rng = random.Random(7)
EVIL = '<script>alert("x")</script>&"\'\x01\u202e'

METHODS = [("lewm", "LeWM", 0.0), ("lewm-ts", "LeWM+TS", 0.03), ("lewm-cgs", "LeWM+CGS", 0.10)]
if hostile:
    METHODS.append((EVIL, EVIL, 0.05))


def name(text):
    return text + EVIL if hostile else text


def put(path, text):
    path = os.path.join(folder, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def put_json(path, kind, body):
    head = {"format": "cgs-" + kind, "version": 1, "command": name(f"cgs {kind} --study synthetic"),
            "code_commit": "synthetic", "env": "tworooms"}
    put(path, json.dumps({**head, **body}))


# ---- results: sweeps over K, I and tau, four planners, three seeds of 50 starts
def result(method, planner, seed, rate, numbers):
    starts = random.Random(int(seed))
    hard = [starts.random() for _ in range(50)]
    outcomes = []
    for i in range(50):
        ok = hard[i] < rate + rng.uniform(-0.04, 0.04)
        outcomes.append({"episode": 3 * i, "step": i, "success": ok, "first": 20 if ok else 0,
                         "actions": 25, "solves": 1, "planned": 1.0, "reached": 2.0,
                         "seconds": 2e-4 * numbers.get("samples", 64) * rng.uniform(0.9, 1.1)})
    settings = {"model": "models/" + method, "method": method, "weights": "0" * 16,
                "env": "tworooms", "env_version": 1, "dataset": name("synthetic.h5"),
                "episodes": 50, "start_seed": seed, "starts": "s" + seed, "history": "native",
                "budget": 50, "execute": 5, "planner": planner, "horizon": 5, **numbers,
                "seed": seed, "device": "cpu", "precision": "f32"}
    if planner.startswith("pg-"):
        settings["prior"] = "%016x" % sum(map(ord, method)) # each model has its own
    return {"format": "cgs-eval", "version": 1, "hash": "0" * 16, "settings": settings,
            "episodes": 50, "outcomes": outcomes}


lines = []
for method, _, gain in METHODS:
    for seed in "0", "1", "42":
        def add(planner, rate, **numbers):
            lines.append(result(method, planner, seed, rate, numbers))
        for k in range(9):
            base = 0.15 + 0.09 * k
            add("mppi", base + gain, samples=2**k, iters=30, tau=128, sigma=1)
            add("cem", base + gain - 0.05, samples=2**k, iters=30, elites=max(1, 2**k // 8), sigma=1)
            add("pg-mppi", 0.80 + 0.01 * k + gain, samples=2**k, iters=30, tau=128, sigma=1)
        for iters in 1, 5, 10, 20:
            add("mppi", 0.4 + 0.02 * iters + gain, samples=128, iters=iters, tau=128, sigma=1)
        for tau in 8, 32, 512, 2048:
            add("mppi", 0.85 - 0.06 * abs(math.log2(tau / 128)) + gain, samples=128, iters=30,
                tau=tau, sigma=1)
        add("gd", 0.5 + gain, steps=100, lr=0.1)
        add("zero", 0.1)
put("results.jsonl", "".join(json.dumps(l) + "\n" for l in lines))

# ---- training
for method, _, gain in METHODS:
    if "/" in method:
        continue
    out = []
    for step in range(1, 401):
        t = step / 400
        ts = 1.4 - 0.3 * t - (0.4 * t if method == "lewm-ts" else 0)
        out.append({"step": step, "lr": 5e-5 * min(1, 20 * t) * (1 + math.cos(math.pi * t)) / 2,
                    "loss": 2 * math.exp(-3 * t) + 0.3, "pred": 0.3 * math.exp(-2 * t) * rng.uniform(0.8, 1.2),
                    "sigreg": 20 * math.exp(-2.5 * t) + rng.random(), "ts": ts,
                    "cgs": 0.35 - 0.15 * t * (2 * (method == "lewm-cgs") + 0.2) / 2,
                    "grad_norm": 5 * math.exp(-2 * t) * rng.uniform(0.7, 1.4),
                    "frames_per_s": 2000 * rng.uniform(0.9, 1.1)})
        if step % 100 == 0:
            out.append({"step": step, "valid": {"pred": 0.3 * math.exp(-2 * t), "sigreg": 21 * math.exp(-2.5 * t),
                                                "ts": ts, "cgs": 0.2, "cosine": 1 - ts}})
    put(f"models/{method}/metrics.jsonl", "".join(json.dumps(o) + "\n" for o in out))
    put(f"models/{method}/config.json", json.dumps({"cgs": {"card": {
        "method": method, "env": "tworooms", "precision": "bf16", "seed": "3072", "dataset": name("synthetic.h5")}}}))

# ---- geometry
angles = [2 * math.pi * i / 32 for i in range(32)]


def gram(stretch, noise):
    v = [(math.cos(a) * stretch, math.sin(a) + noise * math.sin(3 * a)) for a in angles]
    unit = [(x / math.hypot(x, y), y / math.hypot(x, y)) for x, y in v]
    return [round(a[0] * b[0] + a[1] * b[1], 4) for a in unit for b in unit]


windows = []
for w, dims in enumerate((2, 2, 3)):
    path = [[0.0] * dims]
    heading = 0.3 * w
    for t in range(29):
        heading += rng.uniform(-0.7, 0.7)
        step = [math.cos(heading), math.sin(heading), 0.6 * math.sin(0.4 * t)][:dims]
        path.append([a + b for a, b in zip(path[-1], step)])
    models = []
    for method, shown, gain in METHODS:
        bend = 0.35 - 3 * gain
        models.append({"name": name(shown), "method": method,
                       "path": [[x + bend * t * rng.uniform(0, 0.25) for x in q] for t, q in enumerate(path)],
                       "heat": gram(1 + 20 * max(0.0, 0.1 - gain), max(0.0, 0.5 - 5 * gain))})
    windows.append({"episode": 11 + w, "step": 4, "dims": dims, "actions": path, "models": models})


def band(mean, half):
    return {"mean": mean, "lo": mean - half, "hi": mean + half}


put_json("geometry.json", "geometry", {
    "windows": windows, "ideal": gram(1, 0),
    "summary": [{"name": name(s), "method": m, "anchors": 256, "gram_error": band(0.5 - 3 * g, 0.03),
                 "isotropy": band(0.2 + 5 * g, 0.04), "pair_error": band(0.5 - 2 * g, 0.02),
                 "direction_cosine": band(0.5 + 4 * g, 0.02)}
                for m, s, g in METHODS]})

# ---- mechanism
K = [2**k for k in range(9)]
put_json("mechanism.json", "mechanism", {
    "anchors": 32, "batches": 512, "tau": 2, "samples": K,
    "models": [{"name": s if not hostile else name(s), "method": m, "lambda_min": [0.1] * 32,
                "q_inf": [0.85 - 1.5 * g + rng.uniform(-0.08, 0.08) for _ in range(32)],
                "q_inf_median": 0.85 - 1.5 * g,
                "p": [min(1, 0.3 + 0.09 * k + g) for k in range(9)],
                "lo": [min(1, 0.27 + 0.09 * k + g) for k in range(9)],
                "hi": [min(1, 0.33 + 0.09 * k + g) for k in range(9)]} for m, s, g in METHODS],
    "published": [{"name": "LeWM", "q_inf_median": 0.841, "p32": 0.751},
                  {"name": "LeWM+TS", "q_inf_median": 0.835, "p32": 0.803},
                  {"name": "LeWM+CGS", "q_inf_median": 0.685, "p32": 0.913}]})

# ---- priors
put_json("prior-quality.json", "prior-quality", {
    "zero": "control", "starts": 150, "goal_offset": 25, "held_out": False, "seeds": ["0", "1", "42"],
    "models": [{"name": name(s), "method": m, "model": name("models/" + m), "horizon": 5, "rho": band(0.31 - g, 0.02),
                "rho_median": {"median": 0.29 - g, "lo": 0.27 - g, "hi": 0.31 - g}, "below_one": 147,
                "ratios": [(0.29 - g) * math.exp(rng.gauss(0, 0.6)) for _ in range(150)],
                **({"published": 0.262} if m == "lewm" else {})} for m, s, g in METHODS]})

# ---- probes
targets = [name("agent position"), name("goal distance")]
keys = ["D_lin", "D_mlp", "C_A", "C_AS", "B_A", "B_AS"]
put_json("probe.json", "probe", {
    "episodes": 200, "targets": targets,
    "physical": [{"target": t, "P_A_lin": 0.95, "P_A_mlp": 0.953, "P_S_lin": 0.1, "P_S_mlp": 0.2,
                  "P_AS_lin": 0.96, "P_AS_mlp": 0.99, "R2_A_given_S": 0.98,
                  "published": {"P_A_lin": 0.952}} for t in targets],
    "models": [{"name": name(s), "method": m, "rows": [
        {"target": t, **{k: round(0.7 + 2 * g + 0.01 * i, 3) for i, k in enumerate(keys)},
         "published": {"D_lin": 0.8}} for t in targets]} for m, s, g in METHODS]})

# ---- theory
put_json("theory.json", "theory", {
    "systems": 2000, "seed": 0,
    "statements": [{"name": name(n), "what": name("a bound"), "check": "random systems", "trials": 2000,
                    "violations": v, "worst_margin": 0.012, "median_tightness": 0.83}
                   for n, v in (("Proposition 1", 0), ("Theorem 2", 0), ("Lemma 3", 2))],
    "models": [{"name": name(s), "method": m, "anchors": 64, "drift": band(0.3, 0.02), "mixed_defect": band(0.1, 0.02),
                "isotropy": band(0.2 + 5 * g, 0.02), "xi": band(0.4, 0.05),
                "holds": name("the bound applies at 61 of 64 anchors")} for m, s, g in METHODS]})


# ---- images: a PNG strip and a one-frame GIF
def png(width, height, colour):
    rows = b"".join(b"\0" + b"".join(bytes(colour(x, y)) for x in range(width)) for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


put("decode/one.png", png(320, 64, lambda x, y: (250 - x // 2, 90 + 2 * y, 160)))
put_json("decode.json", "decode", {"strips": [{"title": name("LeWM+CGS, episode 11"), "png": "decode/one.png",
                                               "frames": 10, "success": True, "rows": ["simulator", name("imagined")]}]})
# GIF: 64 x 64 of one colour, codes of two bits with a clear code before each pixel pair
bits, n = 0, 0
for i in range(64 * 64):
    if i % 2 == 0:
        bits |= 4 << n
        n += 3
    bits |= 1 << n
    n += 3
bits |= 5 << n
n += 3
data = bits.to_bytes((n + 7) // 8, "little")
blocks = b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255))
gif = (b"GIF89a" + struct.pack("<HHBBB", 64, 64, 0x81, 0, 0) + bytes([255, 255, 255, 0, 114, 178, 0, 0, 0, 0, 0, 0]) +
       b"," + struct.pack("<HHHHB", 0, 0, 64, 64, 0) + b"\x02" + blocks + b"\0;")
for method, shown, gain in METHODS[:3]:
    put(f"plans/{method}.gif", gif)
    put(f"plans/{method}.json", json.dumps({"title": name("episode 11"), "method": method, "planner": "mppi",
                                            "success": gain > 0.05, "command": name("cgs plan --gif x.gif")}))

# ---- surprise
put_json("surprise.json", "surprise", {"episodes": [
    {"title": name("agent moved elsewhere"), "edited_at": at, "models": [
        {"name": name(s), "method": m, "error": [0.05 + 0.02 * rng.random() + (0.5 + g) * (t == at) for t in range(40)]}
        for m, s, g in METHODS]} for at in (20, None)]})

# ---- the study itself
put("study.json", json.dumps({"name": name("synthetic"), "env": "tworooms", "preset": "small", "device": "cpu",
                              "precision": "bf16", "commit": "synthetic",
                              "methods": [m for m, _, _ in METHODS], "seeds": [0, 1, 42]}))
stages = [{"stage": name("collect"), "hash": "1", "command": "cgs collect --env tworooms --out data.h5",
           "seconds": 31.5, "found": name("500 episodes")},
          {"stage": "train lewm-cgs", "hash": "2", "command": name("cgs train --data data.h5 --out models/lewm-cgs"),
           "seconds": 212, "found": "pred 0.012, cosine 0.61"},
          {"stage": "eval", "hash": "3", "command": "cgs eval --model models/lewm models/lewm-cgs --data data.h5",
           "seconds": 4000, "found": "done"}]
put("stages.jsonl", "".join(json.dumps(s) + "\n" for s in stages))
