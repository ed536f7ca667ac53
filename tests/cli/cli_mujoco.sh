#!/bin/sh
# cli_mujoco.sh - Reacher, Cube and PointMaze through the program.
#   tests/cli/cli_mujoco.sh BUILD
. "$(dirname "$0")/prelude.sh"
"$cgs" envs | grep -q "^cube" || { echo "built without MuJoCo"; exit 77; }
find_python "h5py, numpy"

# ---- replay: free motion of the ball, one action of the arm, images
for u in 1 1 1 1 1 -1 0; do echo "$u,0"; done >"$tmp/u"
"$cgs" replay --env pointmaze-umaze --state 1,3,0,0 --actions "$tmp/u" --json >"$tmp/ball"
echo 1,0 >"$tmp/push"
"$cgs" replay --env reacher --state 0,0,0,0 --goal 0,3,0,0 --actions "$tmp/push" --json >"$tmp/arm"
printf '0,0,0,0,0\n0,0,0,0,1\n' >"$tmp/grip"
state="-1.5708,-1.5708,1.5708,-1.5708,-1.5708,0,0,0,0,0,0,0,0,0,0.4,0.1,0.02,1,0,0,0"
"$cgs" replay --env cube --state="$state,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0" \
    --actions "$tmp/grip" --frames "$tmp/frames" --json >"$tmp/cube"
[ "$(ls "$tmp/frames" | wc -l)" = 3 ] || fail "three images"
"$python" - "$tmp" <<'PY'
import json, sys
rows = [json.loads(l)["state"] for l in open(sys.argv[1] + "/ball")]
want = [1.0356113345, 1.1300586421, 1.2826446223, 1.4926802384, 1.7594846199, 1.9720927188, 2.1585343802]
for r, x in zip(rows[1:], want):
    assert abs(r[0] - x) < 1e-8, (r, x)
last = [json.loads(l)["state"] for l in open(sys.argv[1] + "/arm")][-1]
assert abs(last[2] - 1.35369) < 1e-3 and abs(last[3] + 1.08884) < 1e-3, last
cube = [json.loads(l)["state"] for l in open(sys.argv[1] + "/cube")]
assert len(cube) == 3 and len(cube[0]) == 41 and cube[2][6] > 0.2, cube
PY

# ---- collect: columns, the same bytes for one thread and two, with and without images
for env in pointmaze-umaze pointmaze-medium reacher cube; do
    "$cgs" collect --env $env --out "$tmp/$env.1.h5" --episodes 3 --size 64 --seed 3 --threads 1 --quiet
    "$cgs" collect --env $env --out "$tmp/$env.2.h5" --episodes 3 --size 64 --seed 3 --threads 2 \
        --json >"$tmp/json"
    "$python" -c 'import json,sys; r=json.load(open(sys.argv[1])); assert r["episodes"]==3 and r["dropped"]==0,r' \
        "$tmp/json"
    cmp "$tmp/$env.1.h5" "$tmp/$env.2.h5" || fail "$env differs between one thread and two"
done
"$cgs" collect --env cube --policy markov --out "$tmp/markov.h5" --episodes 1 --size 0 --seed 3 >"$tmp/out"
grep -q "share of those below 0.04" "$tmp/out" || fail "coverage: $(cat "$tmp/out")"
"$cgs" collect --env cube --out "$tmp/blind.h5" --episodes 3 --size 0 --seed 3 --quiet
"$cgs" collect --env reacher --out "$tmp/sparse.h5" --episodes 3 --size 64 --every 5 --seed 3 --quiet
"$cgs" data info "$tmp/sparse.h5" | grep -q "64x64, one row in 5" || fail "data info of a sparse file"
"$python" - "$tmp" <<'PY'
import sys
import h5py, numpy as np
tmp = sys.argv[1]
want = {"pointmaze-umaze": (100, {"state": 4, "proprio": 4}),
        "pointmaze-medium": (100, {"state": 4, "proprio": 4}),
        "reacher": (201, {"state": 4, "observation": 6, "qpos": 2, "qvel": 2, "finger_pos": 2, "target_pos": 2}),
        "cube": (201, {"state": 41, "observation": 28, "qpos": 21, "qvel": 20, "proprio_joint_pos": 6,
                       "proprio_joint_vel": 6, "proprio_effector_pos": 3, "proprio_effector_yaw": 1,
                       "proprio_gripper_opening": 1, "proprio_gripper_vel": 1, "proprio_gripper_contact": 1,
                       "privileged_block_0_pos": 3, "privileged_block_0_quat": 4, "privileged_block_0_yaw": 1,
                       "privileged_target_block_pos": 3, "privileged_target_block_yaw": 1, "control": 7, "time": 1})}
