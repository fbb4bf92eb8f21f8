#!/usr/bin/env bash
# CROHME: handwritten formulas as pictures, and their LaTeX. Measured is the share that is right to the last token.
#
#   REGARD_DATA=folder/with/crohme examples/crohme.sh OUT [more settings]
#
# Each formula is learned from in its own writing and in COPIES others (examples/pictures/rewritten.py). First at a constant
# rate, then, from those weights, down to nothing. dev chooses the step whose model is kept; test is CROHME 2014 and only
# measured. FIRST and SECOND are the updates of the two parts. Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: examples/crohme.sh OUT [more settings]" >&2
  exit 2
fi
out=$1
shift
data=${REGARD_DATA:?name the folder that holds crohme}
pictures=$out-pictures
[ -f "$pictures/test.tsv" ] || COPIES=${COPIES:-3} REGARD_DATA=$data python "$(dirname "$0")/pictures/crohme.py" "$pictures"
settings=(--data.train="$pictures/train.tsv" --data.valid="$pictures/dev.tsv" --data.height=256 --data.width=1024
  --data.channels=1 --data.augment=none --data.batch_pixels=1572864 --data.bleu_tokenizer=none --model.encoder=resnet --model.stride=8
  --model.depth=3 --model.map_size=256 --model.decoder=transformer --model.attention=transformer --model.hidden_size=256 --model.layers=3
  --model.heads=8 --model.attention.heads=8 --model.feedforward_size=1024 --dropout.embedding=0.1 --dropout.residual=0.3
  --dropout.encoder=0.1 --train.label_smoothing=0.1 --train.learning_rate=7e-4 --train.precision=bf16 --train.checkpoint_every=4000
  --search.batch_size=200 "$@")
python -m regard train caption "${settings[@]}" --train.warmup_steps=500 --train.average_checkpoints=1 --train.max_steps="${FIRST:-8018}" \
  --train.evaluate_every=4000 --out "$out-first"
python -m regard train caption "${settings[@]}" --train.init_from="$out-first" --train.warmup_steps=20 --train.schedule=cosine \
  --train.monitor=exact --train.max_steps="${SECOND:-4825}" --train.evaluate_every=1609 --out "$out"
for part in dev test; do
  echo "== $part"
  python -m regard evaluate "$out" --data.test="$pictures/$part.tsv" --beam 1
done
