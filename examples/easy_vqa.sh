#!/usr/bin/env bash
# easy-VQA: a drawn shape and a question about it in, one of 13 answers out. Two looks at the words and at the picture.
#
#   REGARD_DATA=folder/with/easy-vqa examples/easy_vqa.sh OUT [more settings]
#
# dev is the last tenth of the training pictures, and decides; test is the official one, measured once at the end. Figures are
# in docs/results.md.
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: examples/easy_vqa.sh OUT [more settings]" >&2
  exit 2
fi
out=$1
shift
: "${REGARD_DATA:?name the folder that holds easy-vqa}"
if [ ! -f "$out.data/test.tsv" ]; then
  mkdir -p "$out.data"
  python "$(dirname "$0")/pictures/easy_vqa.py" "$out.data"
fi
python -m regard train vqa --data.train="$out.data/train.tsv" --data.valid="$out.data/dev.tsv" --data.augment=flip \
  --data.batch_pixels=$((1 << 18)) --model.hidden_size=128 --model.question_layers=2 --dropout.residual=0.1 --train.max_steps=1012 \
  --train.learning_rate=1e-3 --train.warmup_steps=200 --train.evaluate_every=127 --train.checkpoint_every=1000 --train.max_minutes=9 \
  --train.precision=bf16 --search.batch_size=512 --out "$out" "$@"
for part in dev test; do
  echo "== $part"
  python -m regard evaluate "$out" --data.test="$out.data/$part.tsv"
done
