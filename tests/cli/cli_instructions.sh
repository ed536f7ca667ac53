#!/bin/sh
# cli_instructions.sh - what tests/speed/instructions.sh says of counts that are as stored, larger,
# smaller, or of another compiler.  The counts come from a stand-in for valgrind.
#   tests/cli/cli_instructions.sh BUILD
. "$(dirname "$0")/prelude.sh"
mkdir "$tmp/bin" "$tmp/build"
ln -s "$cgs" "$tmp/build/cgs"
cat >"$tmp/bin/valgrind" <<'STUB'
#!/bin/sh
[ "$1" != --version ] || { echo valgrind-0 && exit; }
while case $1 in --*) true ;; *) false ;; esac do shift; done
"$@" || exit
echo '==1== Collected : 5'
echo '==2== Collected : 1000000'
STUB
cat >"$tmp/bin/setarch" <<'STUB'
#!/bin/sh
shift
exec "$@"
STUB
chmod +x "$tmp"/bin/*
count() { # its arguments; sets $status
    status=0
    PATH=$tmp/bin:$PATH "$here/speed/instructions.sh" "$tmp/build" "$@" >"$tmp/out" 2>&1 || status=$?
}

count --renew "$tmp/stored"
[ $status = 0 ] || fail "--renew: $(cat "$tmp/out")"
[ "$(grep -cE '^(collect|train|plan) 1000000$' "$tmp/stored")" = 3 ] || fail "what was stored: $(cat "$tmp/stored")"
for line in "compiler $("$cgs" info | sed -n 's/^compiler *//p')" "valgrind valgrind-0" "machine $(uname -m)"; do
    grep -qx "$line" "$tmp/stored" || fail "no line \"$line\""
done
count "$tmp/stored"
[ $status = 0 ] || fail "equal counts: $(cat "$tmp/out")"
[ "$(grep -c 'instructions, +0.00 %' "$tmp/out")" = 3 ] || fail "three cases: $(cat "$tmp/out")"

# 5.26 % above what is stored fails, 4.17 % does not; 9.09 % below asks for a renewal
sed 's/^train .*/train 950000/; s/^plan .*/plan 960000/' "$tmp/stored" >"$tmp/less"
count "$tmp/less"
[ $status = 1 ] || fail "5 % more instructions pass: $(cat "$tmp/out")"
grep -q '^train takes 5.26 % more instructions .*/train.callgrind' "$tmp/out" || fail "which case: $(cat "$tmp/out")"
grep -q '^plan takes' "$tmp/out" && fail "4 % are 5 %"
sed 's/^collect .*/collect 1100000/' "$tmp/stored" >"$tmp/more"
count "$tmp/more"
[ $status = 0 ] || fail "fewer instructions fail: $(cat "$tmp/out")"
grep -q '^collect takes 9.09 % fewer .*: renew ' "$tmp/out" || fail "no renewal: $(cat "$tmp/out")"
sed '/^plan /d' "$tmp/stored" >"$tmp/none"
count "$tmp/none"
[ $status = 1 ] || fail "a case without a stored count passes"

# another compiler: nothing is compared, and both are named
sed 's/^compiler .*/compiler cc 1/' "$tmp/stored" >"$tmp/other"
count "$tmp/other"
[ $status = 77 ] || fail "counts of another compiler are compared"
grep -q 'skipped: .* compiler cc 1,.*here is compiler ' "$tmp/out" || fail "which compilers: $(cat "$tmp/out")"
count "$tmp/no-such-file"
[ $status = 0 ] || [ $status = 77 ] && fail "no stored counts"

# a case that breaks down is not a count
printf '#!/bin/sh\n[ "$1" != --version ] || { echo valgrind-0 && exit; }\necho broken\nexit 1\n' >"$tmp/bin/valgrind"
count "$tmp/stored"
[ $status = 1 ] || fail "a case that failed passes: $(cat "$tmp/out")"
echo "counts as stored, above and below"
