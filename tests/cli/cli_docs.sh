#!/bin/sh
# cli_docs.sh - the short commands of README.md and docs/tutorial.md, as written; and what all
# documents promise: tables, verbs, options, links, paths, tests and the width of their lines.
#   tests/cli/cli_docs.sh BUILD
# A block of commands begins with ```sh and a comment.  Those whose comment begins with "long" are
# not run here, but every verb and option in them must exist.
. "$(dirname "$0")/prelude.sh"
here=$here/.. # the whole tree
case $build in
*san) python=no ;; # python cannot load a library with sanitizers
*) command -v python3 >/dev/null && python=yes || python=no ;;
esac

# one script per document; python blocks only where it can run
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
    # copied: from a link, the package would find the build folder beside the file that the link means
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
    library=$(PYTHONPATH=python python3 -c "import cgs._library, os; print(os.path.realpath(cgs._library.lib._name))")
    [ "$(dirname "$library")" = "$(realpath "$build")" ] || fail "Python loaded $library, not that of $build"
fi

# the tables of the documents are those of the stored lines, by the command that stands beside them
mkdir "$tmp/docs"
for pair in brief:tables laptop:laptop; do
    lines=${pair%:*} page=results-${pair#*:}.md
    command=$(sed -n "/^(cd results\/$lines/,/)\$/p" "$here/docs/results.md")
    [ -n "$command" ] || fail "docs/results.md has no command for $page"
    (cd "$here" && PATH=$build:$PATH sh -euc "$(echo "$command" | sed "s#\.\./\.\./docs#$tmp/docs#; s#\.\./\.\./report#$tmp/report#")") >/dev/null 2>&1 || fail "the tables of $lines"
    cmp "$tmp/docs/$page" "$here/docs/$page" || fail "docs/$page is not what its command writes"
done

command=$(sed -n '/^(cd results &&/,/)$/p' "$here/docs/results.md")
[ -n "$command" ] || fail "docs/results.md has no command for its claims"
(cd "$here" && PATH=$build:$PATH sh -euc "$(echo "$command" | sed "s#\.\./docs#$tmp/docs#; s#\.\./report#$tmp/report#; s#\.\./runs#$tmp/runs#g")") >/dev/null 2>&1 || fail "the claims"
cmp "$tmp/docs/claims.md" "$here/docs/claims.md" || fail "docs/claims.md is not what its command writes"

# every verb and option in any block exists
documents=$(cd "$here" && ls *.md docs/*.md docs/log/*.md results/*.md results/*/*.md)
reference=$(echo "$documents" | grep -v '^docs/log/') # the notebook has the names of its time
for document in $reference; do
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
anchors() { # document: its headings as GitHub names them
    sed -n '/^```/,/^```/d; s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
for document in $documents; do
    grep -oE '\]\([^)]*\)|src="[^"]*"' "$here/$document" | sed 's/^](//; s/)$//; s/^src="//; s/"$//' |
        grep -v '^http' >"$tmp/links" || true
    while read -r target; do
        file=${target%%#*}
        [ -n "$file" ] && file=$(dirname "$here/$document")/$file || file=$here/$document
        [ -e "$file" ] || fail "$document points to $target"
        case $target in
        *#*) anchors "$file" | grep -qx -- "${target#*#}" || fail "$document points to $target: no such heading" ;;
        esac
    done <"$tmp/links"
done

# every path and test that a reference document names exists, but for what it calls planned
cd "$here"
# shellcheck disable=SC2086
grep -h -v planned $reference >"$tmp/text"
missing_paths() { # document...: the paths in their text that do not exist
    cat "$@" | grep -oE '(^|[^A-Za-z0-9_./-])(src|tests|docs|include|examples|python|scripts|results|packaging)/[A-Za-z0-9_.*/-]*' |
        sed 's/^[^a-z]//; s/[.-]*$//' | sort -u | while read -r path; do
        case $path in *NAME* | *LAYER*) continue ;; esac
        # shellcheck disable=SC2086
        ls -d $path >/dev/null 2>&1 || echo "$path"
    done
}
echo 'as in (src/no/such_file.c), and README.md' >"$tmp/wrong"
[ "$(missing_paths "$tmp/wrong")" = src/no/such_file.c ] || fail "a path that is not there goes unnoticed"
grep -rhoE 'docs/[A-Za-z0-9/_-]+\.md' src include scripts python examples tests >"$tmp/comments" # what the code points to
missing=$(missing_paths "$tmp/text" "$tmp/comments")
[ -z "$missing" ] || fail "a document names $missing"
grep -o '\btest_[a-z0-9_]*\*\?' "$tmp/text" | sort -u | while read -r name; do
    case $name in test_ | test_NAME) continue ;; esac
    ls tests/*/"$name.c" >/dev/null 2>&1 || grep -q "void ${name%\*}" tests/*/*.c || grep -q "MODE(${name%\*}" tests/*/*.c ||
        fail "a document names $name"
done
# every function, type, macro, variable and setting that they name is in the source
find src include scripts tests Makefile -type f ! -path '*/golden/*' -exec cat {} + >"$tmp/source"
missing_names() { # document...: the names in their text that are not
    cat "$@" | grep -oE '\b(cgs|CGS)_[A-Za-z0-9_]+' | sed 's/_$//' >"$tmp/names"
    cat "$@" | grep -oE '`(train|optim|data|loss|model|plan|prior|probe|decode)\.[a-z_.]+[=`]' | tr -d '`=' |
        grep -vE '\.(json|safetensors|weights)$' >>"$tmp/names" || true
    sort -u "$tmp/names" | while read -r name; do grep -qF -- "$name" "$tmp/source" || echo "$name"; done
}
printf 'cgs_%s and `plan.%s`\n' no_such_name nothing >"$tmp/wrong"
[ "$(missing_names "$tmp/wrong" | wc -l)" = 2 ] || fail "a name that is not there goes unnoticed"
grep -h -v planned $(echo "$reference" | grep -v CHANGELOG) >"$tmp/present" # changes may name what was
missing=$(missing_names "$tmp/present")
[ -z "$missing" ] || fail "a document names $missing"

# prose wraps at 100 columns; tables, commands, images and links without a space do not
wide() { # document...: lines that are too long
    awk 'FNR == 1 {code = 0}
        /^ *```/ {code = !code}
        code || /^(\||    |!\[|<)/ || !/[^ ] [^ ]/ {next}
        {line = $0; gsub(/[\200-\277]/, "", line)} # columns, not bytes of UTF-8
        length(line) > 100 {print FILENAME ":" FNR}' "$@"
}
printf '%0101d a\n' 0 >"$tmp/wrong"
[ -n "$(LC_ALL=C wide "$tmp/wrong")" ] || fail "a line that is too long goes unnoticed"
# shellcheck disable=SC2086
long=$(LC_ALL=C wide $(echo "$documents" | grep -v -e results-tables -e results-laptop -e docs/claims))
[ -z "$long" ] || fail "lines over 100 columns: $long"

for folder in results/*/; do [ -s "$folder/README.md" ] || fail "$folder has no README"; done
echo "$(grep -c . "$tmp/text") lines of documents hold"
