#!/usr/bin/env bash
# Emoji and what they are called: a text finds the picture, a picture its text, among concepts that were never seen.
#
#   REGARD_DATA=folder/with/emoji examples/emoji.sh OUT [more settings]
#
# Both vendors' pictures are trained on, with names and keywords in English. Each vendor's pictures are searched by themselves.
# Dev decides which step is kept, and decided on these settings; test is only measured. Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: examples/emoji.sh OUT [more settings]" >&2
  exit 2
fi
out=${1:?say where the run goes: emoji.sh OUT}
shift
: "${REGARD_DATA:?name the folder that holds emoji}"
data=$out.data
python "$(dirname "$0")/pictures/emoji.py" "$data"
python -m regard train retrieve --data.train="$data/twitter.train.tsv+$data/google.train.tsv" \
  --data.valid="$data/twitter.dev.tsv+$data/google.dev.tsv" --data.text=3 --data.lowercase=true --data.height=32 --data.width=32 \
  --data.batch_pixels=262144 --data.augment=affine+light --model.hidden_size=128 --model.reranking_layers=0 --dropout.embedding=0.3 \
  --dropout.residual=0.3 --dropout.words=0.3 --train.optimizer=adamw --train.weight_decay=0.05 --train.learning_rate=2e-3 \
  --train.warmup_steps=100 --train.max_steps=1000 --train.evaluate_every=100 --train.max_minutes=9 --out "$out" "$@"
for part in dev test; do
  for vendor in twitter google; do
    echo "== $vendor $part"
    python -m regard evaluate "$out" --data.test="$data/$vendor.$part.tsv"
  done
done
