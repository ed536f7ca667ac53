#!/bin/sh
# cli_plug_in.sh - environments from elsewhere: the examples, compiled as documented, from data to
# success; what files say about them; and libraries that are none.
#   tests/cli/cli_plug_in.sh BUILD
. "$(dirname "$0")/prelude.sh"
find_python "h5py, numpy"
cd "$tmp"
mkdir bin && ln -s "$cgs" bin/cgs && ln -s "$here/../include" "$here/../examples" .
PATH=$tmp/bin:$PATH
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}" # of what a plug-in loads

refuse() { # expected words, then the command
    words=$1
    shift
    status=0
    "$@" >out 2>err || status=$?
    [ $status = 1 ] || [ $status = 2 ] || fail "$* ended with $status: $(cat err)"
    grep -qF -- "$words" err || fail "expected \"$words\", got: $(cat err)"
    [ "$(grep -c . err)" -le 2 ] || fail "more than a sentence: $(cat err)"
}

# ---- the documented way ------------------------------------------------------------------
line=$(grep '^gcc .*libcartpole.so' "$here/../docs/your-environment.md")
sh -c "$line" || fail "it does not compile: $line"
grep -q '^ \*   gcc -O2 -shared -fPIC .* -lm$' examples/env_cartpole.c || fail "no line in the example"
echo '#include <cgs/env.h>' | ${CXX:-c++} -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ - ||
    fail "env.h is no C++"
gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -shared -fPIC -Iinclude -o strict.so examples/env_cartpole.c -lm
sha=$(sha256sum libcartpole.so | cut -d' ' -f1)

cgs envs --env ./libcartpole.so >out || fail "envs"
grep -q "^cartpole, version 1" out && grep -q "policies: random, held" out || fail "$(cat out)"
[ "$(grep -c '^[a-z]' out)" = 1 ] || fail "other environments: $(cat out)"
data="--env ./libcartpole.so --data cart.h5"
cgs collect --env ./libcartpole.so --out cart.h5 --episodes 14 --size 16 --threads 3 >out || fail "collect"
grep -q "cartpole, policy held, 14 episodes, 1414 rows" out || fail "$(cat out)"
if grep -q "action 1" out; then fail "a second action: $(cat out)"; fi
cgs collect --env ./libcartpole.so --out again.h5 --episodes 14 --size 16 --threads 1 --quiet
cmp cart.h5 again.h5 || fail "threads change the file"
cgs data check cart.h5 >out || fail "$(cat out)"

# ---- small model, every verb that simulates ---------------------------------------------
small="model.image_size=16 model.patch=8 model.width=16 model.encoder.layers=1 model.encoder.heads=2
  model.encoder.mlp=16 model.projector.hidden=16 model.predictor.layers=1 model.predictor.heads=2
  model.predictor.head_width=8 model.predictor.mlp=16 model.action.hidden=16 loss.sigreg.projections=8"
# shellcheck disable=SC2086
cgs train --data cart.h5 --out m --json $small train.updates=6 train.batch=4 train.validate_every=6 \
    >out 2>err || fail "train: $(cat err)"
few="--device cpu --samples 4 --iters 2"
# shellcheck disable=SC2086
cgs eval $data --model m $few --planner mppi cem zero --seeds 3 --episodes 5 --out r.jsonl \
    --manifest starts.jsonl --quiet >out 2>err || fail "eval: $(cat err)"
cgs plan $data --model m $few --gif p.gif --json --seed 2 >plan.out 2>err || fail "plan: $(cat err)"
cgs probe $data --model m --episodes 14 --device cpu --out probe.json --json probe.epochs=1 \
    >out 2>err || cgs probe $data --model m --episodes 14 --device cpu --out probe.json >out 2>err ||
    fail "probe: $(cat err)"
refuse "one action channel" cgs geometry $data --model m --device cpu --anchors 4 --windows 1 --frames 8
cgs geometry $data --mechanism --model m --device cpu --anchors 4 --out geometry.json >out 2>err ||
    fail "geometry: $(cat err)"
printf '0.5\n-1\n' >actions
cgs replay --env ./libcartpole.so --state 0,0,3.1,0 --actions actions --frames f --json >out || fail "replay"
[ "$(grep -c state out)" = 3 ] || fail "replay: $(cat out)"

"$python" - "$sha" <<'PY' || fail "what the files say"
import h5py, json, sys
want = ("cartpole", 1, "libcartpole.so", sys.argv[1])
def check(o, where):
    got = o.get("env"), o.get("env_version"), o.get("env_file"), o.get("env_sha256")
    assert got == want, (where, got)
