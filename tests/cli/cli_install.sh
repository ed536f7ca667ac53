#!/bin/sh
# cli_install.sh - make install as a packager and as a user does it, examples/mpc_loop.c against
# what was installed, and make dist away from this machine's libraries.
#   tests/cli/cli_install.sh BUILD
. "$(dirname "$0")/prelude.sh"
case $build in
*san) echo "the libraries are built with sanitizers" && exit 77 ;;
esac
# as the build folder was made: with the same parts, and nothing is compiled again
again() {
    eval "set -- $(cat "$build/made/options") \"\$@\""
    make -s -C "$here/.." B="$build" "$@"
}
install() {
    again install "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "make install $*"; }
}

# ---- a packager's DESTDIR: exactly these files, and none that knows the folder
install PREFIX=/opt/cgs DESTDIR="$tmp/root"
version=$("$build/cgs" --version | sed 's/.* //')
(cd "$tmp/root" && find . -type f -o -type l | sort) >"$tmp/files"
cat >"$tmp/expected" <<END
./opt/cgs/bin/cgs
./opt/cgs/include/cgs/cgs.h
./opt/cgs/include/cgs/env.h
./opt/cgs/lib/libcgs.a
./opt/cgs/lib/libcgs.so
./opt/cgs/lib/libcgs.so.$version
./opt/cgs/lib/libcgs.so.2
./opt/cgs/lib/pkgconfig/cgs.pc
./opt/cgs/share/bash-completion/completions/cgs
$(cd "$here/../python" && ls cgs/*.py cgs/py.typed | sed "s,^,./opt/cgs/share/cgs/python/,")
./opt/cgs/share/fish/vendor_completions.d/cgs.fish
./opt/cgs/share/man/man1/cgs.1
./opt/cgs/share/zsh/site-functions/_cgs
END
sort "$tmp/expected" | diff - "$tmp/files" || fail "other files were installed"
at=$tmp/root/opt/cgs
if grep -rl "$tmp" "$at/lib/pkgconfig" "$at/share"; then fail "a file knows the packager's folder"; fi
[ "$(readlink "$at/lib/libcgs.so")" = libcgs.so.2 ] || fail "libcgs.so"
[ "$(readlink "$at/lib/libcgs.so.2")" = "libcgs.so.$version" ] || fail "libcgs.so.2"
readelf -d "$at/lib/libcgs.so.$version" | grep -q 'SONAME.*\[libcgs.so.2\]' || fail "the soname"
sed -n 's/.*\b\(cgs_[a-z0-9_]*\)(.*/\1/p' "$at"/include/cgs/*.h | sort -u >"$tmp/declared"
nm -D --defined-only "$at/lib/libcgs.so.$version" | sed -n 's/.* T \([^@]*\).*/\1/p' | sort -u |
    diff "$tmp/declared" - || fail "the library shows other functions than the header declares"
"$build/cgs" help --man | cmp - "$at/share/man/man1/cgs.1" || fail "the man page is not the program's"
"$build/cgs" help --bash | cmp - "$at/share/bash-completion/completions/cgs" || fail "bash's completion"
"$build/cgs" help --zsh | cmp - "$at/share/zsh/site-functions/_cgs" || fail "zsh's completion"
"$build/cgs" help --fish | cmp - "$at/share/fish/vendor_completions.d/cgs.fish" || fail "fish's completion"

# a distribution has other folders for libraries and modules
install PREFIX=/usr LIBDIR=/usr/lib/triplet PYTHONDIR=/usr/lib/python3 DESTDIR="$tmp/distribution"
for file in lib/triplet/libcgs.so.2 lib/triplet/libcgs.a lib/triplet/pkgconfig/cgs.pc lib/python3/cgs/__init__.py bin/cgs; do
    [ -e "$tmp/distribution/usr/$file" ] || fail "no usr/$file"
done
grep -qx 'libdir=${prefix}/lib/triplet' "$tmp/distribution/usr/lib/triplet/pkgconfig/cgs.pc" || fail "libdir"

# ---- compiled against what was installed: shared, then static
PKG_CONFIG_PATH=$at/lib/pkgconfig
export PKG_CONFIG_PATH
[ "$(pkg-config --modversion cgs)" = "$version" ] ||
    fail "pkg-config and the program disagree about the version"
flags=$(PKG_CONFIG_SYSROOT_DIR=$tmp/root pkg-config --cflags --libs cgs)
for std in c99 c11; do
    ${CC:-cc} -std=$std -Wall -Wextra -Wpedantic -Werror -o "$tmp/mpc_loop" \
        "$here/../examples/mpc_loop.c" $flags || fail "it does not compile as $std"
done
readelf -d "$tmp/mpc_loop" | grep -q 'NEEDED.*\[libcgs.so.2\]' || fail "it does not ask for libcgs.so.2"
private=$(sed -n 's/^Libs.private: //p' "$at/lib/pkgconfig/cgs.pc")
${CC:-cc} -o "$tmp/mpc_static" "$here/../examples/mpc_loop.c" -I"$at/include" "$at/lib/libcgs.a" \
    $private || fail "it does not link with the archive"

# a plug-in needs the installed headers and no library
${CC:-cc} -shared -fPIC -o "$tmp/libcartpole.so" "$here/../examples/env_cartpole.c" \
    $(PKG_CONFIG_SYSROOT_DIR=$tmp/root pkg-config --cflags cgs) -lm || fail "a plug-in does not compile"
"$at/bin/cgs" envs --env "$tmp/libcartpole.so" | grep -q '^cartpole' || fail "the plug-in is not loaded"

"$build/tests/test_eval" --model "$tmp/model" tworooms none 1
LD_LIBRARY_PATH=$at/lib "$tmp/mpc_loop" "$tmp/model" tworooms 3 >"$tmp/out" || fail "the loop ended with $?"
cat "$tmp/out"
grep -q "^turn  0: *[1-9]" "$tmp/out" || fail "no plan was made"
grep -q "reach the goal after 50 actions\|reached the goal after" "$tmp/out" || fail "no outcome"
# what it cannot do, it says; with the archive, no library path is needed
if "$tmp/mpc_static" "$tmp/nothing" 2>"$tmp/err"; then fail "a missing model was accepted"; fi
grep -q "nothing" "$tmp/err" || fail "the message does not name the directory: $(cat "$tmp/err")"
if "$tmp/mpc_static" "$tmp/model" mars 2>"$tmp/err"; then fail "a missing environment was accepted"; fi
grep -q "mars" "$tmp/err" || fail "the message does not name the environment: $(cat "$tmp/err")"

# the installed python module finds the installed library
if command -v python3 >/dev/null; then
    seen=$(env -u CGS_LIBRARY PYTHONPATH="$at/share/cgs/python" PYTHONDONTWRITEBYTECODE=1 \
        python3 -c 'import cgs._library; print(cgs.version(), cgs._library.lib._name)')
    case $seen in "$version $tmp/root/opt/"*) ;; *) fail "python loaded $seen" ;; esac
