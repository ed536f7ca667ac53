#!/bin/sh
# Runs tests on processors that are not here, in QEMU's user mode: x86-64 without AVX, x86-64 with
# AVX2 and no more, aarch64.
#   scripts/emulated_cpus.sh BUILD [AARCH64_BUILD SYSROOT]
# BUILD is a build for this machine; the other, of the same commit, is made as scripts/aarch64.sh
# says.  TESTS names other programs than the selection, which takes some minutes per processor.
# A program that starts itself again (test_data) leaves the emulation and is not for this.
set -u
cd "$(dirname "$0")/.." || exit
[ $# = 1 ] || [ $# = 3 ] || { echo "wants BUILD [AARCH64_BUILD SYSROOT]"; exit 2; }
tests=${TESTS:-test_processor test_core test_op_values test_plan test_planners test_stats test_env test_env_draw
    test_mujoco_draw test_store test_rollout}
failed="" here=$1

# emulated FOLDER NAME COMMAND...: run.sh over programs that start the real ones of FOLDER in COMMAND
emulated() {
    build=$1 name=$2
    shift 2
    folder=$build/emulated/$name
    rm -rf "$folder"
    mkdir -p "$folder/tests"
    for test in $tests; do
        [ -x "$build/tests/$test" ] || { echo "$build/tests/$test is not there"; exit 1; }
        printf '#!/bin/sh\nexec %s %s "$@"\n' "$*" "$build/tests/$test" >"$folder/tests/$test"
        chmod +x "$folder/tests/$test"
    done
    # Datasets, states and pictures, are the same file as here.  Not cube's: the last bits of the C
    # library's atan2 and sincos, which MuJoCo and the arm's kinematics ask for, differ with FMA
    # (GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-AVX2 shows it on one machine).
    cat >"$folder/tests/test_same_data" <<END
#!/bin/sh
set -eu
folder=\$(mktemp -d)
trap 'rm -rf "\$folder"' EXIT
for env in \$("$here/cgs" envs | sed -n 's/^\([a-z0-9-]*\), version.*/\1/p' | grep -vx cube); do
    "$here/cgs" collect --env "\$env" --out "\$folder/here.h5" --episodes 1 --size 64
    $* "$build/cgs" collect --env "\$env" --out "\$folder/there.h5" --episodes 1 --size 64
    cmp "\$folder/here.h5" "\$folder/there.h5"
    echo "\$env: \$(wc -c <"\$folder/there.h5") bytes are the same"
    rm "\$folder"/*.h5
done
END
    chmod +x "$folder/tests/test_same_data"
    echo "---- $name"
    "$@" "$build/cgs" info | sed -n '/^instructions/,/^cores/p' | grep reason
    # shellcheck disable=SC2086
    env -u CGS_ISA tests/run.sh "$folder" $tests test_same_data || failed="$failed $name"
}

if command -v qemu-x86_64 >/dev/null; then x86=qemu-x86_64; else x86=qemu-x86_64-static; fi
if [ "$(uname -m)" = x86_64 ]; then
    emulated "$1" Nehalem $x86 -cpu Nehalem
    emulated "$1" Haswell $x86 -cpu Haswell
fi
[ $# -lt 3 ] || emulated "$2" aarch64 qemu-aarch64-static -L "$3"
[ -z "$failed" ] || { echo "failed on:$failed"; exit 1; }
