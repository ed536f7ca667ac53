#!/bin/sh
# A stranger's files, made with h5py: the example of docs/your-data.md as written, files with faults
# of which cgs data check and cgs train think the same, and data in a folder that cannot be written.
. "$(dirname "$0")/prelude.sh"
find_python "h5py, numpy"
cd "$tmp"
mkdir bin && ln -s "$cgs" bin/cgs
PATH=$tmp/bin:$PATH

# ---- the example, as written -----------------------------------------------------------
block() { # language
    awk -v kind="$1" '$0 == "```" kind {inside = 1; next} /^```$/ {inside = 0} inside' "$here/../docs/your-data.md"
}
block python >example.py
block sh >example.sh
lines=$(grep -vc '^#' example.py)
[ "$lines" -le 12 ] || fail "the ten lines are $lines"
"$python" example.py || fail "the example does not run"
sh -eu example.sh >out 2>&1 || fail "the example's commands: $(cat out)"
grep -q "mine.h5: 20 episodes, 800 frames" out || fail "$(cat out)"
[ -s mine.gif ] || fail "no preview"

# ---- one judgement -----------------------------------------------------------------------
small="model.image_size=16 model.patch=8 model.width=16 model.encoder.layers=1 model.encoder.heads=2
  model.encoder.mlp=16 model.projector.hidden=16 model.predictor.layers=1 model.predictor.heads=2
  model.predictor.head_width=8 model.predictor.mlp=16 model.action.hidden=16 loss.sigreg.projections=8"
window="model.frameskip=2 model.history=2" # 6 rows
"$python" - <<'PY' || fail "the files could not be made"
import h5py, numpy as np
rng = np.random.default_rng(0)
E, L, S = 5, 12, 16
n = E * L
u = rng.normal(size=(E, L, 2))
u[:, -1] = np.nan
state = np.cumsum(np.insert(np.nan_to_num(u[:, :-1]), 0, 0, axis=1), axis=1)
good = dict(pixels=rng.integers(0, 255, (n, S, S, 3), np.uint8), action=u.reshape(n, 2).astype("f4"),
            state=state.reshape(n, 2).astype("f4"), ep_len=np.full(E, L), ep_offset=np.arange(E) * L)

def write(name, attrs={}, **changes):
    with h5py.File(name + ".h5", "w") as f:
        for k, v in {**good, **changes}.items():
            if v is not None:
                f[k] = v
        f.attrs.update(attrs)

def changed(column, at, value):
    x = good[column].copy()
    x[at] = value
    return x

shifted = u.copy()
shifted[:, 1:-1] = u[:, :-2]
shifted = shifted.reshape(n, 2).astype("f4")
full = np.where(np.isnan(good["action"]), 1, good["action"])
# taken by both
write("good")
write("scalar", action=good["action"][:, 0])
write("whole_numbers", action=rng.integers(0, 4, (n, 1)))
write("last_rows", action=full)
write("lost", state=changed("state", (14, 0), np.inf))
write("constant", action=changed("action", (slice(None), 1), 3))
write("other_length", notes=np.zeros(4))
write("late_world", {"alignment_checked": 1}, action=shifted)
# refused by both
write("no_action", action=None)
write("no_pixels", pixels=None)
write("no_index", ep_len=None, ep_offset=None)
write("planes", pixels=np.moveaxis(good["pixels"], 3, 1))
write("floats", pixels=good["pixels"].astype("f4") / 255)
write("gray", pixels=good["pixels"][..., 0])
write("wide", pixels=np.zeros((n, S, 2 * S, 3), np.uint8))
write("big", pixels=np.zeros((n, 32, 32, 3), np.uint8))
write("matrix", action=np.zeros((n, 2, 2)))
write("short_column", action=good["action"][:50])
write("many", action=rng.normal(size=(n, 65)))
write("hole", action=changed("action", (16, 1), np.nan))
write("infinite", action=changed("action", (23, 1), np.inf))
write("late", action=np.roll(good["action"], 1, axis=0))
write("shifted", action=shifted)
write("short", ep_len=np.full(12, 5), ep_offset=np.arange(12) * 5, state=None)
write("beyond", ep_len=np.full(E, L + 1))
write("several", action=changed("action", (16, 1), np.nan), pixels=np.zeros((n, S, 2 * S, 3), np.uint8),
      ep_len=np.full(12, 5), ep_offset=np.arange(12) * 5)
PY

# shellcheck disable=SC2086
verdicts() { # file, words of the message, or nothing where it should be taken
    "$cgs" data check "$1.h5" $small $window >check 2>&1 && checked=taken || checked=refused
    rm -rf run
    "$cgs" train --data "$1.h5" --out run --size small --threads 1 $small $window \
        train.batch=2 train.updates=1 train.validate_batches=1 >train 2>&1 && trained=taken || trained=refused
    [ $checked = $trained ] || fail "$1: check $checked, train $trained: $(cat check train)"
    [ $checked = "$([ "$2" ] && echo refused || echo taken)" ] || fail "$1: $checked: $(cat check)"
    if [ "$2" ]; then
        grep -q "$2" check || fail "$1: check says $(cat check)"
        grep -q "$2" train || fail "$1: train says $(cat train)"
    fi
}
remark() { # words of a remark of the file before
    grep -q "^remark: .*$1" check || fail "no remark \"$1\": $(cat check)"
}
verdicts good ""
grep -q "35 windows to train on" check || fail "windows: $(cat check)"
verdicts scalar ""
verdicts whole_numbers ""
remark "the last row of 5 of 5 episodes holds an action"
verdicts last_rows ""
remark "the last row of 5 of 5 episodes"
verdicts lost ""
remark 'column "state" in row 2 of episode 1 is inf'
verdicts constant ""
remark "action 1 is always 3"
verdicts other_length ""
remark 'column "notes" f64 (4) has not the 60 rows'
verdicts late_world ""

