# prelude.sh - shared by the scripts:  . "$(dirname "$0")/prelude.sh"  with BUILD as $1.
# build, cgs, here (the folder of the tests), tmp (deleted at the end), fail, cut_off, find_python.
set -eu
build=$(cd "$1" && pwd)
cgs=$build/cgs
here=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP # so that EXIT's trap runs, too
fail() {
    echo "FAILED: $*"
    exit 1
}

# cut_off SIGNAL FILE SIZE MADE COMMAND...: runs a command that makes MADE, and sends it the signal
# once FILE has more than SIZE bytes.  On a busy machine it may have ended before that is seen;
# then it begins anew.  Sets $status.
cut_off() {
    signal=$1 file=$2 size=$3 made=$4
    shift 4
    for _ in 1 2 3 4 5; do
        "$@" &
        pid=$!
        while kill -0 $pid 2>/dev/null; do
            [ "$(stat -c %s "$file" 2>/dev/null || echo 0)" -le "$size" ] || break
            sleep 0.02
        done
        kill -"$signal" $pid 2>/dev/null || true
        status=0
        wait $pid 2>/dev/null || status=$?
        [ $status = 0 ] || return 0
        rm -rf "$made" "$made".*
    done
    fail "it ended five times before it was cut off: $*"
}

# find_python "MODULE, MODULE": sets $python, or skips the test.  Modules of the distribution may
# belong to the system's python only.
find_python() {
    for python in /usr/bin/python3 python3; do
        if "$python" -c "import $1" 2>/dev/null; then return; fi
    done
    echo "no python3 with $1"
    exit 77
}
