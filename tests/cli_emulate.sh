#!/bin/sh
# cli_emulate.sh - the CUDA kernels on the CPU: small cases of every operation and of planning, with
# threads and streams that take turns in different orders and copies that come early or late.
#   tests/cli_emulate.sh BUILD
set -eu
test_gpu=$1/emulate/test_gpu
[ -x "$test_gpu" ] || { echo "no CUDA headers: the kernels were not translated"; exit 77; }
"$test_gpu" small
CGS_EMULATE_ORDER=reverse CGS_EMULATE_ASYNC=early CGS_EMULATE_STREAMS=others-first "$test_gpu" small
CGS_EMULATE_ORDER=random CGS_EMULATE_STREAMS=main-first "$test_gpu" small
