#!/bin/sh
# cli_emulate.sh - the CUDA kernels on the CPU: small cases of every operation and of planning, and
# plans that must not depend on the others of their batch.
#   tests/cli/cli_emulate.sh BUILD [whole]
# whole: also with threads and streams that take turns in other orders and copies that come early,
# and operations without each of their variants, side by side.
# EMULATOR is set by make test: the command that builds it, so that other tests run meanwhile; or no.
set -eu
test_gpu=$1/emulate/test_gpu
if [ "${EMULATOR:-no}" != no ]; then $EMULATOR; fi
[ "${EMULATOR:-}" != no ] && [ -x "$test_gpu" ] || { echo "no CUDA headers, or CUDA=0: the kernels were not translated"; exit 77; }
"$test_gpu" plan test_neighbours
if [ "${2:-}" != whole ]; then exec "$test_gpu" small; fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$test_gpu" small >"$tmp/1" 2>&1 &
first=$!
CGS_EMULATE_ORDER=reverse CGS_EMULATE_ASYNC=early CGS_EMULATE_STREAMS=others-first "$test_gpu" small >"$tmp/2" 2>&1 &
second=$!
CGS_EMULATE_ORDER=random CGS_EMULATE_STREAMS=main-first "$test_gpu" small >"$tmp/3" 2>&1 &
third=$!
"$test_gpu" variants-small >"$tmp/4" 2>&1 &
fourth=$!
status=0
for pid in $first $second $third $fourth; do wait "$pid" || status=1; done
cat "$tmp"/*
exit $status