a = h5py.File("cart.h5").attrs
text = lambda v: v.decode() if isinstance(v, bytes) else str(v)
check({k: int(v) if k == "env_version" else text(v) for k, v in a.items()}, "dataset")
check(json.loads(open("starts.jsonl").readline()), "manifest")
lines = [json.loads(l) for l in open("r.jsonl")]
assert len(lines) == 3
for l in lines:
    check(l["settings"], "results")
    tau = l["settings"]["planner"] if isinstance(l["settings"].get("planner"), dict) else l["settings"]
for f in "probe.json", "geometry.json", "p.json":
    check(json.load(open(f)), f)
probe = json.load(open("probe.json"))
assert probe["targets"] == ["cart position", "pole angle"], probe["targets"]
PY

# a study with the plug-in in the place of its environment
cgs reproduce demo --env ./libcartpole.so --dry-run --out s >out || fail "reproduce"
grep -q "collect --env ./libcartpole.so" out || fail "$(cat out)"
grep "cgs eval" out | grep -v -- "--env ./libcartpole.so" && fail "an evaluation without --env"
if grep -q "policy" out; then fail "the study's policy: $(cat out)"; fi

refuse "cartpole has one action channel" cgs reproduce demo --env ./libcartpole.so --dry-run --out s --only geometry
cgs reproduce tworooms --preset tiny --seeds 1 --env ./libcartpole.so --out s --device cpu --only collect train budget-cem \
    >out 2>err || fail "a study: $(cat err)"
grep -q "$sha" s/study.json && grep -q "$sha" s/results.jsonl || fail "the study does not say which plug-in"

# ---- code is loaded by its path alone ----------------------------------------------------
refuse "--env ./libcartpole.so" cgs eval --data cart.h5 --model m $few --seeds 3 --episodes 5
refuse "$sha" cgs probe --data cart.h5 --model m --episodes 14
refuse "--env ./libcartpole.so" cgs plan --data cart.h5 --model m $few
refuse "./libcartpole.so" cgs collect --env libcartpole.so --out x.h5
refuse "was collected in cartpole, not in wall" cgs eval --env wall --data cart.h5 --model m $few
refuse "No such file" cgs eval --env ./gone.so --data cart.h5 --model m $few

# ---- compiled anew: a warning; another version: refused -----------------------------------
mkdir other
gcc -O0 -g -shared -fPIC -Iinclude -o other/libcartpole.so examples/env_cartpole.c -lm
# shellcheck disable=SC2086
cgs eval --env ./other/libcartpole.so --data cart.h5 --model m $few --planner zero --seeds 3 --episodes 5 \
    --out r.jsonl --quiet >out 2>err || fail "eval: $(cat err)"
grep -q "another file of cartpole" err || fail "no warning: $(cat err)"
[ "$(wc -l <r.jsonl)" = 4 ] || fail "a line of another file was reused"
sed 's/\.version = 1/.version = 2/' examples/env_cartpole.c >two.c
gcc -O2 -shared -fPIC -Iinclude -o other/libcartpole.so two.c -lm
refuse "version 1 of cartpole, this is version 2" cgs eval --env ./other/libcartpole.so --data cart.h5 --model m $few

# ---- libraries that are none, or worse -----------------------------------------------------
make() { # name, text
    echo "$2" >"$1.c"
    gcc -O2 -shared -fPIC -Iinclude -o "./$1.so" "$1.c"
    refuse "./$1.so: $3" cgs collect --env "./$1.so" --out x.h5
}
echo "not a library" >text.so
refuse "./text.so: cannot be loaded" cgs collect --env ./text.so --out x.h5
refuse "not a file" cgs collect --env ./other/ --out x.h5
make nothing 'int nothing;' "exports no"
make early '#include <stdlib.h>
__attribute__((constructor)) static void now(void) { abort(); }' "crashed in its test: Aborted (in loading)"
make leaves '#include <stdlib.h>
__attribute__((constructor)) static void now(void) { exit(0); }' "ended the process in its test (in loading)"
make short 'int cgs_plug_in = 1;' ""
make wild '#include <cgs/env.h>
const cgs_env_class cgs_plug_in = {CGS_ENV_ABI, sizeof(cgs_env_class), (const char *)16};' "crashed in its test: Segmentation fault (in the table)"
make missing '#include <cgs/env.h>
const cgs_env_class cgs_plug_in = {.abi_version = CGS_ENV_ABI, .struct_size = sizeof(cgs_env_class),
  .id = "mine", .version = 1, .summary = "s", .predicate = {{"p", 1}}, .state_dim = 1, .action_dim = 1,
  .native = 8, .limit = 1, .action_range = 1};' "mine: the function reset is missing"