for env, (rows, columns) in want.items():
    with h5py.File(f"{tmp}/{env}.1.h5") as f:
        assert f["pixels"].shape == (3 * rows, 64, 64, 3), (env, f["pixels"].shape)
        assert (f["ep_len"][:] == rows).all() and int(f.attrs["env_version"]) > 10000000
        for name, dim in columns.items():
            assert f[name].shape == (3 * rows, dim), (env, name, f[name].shape)
            assert np.isfinite(f[name][:]).all(), (env, name)
        assert np.abs(np.nan_to_num(f["action"][:])).max() <= 1
        pixels = f["pixels"][:]
        moved = (pixels[1:rows] != pixels[:rows - 1]).reshape(rows - 1, -1).any(1)
        assert moved.mean() > 0.5, (env, moved.mean())
with h5py.File(f"{tmp}/cube.1.h5") as f, h5py.File(f"{tmp}/blind.h5") as g:
    assert "pixels" not in g and (f["state"][:] == g["state"][:]).all()
    o, q = f["observation"][:], f["qpos"][:]
    assert np.allclose(o[:, :6], q[:, :6]) and np.allclose(o[:, 19:22], (q[:, 14:17] - [0.425, 0, 0]) * 10, atol=1e-5)
    assert np.allclose(o[:, 15] ** 2 + o[:, 16] ** 2, 1, atol=1e-5)
    t = f["time"][:201, 0]
    assert np.allclose(np.diff(t), 0.05, atol=1e-4)
with h5py.File(f"{tmp}/reacher.1.h5") as f:
    q, tip = f["qpos"][:].astype(float), f["finger_pos"][:]
    s = q[:, 0] + q[:, 1]
    assert np.allclose(tip, 0.12 * np.stack([np.cos(q[:, 0]) + np.cos(s), np.sin(q[:, 0]) + np.sin(s)], 1), atol=1e-5)
with h5py.File(f"{tmp}/reacher.1.h5") as f, h5py.File(f"{tmp}/sparse.h5") as g:
    a, b, drawn = f["pixels"][:], g["pixels"][:], f["step_idx"][:] % 5 == 0
    assert (a[drawn] == b[drawn]).all() and (b[~drawn] == 0).all() and drawn.sum() == 3 * 41
    assert (f["state"][:] == g["state"][:]).all()
PY

# ---- a scene file of one's own: the same arm without its damping turns faster; another arm is refused
arm() {
    echo "<mujoco><option timestep='0.02' gravity='0 0 0'/><worldbody><camera pos='0 0 .75'/>"
    echo "<body><joint name='shoulder' axis='0 0 1'/><geom type='capsule' size='.01' fromto='0 0 0 .12 0 0'/>"
    [ "$1" = 1 ] || echo "<body pos='.12 0 0'><joint name='wrist' axis='0 0 1'/><geom type='sphere' size='.02' pos='.1 0 0'/></body>"
    echo "</body></worldbody><actuator><motor joint='shoulder' gear='.05'/>"
    [ "$1" = 1 ] || echo "<motor joint='wrist' gear='.05'/>"
    echo "</actuator></mujoco>"
}
arm 2 >"$tmp/two.xml"
arm 1 >"$tmp/one.xml"
own() { "$cgs" replay --env reacher --state 0,0,0,0 --actions "$tmp/push" --json --model-xml "$1"; }
own "$tmp/two.xml" >"$tmp/free" || fail "a scene of one's own"
cmp -s "$tmp/free" "$tmp/arm" && fail "the scene file was not used"
if own "$tmp/one.xml" 2>"$tmp/err"; then fail "one joint was accepted"; fi
grep -q "has 1 positions, 1 speeds and 1 actuators; 2, 2 and 2 are expected" "$tmp/err" || fail "$(cat "$tmp/err")"
if "$cgs" replay --env tworooms --state 20,20 --actions "$tmp/push" --model-xml "$tmp/two.xml" 2>"$tmp/err"; then
    fail "TwoRooms has no MuJoCo model"
fi
grep -q "tworooms has no physical model" "$tmp/err" || fail "$(cat "$tmp/err")"
echo "ok"
