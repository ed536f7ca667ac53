#!/bin/sh
# Everything about the GPU in one call: tests, speed, memory checker.
#   scripts/gpu_check.sh [OUT [FOLDER]]
# OUT (gpu_check) gets one log a step and a summary.  FOLDER has test_gpu, probe_wgmma, probe_cluster
# and cgs in bin/ with their libraries in lib/ (make dist-gpu makes it on another machine); without
# it they are built here.  The most important steps come first, each has its own limit in seconds,
# and no step stops the next; exits with 1 if one failed.
# Environment: SKIP, names of steps to leave out; PEER, a Python script to measure beside us.
set -u
cd "$(dirname "$0")/.." || exit 1
out=${1:-gpu_check}
mkdir -p "$out" || exit 1
if [ $# -gt 1 ]; then
    cgs=$2/bin/cgs
    tests=$2/bin/test_gpu
    probe=$2/bin/probe_
    export LD_LIBRARY_PATH="$2/lib:${LD_LIBRARY_PATH:-}"
else
    make -j"$(nproc)" CUDA=1 build/cgs build/tests/test_gpu build/tests/probe_wgmma \
        build/tests/probe_cluster || exit 1
    cgs=build/cgs
    tests=build/tests/test_gpu
    probe=build/tests/probe_
fi
status=0
summary=$out/summary.txt
: >"$summary"

step() { # name seconds command...
    name=$1
    limit=$2
    shift 2
    case " ${SKIP:-} " in *" $name "*) return 0 ;; esac
    begin=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
    rc=$?
    [ $rc = 0 ] && said=ok || said="FAILED ($rc)"
    [ $rc = 124 ] && said="cut off after $limit s"
    [ $rc = 0 ] || status=1
    echo "$name: $said, $(($(date +%s) - begin)) s: $*" | tee -a "$summary"
    # what a reader wants to see at once
    grep -E "^ +(update|patches|frames|matrix product|.* solve|features|gd|GD)|error [0-9.e+-]+ >|worst error|differ|mean loss|WRONG|FAILED|ERROR SUMMARY|RACECHECK SUMMARY" \
        "$out/$name.log" | head -40 | sed 's/^/    /' | tee -a "$summary"
}

nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv \
    >"$out/machine.txt" 2>&1
step small 40 "$tests" small
step train 40 "$cgs" bench gemm train --profile --device cuda --windows 128
step ops 90 "$tests" ops
step model 60 "$tests" model
step runs 60 "$tests" train
for kind in wgmma cluster; do
    if [ -x "$probe$kind" ]; then step "probe-$kind" 20 "$probe$kind"; fi
done
# every operation without each of its variants, and what each is worth
step variants 240 "$tests" variants
step variants-worth 400 "$cgs" bench variants --device cuda --windows 128
step plans 60 "$tests" plan
# older GPUs do without the fused rollout and pass; these must not
if grep -q "H[12]00" "$out/machine.txt" && grep -q "NOT FUSED" "$out/plans.log" 2>/dev/null; then
    echo "plans: a rollout was not fused" | tee -a "$summary"
    status=1
fi
step plan 40 "$cgs" bench plan --device cuda
# DINO-WM: golden numbers are in the step "model"
step dino 120 "$tests" dino
step features 40 "$cgs" bench encode --model patch --device cuda --windows 16
step features-cls 40 "$cgs" bench encode --model cls --device cuda --windows 16
step plan-cls 60 "$cgs" bench plan --model cls --device cuda
step plan-patch 60 "$cgs" bench plan --model patch --device cuda
step patch-host-loop 60 env CGS_DEVICE_LOOP=0 "$cgs" bench plan --model patch --device cuda
if [ -n "${PEER:-}" ]; then step peer 90 python3 "$PEER"; fi
for part in "only odd" dino-small; do
    # shellcheck disable=SC2086
    step "memcheck-${part#only }" 150 compute-sanitizer --tool memcheck --error-exitcode 9 \
        --print-limit 20 "$tests" $part
    # The checker of races does not follow st.async and its mbarrier, so rollouts get barriers;
    # what it reports of cuBLASLt's own kernels (nvjet_*) is not ours.
    # shellcheck disable=SC2086
    step "racecheck-${part#only }" 150 env CGS_CLUSTER_BARRIERS=1 compute-sanitizer \
        --tool racecheck --print-limit 1000 "$tests" $part
    if grep "Race reported" "$out/racecheck-${part#only }.log" | grep -v nvjet; then
        echo "racecheck-${part#only }: races in own kernels" | tee -a "$summary"
        status=1
    fi
done
step memcheck-encoder 60 compute-sanitizer --tool memcheck --error-exitcode 9 --print-limit 20 \
    "$tests" variants "261 tokens"
# rollouts that are off unless asked for: each alone, so that none stops the others
step rollouts-memcheck 60 compute-sanitizer --tool memcheck --error-exitcode 9 --print-limit 20 \
    "$tests" rollouts test_tiles_small
step rollouts-tiles 60 "$tests" rollouts test_tiles
for rollout in tiles clusters; do
    step "plan-$rollout" 30 env CGS_ROLLOUT=$rollout "$cgs" bench plan --device cuda
done
step plan-unfused 20 env CGS_ROLLOUT=tape "$cgs" bench plan --device cuda
step cases 40 "$cgs" bench ops --device cuda --seconds 0.02
for log in "$out"/*.log; do printf '\n==== %s\n' "$log"; cat "$log"; done >"$out/everything.txt"
echo
[ $status = 0 ] && echo "all steps passed" || echo "a step FAILED"
exit $status
