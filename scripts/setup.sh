#!/bin/sh
# Installs the Debian/Ubuntu packages that building, testing and running cgs needs.
# Asks nothing; uses sudo when not root.
set -eu

packages="gcc clang make pkg-config libdnnl-dev libhdf5-dev libcjson-dev libpng-dev zlib1g-dev
  libblosc-dev liblz4-dev libzstd-dev liblapacke-dev libopenblas-dev libchipmunk-dev libcmocka-dev libomp-dev libclang-rt-dev
  libmujoco-dev
  patchelf python3 python3-h5py python3-numpy"

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo"

export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $packages
