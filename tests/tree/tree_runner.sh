#!/bin/sh
# tests/run.sh waits for a test that is stopped and continued, and counts each test once.
#   tree_runner.sh BUILD
set -eu
runner=$(dirname "$0")/../run.sh
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mkdir "$build/tests"
cat >"$build/tests/test_stops" <<'END'
#!/bin/sh
(sleep 0.5 && kill -CONT $$) &
kill -STOP $$
END
printf '#!/bin/sh\nexit 3\n' >"$build/tests/test_fails"
chmod +x "$build/tests/test_stops" "$build/tests/test_fails"
"$runner" "$build" test_stops >"$build/out" 2>&1
grep -q '^1 passed, 0 failed' "$build/out"
if "$runner" "$build" test_stops test_fails >"$build/out" 2>&1; then exit 1; fi
grep -q '^1 passed, 1 failed' "$build/out"
echo "a stopped test was waited for"
