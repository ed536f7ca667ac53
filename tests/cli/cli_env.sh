#!/bin/sh
# cli_env.sh - envs, replay and collect through the program.
#   tests/cli/cli_env.sh BUILD
. "$(dirname "$0")/prelude.sh"
find_python "h5py, numpy"

# ---- envs: JSON and nothing else on standard output
"$cgs" envs --json >"$tmp/envs"
"$python" - "$tmp/envs" <<'PY'
import json, sys
rows = {r["id"]: r for r in map(json.loads, open(sys.argv[1]))}
assert rows["pusht"]["state_dim"] == 7 and rows["pusht"]["action_dim"] == 2, rows
assert {"pusht", "tworooms", "wall"} <= set(rows), rows
for r in rows.values():
    assert r["version"] >= 1 and r["success"] and r["policies"], r
PY

# ---- replay: every golden trajectory
"$python" - "$cgs" "$here/golden/trajectories.txt" "$tmp" <<'PY'
import json, subprocess, sys
cgs, path, tmp = sys.argv[1:]
count = 0
for line in open(path):
    word, _, rest = line.strip().partition(" ")
    if word == "trajectory":
        env, name, tolerance = rest.split()
        rows, actions = [], []
    elif word == "state":
        state = rest
    elif word == "action":
        actions.append(rest)
    elif word == "row":
        rows.append(rest.split())
    elif word == "end":
        with open(tmp + "/actions", "w") as f:
            f.write("# recorded\n" + "\n".join(actions) + "\n")
        out = subprocess.run([cgs, "replay", "--env", env, "--state", state, "--actions",
                              tmp + "/actions", "--json"], check=True, capture_output=True, text=True)
        seen = [json.loads(l) for l in out.stdout.splitlines()]
        assert [s["step"] for s in seen] == list(range(len(rows))), (name, seen)
        for s, row in zip(seen, rows):
            assert s["success"] is False, "no goal, no success"
            for a, b in zip(s["state"], row):
                assert b == "-" or abs(a - float(b)) <= float(tolerance), (env, name, s, row)
        count += 1
print(count, "golden trajectories replayed")
assert count == 25
PY

# ---- replay: goal, images, refusals
printf '0,-0.5\n\n0,-0.5\n' >"$tmp/a"
"$cgs" replay --env pusht --state 256,450,256,250,0,0,0 --goal 256,415,256,250,0,0,0 \
    --actions "$tmp/a" --frames "$tmp/frames" --size 64 --json >"$tmp/out"
[ "$(grep -c '"success":true' "$tmp/out")" = 1 ] || fail "the goal is reached once"
[ "$(ls "$tmp/frames" | wc -l)" = 3 ] || fail "three images"
refuse() { # expected words, then the command
    words=$1
    shift
    status=0
    "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" = 2 ] || fail "$* exits with $status"
    grep -q -- "$words" "$tmp/err" || fail "$* says: $(cat "$tmp/err")"
}
refuse "7 numbers" "$cgs" replay --env pusht --state 1,2,3 --actions "$tmp/a"
refuse "not finite" "$cgs" replay --env tworooms --state nan,3 --actions "$tmp/a"
refuse "unknown environment" "$cgs" replay --env nowhere --state 1 --actions "$tmp/a"
printf '0.1,0.1\n0.1,inf\n' >"$tmp/bad"
refuse "bad:2.*not finite" "$cgs" replay --env wall --state 20,20 --actions "$tmp/bad"
printf '0.1\n' >"$tmp/bad"
refuse "2 numbers are needed, got 1" "$cgs" replay --env wall --state 20,20 --actions "$tmp/bad"
refuse "no policy" "$cgs" collect --env wall --out "$tmp/x.h5" --policy expert
refuse "episodes" "$cgs" collect --env wall --out "$tmp/x.h5" --episodes 0
refuse "side" "$cgs" collect --env wall --out "$tmp/x.h5" --size 3
[ ! -e "$tmp/x.h5" ] || fail "a refused collection leaves a file"

