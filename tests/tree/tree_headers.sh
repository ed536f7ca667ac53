#!/bin/sh
# Every header compiles by itself, and all of them together: no two public names collide.
#   tree_headers.sh BUILD
# What the build was made with (BUILD/made/flags) is what they are compiled with.  Headers that
# need those of CUDA or MuJoCo take part where these are; .cuh files are nvcc's.
set -eu
. "$(dirname "$0")/../cli/prelude.sh"
cd "$here/.."
compiler="$(cat "$build/made/flags") -O0 -Werror -fsyntax-only -x c"
compile() { # on standard input
    sh -c "$compiler -" 2>&1
}

cuda=$(for root in "${CUDA_HOME:-}" /usr/local/cuda; do ls -d "$root/include" 2>/dev/null; done | head -n 1)
[ -z "$cuda" ] || compiler="$compiler -isystem $cuda"

headers=0
echo "typedef int something;" >"$tmp/all" # a file of macros alone is none in ISO C
for header in $(cd src && find ./* -name '*.h' | sort | cut -c3-) cgs/cgs.h cgs/env.h; do
    if { sed 1q "$tmp/all" && echo "#include \"$header\""; } | compile >"$tmp/errors"; then
        echo "#include \"$header\"" >>"$tmp/all"
        headers=$((headers + 1))
    elif grep -E '(cuda_runtime_api|mujoco/mujoco)\.h: No such file' "$tmp/errors"; then
        echo "left out: $header"
    else
        cat "$tmp/errors"
        fail "$header does not compile by itself"
    fi
done
[ $headers -gt 50 ] || fail "only $headers headers found"
compile <"$tmp/all" || fail "two headers do not go together"

# a second header behind the guard of a first would not have been seen above
twice=$(find src include -name '*.h' -exec grep -hE '^#ifndef CGS_[A-Z0-9_]*_H$' {} + | sort | uniq -d)
[ -z "$twice" ] || fail "include guards of two headers: $twice"

# structures with one name and two bodies go together as long as both are hidden in .c files
twice=$(grep -rhoE '^(typedef )?struct cgs_[a-z0-9_]+ \{' src include --include='*.[ch]' |
    sed 's/^typedef //' | sort | uniq -d)
[ -z "$twice" ] || fail "defined twice: $twice"
echo "$headers headers, each by itself and all together"
