#!/bin/sh
# Compares the machine code of every kernel of two builds: what a change that should not touch
# kernels has to leave the same.
#   scripts/sass_diff.sh FOLDER FOLDER      each with the *.cu.o of one build, anywhere below it
# Kernels are known by their name and target (the hash of a file's path in a name is left out), so
# a kernel may move to another file.  Prints one line per kernel that differs or is on one side
# alone, then the totals; exits with 1 when anything differs.
set -eu
[ $# = 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

listing() { # one line per kernel: target, name, checksum of its instructions
    find "$1" -name '*.cu.o' | sort | while read -r object; do
        cuobjdump -sass "$object"
    done | awk '
        function end() { if (name != "") { printf "%s %s ", target, name; fflush()
            print code | "md5sum | cut -c1-16"; close("md5sum | cut -c1-16") } code = ""; name = "" }
        /arch = /      { end(); target = $3 }
        /Function : /  { end(); name = $3; gsub(/_[0-9a-f]{8}_[0-9]+/, "", name)
                         gsub(/[0-9]+_GLOBAL__N__[0-9a-f]+_[0-9]+_[a-z_0-9]+_cu_[0-9a-f]+/, "", name) ; next }
        /^[ \t]*\/\*[0-9a-f]{4,}\*\// { sub(/^[ \t]*\/\*[0-9a-f]+\*\/[ \t]*/, ""); sub(/\/\*.*$/, ""); code = code $0 "\n" }
        END { end() }' | sort
}
listing "$1" >"$tmp/a"
listing "$2" >"$tmp/b"
diff "$tmp/a" "$tmp/b" >"$tmp/diff" && same=0 || same=1
cat "$tmp/diff"
echo "$(wc -l <"$tmp/a") and $(wc -l <"$tmp/b") kernels, $(comm -12 "$tmp/a" "$tmp/b" | wc -l) with the same machine code"
exit $same
