#!/bin/sh
# publish.sh - copies what a study found to a folder for the repository: lines, journals, files of
# results and the validations of its trainings, without data, weights, images and logs.
#   scripts/publish.sh runs/main results/laptop
# A study or a group of them.  Run it whenever rows were finished; `cgs reproduce --out` on the
# copy goes on with what is missing and makes only the weights again that it needs.
set -eu
from=${1%/} to=${2%/}
[ -d "$from" ] || { echo "$from: no such folder"; exit 2; }
find "$from" -name study.json | while read -r study; do
    dir=$(dirname "$study")
    copy=$to${dir#"$from"}
    mkdir -p "$copy"
    for file in "$dir"/*.json "$dir"/*.jsonl; do
        [ ! -e "$file" ] || cp "$file" "$copy"
    done
    for model in "$dir"/models/*/; do
        [ -e "$model/metrics.jsonl" ] || continue
        name=$copy/models/$(basename "$model")
        mkdir -p "$name"
        # a training that goes on has none yet
        [ ! -e "$model/config.json" ] || cp "$model/config.json" "$name"
        grep '"valid":{' "$model/metrics.jsonl" >"$name/metrics.jsonl" || rm -f "$name/metrics.jsonl"
    done
done
du -sh "$to"
