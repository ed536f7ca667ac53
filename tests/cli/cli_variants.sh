#!/bin/sh
# cli_variants.sh - the table of GPU variants, which can be read on any machine.
#   tests/cli/cli_variants.sh BUILD
. "$(dirname "$0")/prelude.sh"
"$cgs" bench variants --list markdown >"$tmp/page" || fail "bench variants --list markdown"
cmp "$tmp/page" "$here/../docs/cuda-variants.md" ||
    fail "docs/cuda-variants.md is not what cgs bench variants --list markdown prints"
"$cgs" bench variants --list names >"$tmp/names" || fail "bench variants --list names"
[ -z "$(sort "$tmp/names" | uniq -d)" ] || fail "two variants have one name"
while read -r name; do
    grep -q "^| \`$name\` | .* | .\+ | .\+ |$" "$tmp/page" || fail "the page has no row of $name"
done <"$tmp/names"
"$cgs" bench variants --list nonsense 2>"$tmp/err" && fail "a list of no known form"
grep -q 'names or markdown' "$tmp/err" || fail "what forms there are"
# a device without variants says so
"$cgs" bench variants --device cpu 2>"$tmp/err" && fail "variants of a CPU"
grep -q 'cpu has no variants' "$tmp/err" || fail "whose variants"
echo "$(grep -c . "$tmp/names") variants"
