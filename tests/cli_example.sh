#!/bin/sh
# cli_example.sh - examples/mpc_loop.c against the installed library, found by pkg-config.
#   tests/cli_example.sh BUILD
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
case $build in
*san) echo "the shared library is built with sanitizers" && exit 77 ;;
esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
    echo "FAILED: $*"
    exit 1
}

make -s -C "$here/.." B="$(cd "$build" && pwd)" install PREFIX="$tmp/prefix" >"$tmp/install.log" 2>&1 ||
    { cat "$tmp/install.log"; fail "make install"; }
export PKG_CONFIG_PATH="$tmp/prefix/lib/pkgconfig"
[ "$(pkg-config --modversion cgs)" = "$("$tmp/prefix/bin/cgs" --version | sed 's/.* //;q')" ] ||
    fail "pkg-config and the program disagree about the version"
for std in "c11" "c99"; do
    ${CC:-cc} -std=$std -Wall -Wextra -Wpedantic -Werror -o "$tmp/mpc_loop" \
        "$here/../examples/mpc_loop.c" $(pkg-config --cflags --libs cgs) || fail "it does not compile as $std"
done

"$build/tests/test_eval" --model "$tmp/model" tworooms none 1
export LD_LIBRARY_PATH="$tmp/prefix/lib"
"$tmp/mpc_loop" "$tmp/model" tworooms 3 >"$tmp/out" || fail "the loop ended with $?"
cat "$tmp/out"
grep -q "^turn  0: *[1-9]" "$tmp/out" || fail "no plan was made"
grep -q "reach the goal after 50 actions\|reached the goal after" "$tmp/out" || fail "no outcome"

# what it cannot do, it says
if "$tmp/mpc_loop" "$tmp/nothing" 2>"$tmp/err"; then fail "a missing model was accepted"; fi
grep -q "nothing" "$tmp/err" || fail "the message does not name the directory: $(cat "$tmp/err")"
if "$tmp/mpc_loop" "$tmp/model" mars 2>"$tmp/err"; then fail "a missing environment was accepted"; fi
grep -q "mars" "$tmp/err" || fail "the message does not name the environment: $(cat "$tmp/err")"