verdicts no_action 'it has no column "action"'
verdicts no_pixels 'it has no column "pixels"'
verdicts no_index 'it has no column "ep_len"'
grep -q 'no column "ep_offset"' train || fail "the second problem is missing: $(cat train)"
verdicts planes '"pixels" u8 (60, 3, 16, 16) is not u8'
verdicts floats '"pixels" f32 (60, 16, 16, 3) is not u8'
verdicts gray '"pixels" u8 (60, 16, 16) is not u8'
verdicts wide "frames are 32x16"
verdicts big "frames are 32x32, model.image_size is 16"
verdicts matrix '"action" f64 (60, 2, 2) is not numbers of shape'
verdicts short_column '"action" f32 (50, 2): 60 rows are expected'
verdicts many "actions have 65 numbers, at most 64"
verdicts hole "action 1 in row 4 of episode 1 is nan"
verdicts infinite "action 1 in row 11 of episode 1 is inf"
verdicts late "actions lie one row late"
verdicts shifted "actions lie one row late: the action of row t+1 explains 100%"
verdicts short "6 rows are needed (3 frames, 2 apart), the longest of 12 episodes has 5"
verdicts beyond "episode 4 has 13 rows from row 48 on, there are 60"
verdicts several "frames are 32x16"
[ "$(grep -c '^problem: ' check)" = 3 ] || fail "three problems: $(cat check)"
grep -q "3 problems: .*(1) .*(2) .*(3) " train || fail "three problems: $(cat train)"
"$cgs" data check several.h5 $window --json >json 2>/dev/null && fail "several: exit 0 with --json"
"$python" -c "
import json
j = json.load(open('json'))
assert not j['ok'] and len(j['problems']) == 3 and j['episodes'] == 12, j" || fail "$(cat json)"
"$cgs" data check good.h5 $window --json >json || fail "good: --json"
"$python" -c "import json; j = json.load(open('json')); assert j['ok'] and j['windows'] == 35, j" || fail "$(cat json)"
"$cgs" data check good.h5 --size small $window >check 2>&1 && fail "16 pixels are not --size small"
grep -q "frames are 16x16, model.image_size is 64" check || fail "$(cat check)"
"$cgs" data check no_file.h5 2>check && fail "no file"
grep -q "no_file.h5: No such file" check || fail "$(cat check)"

# ---- a folder that cannot be written -------------------------------------------------------
# shellcheck disable=SC2086
train() { # output folder, then options
    out=$1
    shift
    $as "$cgs" train --data locked/good.h5 --out "$out" --size small --threads 1 $small $window \
        train.batch=2 train.updates=1 train.validate_batches=1 "$@" >train 2>&1 ||
        fail "train: $(cat train)"
}
mkdir locked places && cp good.h5 locked
as=""
train beside
[ -f locked/good.h5.frames ] || fail "no copy beside the data"
mv locked/good.h5.frames kept
train asked --cache places/own
ls places/own/good.h5-*.frames >/dev/null || fail "--cache: $(ls -R places)"
grep -q "cached in places/own/good.h5-" train || fail "the log does not say where: $(cat train)"
"$cgs" pretrain --data locked/good.h5 --out backbone.safetensors --size small --updates 1 --batch 2 \
    --threads 1 --cache places/pretrain 2>train || fail "pretrain --cache: $(cat train)"
ls places/pretrain/good.h5-*.frames >/dev/null || fail "pretrain --cache: $(ls -R places)"
[ ! -e locked/good.h5.frames ] || fail "pretrain --cache: a copy beside the data, too"
if [ "$(id -u)" = 0 ]; then # to whom nothing is read-only
    command -v setpriv >/dev/null && as="setpriv --reuid=65534 --regid=65534 --clear-groups"
    chmod 711 .
    chmod 777 places
fi
[ "$(id -u)" != 0 ] || $as "$cgs" envs >/dev/null 2>&1 || as=no
if [ "$as" = no ] || { [ "$(id -u)" = 0 ] && [ -z "$as" ]; }; then
    echo "left out: root cannot become someone else here"
else
    chmod 555 locked
    mkdir runs && chmod 777 runs
    export HOME="$tmp/places/home" XDG_CACHE_HOME="$tmp/places/xdg" CGS_CACHE="$tmp/places/cgs"
    for place in cgs xdg/cgs home/.cache/cgs; do
        train "runs/$(basename "${place%/cgs}")"
        ls "places/$place"/good.h5-*.frames >/dev/null || fail "not in $place: $(ls -R places; cat train)"
        grep -q "its folder cannot be written; cached in $tmp/places/$place/good.h5-" train || fail "$(cat train)"
        case $place in
        cgs) unset CGS_CACHE ;;
        xdg/cgs) unset XDG_CACHE_HOME ;;
        esac
    done
    unset HOME
    $as "$cgs" train --data locked/good.h5 --out runs/none --size small $small $window \
        2>train && fail "nowhere to write, and it trained"
    grep -q "its folder cannot be written; say with --cache DIR or CGS_CACHE" train || fail "$(cat train)"
    # a copy that lies there already serves
    chmod 755 locked && cp kept locked/good.h5.frames && chmod 444 locked/good.h5.frames && chmod 555 locked
    train runs/there
    chmod 755 locked
    [ "$(cat runs/there/model.safetensors beside/model.safetensors | wc -c)" -gt 0 ] &&
        cmp runs/there/model.safetensors beside/model.safetensors || fail "the place of the copy changed the model"
fi
echo "check and train agree on 27 files"
