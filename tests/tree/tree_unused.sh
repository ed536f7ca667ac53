#!/bin/sh
# Every function that a header of src declares is called by something.
#   tree_unused.sh BUILD
# It looks at words: a function whose name stands at its declaration and its definition and nowhere
# else in the program, its tests and its examples is dead.  One that is defined in its header stands
# there once.
set -eu
cd "$(dirname "$0")/../.."
{
    grep -rhoE '^static inline [^(]*\bcgs_[a-z0-9_]+\(' src --include='*.h' | sed 's/.*[ *]/inline:/'
    find src tests examples include python -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \
        -o -name '*.cpp' -o -name '*.py' | xargs grep -oE '\bcgs_[a-z0-9_]+\b\(?'
} | awk '
    {
        split($0, at, ":")
        file = at[1]
        name = at[2]
        call = sub(/\(/, "", name)
        if (file == "inline") { in_header[name] = 1; next }
        if (call && file ~ /^src\/.*\.h$/) header[name] = file
        uses[name]++
    }
    END {
        for (name in header) {
            functions++
            if (uses[name] > 2 - (name in in_header)) continue
            print header[name] ": nobody calls " name
            dead++
        }
        print functions " functions, " dead + 0 " that nobody calls"
        exit dead > 0 || functions < 100
    }'
