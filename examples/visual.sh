#!/usr/bin/env bash
# Attention inside a CNN against none, with the same number of updates and three seeds each, on real pictures.
#
#   REGARD_DATA=folder/with/emoji examples/visual.sh emoji OUT [more settings]      which of ten categories an emoji belongs to
#   REGARD_DATA=folder/with/package examples/visual.sh digits OUT [more settings]   MNIST, learned from 1,000 pictures
#
# Emoji of the test set are of concepts that training never saw. package is the folder that examples/mnist.sh reads. dev decides
# which weights of a run are kept; the table has dev and test, the mean of three seeds and their spread. Figures are in
# docs/results.md.
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: REGARD_DATA=FOLDER examples/visual.sh emoji|digits OUT [more settings]" >&2
  exit 2
fi
here=$(dirname "$0") set=$1 out=$2 data=${REGARD_DATA:?name the folder that holds emoji or, for digits, package}
shift 2
case $set in
  emoji)
    python "$here/pictures/emoji.py" "$out.data"
    python - "$data/emoji/emoji.jsonl.gz" "$out.data" <<'PYTHON'
"""The category of each emoji in the place of its name, and both vendors in one table."""
import gzip
import json
import sys
from pathlib import Path

source, folder = sys.argv[1], Path(sys.argv[2])
categories = {each["unified"]: each["category"] for each in map(json.loads, gzip.open(source, "rt", encoding="utf-8"))}
for part in ("train", "dev", "test"):
    tables = [(folder / f"{vendor}.{part}.tsv").read_text(encoding="utf-8") for vendor in ("twitter", "google")]
    paths = [line.split("\t")[0] for line in "".join(tables).splitlines()]
    (folder / f"{part}.tsv").write_text("".join(f"{path}\t{categories[Path(path).stem]}\n" for path in paths), encoding="utf-8")
PYTHON
    settings=(--data.height=32 --data.width=32 --data.augment=affine --train.max_steps=1500 --train.evaluate_every=250 --train.warmup_steps=101) ;;
  digits)
    python "$here/pictures/mnist.py" "$data/package" "$out.data"
    mv "$out.data/train.tsv" "$out.data/all.tsv"
    head -n 1000 "$out.data/all.tsv" > "$out.data/train.tsv"
    settings=(--data.height=28 --data.width=28 --data.channels=1 --data.augment=affine --train.max_steps=1000 --train.evaluate_every=166 --train.warmup_steps=67) ;;
  *) echo "which pictures? emoji or digits" >&2; exit 2 ;;
esac
python -m regard compare classify --vary model.visual_attention=none,channel,spatial,channel_spatial,selective_kernel,non_local --seeds 3 \
  --data.train="$out.data/train.tsv" --data.valid="$out.data/dev.tsv" --data.test="$out.data/test.tsv" --data.batch_pixels=65536 \
  --model.attention=none --model.hidden_size=128 --model.depth=2 --model.stride=8 --dropout.encoder=0.1 --train.learning_rate=1e-3 \
  --train.optimizer=adamw --train.weight_decay=0.05 --train.label_smoothing=0.1 --train.schedule=cosine \
  --train.monitor=accuracy --train.checkpoint_every=100000 --search.batch_size=500 --jobs 6 "${settings[@]}" --out "$out" "$@"
