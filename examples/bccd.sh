#!/usr/bin/env bash
# BCCD: blood cells found from scratch, white, red and platelets, 205 pictures to learn from. Measured is average precision.
#
#   REGARD_DATA=folder/with/bccd examples/bccd.sh OUT [more settings]
#
# dev chooses the step whose model is kept; test is only measured. Cells look alike whichever way they lie, so pictures are
# flipped both ways; they are not turned, since the box around a turned box of something round is too large. Figures are in
# docs/results.md.
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: examples/bccd.sh OUT [more settings]" >&2
  exit 2
fi
out=$1
shift
data=${REGARD_DATA:?name the folder that holds bccd}
pictures=$out-pictures
[ -f "$pictures/test.jsonl" ] || REGARD_DATA=$data python "$(dirname "$0")/pictures/bccd.py" "$pictures"
python -m regard train detect --data.train="$pictures/train.jsonl" --data.valid="$pictures/dev.jsonl" \
  --data.height=240 --data.width=320 --data.batch_pixels=1228800 \
  --data.augment=flip:down=0.5+affine:scale=0.35:stretch=0.15:shift=0.15:turn=0:shear=0+light:brightness=0.15:contrast=0.3 \
  --model.stride=8 --model.hidden_size=128 --model.map_size=256 --model.depth=2 --model.map_norm=group --model.layers=3 --model.heads=8 \
  --model.attention.heads=8 --model.queries=60 --dropout.residual=0.1 --dropout.encoder=0.05 \
  --train.optimizer=adamw --train.learning_rate=6e-4 --train.weight_decay=0.05 --train.schedule=cosine --train.warmup_steps=55 \
  --train.ema_decay=0.998 --train.precision=bf16 --train.max_steps=1093 --train.max_minutes=9 --train.evaluate_every=92 \
  --train.checkpoint_every=2000 --out "$out" "$@"
for part in dev test; do
  echo "== $part"
  python -m regard evaluate "$out" --data.test="$pictures/$part.jsonl"
done