[ ! -e x.h5 ] && [ ! -e x.h5.part ] || fail "a file was begun"

# the ten lines of the page are a plug-in, once the functions have bodies
awk '$0 == "```c" {inside = 1; next} /^```$/ && inside {exit} inside' "$here/../docs/your-environment.md" |
    sed -e '/reset(/s/{ \.\.\. }/{ (void)error; world *m = w; m->x = goal[0] = random->uniform(random); m->y = goal[1] = 0.5; return CGS_OK; }/' \
        -e '/set_state(/s/{ \.\.\. }/{ (void)error; *(world *)w = (world){state[0], state[1]}; return CGS_OK; }/' \
        -e '/ step(/s/{ \.\.\. }/{ (void)aim; world *m = w; m->x += action[0]; m->y += action[1]; return true; }/' \
        -e '/get_state(/s/{ \.\.\. }/{ const world *m = w; state[0] = m->x; state[1] = m->y; }/' \
        -e '/render(/s/{ \.\.\. }/{ (void)w; (void)error; for (int i = 0; i < side * side * 3; i++) rgb[i] = 9; return CGS_OK; }/' >mine.c
gcc -Wall -Werror -shared -fPIC -Iinclude -o mine.so mine.c || fail "the page's lines do not compile"
cgs collect --env ./mine.so --out mine.h5 --episodes 2 --size 16 --quiet || fail "the page's environment"

# ---- an existing simulator ------------------------------------------------------------------
if echo '#include <mujoco/mujoco.h>' | gcc -E - >log 2>&1; then
    gcc -O2 -Wall -Wextra -Werror -shared -fPIC -Iinclude -o libbeam.so examples/env_beam.c -lmujoco -lm || fail "beam"
    cgs collect --env ./libbeam.so --out beam.h5 --episodes 14 --size 16 >out || fail "beam: collect"
    grep -q "policy own" out || fail "$(cat out)"
    # shellcheck disable=SC2086
    cgs train --data beam.h5 --out b --json $small train.updates=4 train.batch=4 >out 2>err || fail "beam: $(cat err)"
    # shellcheck disable=SC2086
    cgs eval --env ./libbeam.so --data beam.h5 --model b $few --seeds 3 --episodes 5 --protocol moderate --quiet \
        >out 2>err || fail "beam: $(cat err)"
    refuse "beam has no predicate for the strict protocol" cgs eval --env ./libbeam.so --data beam.h5 --model b \
        $few --protocol strict
fi

# ---- in a program --------------------------------------------------------------------------
cat >program.c <<'END'
#include <cgs/env.h>
#include <stdio.h>
int main(void) {
    cgs_sim *s;
    const char *id = "?";
    const double push = 1;
    if (cgs_env_load("./libcartpole.so", &id) != CGS_OK || cgs_sim_create(&s, id) != CGS_OK ||
        cgs_sim_step(s, &push, 1) != CGS_OK)
        return printf("%s\n", cgs_last_error()), 1;
    printf("%s %d %g\n", id, cgs_sim_describe(s).state_dim, cgs_sim_state(s)[0]);
    cgs_sim_destroy(s);
    return 0;
}
END
case $build in
*san) ;;
*)
    gcc -Iinclude -o program program.c "$build"/libcgs.so.?.* || fail "the library lacks a function of env.h"
    ln -s "$build"/libcgs.so.?.* "$(readelf -d program | sed -n 's/.*NEEDED.*\[\(libcgs[^]]*\)\].*/\1/p')"
    LD_LIBRARY_PATH=. ./program >out || fail "$(cat out)"
    grep -q "^cartpole 4 " out || fail "$(cat out)"
    CGS_LIBRARY=$(ls "$build"/libcgs.so.?.*) PYTHONPATH=$here/../python PYTHONDONTWRITEBYTECODE=1 "$python" - <<'PY' || fail "python"
import cgs
id = cgs.load_environment("./libcartpole.so")
assert id == "cartpole" and id in cgs.environments()
sim = cgs.Sim(id, size=32)
sim.reset(seed=0)
sim.step([1.0])
try:
    cgs.load_environment("libcartpole.so")
    assert False
except cgs.Error as e:
    assert "slash" in str(e), e
PY
    ;;
esac
echo "plug-ins: $(cgs envs --env ./libcartpole.so --json | head -c 60)"
