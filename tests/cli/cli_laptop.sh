#!/bin/sh
# cli_laptop.sh - studies with several training seeds at their tiniest: a seed is finished before
# the next begins, lines are short and name their seed, and what is published without weights goes
# on; the plans of the laptop's studies.
#   tests/cli/cli_laptop.sh BUILD
. "$(dirname "$0")/prelude.sh"
tiny() { # FOLDER [more]
    dir=$1
    shift
    "$cgs" reproduce tworooms --preset tiny --out "$dir" --device cpu --threads 1 \
        rows='collect train prior budget-cem gd strict geometry report' "$@"
}

# ---- the plans: environments by turns, seed after seed
"$cgs" reproduce main --preset laptop --dry-run >"$tmp/plan"
grep -n 'training seed' "$tmp/plan" | cut -d: -f2 >"$tmp/order"
[ "$(head -5 "$tmp/order" | tr '\n' ';')" = "tworooms, training seed 1 of 5;reacher, training seed 1 of 3;cube, training seed 1 of 3;pusht, training seed 1 of 3;tworooms, training seed 2 of 5;" ] ||
    fail "order of the study: $(cat "$tmp/order")"
[ "$(tail -1 "$tmp/order")" = "tworooms, training seed 5 of 5" ] || fail "the last of the study"
[ "$(wc -l <"$tmp/order")" = 14 ] || fail "14 environments and seeds"
for stage in 'train lewm-cgs, seed 3072' 'train lewm-cgs-s1' 'CEM over K, seed 3072' 'PG-MPPI over K, seed 1' 'probes' \
    'MPPI over temperature, seed 2' 'strict protocol, seed 1' 'held-out, with priors, seed 2' 'geometry' 'report, seed 4'; do
    grep -q "\] $stage  (" "$tmp/plan" || fail "no stage \"$stage\""
done
for name in reacher-histories cube-references ablations dinowm-wall dinowm-pointmaze-umaze dinowm-pointmaze-medium \
    prior-alone prior-alone-reacher tworooms-updates; do
    "$cgs" reproduce "$name" --preset laptop --dry-run >"$tmp/plan" || fail "no laptop preset of $name"
    grep -q 'train.seed=3072' "$tmp/plan" && grep -q 'train.seed=1 ' "$tmp/plan" || fail "$name has one seed"
    if grep -q '[{}@]' "$tmp/plan"; then fail "a hole in $name"; fi
done
"$cgs" reproduce list >"$tmp/list"
for name in main grids dinowm-mazes disagreements ablations reacher-histories; do
    grep -A2 "^  $name " "$tmp/list" | grep -q 'laptop: about [0-9.]* h' || fail "no estimate of $name"
done

# ---- two seeds, from beginning to end
tiny "$tmp/a" --seeds 3072,1 >"$tmp/first"
cut -d'"' -f4 "$tmp/a/stages.jsonl" >"$tmp/stages"
first=$(grep -n '^report, seed 3072' "$tmp/stages" | cut -d: -f1)
next=$(grep -n '^train lewm-s1' "$tmp/stages" | cut -d: -f1)
[ "$first" -lt "$next" ] || fail "seed 1 began before seed 3072 was finished: $(cat "$tmp/stages")"
[ "$(wc -l <"$tmp/stages")" = 22 ] || fail "$(wc -l <"$tmp/stages") stages"
grep -q '"train_seed":"1"' "$tmp/a/results.jsonl" || fail "a line does not name its training seed"
[ "$(grep -c '"outcomes":{"success":"[01]*","solves":' "$tmp/a/results.jsonl")" = "$(wc -l <"$tmp/a/results.jsonl")" ] ||
    fail "a line is not short"
[ "$(grep -c '"protocol":"strict"' "$tmp/a/results.jsonl")" = 24 ] || fail "the strict protocol: planner and random actions"

