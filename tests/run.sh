#!/usr/bin/env bash
# Runs the tests of a build folder side by side and prints one line each, then the totals.
#   tests/run.sh [-jN] BUILD [name...]
# A test is a program BUILD/tests/test_* or a script tests/{cli/cli,tree/tree}_*.sh (given BUILD as its
# argument); its output is in BUILD/tests/NAME.log.  Exit status 77 means: skipped, and the last
# line says why.  N tests run at a time, by default one per core, and no more than eight.
set -u
set -m # a test is a process group: what it has started ends with it
here=$(dirname "$0")
cores=$(nproc 2>/dev/null || echo 2)
most=$((cores < 8 ? cores : 8)) # threads of many programs would wait for each other
case ${1:-} in
-j) shift ;;
-j*) most=${1#-j} && shift ;;
esac
build=$1
shift
# archer tells the thread sanitizer about OpenMP's own synchronisation
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 ${TSAN_OPTIONS:-}"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1 ${UBSAN_OPTIONS:-}"

# those that take longest begin first, so that none of them runs alone at the end
slow="cli_emulate test_mujoco_data cli_docs test_ops cli_env cli_study test_theory test_geometry
  test_loop test_rollout cli_manners cli_report cli_mujoco cli_dinostudy cli_jobs cli_laptop"
declare -A file=() wanted=() name=() began=() # by name of a test, twice; by process id, twice
for t in "$build"/tests/test_* "$here"/cli/cli_*.sh "$here"/tree/tree_*.sh; do
    case $t in *.o | *.d | *.log) continue ;; esac
    n=${t##*/}
    [ -f "$t" ] && file[${n%.sh}]=$t
done
[ $# -gt 0 ] || set -- "${!file[@]}"
for n; do
    [ -n "${file[$n]:-}" ] || { echo "tests/run.sh: no test $n in $build" && exit 2; }
    wanted[$n]=1
done
queue=()
for n in $slow $(printf '%s\n' "${!wanted[@]}" | sort); do
    [ -n "${wanted[$n]:-}" ] && queue+=("$n") && wanted[$n]=
done

ended=0 passed=0 failed=0 skipped=0 failures=
live() { # on a terminal the last line says what runs
    [ -t 1 ] && printf '\r\033[K%s' "$*"
}
run() {
    local log=$build/tests/$1.log t=${file[$1]}
    case $t in
    *.sh) sh "$t" "$build" >"$log" 2>&1 </dev/null & ;;
    *) "$t" >"$log" 2>&1 </dev/null & ;;
    esac
    name[$!]=$1
    began[$!]=$SECONDS
}
finish() { # waits until one has ended
    local pid= n status seconds how log
    while [ -z "${pid:-}" ]; do # where all that run are stopped, wait ends and names nobody
        wait -n -p pid "${!name[@]}" 2>/dev/null
        status=$?
        [ -n "${pid:-}" ] || sleep 0.1
    done
    n=${name[$pid]} seconds=$((SECONDS - began[$pid]))
    log=$build/tests/$n.log
    unset "name[$pid]"
    ended=$((ended + 1))
    case $status in
    0) passed=$((passed + 1)) how="ok       $n (${seconds}s)" ;;
    77) skipped=$((skipped + 1)) how="skipped  $n: $(tail -n 1 "$log")" ;;
    *) failed=$((failed + 1)) failures+=" $n" how="FAILED   $n (${seconds}s, status $status)" ;;
    esac
    live
    printf '[%*d/%d] %s\n' ${#total} $ended "$total" "$how"
    case $status in 0 | 77) ;; *) tail -n 40 "$log" ;; esac
}
stop() {
    trap '' INT TERM HUP
    live
    for pid in "${!name[@]}"; do kill -TERM -- "-$pid" 2>/dev/null; done
    echo "stopped: ${name[*]}"
    exit 130
}
trap stop INT TERM HUP

total=${#queue[@]}
while [ "$ended" -lt "$total" ]; do
    while [ ${#name[@]} -lt "$most" ] && [ ${#queue[@]} -gt 0 ]; do
        run "${queue[0]}"
        queue=("${queue[@]:1}")
    done
    live "    ${name[*]}"
    finish
done
[ -z "$failures" ] || printf '\nfailed:%s\n' "$failures"
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
