#!/bin/sh
# cli_help.sh - help, man page and completion list every verb and option that parses, and no other.
#   tests/cli/cli_help.sh BUILD
# What parses is found out apart from the tables' printers: the option names in the sources of a
# verb are candidates, and the program is asked about each one.
. "$(dirname "$0")/prelude.sh"

# ---- verbs: the files that exist, the help, the man page
"$cgs" help >"$tmp/help"
"$cgs" help --man >"$tmp/cgs.1"
"$cgs" help --bash >"$tmp/cgs.bash"
"$cgs" help --zsh >"$tmp/_cgs"
"$cgs" help --fish >"$tmp/cgs.fish"
ls "$here"/../src/cli/cmd_*.c | sed 's/.*cmd_\(.*\)\.c/\1/' | sort >"$tmp/files"
sed -n 's/^  \([a-z][a-z]*\)  *[a-z].*/\1/p' "$tmp/help" | grep -v '^help$' | sort >"$tmp/listed"
sed -n 's/^\.SS cgs \([a-z]*\)$/\1/p' "$tmp/cgs.1" | grep -v '^help$' | sort >"$tmp/paged"
cmp "$tmp/files" "$tmp/listed" || fail "the help lists other verbs than src/cli has"
cmp "$tmp/files" "$tmp/paged" || fail "the man page lists other verbs than src/cli has"
"$cgs" --help | cmp - "$tmp/help" || fail "--help differs from help"
"$cgs" -h | cmp - "$tmp/help" || fail "-h differs from help"
[ "$("$cgs" --version)" = "$(sed -n '1s/ - .*//p' "$tmp/help")" ] || fail "the version"
for word in --help -h --version --man --bash --zsh --fish settings --isa; do
    grep -q -- "$word" "$tmp/help" || fail "the help does not mention $word"
done
status=0
"$cgs" frobnicate 2>"$tmp/err" || status=$?
[ "$status" = 2 ] && grep -q frobnicate "$tmp/err" || fail "an unknown verb"