# ---- published without data and weights: nothing to do, and the files stay away
cp -r "$tmp/a" "$tmp/kept"
rm "$tmp/a/data.h5" "$tmp"/a/models/*/*.safetensors
tiny "$tmp/a" --seeds 3072,1 >"$tmp/again"
[ "$(grep -c 'done before:' "$tmp/again")" = 22 ] || fail "what was finished ran again: $(cat "$tmp/again")"
[ ! -e "$tmp/a/data.h5" ] || fail "data were collected for nothing"
# ---- one result more needs one seed's weights, and those of no other
sed -i '/"strict protocol, seed 1"/d' "$tmp/a/stages.jsonl"
cp "$tmp/a/results.jsonl" "$tmp/lines"
tiny "$tmp/a" --seeds 3072,1 >"$tmp/more"
[ -s "$tmp/a/models/lewm-s1/model.safetensors" ] || fail "no weights for the missing result"
[ ! -e "$tmp/a/models/lewm/model.safetensors" ] || fail "weights that nobody needs"
cmp "$tmp/lines" "$tmp/a/results.jsonl" || fail "other weights than before"
cmp "$tmp/kept/models/lewm-s1/model.safetensors" "$tmp/a/models/lewm-s1/model.safetensors" || fail "other weights than before"
# ---- with weights and without data: the data are made again
rm "$tmp/a/data.h5"
sed -i '/"strict protocol, seed 1"/d' "$tmp/a/stages.jsonl"
tiny "$tmp/a" --seeds 3072,1 --only strict >"$tmp/more" || fail "weights without data: $(tail -3 "$tmp/more")"
[ -s "$tmp/a/data.h5" ] || fail "no data for the missing result"
# ---- a seed more: only its own
tiny "$tmp/a" --seeds 3072,1,2 >"$tmp/third"
[ "$(grep -c 'train.seed=2 ' "$tmp/third")" = 3 ] || fail "the third seed was not trained"
[ ! -e "$tmp/a/models/lewm/model.safetensors" ] || fail "weights that nobody needs"
[ "$(grep -c '"train_seed":"2"' "$tmp/a/results.jsonl")" = "$(grep -c '"train_seed":"1"' "$tmp/a/results.jsonl")" ] ||
    fail "lines of the third seed"
"$cgs" report "$tmp/a" --out "$tmp/page.html" --quiet
grep -q 'Success rates' "$tmp/page.html" || fail "no page of a study with several seeds"

# ---- what is published: small, without weights, and a study that goes on from it
"$here/../scripts/publish.sh" "$tmp/kept" "$tmp/public" >"$tmp/size"
[ -z "$(find "$tmp/public" -name '*.safetensors' -o -name '*.h5' -o -name '*.html' -o -name '*.txt')" ] ||
    fail "published: $(find "$tmp/public")"
[ "$(find "$tmp/public" -name metrics.jsonl | wc -l)" = 6 ] || fail "validations of six models"
rm -r "$tmp/kept"
mv "$tmp/public" "$tmp/kept"
tiny "$tmp/kept" --seeds 3072,1 >"$tmp/again"
[ "$(grep -c 'done before:' "$tmp/again")" = 21 ] || fail "more than a page ran: $(cat "$tmp/again")"
[ ! -e "$tmp/kept/models/lewm/model.safetensors" ] || fail "weights for a page"
"$cgs" report "$tmp/kept" --out "$tmp/page.html" --tables "$tmp/tables.md" --quiet
grep -q '^## Straightness' "$tmp/tables.md" || fail "no straightness from what was published"

# ---- the grids, one model each after another
"$cgs" reproduce ablations --preset tiny --seeds 1 --out "$tmp/c" --device cpu --threads 1 --only at-K >"$tmp/out" ||
    fail "$(tail -3 "$tmp/out")"
[ "$(grep -c . "$tmp/c/results.jsonl")" = 78 ] || fail "13 variants, 3 planners, 2 seeds of starts"
"$cgs" reproduce dinowm-wall --preset tiny --seeds 1 --out "$tmp/d" --device cpu --threads 1 --only budget-cem >"$tmp/out" ||
    fail "$(tail -3 "$tmp/out")"
[ "$(grep -c . "$tmp/d/results.jsonl")" = 6 ] || fail "six models on frozen features"
if "$cgs" envs | grep -q '^reacher'; then
    "$cgs" reproduce reacher-histories --preset tiny --seeds 1 --out "$tmp/e" --device cpu --threads 1 \
        --only gd history-online >"$tmp/out" || fail "$(tail -3 "$tmp/out")"
    grep -q '"history":"online"' "$tmp/e/results.jsonl" || fail "no history"
    "$cgs" reproduce cube-references --preset tiny --seeds 1 --out "$tmp/f" --device cpu --threads 1 --episodes 10 \
        --only budget-mppi >"$tmp/out" || fail "$(tail -3 "$tmp/out")"
    grep -q '"method":"lewm-cgs-full"' "$tmp/f/results.jsonl" || fail "no reference"
fi
echo "seed after seed, short lines, weights made again only where they are needed"
