#!/bin/sh
# cli_docs.sh - the short commands of README.md and docs/tutorial.md, as written.
#   tests/cli/cli_docs.sh BUILD
# A block of commands begins with ```sh and a comment.  Those whose comment begins with "long" are
# not run here, but every verb and option in them must exist.
. "$(dirname "$0")/prelude.sh"
here=$here/.. # the whole tree
case $build in
*san) python=no ;; # python cannot load a library with sanitizers
*) command -v python3 >/dev/null && python=yes || python=no ;;
esac

# one script a document; python blocks only where it can run
blocks() { # document kind
    awk -v kind="$2" '
        /^```sh$/ {inside = 1; first = 1; next}
        /^```$/ {inside = 0; next}
        inside && first {
            first = 0
            if ($0 !~ /^# /) {print "echo \"a block without a comment: " FILENAME ":" NR "\"; exit 1"; next}
            long = $0 ~ /^# long/
            if (kind == "short" && !long) print "echo \"== " substr($0, 3) "\""
        }
        inside && (kind == "all" || (kind == "short" && !long)) {print}' "$1"
}
# spinning threads would fight with whatever else runs here
export PYTHONDONTWRITEBYTECODE=1
unset CGS_LIBRARY # python finds the library as it does for a reader
for document in README.md docs/tutorial.md; do
    work=$tmp/$(basename "$document" .md)
    mkdir "$work"
    for name in examples docs include scripts; do ln -s "$here/$name" "$work/$name"; done
    # copied: from a link, cgs.py would find the build folder beside the file that the link means
    cp -r "$here/python" "$work/python"
    ln -s "$build" "$work/build"
    blocks "$here/$document" short >"$work/commands"
    [ $python = yes ] || sed -i '/python3 /d' "$work/commands"
    count=$(grep -c '^echo "== ' "$work/commands") || fail "$document has no short block"
    (cd "$work" && sh -eu commands >output 2>&1) || { tail -20 "$work/output"; fail "$document"; }
    echo "$document: $count blocks ran"
done

# the output that the tutorial shows
cd "$tmp/tutorial"
for file in first.h5 first.gif plan.gif first.jsonl first.html geometry.json runs/first/model.safetensors runs/first/metrics.jsonl; do
    [ -s "$file" ] || fail "the tutorial did not make $file"
done
if [ $python = yes ]; then
    grep -q "goal after [0-9]* actions" output || fail "the loop in Python has no outcome"
    library=$(PYTHONPATH=python python3 -c "import cgs, os; print(os.path.realpath(cgs._lib._name))")
    [ "$(dirname "$library")" = "$(realpath "$build")" ] || fail "Python loaded $library, not that of $build"
fi

# the tables of the documents are those of the stored lines, by the command that stands beside them
command=$(sed -n '/^(cd results\/brief/,/)$/p' "$here/docs/results.md")
[ -n "$command" ] || fail "docs/results.md has no command for its tables"
mkdir "$tmp/docs"
(cd "$here" && PATH=$build:$PATH sh -euc "$(echo "$command" | sed "s#\.\./\.\./docs#$tmp/docs#; s#\.\./\.\./report#$tmp/report#")") >/dev/null 2>&1 || fail "the tables"
cmp "$tmp/docs/results-tables.md" "$here/docs/results-tables.md" || fail "docs/results-tables.md is not what its command writes"

# every verb and option in any block exists
for document in README.md docs/tutorial.md docs/paper-map.md docs/dinowm.md docs/results.md CONTRIBUTING.md; do
    blocks "$here/$document" all | sed -e ':a' -e '/\\$/N; s/\\\n//; ta' | grep -o '\bcgs [a-z].*' || true
done | sed 's/[|>;&].*//' | while read -r _ verb rest; do
    [ "$verb" != help ] || continue
    "$build/cgs" help "$verb" >"$tmp/help" 2>/dev/null || fail "a document uses cgs $verb"
    for word in $rest; do
        case $word in
        --*) grep -q -- "^  $word\b" "$tmp/help" || fail "a document uses cgs $verb $word" ;;
        esac
    done
done

# every link between documents leads somewhere
for document in "$here"/README.md "$here"/CONTRIBUTING.md "$here"/CHANGELOG.md "$here"/docs/*.md; do
    grep -o '](\([^)#]*\)' "$document" | sed 's/](//' | grep -v '^http' | while read -r target; do
        [ -e "$(dirname "$document")/$target" ] || fail "$(basename "$document") points to $target"
    done
done

# every file and test that a document names exists, but for what it calls planned
cd "$here"
grep -h -v planned README.md CONTRIBUTING.md CHANGELOG.md docs/*.md >"$tmp/text"
grep -o '`\(src\|tests\|docs\|include\|examples\|python\|scripts\)/[A-Za-z0-9_./*]*`' "$tmp/text" | tr -d '`' | sort -u |
    while read -r path; do
        case $path in *NAME*) continue ;; esac
        ls -d $path >/dev/null 2>&1 || fail "a document names $path"
    done
grep -o '\btest_[a-z0-9_]*\*\?' "$tmp/text" | sort -u | while read -r name; do
    case $name in test_ | test_NAME) continue ;; esac
    ls tests/*/"$name.c" >/dev/null 2>&1 || grep -q "void ${name%\*}" tests/*/*.c || grep -q "MODE(${name%\*}" tests/*/*.c ||
        fail "a document names $name"
done
echo "$(grep -c . "$tmp/text") lines of documents hold"
