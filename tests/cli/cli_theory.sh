#!/bin/sh
# cli_theory.sh - theory, decode and surprise through the program.
#   tests/cli/cli_theory.sh BUILD
. "$(dirname "$0")/prelude.sh"
find_python "json"

# ---- random systems: every statement has a row, none is violated, the table is printed
"$cgs" theory --systems 60 --seed 3 --threads 1 --quiet --out "$tmp/t.json" >"$tmp/out"
grep -q "all hold, 0 violated" "$tmp/out" || fail "summary: $(tail -1 "$tmp/out")"
"$python" - "$tmp/t.json" "$tmp/out" <<'PY'
import json, sys
t = json.load(open(sys.argv[1]))
assert t["format"] == "cgs-theory" and t["version"] == 1 and t["systems"] == 60 and t["seed"] == 3
assert t["command"].startswith("cgs theory --systems 60"), t["command"]
text, s = open(sys.argv[2]).read(), t["statements"]
assert len(s) > 50 and len({x["name"] for x in s}) == len(s)
for x in s:
    assert x["trials"] + x["outside"] == 60 and x["violations"] == 0, x
    assert x["trials"] == 0 or x["worst_margin"] >= 0, x
    assert x["name"] in text and x["what"] and x["hypotheses"] and x["check"]
for name in ["Proposition 4.2", "Corollary 4.3", "Theorem 4.4", "Remark 4.5", "Theorem 4.6"] + \
        ["Corollary D.%d" % i for i in (1, 3, 6, 10)] + ["Remark D.2"] + \
        ["Proposition D.%d" % i for i in (4, 5, 7, 8, 9, 11)]:
    assert any(x["name"].startswith(name) for x in s), name
PY

# ---- one system: the weak direction, and one outside every hypothesis
cat >"$tmp/weak.json" <<'J'
{"A":[[1,0],[0.1,1]],"B":[[1],[0]],"cov":[[1,0,0],[0,1,0],[0,0,1]],"H":2,"c":1}
J
"$cgs" theory --system "$tmp/weak.json" --json >"$tmp/w.json"
"$python" - "$tmp/w.json" <<'PY'
import json, math, sys
s = json.load(open(sys.argv[1]))["system"]
q = {x["name"]: x["value"] for x in s["quantities"]}
d2 = 0.01
near = lambda a, b: abs(a - b) < 1e-5 * max(1, abs(b))
assert near(q["|G_H/(cH) - P_H|"], d2 / 2) and near(q["xi_H"], d2 * (1 + math.sqrt(1 + d2)) ** 2), q
assert near(q["lambda_1(G_H)"], (2 + d2 + math.sqrt(4 + d2 * d2)) / 2) and q["rank of gamma"] == 2
assert abs(q["L_G, sampled"] - q["L_G, trace formula"]) < 6 * q["L_G, standard error of the sample"]
assert all(x.get("violations", 0) == 0 for x in s["statements"])
PY
cat >"$tmp/out.json" <<'J'
{"A":[[3]],"B":[[1]],"cov":[[1,1],[1,1]],"H":2,"c":1}
J
"$cgs" theory --system "$tmp/out.json" >"$tmp/out"
grep -q "xi_H .*outside: eps >= 1" "$tmp/out" || fail "eps >= 1 is not named"
grep -q "rho^2 R .*outside: singular covariance" "$tmp/out" || fail "singular is not named"
# eps < 1 and xi_H >= 1
cat >"$tmp/far.json" <<'J'
{"A":[[1.1,0],[0,0.9]],"B":[[1,0],[0,1]],"cov":[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]],"H":5,"c":1}
J
"$cgs" theory --system "$tmp/far.json" >"$tmp/out"
grep -q "eps, the least for the three bounds *0.1$" "$tmp/out" || fail "eps: $(cat "$tmp/out")"
grep -q "(1 + xi)/(1 - xi) *outside: xi_H >= 1" "$tmp/out" || fail "xi_H >= 1 is not named"
# the ideal system: no loss, no defect, and both sides of the bounds are 0
echo '{"A":[[1,0],[0,1]],"B":[[1],[0]],"cov":[[1,0,0],[0,1,0],[0,0,1]],"H":3,"c":1}' >"$tmp/ideal.json"
"$cgs" theory --system "$tmp/ideal.json" >"$tmp/out" || fail "the ideal is a violation: $(grep VIOL "$tmp/out")"
grep -q "^L_G, trace formula *0$" "$tmp/out" || fail "the ideal has a loss"
# second moments that are none
moment() {
    echo "{\"A\":[[1]],\"B\":[[1]],\"cov\":$1,\"H\":2,\"c\":1}" >"$tmp/moment.json"
    if "$cgs" theory --system "$tmp/moment.json" >"$tmp/out" 2>"$tmp/err"; then fail "cov $1 was taken"; fi
    grep -q "$2" "$tmp/err" || fail "cov $1: $(cat "$tmp/err")"
}
moment '[[0,0],[0,0]]' '"cov" has no positive eigenvalue'
moment '[[1,2],[2,1]]' 'eigenvalue -1, a second moment has none below 0'
moment '[[1,0.5],[0,1]]' 'entries (1, 0) and (0, 1) differ'
echo '{"A":[[1]]' >"$tmp/bad.json"
"$cgs" theory --system "$tmp/bad.json" 2>"$tmp/err" && fail "a broken file was read"
grep -q "bad.json: not a JSON object" "$tmp/err" || fail "$(cat "$tmp/err")"
"$cgs" theory --systems 0 2>/dev/null && fail "no systems"
"$cgs" theory --model "$tmp/x" 2>"$tmp/err" && fail "a model without data"
grep -q -- "--model needs --data" "$tmp/err" || fail "$(cat "$tmp/err")"

