#!/bin/sh
# cli_python_docs.sh - docs/from-your-simulator.md and docs/from-a-checkpoint.md: their files as
# written, their commands with small numbers, in an environment without NumPy and in one with it.
#   tests/cli/cli_python_docs.sh BUILD
. "$(dirname "$0")/prelude.sh"
case $build in
*san) echo "python cannot load a library with sanitizers" && exit 77 ;;
esac
find_python "venv, ensurepip, numpy"
export PYTHONDONTWRITEBYTECODE=1 PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH
docs=$(cd "$here/../docs" && pwd)
cd "$tmp"

# "# NAME.py" begins a file; the files of both pages, and their commands
split_files() { # document
    awk '/^```python$/ {inside = 1; next}
        /^```$/ {inside = 0; next}
        inside && /^# [a-z_]+\.py$/ {name = $2}
        inside {print > name}' "$1"
}
# 300 episodes, 400 and 100 updates, 50 starts become a few
commands() { # document
    awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0; next} inside' "$1" |
        sed 's/\.h5 300$/.h5 12/; s/ 400$/ 4/; s/ 100$/ 2/; s/ 50$/ 3/'
}
for document in simulator checkpoint; do
    page=$(ls "$docs"/from-*"$document".md)
    split_files "$page"
    commands "$page" >"$document.sh"
done
for file in boat record train judge tune compare; do [ -s $file.py ] || fail "no page has $file.py"; done

CGS_LIBRARY=$(ls "$build"/libcgs.so.*) && export CGS_LIBRARY
cp -r "$here/../python" package && mkdir include && cp -r "$here/../include/cgs" include/cgs
mkdir bin && ln -s "$cgs" bin/cgs

go() { # name of the environment
    mkdir "$1" && cp ./*.py ./*.sh "$1"
    (
        PATH=$tmp/bin:$tmp/venv-$1/bin:$PATH
        export PATH OMP_NUM_THREADS=1
        cd "$1"
        sh -eu simulator.sh >simulator.out 2>&1 || fail "$1: $(cat simulator.out)"
        # somebody else's model, of another world
        [ -d "$tmp/other" ] || {
            cgs collect --env tworooms --episodes 6 --size 64 --out rooms.h5 --quiet
            cgs train --data rooms.h5 --out "$tmp/other" --size small --method lewm train.updates=2 \
                train.batch=4 train.validate_batches=1 --quiet
        }
        cgs export "$tmp/other" --out upstream.safetensors >/dev/null
        cp "$tmp/other/config.json" config.json
        sh -eu checkpoint.sh >checkpoint.out 2>&1 || fail "$1: $(cat checkpoint.out)"
    ) || exit 1
    grep -q "^update 4 of 4: prediction" "$1/simulator.out" || fail "$1: no progress: $(cat "$1/simulator.out")"
    grep -Eq "^mppi    [0-3] of 3, [0-9.]* % \[" "$1/simulator.out" || fail "$1: no rate: $(cat "$1/simulator.out")"
    grep -Eq "^mppi against random: .*p = [0-9.]+ \(only" "$1/simulator.out" || fail "$1: no comparison"
    [ "$(wc -l <"$1/results.jsonl")" = 3 ] || fail "$1: not three lines of results"
    [ "$(grep -c "update 2: prediction" "$1/checkpoint.out")" = 2 ] || fail "$1: $(cat "$1/checkpoint.out")"
    grep -q "^runs/tuned against runs/fresh: " "$1/checkpoint.out" || fail "$1: $(cat "$1/checkpoint.out")"
    # the tuned model began elsewhere than the fresh one
    if cmp -s "$1/runs/tuned/model.safetensors" "$1/runs/fresh/model.safetensors"; then fail "init did nothing"; fi
}
"$python" -m venv venv-bare
"$python" -m venv --system-site-packages venv-arrays
for name in bare arrays; do
    "venv-$name/bin/pip" -q install ./package >log 2>&1 || fail "pip: $(cat log)"
done
go bare
go arrays
venv-bare/bin/python -c "import numpy" 2>/dev/null && fail "the bare environment has NumPy"
cmp bare/boat.h5 arrays/boat.h5 || fail "with and without NumPy two recordings are made"
cmp bare/runs/boat/model.safetensors arrays/runs/boat/model.safetensors || fail "two models are trained"
sed 's/"seconds":[^,}]*//g' bare/results.jsonl | cut -c1-400 >a
sed 's/"seconds":[^,}]*//g' arrays/results.jsonl | cut -c1-400 >b
cmp a b || fail "two results are found"
cat arrays/simulator.out | tail -n 4
