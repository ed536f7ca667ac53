# run.sh - makes the lists and lines of this folder where they are missing; from the root of the
# repository, with cgs in the path
set -eu
out=results/referee
for env in tworooms reacher pusht cube; do
    cgs collect --env $env --out runs/referee/$env.h5 --episodes 100 --size 64 --every 5 --seed 0 --quiet
    cgs train --data runs/referee/$env.h5 --out runs/referee/$env --size small --method lewm --quiet \
        train.updates=2 train.batch=4 loss.sigreg.projections=16 train.validate_batches=1
    for protocol in official moderate strict; do
        cgs eval --model runs/referee/$env --data runs/referee/$env.h5 --planner zero --protocol $protocol \
            --manifest $out/$env-$protocol.starts --seeds 0 --episodes 150 --compact --out $out/results.jsonl --quiet
    done
done