# ---- a model: linearised, decoded, surprised
"$cgs" collect --env tworooms --out "$tmp/data.h5" --episodes 12 --size 64 --quiet --threads 1
"$build/tests/test_eval" --model "$tmp/a" tworooms "$tmp/data.h5" 1
"$cgs" theory --model "$tmp/a" --data "$tmp/data.h5" --anchors 6 --threads 1 --quiet \
    --out "$tmp/m.json" >/dev/null
"$cgs" decode --model "$tmp/a" --data "$tmp/data.h5" --updates 5 --strip --samples 8 --iters 2 \
    --episodes 4 --out "$tmp/run/decode.json" --threads 1 --quiet decode.width=16 \
    decode.layers=1 decode.frames=64 >"$tmp/out"
"$cgs" surprise --model "$tmp/a" --data "$tmp/data.h5" --episode 2 --edit black@3 --threads 1 \
    --out "$tmp/run/surprise.json" >/dev/null
"$python" - "$tmp/m.json" "$tmp/run" <<'PY'
import json, os, sys
m = json.load(open(sys.argv[1]))["models"][0]
assert m["anchors"] == 6 and m["difference_error"] < 0.02, m
for key in "drift", "mixed_defect", "isotropy", "hessian_gap":
    assert m[key]["lo"] <= m[key]["mean"] <= m[key]["hi"], (key, m[key])
assert m["holds"].startswith("eps < 1 at ")
d = json.load(open(sys.argv[2] + "/decode.json"))
assert d["format"] == "cgs-decode" and d["strips"], d
for s in d["strips"]:
    assert s["rows"] == ["simulator", "imagined"] and os.path.getsize(sys.argv[2] + "/" + s["png"]) > 500
    assert isinstance(s["success"], bool) and s["frames"] >= 2
c = json.load(open(sys.argv[2] + "/surprise.json"))["episodes"]
assert [e["edited_at"] for e in c] == [None, 3]
a, b = (e["models"][0]["error"] for e in c)
assert a[0] is None and a[1:3] == b[1:3] and a[3] != b[3] and len(a) == len(b)
PY
"$cgs" surprise --model "$tmp/a" --data "$tmp/data.h5" --edit jump@3 2>"$tmp/err" && fail "jump"
grep -q "unknown edit" "$tmp/err" || fail "$(cat "$tmp/err")"
echo "theory, decode, surprise: fine"
