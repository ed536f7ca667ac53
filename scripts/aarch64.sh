#!/bin/sh
# Makes a folder with the aarch64 packages that cgs is built with, for Debian's cross-compiler; the
# machine's own packages stay as they are.
#   scripts/aarch64.sh [FOLDER]         [build/aarch64-root]
# then
#   make CROSS=aarch64-linux-gnu SYSROOT=FOLDER all tests
#   qemu-aarch64-static -L FOLDER build/aarch64-linux-gnu/cgs info
# Debian 12 and 13.  Ubuntu keeps packages for aarch64 on another server, which must be among the
# sources first (not tried).
set -eu
root=${1:-build/aarch64-root}
triple=aarch64-linux-gnu

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo"
export DEBIAN_FRONTEND=noninteractive
missing=""
for pair in $triple-gcc:gcc-$triple qemu-$triple:qemu-user-static pkg-config:pkg-config; do
    program=${pair%%:*}
    [ "$program" = qemu-$triple ] && program=qemu-aarch64-static
    command -v "$program" >/dev/null || missing="$missing ${pair#*:}"
done
# shellcheck disable=SC2086
[ -z "$missing" ] || $as_root apt-get install -y -qq --no-install-recommends $missing

packages="libc6-dev libgomp1 libdnnl-dev libhdf5-dev libcjson-dev libpng-dev zlib1g-dev libblosc-dev
  liblz4-dev libzstd-dev liblapacke-dev libopenblas-dev libchipmunk-dev libcmocka-dev libmujoco-dev"

# apt with a state of its own, in which nothing is installed: it finds all that these need
mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial"
root=$(cd "$root" && pwd)
: >"$root/apt/status"
apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 \
        -o Dir::State="$root/apt" -o Dir::State::lists="$root/apt/lists" \
        -o Dir::State::status="$root/apt/status" -o Dir::Cache="$root/apt" \
        -o Dir::Cache::archives="$root/apt/archives" -o Debug::NoLocking=true \
        -o APT::Sandbox::User=root "$@"
}
apt update
# shellcheck disable=SC2086
apt install -y --no-install-recommends --download-only $packages

for package in "$root"/apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done

# Debian 13 has everything below usr
[ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
# what the packages' own scripts would have linked (alternatives): OpenBLAS as BLAS and LAPACK
lib=$root/usr/lib/$triple
for name in libopenblas.so libopenblas.so.0 libblas.so libblas.so.3 liblapack.so liblapack.so.3; do
    [ -e "$lib/$name" ] || ln -sf "openblas-pthread/$name" "$lib/$name"
done
[ -e "$lib/pkgconfig/hdf5.pc" ] || ln -sf hdf5-serial.pc "$lib/pkgconfig/hdf5.pc"
for name in openblas:openblas blas:blas-openblas lapack:lapack-openblas; do
    [ -e "$lib/pkgconfig/${name%:*}.pc" ] ||
        ln -sf "../openblas-pthread/pkgconfig/${name#*:}.pc" "$lib/pkgconfig/${name%:*}.pc"
done
# links that begin at the top begin at this top
find "$root" -path "$root/apt" -prune -o -type l -lname '/*' -print | while read -r link; do
    target=$root$(readlink "$link")
    [ ! -e "$target" ] || ln -sfr "$target" "$link"
done
echo "$root: $(find "$root/apt/archives" -name '*.deb' | wc -l) packages"
