#!/bin/sh
# Includes point downwards only, and every one says the folder of what it includes.
#   tree_layers.sh BUILD [SRC]          SRC: the tree to look at, src by default
set -eu
cd "$(dirname "$0")/../.."
export src="${2:-src}"

# The layers from top to bottom; docs/architecture.md says what each is for.  A folder sees itself
# and the lines below it.  Folders of one line do not see each other, except for FOLDER>FOLDER.
layers="
cli
report study api bench
analysis
eval train collect convert
rollout
plan loss>model model env data
ops
io>core core
cgs
"

find "$src" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort | xargs grep -nE '^[ \t]*#[ \t]*include[ \t]*"' |
    awk -v layers="$layers" '
    BEGIN {
        lines = split(layers, line, "\n")
        for (i = 1; i <= lines; i++) {
            n = split(line[i], word, " ")
            for (k = 1; k <= n; k++) {
                allowed[word[k]] = 1
                sub(/>.*/, "", word[k])
                height[word[k]] = lines - i
            }
        }
    }
    {
        # SRC/FOLDER/...:LINE:#include "FOLDER/..."
        split(substr($0, length(ENVIRON["src"]) + 2), at, /[\/:]/)
        split($0, quoted, "\"")
        from = at[1]
        to = quoted[2]
        where = substr($0, 1, index($0, ":#") - 1)
        includes++
        if (!(from in height)) {
            print where ": the folder " from " has no layer"
        } else if (to !~ /\//) {
            print where ": \"" to "\" does not say its folder"
        } else {
            sub(/\/.*/, "", to)
            if (!(to in height)) print where ": the folder " to " has no layer"
            else if (from != to && quoted[2] ~ /_internal\.h$/)
                print where ": " quoted[2] " is for " to " alone"
            else if (from != to && height[to] >= height[from] && !(from ">" to in allowed))
                print where ": " from " does not see " to " (" quoted[2] ")"
            else next
        }
        bad++
    }
    END {
        print includes + 0 " includes, " bad + 0 " that point up or aside"
        exit bad > 0 || includes < 100
    }'