fi

# ---- dist: moved elsewhere, in an empty environment, with its own libraries
if ! command -v patchelf >/dev/null; then
    echo "make dist was not tried: no patchelf"
    exit 0
fi
again dist >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "make dist"; }
cp -r "$build/cgs-$version-$(uname -m)" "$tmp/moved"
env -i "$tmp/moved/bin/cgs" --version >"$tmp/out" || fail "the dist folder does not run"
[ "$(cat "$tmp/out")" = "cgs $version" ] || fail "it says: $(cat "$tmp/out")"
env -i "$tmp/moved/bin/cgs" envs --json >"$tmp/out" || fail "envs in the dist folder"
[ "$(wc -l <"$tmp/out")" = "$("$build/cgs" envs --json | wc -l)" ] || fail "environments are missing"
env -i "$tmp/moved/bin/cgs" collect --env tworooms --out "$tmp/d.h5" --episodes 2 --size 64 --quiet
env -i "$tmp/moved/bin/cgs" data check "$tmp/d.h5" >/dev/null || fail "the data it writes"
env -i ldd "$tmp/moved/bin/cgs" | awk '$2 == "=>" {print $3}' >"$tmp/libs"
if grep -v "^$tmp/moved/" "$tmp/libs" | grep -vE '/lib(c|m|pthread|dl|rt|resolv)\.so'; then
    fail "these libraries are not in the folder"
fi
[ -f "$tmp/moved/LICENSE" ] || fail "no licence in the folder"
echo "dist: $(wc -l <"$tmp/libs") libraries, $(du -sm "$tmp/moved" | cut -f1) MiB"
