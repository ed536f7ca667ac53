#!/bin/sh
# Builds Debian packages from the files that git knows, as they are now: program, library,
# development files, Python module.
#   scripts/deb.sh VERSION FOLDER     FOLDER is emptied; the packages lie in it at the end
set -eu
version=$1 out=$2
cd "$(dirname "$0")/.."
for tool in git dpkg-buildpackage dh; do
    command -v $tool >/dev/null || { echo "no $tool here: run scripts/setup.sh deb"; exit 1; }
done
rm -rf "$out"
tree=$out/cgs-$version
mkdir -p "$tree"
git ls-files -z | tar -c --null -T - | tar -x -C "$tree"
mv "$tree/packaging/debian" "$tree/debian"

# times of files in the packages are that of the last commit: the same sources, the same bytes
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
cat >"$tree/debian/changelog" <<END
cgs ($version) unstable; urgency=medium

  * Commit $(git rev-parse --short=12 HEAD); CHANGELOG.md says what is new.

 -- The cgs authors <cgs@example.org>  $(date -uR -d "@$SOURCE_DATE_EPOCH")
END
# what a make above this one has set is not for the one in there
unset MAKEFLAGS MFLAGS MAKELEVEL CC CFLAGS CPPFLAGS LDFLAGS B
cd "$tree"
dpkg-buildpackage -b -us -uc -j"$(nproc)"
cd - >/dev/null
rm -rf "$tree"
ls -l "$out"/*.deb