# ---- options.  A wrong option at the end keeps a verb from running.
parses() { # verb option: does the table know it?
    status=0
    "$cgs" "$1" "--$2" x --no-such-option >"$tmp/out" 2>"$tmp/err" || status=$?
    [ "$status" = 2 ] || fail "cgs $1 --$2 x --no-such-option exits with $status"
    [ ! -s "$tmp/out" ] || fail "cgs $1 --$2 x --no-such-option printed something"
    ! grep -q "unknown option \"--$2\"" "$tmp/err"
}
# an option is never taken for the value of the one before it
"$cgs" train --data --out x 2>"$tmp/err" && fail "train --data --out x was accepted"
grep -q -- "--data needs a value" "$tmp/err" || fail "train --data --out x: $(cat "$tmp/err")"
names() {
    cat "$@" | tr -s '\n\\ ' ' ' | grep -o '{ *"[a-z][a-z0-9-]*", *\("[^"]*"\|NULL\),' | sed 's/{ *"\([^"]*\)".*/\1/' | sort -u
}
options=0
while read -r verb; do
    "$cgs" help "$verb" >"$tmp/verb"
    "$cgs" "$verb" --help | cmp - "$tmp/verb" || fail "cgs $verb --help differs from cgs help $verb"
    "$cgs" "$verb" -h | cmp - "$tmp/verb" || fail "cgs $verb -h differs from cgs help $verb"
    sed -n '/^options:$/,/^$/s/^  --\([a-z0-9-]*\)[ ,].*/\1/p' "$tmp/verb" | sort >"$tmp/in_help"
    grep -qx help "$tmp/in_help" || fail "the help of $verb does not list --help"
    sed -i '/^help$/d' "$tmp/in_help"
    awk -v v="$verb" '/^\.S[SH] /{on = $0 == ".SS cgs " v} on' "$tmp/cgs.1" |
        sed -n 's/^\\fB\\-\\-\([a-z0-9\\-]*\)\\fR.*/\1/p' | sed 's/\\-/-/g' | sort >"$tmp/in_man"
    awk -v v="    $verb)" '/^    [a-z]*\)$/{on = $0 == v} on && /words=/' "$tmp/cgs.bash" |
        grep -o -- '--[a-z0-9-]*' | sed 's/--//' | grep -v '^help$' | sort >"$tmp/in_bash"
    awk -v v="    $verb)" '/^    [a-z]*\)$/{on = $0 == v} on && /^            .--/' "$tmp/_cgs" |
        sed -n "s/^ *'--\([a-z0-9-]*\)\[.*/\1/p" | grep -v '^help$' | sort >"$tmp/in_zsh"
    sed -n "s/^complete -c cgs -n '__cgs_verb $verb' -l \([a-z0-9-]*\) .*/\1/p" "$tmp/cgs.fish" |
        sort >"$tmp/in_fish"
    : >"$tmp/parsed"
    for name in $(names "$here/../src/cli/cmd_$verb.c" "$here"/../src/cli/*.h); do
        if parses "$verb" "$name"; then echo "$name" >>"$tmp/parsed"; fi
    done
    for list in in_help in_man in_bash in_zsh in_fish; do
        diff "$tmp/parsed" "$tmp/$list" >"$tmp/diff" ||
            { cat "$tmp/diff"; fail "$verb: $list differs from what parses"; }
    done
    options=$((options + $(wc -l <"$tmp/parsed")))
done <"$tmp/files"
[ "$options" -gt 90 ] || fail "only $options options were found"
echo "$(wc -l <"$tmp/files") verbs, $options options"

# ---- words after a list: settings end it and are not part of it
"$cgs" reproduce demo --dry-run --out "$tmp/study" --only collect >"$tmp/want"
for order in "--only collect --dry-run held=5 K=1" "--only collect held=5 K=1 --dry-run" \
    "held=5 K=1 --dry-run --only collect"; do
    "$cgs" reproduce demo --out "$tmp/study" $order >"$tmp/out" || fail "cgs reproduce demo $order"
    cmp "$tmp/want" "$tmp/out" || fail "cgs reproduce demo $order does something else"
done
grep -q "cgs collect" "$tmp/want" || fail "no stage was printed"

# ---- settings: what is listed can be set, in help and man page
"$cgs" help settings >"$tmp/settings"
sed -n 's/^\([a-z].*\) = .*/\1/p' "$tmp/settings" | sed 's/ = .*//' | sort >"$tmp/keys"
[ "$(wc -l <"$tmp/keys")" -gt 40 ] || fail "the settings are missing"
awk '/^\.SH /{on = $0 == ".SH SETTINGS"} on' "$tmp/cgs.1" | sed -n 's/^\\fB\([a-z0-9_.]*\)\\fR.*/\1/p' |
    sort | cmp - "$tmp/keys" || fail "the man page lists other settings"
# the defaults are words that the verbs take: a key they do not know, or a value, stops them earlier
listed() { sed -n "s/^\\($1\\.[^ ]*\\) = \\(.*\\)/\\1=\\2/p" "$tmp/settings"; }
sed '/^prior\./d; /^probe\./d' "$tmp/settings" >"$tmp/train"
"$cgs" train --data "$tmp/none.h5" --out "$tmp/run" --config "$tmp/train" 2>"$tmp/err" || true
grep -q "$tmp/none" "$tmp/err" || fail "the listed defaults are not accepted: $(cat "$tmp/err")"
for verb in prior probe; do
    "$cgs" $verb $(listed $verb) --data "$tmp/none.h5" --model "$tmp/none" 2>"$tmp/err" || true
    grep -q "$tmp/none" "$tmp/err" || fail "the defaults of $verb are not accepted: $(cat "$tmp/err")"
done

# ---- the page is clean roff, the script completes
if command -v groff >/dev/null; then
    groff -ww -man -Tutf8 "$tmp/cgs.1" >/dev/null 2>"$tmp/err" && [ ! -s "$tmp/err" ] ||
        { cat "$tmp/err"; fail "groff warns"; }
    echo "groff finds nothing"
fi
if command -v bash >/dev/null; then
    bash -euc '
        . "$1"
        try() { # words, then what must be offered
            want=$1; shift
            COMP_WORDS=(cgs "$@"); COMP_CWORD=$#
            compopt() { :; }
            _cgs
            [[ " ${COMPREPLY[*]} " == *" $want "* ]] || { echo "no $want after $*: ${COMPREPLY[*]}"; exit 1; }
        }
        try collect col
        try --planner eval --pl
        try mppi eval --data x.h5 --planner m
        try cem eval --planner mppi c
        try tworooms reproduce two
        try main reproduce m
        try lewm-cgs-transition train --method lewm
        try dinowm-patch-cgs train --method dino
        try prior-quality reproduce demo --only pr
        try weak collect --policy w
        try pusht collect --env ""
        try bf16 train --precision ""
        try optim.lr= train --data x.h5 opt
        try preview data p
        try prior.lr= prior --data x.h5 prior.l
        try settings help s
        try --isa --i
        try v3 --isa v
        try train --isa v3 tr
        try --planner --isa v3 eval --pl
        try preview --isa v3 data p
    ' - "$tmp/cgs.bash" || fail "the completion"
fi
if command -v fish >/dev/null; then
    offers() { # what must be offered, after which words
        HOME=$tmp fish -N -c "source $tmp/cgs.fish; complete -C 'cgs $2'" 2>"$tmp/err" | cut -f1 |
            grep -qx -- "$1" || fail "fish offers no $1 after $2: $(cat "$tmp/err")"
    }
    offers collect col
    offers cem "eval --planner ce"
    offers tworooms "reproduce two"
    offers lewm-cgs-transition "train --method lewm"
    offers optim.lr= "train --data x.h5 opt"
    offers preview "data p"
    offers v3 "--isa v"
    offers --protocol "--isa v3 eval --prot"
    offers settings "help s"
    echo "fish completes"
fi
# zsh does so in its line editor alone: each line is typed, then Tab
if command -v zsh >/dev/null && command -v python3 >/dev/null; then
    (cd "$tmp" && mkdir empty && cd empty && timeout 60 python3 "$here/cli/zsh_completes.py" "$tmp" \
        'reproduce tworooms-u=reproduce tworooms-updates' 'train --method lewm-cgs-t=lewm-cgs-transition' \
        'eval --planner pg-mp=pg-mppi' 'eval --planner pg-gn ce=pg-gn cem' \
        'eval --planner pg-gn --see=--seeds' 'train --data x optim.l=optim.lr=' \
        '--isa v3 eval --proto=--protocol' 'data conv=data convert' 'coll=collect') ||
        fail "zsh's completion"
    echo "zsh completes"
fi
