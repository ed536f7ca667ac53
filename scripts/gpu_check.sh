#!/bin/sh
# Everything about the GPU in one call: tests, memory checker, speed.
#   scripts/gpu_check.sh [FOLDER]
# FOLDER has bin/test_gpu and bin/cgs with their libraries in lib/ (scripts/dist.sh makes it
# on another machine); without it both are built here.  Exits with the tests' status.
# Environment: LOG, where the output is kept too (gpu_check.log); SKIP, words out of
# "test memcheck bench variants".
set -u
cd "$(dirname "$0")/.." || exit 1
log=${LOG:-gpu_check.log}
skip=" ${SKIP:-} "
if [ $# -gt 0 ]; then
    cgs=$1/bin/cgs
    tests=$1/bin/test_gpu
    export LD_LIBRARY_PATH="$1/lib:${LD_LIBRARY_PATH:-}"
else
    make -j"$(nproc)" build/cgs build/tests/test_gpu || exit 1
    cgs=build/cgs
    tests=build/tests/test_gpu
fi
status=0

part() { # name command...
    case $skip in *" $1 "*) return 0 ;; esac
    echo
    echo "== $*"
    shift
    "$@"
}

check() {
    nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv
    part test "$tests" || status=1
    part bench "$cgs" bench gemm ops --device cuda --seconds 0.05 || status=1
    part bench "$cgs" bench train --device cuda --windows 128 || status=1
    part bench "$cgs" bench plan --device cuda || status=1
    if command -v compute-sanitizer >/dev/null; then
        for tool in memcheck racecheck; do
            part memcheck compute-sanitizer --tool $tool --error-exitcode 9 --print-limit 20 \
                "$tests" small || status=1
        done
    else
        echo "compute-sanitizer is not here"
    fi
    # planning again with one fast path less, or with smaller clusters
    part variants env CGS_CLUSTER=8 "$cgs" bench plan --device cuda || status=1
    part variants env CGS_FUSED=0 "$cgs" bench plan --device cuda || status=1
    echo
    [ $status = 0 ] && echo "all parts passed" || echo "a part FAILED"
}

# a function before a pipe loses its variables: the status goes through a file
{ check; echo $status >"$log.status"; } 2>&1 | tee "$log"
status=$(cat "$log.status")
rm -f "$log.status"
exit "$status"
