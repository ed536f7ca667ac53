#!/bin/sh
# isas.sh - test programs once under each instruction set that this machine has.
#   tests/isas.sh BUILD [name...]      names as for run.sh; without: all programs (no scripts)
# What is printed is run.sh's, under a line for each set.
set -u
build=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
if [ $# = 0 ]; then
    for test in "$build"/tests/test_*; do
        case $test in *.o | *.d | *.log) ;; *) set -- "$@" "$(basename "$test")" ;; esac
    done
fi
failed=""
# OpenBLAS takes its kernels from a variable of its own (src/cli/instructions.c)
for pair in base:Prescott v3:Haswell v4: amx:; do
    isa=${pair%%:*}
    "$build/cgs" --isa "$isa" envs >/dev/null 2>&1 || continue
    echo "---- CGS_ISA=$isa"
    (
        export CGS_ISA="$isa"
        [ -z "${pair#*:}" ] || export OPENBLAS_CORETYPE="${pair#*:}"
        exec "$here/run.sh" "$build" "$@"
    ) || failed="$failed $isa"
done
[ -z "$failed" ] || { echo "failed under:$failed"; exit 1; }
