#!/bin/sh
# cli_emulate.sh - the CUDA kernels on the CPU: small cases of every operation and of planning, plans
# that must not depend on the others of their batch, and planners whose loop is the host's.
#   tests/cli/cli_emulate.sh BUILD [whole]
# whole: also with threads and streams that take turns in other orders and copies that come early,
# operations without each of their variants, and planners whose loop runs on a device, side by side.
# EMULATOR is set by make test: the command that builds it, so that other tests run meanwhile; or no.
set -eu
test_gpu=$1/emulate/test_gpu
if [ "${EMULATOR:-no}" != no ]; then $EMULATOR; fi
[ "${EMULATOR:-}" != no ] && [ -x "$test_gpu" ] || { echo "no CUDA headers, or CUDA=0: the kernels were not translated"; exit 77; }
"$test_gpu" plan test_neighbours
"$test_gpu" plan test_host_loops
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
"$test_gpu" plan test_planners_agree >"$tmp/5" 2>&1 &
fifth=$!
status=0
for pid in $first $second $third $fourth $fifth; do wait "$pid" || status=1; done
cat "$tmp"/*
exit $status
