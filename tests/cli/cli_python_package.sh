#!/bin/sh
# cli_python_package.sh - pip install ./python and make wheel, without a network, in an environment
# without NumPy and in one with it; and every public function has type hints that hold.
#   tests/cli/cli_python_package.sh BUILD
. "$(dirname "$0")/prelude.sh"
case $build in
*san) echo "python cannot load a library with sanitizers" && exit 77 ;;
esac
find_python "venv, ensurepip, numpy"
export PYTHONDONTWRITEBYTECODE=1 PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH CGS_LIBRARY

# the sources are copied: an installation leaves nothing in the tree, and the build folder is this one
mkdir "$tmp/tree" && cp -r "$here/../python" "$tmp/tree/python"
ln -s "$build" "$tmp/tree/build"
ln -s "$(cd "$here/.." && pwd)/include" "$tmp/tree/include"
find "$tmp/tree/python" -type f | sort >"$tmp/before"

"$python" -m venv "$tmp/bare" || fail "no virtual environment"
"$python" -m venv --system-site-packages "$tmp/arrays"
"$tmp/bare/bin/pip" -q install "$tmp/tree/python" >"$tmp/log" 2>&1 || fail "pip install: $(cat "$tmp/log")"
"$tmp/arrays/bin/pip" -q install --no-build-isolation "$tmp/tree/python" >"$tmp/log" 2>&1 ||
    fail "pip install --no-build-isolation: $(cat "$tmp/log")"
rm -rf "$tmp/tree/python/build" "$tmp"/tree/python/*.egg-info
find "$tmp/tree/python" -type f | sort | diff "$tmp/before" - || fail "the installation left something"

cat >"$tmp/use.py" <<'PY'
import os, sys
import cgs
from cgs._library import lib
here = os.path.dirname(cgs.__file__)
assert here.startswith(sys.argv[2]), here
assert lib._name.startswith(os.path.join(here, "lib")), lib._name  # it carries the library
assert (cgs.numpy is None) == (sys.argv[1] == "bare")
assert os.path.exists(os.path.join(here, "py.typed"))
sim = cgs.Sim("tworooms")
sim.reset(seed=0)
assert len(bytes(sim.render(32))) == 3072
print(sys.argv[1], cgs.version(), len(cgs.environments()), "environments")
PY
cd "$tmp"
bare/bin/python use.py bare "$tmp/bare" || fail "without NumPy"
arrays/bin/python use.py arrays "$tmp/arrays" || fail "with NumPy"
version=$("$build/cgs" --version | sed 's/.* //')
bare/bin/pip show cgs | grep -qx "Version: $version" || fail "another version: $(bare/bin/pip show cgs)"

# ---- without a library it is a package that finds one, or says so
mkdir alone && cp -r tree/python alone/python && cp -r "$here/../include" alone/include
(cd alone && "$python" python/wheel_backend.py out) || fail "no wheel without a library"
ls alone/out/cgs-"$version"-py3-none-any.whl >/dev/null || fail "$(ls alone/out)"
arrays/bin/pip -q install --force-reinstall alone/out/*.whl
CGS_LIBRARY=$tmp/nothing arrays/bin/python -c "import cgs" 2>err && fail "it loaded nothing"
grep -q "ImportError: $tmp/nothing: .*run make" err || fail "$(cat err)"
CGS_LIBRARY=$(ls "$build"/libcgs.so.*) arrays/bin/python -c "import cgs; cgs.Sim('wall')" || fail "CGS_LIBRARY"

# ---- make wheel: its libraries are its own
cp -r "$here/../scripts" tree/scripts
sh tree/scripts/wheel.sh "$(ls "$build"/libcgs.so.*)" libcgs.so.2 "$tmp/wheel" >log 2>&1 || fail "make wheel: $(cat log)"
bare/bin/pip -q install --force-reinstall wheel/*.whl || fail "the wheel does not install"
env -i bare/bin/python use.py bare "$tmp/bare" || fail "the wheel does not run"
if command -v patchelf >/dev/null; then
    env -i ldd bare/lib/python3*/site-packages/cgs/lib/libcgs.so.2 | awk '$2 == "=>" {print $3}' >libs
    [ -s libs ] || fail "ldd says nothing"
    if grep -v "^$tmp/bare/" libs | grep -vE '/lib(c|m|pthread|dl|rt|resolv)\.so'; then
        fail "these libraries are not in the wheel"
    fi
fi
du -sk wheel/*.whl | awk '{print "wheel: " $1 " KiB"}'

# ---- hints: all of them where a checker is, else that they are there
cat >hints.py <<'PY'
import inspect
import cgs
count = 0
def look(name, f):
    global count
    count += 1
    s = inspect.signature(f)
    bare = [p.name for p in s.parameters.values() if p.name != "self" and p.annotation is p.empty]
    assert not bare, f"{name}: no hint for {', '.join(bare)}"
    assert s.return_annotation is not s.empty or name.endswith("__init__"), f"{name}: no hint for its result"
for name in cgs.__all__:
    thing = getattr(cgs, name)
    if inspect.isfunction(thing):
        look(name, thing)
    elif inspect.isclass(thing) and issubclass(thing, tuple):
        assert all(f in thing.__annotations__ for f in thing._fields), name
    elif inspect.isclass(thing):
        for method, f in vars(thing).items():
            f = f.fget if isinstance(f, property) else f
            if inspect.isfunction(f) and (method == "__init__" or not method.startswith("_")):
                look(f"{name}.{method}", f)
assert count > 40, count
print(count, "public functions have hints")
PY
PYTHONPATH=tree/python "$python" hints.py || fail "hints"
if command -v pyright >/dev/null; then
    (cd tree/python && pyright >"$tmp/types" 2>&1) || fail "$(cat "$tmp/types")"
    tail -n 1 types
fi
