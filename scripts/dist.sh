#!/bin/sh
# Makes a relocatable folder of programs: each with the shared libraries that are not part
# of a base system beside it, found through a relative search path.
#   scripts/dist.sh FOLDER PROGRAM...
set -eu
out=$1
shift
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib"

# what every Linux machine brings, and what must match its driver
base='linux-vdso|ld-linux|libc\.so|libm\.so|libpthread|libdl\.so|librt\.so|libresolv|libcuda\.so|libcublas|libcudart|libnccl'

for program in "$@"; do
    cp "$program" "$out/bin/"
    strip "$out/bin/$(basename "$program")"
    ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | grep -vE "/($base)" |
        while read -r library; do cp -Ln "$library" "$out/lib/" 2>/dev/null || true; done
    patchelf --set-rpath '$ORIGIN/../lib' "$out/bin/$(basename "$program")"
done
for library in "$out"/lib/*; do
    chmod u+w "$library"
    strip --strip-unneeded "$library"
    patchelf --set-rpath '$ORIGIN' "$library"
done
cp LICENSE "$out/" 2>/dev/null || true
du -sm "$out" | awk '{print $2 ": " $1 " MiB"}'
