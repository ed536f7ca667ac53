#!/bin/sh
# Makes a wheel of the Python package: with the library, and with the shared libraries that it needs
# where patchelf is here; without, the wheel runs where these are installed.
#   scripts/wheel.sh LIBRARY SONAME FOLDER
set -eu
library=$1 soname=$2 out=$3
rm -rf "$out"
mkdir -p "$out/libraries"
if command -v patchelf >/dev/null; then
    "$(dirname "$0")/dist.sh" "$out/dist" "$library" >/dev/null
    mv "$out"/dist/lib/* "$out/libraries/"
    mv "$out/dist/bin/$(basename "$library")" "$out/libraries/$soname"
    patchelf --set-rpath '$ORIGIN' "$out/libraries/$soname"
else
    echo "no patchelf here: the wheel has the library without those that it needs"
    cp "$library" "$out/libraries/$soname"
fi
CGS_WHEEL_LIBRARIES=$out/libraries python3 "$(dirname "$0")/../python/wheel_backend.py" "$out"
rm -rf "$out/dist" "$out/libraries"
