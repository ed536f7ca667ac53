#!/bin/sh
# cli_bench.sh - figures of cgs bench: saved, compared with earlier ones, and refused when damaged.
#   tests/cli/cli_bench.sh BUILD
. "$(dirname "$0")/prelude.sh"
cd "$tmp"
# a measurement of one product whose figures are few
bench() { "$cgs" bench latency --size small --solves 2 --device cpu --threads 1 "$@"; }

bench --save new.jsonl >out || fail "--save"
[ "$(grep -c . new.jsonl)" = 3 ] || fail "three figures are not three lines"
for key in bench name value unit least most runs device threads processor isa machine version commit; do
    [ "$(grep -c "\"$key\":" new.jsonl)" = 3 ] || fail "a saved figure has no $key"
done
bench --json >lines || fail "--json"
[ "$(sed 's/"value.*"runs"/"runs"/' lines)" = "$(sed 's/"value.*"runs"/"runs"/' new.jsonl)" ] ||
    fail "--json prints something else than --save writes"

# earlier figures that were made up: as if all had been measured by a machine a million times as
# fast, and as slow; the ratios say so, and in which direction
made() { # value: a file in which every figure is that
    sed -E "s/\"(value|least|most)\":[^,]*/\"\1\":$1/g; s/\"runs\":[0-9]*/\"runs\":5/" new.jsonl
}
made 1e-6 >fast.jsonl
made 1e9 >slow.jsonl
bench --compare fast.jsonl >out || fail "--compare"
[ "$(grep -c ' times ([0-9.]* to [0-9.]*)  slower$' out)" = 3 ] || fail "nothing is slower: $(cat out)"
grep -q '^3 of 3 ratios differ .* 0 figures of fast.jsonl' out || fail "the sum: $(cat out)"
bench --compare slow.jsonl --save slow.jsonl >out || fail "--compare and --save of one file"
[ "$(grep -c ' faster$' out)" = 3 ] || fail "nothing is faster: $(cat out)"
grep -q '1e+9\|1000000000' slow.jsonl && fail "the new figures are not in the file"

# what only one of both has is not compared, and said
sed 's/"name":"/&another /' new.jsonl >other.jsonl
bench --compare other.jsonl >out || fail "--compare with other figures"
grep -q '^0 of 0 ratios .* 3 figures of other.jsonl were not measured' out || fail "figures without another"

# another machine or setting is named, and the ratios are printed
sed 's/"processor":"[^"]*"/"processor":"Abacus"/; s/"threads":1/"threads":7/' fast.jsonl >there.jsonl
bench --compare there.jsonl >out 2>err || fail "--compare with another machine"
grep -q 'another machine or other settings (processor is .*, was Abacus; threads is 1, was 7)' err ||
    fail "the other machine: $(cat err)"
grep -c ' times ' out >/dev/null || fail "no ratios to another machine"
bench --compare new.jsonl >out 2>err || fail "--compare"
[ ! -s err ] || fail "the same machine is another one: $(cat err)"

# files come from anywhere
refused() { # words of the sentence
    if bench --compare bad.jsonl >out 2>err; then fail "taken: $(cat bad.jsonl)"; fi
    [ ! -s out ] || fail "it measured before it read"
    grep -q -- "$1" err || fail "not \"$1\": $(cat err)"
}
rm -f bad.jsonl && refused 'bad.jsonl'
: >bad.jsonl && refused 'empty'
head -c 400 new.jsonl >bad.jsonl && refused 'last line'
echo 'not json' >bad.jsonl && refused 'line 1 is not a JSON object'
sed '2s/"least"/"last"/' new.jsonl >bad.jsonl && refused 'line 2 has no number "least"'
sed '2s/"least":[^,]*/"least":1e9/' new.jsonl >bad.jsonl && refused 'line 2: .* is not between'
sed '3s/"runs":[0-9]*/"runs":-1/' new.jsonl >bad.jsonl && refused 'line 3: "runs" is -1'
sed '1s/"unit":"ms"/"unit":7/' new.jsonl >bad.jsonl && refused 'line 1 has no text "unit"'
sed "1s/\"unit\":\"ms\"/\"unit\":\"$(printf '%0400d' 0)\"/" new.jsonl >bad.jsonl && refused '400 characters'
sed '2s/"threads":1/"threads":2/' new.jsonl >bad.jsonl && refused 'line 2 was measured on another'

# what runs each matrix product, and why; not in the file
"$cgs" bench ops --device cpu --seconds 0 --save ops.jsonl >out || fail "bench ops"
grep -Eq '^  product 8224x192x576 bf16 to bf16 A B\^T \+ bias +(oneDNN|own tiles|own vectors|own bf16 pairs) +[a-z].*' out ||
    fail "what runs a linear layer: $(grep product out)"
grep -Eq '^  product 576x(2080|8224)x192 bf16 to f32 A\^T B ' out || fail "what runs the gradient of its weights"
grep -q '"product":' ops.jsonl && fail "a choice is no figure"

# what is no figure
if "$cgs" bench architectures --save x.jsonl 2>err; then fail "architectures as figures"; fi
grep -q 'document of its own' err || fail "what architectures writes"
if bench --save no/such/folder/x.jsonl >out 2>err; then fail "a folder that is not there"; fi
[ ! -s out ] || fail "it measured before it opened the file"
[ -z "$(ls ./*.tmp 2>/dev/null)" ] || fail "it left a temporary file"
echo "$(grep -c . new.jsonl) figures"
