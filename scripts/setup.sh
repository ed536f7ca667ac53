#!/bin/sh
# Installs the packages that building, testing and running cgs needs.
#   scripts/setup.sh [deb] [ci]     deb: also what make deb needs; ci: what .ci/run needs
# Asks nothing; uses sudo when not root.  When nothing is missing it does nothing, so it works
# without a network.  Tested on Debian 12 and 13.  The names for Ubuntu (those of Debian) and Fedora
# are from their package lists: untested.
set -eu

# what the build needs, and what only some tests and tools do without which the rest works
if command -v apt-get >/dev/null; then
    needed="gcc make git pkg-config libdnnl-dev libhdf5-dev libcjson-dev libpng-dev zlib1g-dev libblosc-dev
      liblz4-dev libzstd-dev liblapacke-dev libopenblas-dev libchipmunk-dev libcmocka-dev"
    wanted="libmujoco-dev clang libomp-dev libclang-rt-dev patchelf python3 python3-h5py python3-numpy
      libavformat-dev libavcodec-dev libavutil-dev libswscale-dev libsnappy-dev ffmpeg"
    case " $* " in *" deb "*) needed="$needed build-essential debhelper" ;; esac
    case " $* " in *" ci "*) wanted="$wanted clang-format valgrind qemu-user-static gcc-aarch64-linux-gnu
      python3-onnx" ;; esac
    present() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
    known() { apt-cache show "$1" >/dev/null 2>&1; }
    refresh() { $as_root apt-get update -qq; }
    install() {
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
            install -y -qq --no-install-recommends "$@"
    }
elif command -v dnf >/dev/null; then # no MuJoCo there
    needed="gcc make git pkgconf-pkg-config onednn-devel hdf5-devel cjson-devel libpng-devel zlib-devel
      blosc-devel lz4-devel libzstd-devel lapack-devel openblas-devel chipmunk-devel libcmocka-devel"
    wanted="clang libomp-devel compiler-rt patchelf python3 python3-h5py python3-numpy
      ffmpeg-free-devel snappy-devel ffmpeg-free"
    case " $* " in *" ci "*) wanted="$wanted clang-tools-extra valgrind qemu-user-static gcc-aarch64-linux-gnu" ;; esac
    present() { rpm -q --whatprovides "$1" >/dev/null 2>&1; }
    known() { dnf -q list "$1" >/dev/null 2>&1; }
    refresh() { :; }
    install() { $as_root dnf install -y -q "$@"; }
else
    echo "setup.sh knows apt-get (Debian, Ubuntu) and dnf (Fedora), and neither is here. Install by hand:
a C compiler, make, pkg-config and the development files of oneDNN, HDF5, cJSON, libpng, zlib, Blosc, LZ4,
Zstandard, LAPACKE, OpenBLAS, Chipmunk and cmocka; MuJoCo if there is one." >&2
    exit 1
fi

missing() {
    for p in "$@"; do present "$p" || echo "$p"; done
}
# shellcheck disable=SC2086
{
    [ -n "$(missing $needed $wanted)" ] || exit 0
    as_root=""
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || {
            echo "neither root nor sudo; missing are:" $(missing $needed) >&2
            exit 1
        }
        as_root=sudo
    fi
    refresh
    list=$(missing $needed)
    for p in $(missing $wanted); do
        if known "$p"; then list="$list $p"; else echo "left out, not known here: $p"; fi
    done
    [ -z "$list" ] || install $list
}
