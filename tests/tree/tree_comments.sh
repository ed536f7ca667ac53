#!/bin/sh
# Comments name what exists.
#   tree_comments.sh BUILD
# Every source file named in a comment is in the tree, every cgs_ identifier named in a comment
# occurs in code, and the first line of a file is "name - what it is".
. "$(dirname "$0")/../cli/prelude.sh"
cd "$here/.."

find src include tests examples scripts python -name golden -prune -o -type f -print >"$tmp/files"
sed 's,.*/,,' "$tmp/files" | sort -u >"$tmp/names"
grep -E '\.(c|h|cu|cuh|cpp)$' "$tmp/files" | grep -v '^tests/emulate/include/' >"$tmp/sources"

# splits a source: "c FILE:LINE text" for comments, "x text" for code, with its strings last
split_source() {
    awk '{
        line = $0; comment = ""; code = ""; strings = ""
        while (!inside && match(line, /"([^"\\]|\\.)*"/)) {
            strings = strings " " substr(line, RSTART + 1, RLENGTH - 2)
            line = substr(line, 1, RSTART - 1) " " substr(line, RSTART + RLENGTH)
        }
        while (line != "") {
            if (inside) {
                end = index(line, "*/")
                comment = comment " " (end ? substr(line, 1, end - 1) : line)
                line = end ? substr(line, end + 2) : ""
                inside = !end
            } else {
                block = index(line, "/*"); slashes = index(line, "//")
                if (slashes && (!block || slashes < block)) {
                    code = code substr(line, 1, slashes - 1)
                    comment = comment " " substr(line, slashes + 2); line = ""
                } else if (block) {
                    code = code substr(line, 1, block - 1) " "
                    line = substr(line, block + 2); inside = 1
                } else { code = code line; line = "" }
            }
        }
        if (comment != "") print "c " FILENAME ":" FNR " " comment
        print "x " code strings
    }' "$1"
}
while read -r file; do split_source "$file"; done <"$tmp/sources" >"$tmp/split"
grep '^x ' "$tmp/split" | grep -oE '\b(cgs|CGS)_[A-Za-z0-9_]+' | sort -u >"$tmp/identifiers"

# a file's name has three letters or more: f.c is a member of a struct; an identifier with capitals
# inside, such as cgs_cuda_ID_fits, stands for several
grep '^c ' "$tmp/split" | awk -v names="$tmp/names" -v identifiers="$tmp/identifiers" '
    BEGIN {
        while ((getline name < names) > 0) have[name]
        while ((getline name < identifiers) > 0) have[name]
        split("dnnl.h cmocka.h", foreign); for (i in foreign) have[foreign[i]]
    }
    {
        where = $2; $1 = $2 = ""; text = $0
        while (match(text, /[A-Za-z_][A-Za-z0-9_]*(\.(cuh|cu|cpp|c|h|py|sh))?/)) {
            word = substr(text, RSTART, RLENGTH)
            after = substr(text, RSTART + RLENGTH, 1)
            text = substr(text, RSTART + RLENGTH)
            file = word ~ /^[a-z][a-z0-9_][a-z0-9_]+\./ && after !~ /[A-Za-z0-9_]/
            identifier = word ~ /^(cgs_[a-z0-9_]*[a-z0-9]|CGS_[A-Z0-9_]*[A-Z0-9])$/ && after != "*"
            if ((file || identifier) && !(word in have)) print where ": " word
        }
    }' | sort -u >"$tmp/missing"
[ ! -s "$tmp/missing" ] || fail "comments name what does not exist:
$(cat "$tmp/missing")"

while read -r file; do
    case $(head -n 1 "$file") in
    "/* ${file##*/} - "* | "// ${file##*/} - "*) ;;
    *) fail "$file does not begin with its name and what it is" ;;
    esac
done <"$tmp/sources"
echo "$(wc -l <"$tmp/sources") files name only what exists"
