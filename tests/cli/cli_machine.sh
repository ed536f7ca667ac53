#!/bin/sh
# cli_machine.sh - what the program says of the machine, instruction sets by hand, and the last
# sentence when a signal ends it.
#   tests/cli/cli_machine.sh BUILD
. "$(dirname "$0")/prelude.sh"
unset CGS_ISA OPENBLAS_CORETYPE # where a user has set it, it is left alone

# ---- cgs info: everything that a report needs, as text and as one object
"$cgs" info >"$tmp/info"
"$cgs" info --json >"$tmp/json"
[ "$(wc -l <"$tmp/json")" = 1 ] || fail "info --json is not one line"
for word in version commit compiler system kernel processor memory_mib instructions found used \
    limit_of_libraries reason cores allowed quota threads devices cpu cuda:0 libraries oneDNN LAPACK \
    HDF5 MuJoCo Chipmunk cJSON libpng zlib blosc lz4 zstd environment; do
    grep -q "^ *$word\( \|\$\)" "$tmp/info" || fail "info does not mention $word"
    grep -q "\"$word\":" "$tmp/json" || fail "info --json does not have $word"
done
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$tmp/json"; }
[ "cgs $(field version)" = "$("$cgs" --version)" ] || fail "another version"
[ "$(field cpu)" = works ] || fail "the CPU does not work: $(field cpu)"
CGS_LOG=debug "$cgs" info | grep -q "^ *CGS_LOG *debug$" || fail "info does not show variables"
"$cgs" info x y 2>"$tmp/err" && fail "info of two things"
used=$(field used)

# ---- by hand: every set up to the found one, by option and by variable
higher=
for isa in base v3 v4 amx; do
    if [ "$higher" ]; then
        for how in "--isa $isa" "--isa=$isa"; do
            status=0
            "$cgs" $how info >"$tmp/out" 2>"$tmp/err" || status=$?
            [ "$status" = 1 ] && [ ! -s "$tmp/out" ] || fail "$how: status $status"
            grep -q "$isa.*only $used" "$tmp/err" || fail "$how: $(cat "$tmp/err")"
        done
        continue
    fi
    "$cgs" --isa $isa info --json >"$tmp/json" || fail "--isa $isa"
    [ "$(field used)" = $isa ] && [ "$(field found)" = "$used" ] || fail "--isa $isa: $(cat "$tmp/json")"
    case $isa in base | v3) [ "$(field limit_of_libraries)" = $isa ] || fail "libraries with $isa" ;; esac
    CGS_ISA=$isa "$cgs" info --json | grep -q "\"used\":\"$isa\"" || fail "CGS_ISA=$isa"
    CGS_ISA=nonsense "$cgs" --isa=$isa info --json | grep -q "\"used\":\"$isa\"" ||
        fail "the option does not win"
    # LAPACK's library chose its kernels before main; it is limited, too
    case $isa$(field LAPACK) in
    *OpenBLAS*DYNAMIC_ARCH*)
        case $isa$(field LAPACK) in
        base*Prescott* | v3*Haswell* | v4* | amx*) ;;
        *) fail "LAPACK with $isa: $(field LAPACK)" ;;
        esac
        ;;
    esac
    [ "$isa" = "$used" ] && higher=1
done
status=0
"$cgs" --isa sse9 info >"$tmp/out" 2>"$tmp/err" || status=$?
[ "$status" = 2 ] && grep -q '"sse9".*base, v3, v4 or amx' "$tmp/err" || fail "--isa sse9: $status"
status=0
CGS_ISA=sse9 "$cgs" envs >"$tmp/out" 2>"$tmp/err" || status=$?
[ "$status" = 2 ] && [ ! -s "$tmp/out" ] || fail "CGS_ISA=sse9: $status"
status=0
"$cgs" --isa 2>"$tmp/err" || status=$?
[ "$status" = 2 ] && grep -q "needs a value" "$tmp/err" || fail "--isa without a value"

# ---- signals: one sentence, and the end that the signal would have made
if "$cgs" info | grep -q "with a sanitizer"; then
    echo "a sanitizer explains signals"
    exit 0
fi
ended() { # signal number: of a program that has much to do
    "$cgs" bench ops --seconds 1000 --threads 1 >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    for i in $(seq 200); do # until its handlers are installed
        caught=$(sed -n 's/^SigCgt:.*\(.\{4\}\)$/\1/p' "/proc/$pid/status")
        [ $((0x$caught & 0x8)) != 0 ] && break
        sleep 0.05
    done
    kill -"$1" $pid
    status=0
    wait $pid 2>/dev/null || status=$?
    [ "$status" = $((128 + $2)) ] || fail "SIG$1 ends with $status"
    [ "$(wc -l <"$tmp/err")" = 1 ] || fail "SIG$1: $(cat "$tmp/err")"
    for word in "cgs bench: " "SIG$1" "instruction set $used" "cgs info.* prints"; do
        grep -q "$word" "$tmp/err" || fail "SIG$1 does not say \"$word\": $(cat "$tmp/err")"
    done
    [ "$used" = base ] || grep -q "CGS_ISA=" "$tmp/err" || fail "SIG$1 does not say how to lower it"
}
ended ILL 4
cat "$tmp/err"
ended SEGV 11
ended BUS 7
ended FPE 8
