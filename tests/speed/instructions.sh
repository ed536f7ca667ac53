#!/bin/sh
# instructions.sh - how many instructions three small cases take, against the counts that are stored.
#   tests/speed/instructions.sh BUILD [--renew] [FILE]
# FILE: the stored counts, tests/speed/instructions.txt; --renew writes it.  A case that takes more
# than 5 % above its count fails.  Counts depend on the compiler and on libraries, not on how busy
# the machine is: with other versions than those of FILE nothing is compared (status 77).  BUILD is
# made with ONEDNN=0, because valgrind is slow on code that is generated while it runs.
set -eu
build=$(cd "$1" && pwd)
renew=
[ "${2:-}" != --renew ] || { renew=yes && shift; }
here=$(cd "$(dirname "$0")" && pwd)
stored=$(realpath -m "${2:-$here/instructions.txt}")
outputs=$build/instructions
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
cd "$tmp"
rm -rf "$outputs"
mkdir -p "$outputs"

# What chooses code by the processor is told what to choose: this library, the C library's copies
# and functions (valgrind hides AVX-512 from it, not AVX2) and LAPACK.  Set here, so that the
# program does not start itself again outside valgrind.
# shellcheck disable=SC2046
unset $(env | sed -n 's/^\(CGS_[A-Z_]*\)=.*/\1/p')
export CGS_ISA=base OPENBLAS_CORETYPE=Prescott OPENBLAS_NUM_THREADS=1 \
    GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX,-FMA,-BMI2,-ERMS,-FSRM

count() { # case, verb and options: instructions of all threads
    out=$outputs/$1
    shift
    setarch -R valgrind --tool=callgrind --callgrind-out-file="$out.callgrind" \
        "$build/cgs" "$@" --threads 1 --quiet >"$out.log" 2>&1 || { tail -20 "$out.log" && exit 1; }
    # processes that it starts are counted too; its own count is the last
    sed -n 's/^==[0-9]*== Collected : //p' "$out.log" | tail -1
}

versions() {
    "$build/cgs" info | sed -nE 's/^(compiler|system) +/\1 /p'
    echo "machine $(uname -m)"
    echo "valgrind $(valgrind --version)"
}

if [ -z "$renew" ]; then
    versions >here
    grep -E '^(compiler|system|machine|valgrind) ' "$stored" >there
    if ! cmp -s here there; then
        echo "skipped: the counts of $stored are of $(paste -sd, there), here is $(paste -sd, here)"
        exit 77
    fi
fi

# each case reads what the one before it made
{
    echo "collect $(count collect collect --env pusht --out data.h5 --episodes 6 --size 64)"
    echo "train $(count train train --data data.h5 --out model --size small --method lewm-cgs \
        train.updates=1 train.batch=2 train.validate_every=1 train.recipe=published)"
    echo "plan $(count plan eval --model model --data data.h5 --out results.jsonl --planner mppi,gd \
        --samples 32 --iters 4 --gd-steps 4 --seeds 0 --episodes 1 --horizon 2 --budget 10 --goal-offset 10)"
} >counts
grep -vE '^[a-z]+ [0-9]+$' counts && echo "a case has no count; its output is in $outputs" && exit 1

if [ -n "$renew" ]; then
    {
        echo "# Instructions of the cases of instructions.sh, written by: tests/speed/instructions.sh BUILD --renew"
        versions
        cat counts
    } >"$stored"
    cat "$stored"
    exit 0
fi

awk -v outputs="$outputs" -v stored="$stored" '
    /^#/ { next }
    NR == FNR { was[$1] = $2; next }
    {
        percent = was[$1] ? 100 * ($2 / was[$1] - 1) : 100
        printf "%-8s %14.0f instructions, %+.2f %%\n", $1, $2, percent
        if (percent > 5) {
            printf "%s takes %.2f %% more instructions than stored: callgrind_annotate %s/%s.callgrind says where\n", \
                $1, percent, outputs, $1
            failed = 1
        } else if (percent < -5) {
            printf "%s takes %.2f %% fewer instructions than stored: renew %s\n", $1, -percent, stored
        }
    }
    END { exit failed }' "$stored" counts