# ---- collect: columns, and the same bytes for one thread and two
for env in pusht tworooms wall; do
    "$cgs" collect --env $env --out "$tmp/$env.1.h5" --episodes 5 --size 224 --seed 3 --threads 1 --quiet
    "$cgs" collect --env $env --out "$tmp/$env.2.h5" --episodes 5 --size 224 --seed 3 --threads 2 \
        --json >"$tmp/json"
    "$python" -c 'import json,sys; r=json.load(open(sys.argv[1])); assert r["episodes"]==5,r' "$tmp/json"
    cmp "$tmp/$env.1.h5" "$tmp/$env.2.h5" || fail "$env differs between one thread and two"
    [ ! -e "$tmp/$env.1.h5.part" ] || fail "$env: the journal is still there"
done
"$cgs" collect --env pusht --out "$tmp/other.h5" --episodes 2 --size 64 --seed 4 --quiet
"$python" - "$tmp" <<'PY'
import sys
import h5py, numpy as np
want = {"pusht": {"state": 7, "proprio": 4}, "tworooms": {"state": 2, "proprio": 2, "pos_agent": 2},
        "wall": {"state": 2, "proprio": 2}}
for env, columns in want.items():
    with h5py.File(f"{sys.argv[1]}/{env}.1.h5") as f:
        rows = f["pixels"].shape[0]
        assert f["pixels"].shape == (rows, 224, 224, 3) and f["pixels"].dtype == np.uint8
        assert f["action"].shape == (rows, 2) and f["action"].dtype == np.float32
        for name, dim in columns.items():
            assert f[name].shape == (rows, dim) and f[name].dtype == np.float32, (env, name)
        length, offset = f["ep_len"][:], f["ep_offset"][:]
        assert length.dtype == np.int32 and offset.dtype == np.int64 and length.sum() == rows
        assert (offset == np.concatenate([[0], np.cumsum(length)[:-1]])).all()
        assert (f["episode_idx"][:] == np.repeat(np.arange(5), length)).all()
        assert (f["step_idx"][:] == np.concatenate([np.arange(n) for n in length])).all()
        nan = np.isnan(f["action"][:])
        last = np.zeros(rows, bool)
        last[offset + length - 1] = True
        assert (nan == last[:, None]).all(), env
        assert np.isfinite(f["state"][:]).all()
        text = lambda v: v.decode() if isinstance(v, bytes) else str(v)
        assert text(f.attrs["env"]) == env and int(f.attrs["seed"]) == 3
        assert int(f.attrs["env_version"]) >= 1 and text(f.attrs["policy"])
        print(env, rows, "rows,", sorted(f))
with h5py.File(f"{sys.argv[1]}/other.h5") as f:
    assert f["pixels"].shape[1:] == (64, 64, 3)
PY

# ---- killed in the middle, then continued: the same bytes as in one go
long="--env pusht --episodes 24 --size 224 --seed 8"
"$cgs" collect $long --out "$tmp/whole.h5" --quiet
cut_off KILL "$tmp/killed.h5.part" 300000 "$tmp/killed.h5" "$cgs" collect $long --out "$tmp/killed.h5" --quiet
[ ! -e "$tmp/killed.h5" ] || fail "the collection was over before it was killed"
[ -e "$tmp/killed.h5.part" ] || fail "nothing was kept"
"$cgs" collect $long --out "$tmp/killed.h5" >"$tmp/out"
grep -q "resumed after" "$tmp/out" || fail "it started from the beginning: $(cat "$tmp/out")"
cmp "$tmp/whole.h5" "$tmp/killed.h5" || fail "the continued file differs"
head -1 "$tmp/out"

# ---- interrupted by SIGINT: exit 1, says how to resume, resumes
cut_off TERM "$tmp/stopped.h5.part" 300000 "$tmp/stopped.h5" "$cgs" collect $long --out "$tmp/stopped.h5" \
    --quiet 2>"$tmp/err"
[ $status = 1 ] || fail "an interrupted collection exits with $status"
grep -q "rerun the command to resume" "$tmp/err" || fail "it says: $(cat "$tmp/err")"
"$cgs" collect $long --out "$tmp/stopped.h5" --quiet
cmp "$tmp/whole.h5" "$tmp/stopped.h5" || fail "the continued file differs"

# an existing file is never overwritten
before=$(cksum <"$tmp/whole.h5")
if "$cgs" collect $long --out "$tmp/whole.h5" --quiet 2>"$tmp/err"; then fail "it overwrites a file"; fi
grep -q "whole.h5" "$tmp/err" || fail "it says: $(cat "$tmp/err")"
[ "$before" = "$(cksum <"$tmp/whole.h5")" ] || fail "it changed the file it refused to overwrite"
echo "ok"
