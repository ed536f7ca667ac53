# prelude.sh - what the scripts share:  . "$(dirname "$0")/prelude.sh"  with BUILD as $1.
# build, cgs, here (the folder of the tests), tmp (goes away at the end), fail, find_python.
set -eu
build=$(cd "$1" && pwd)
cgs=$build/cgs
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP # so that this goes away, too
fail() {
    echo "FAILED: $*"
    exit 1
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
