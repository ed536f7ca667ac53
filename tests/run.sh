#!/bin/sh
# Runs every test of a build folder and prints one line each, then the totals.
#   tests/run.sh BUILD [name...]
# A test is a program BUILD/tests/test_* or a script tests/cli_*.sh (given BUILD as its
# argument).  Exit status 77 means: skipped, and the last line says why.
set -u
build=$1
shift
here=$(dirname "$0")
# archer tells the thread sanitizer about OpenMP's own synchronisation
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 ${TSAN_OPTIONS:-}"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1 ${UBSAN_OPTIONS:-}"
# threads that wait should soon sleep: other programs may need the cores
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-5000}"
passed=0 failed=0 skipped=0
for t in "$build"/tests/test_* "$here"/cli_*.sh; do
    case $t in *.o | *.d | *.log) continue ;; esac
    [ -f "$t" ] || continue
    name=$(basename "$t" .sh)
    if [ $# -gt 0 ]; then
        case " $* " in *" $name "*) ;; *) continue ;; esac
    fi
    log=$build/tests/$name.log
    start=$(date +%s)
    case $t in
    *.sh) sh "$t" "$build" >"$log" 2>&1 ;;
    *) "$t" >"$log" 2>&1 ;;
    esac
    status=$?
    seconds=$(($(date +%s) - start))
    case $status in
    0) passed=$((passed + 1)); echo "ok       $name (${seconds}s)" ;;
    77) skipped=$((skipped + 1)); echo "skipped  $name: $(tail -n 1 "$log")" ;;
    *) failed=$((failed + 1)); echo "FAILED   $name (${seconds}s, status $status)"; tail -n 40 "$log" ;;
    esac
done
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
