#!/usr/bin/env bash
# AN4: spelled names, numbers and commands from 38 minutes of telephone-like cepstra. Measured is the word error rate.
#
#   REGARD_DATA=folder/with/an4 examples/an4.sh OUT [more settings]
#
# dev, 100 training utterances, chooses the step whose model is kept; test is only measured. There is no sound in this copy of
# the corpus: frames are interpolated in place of speed perturbation, and the cepstra are turned back into mel bins so that
# bands can be masked.
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: examples/an4.sh OUT [more settings]" >&2
  exit 2
fi
out=$1
shift
data=${REGARD_DATA:?name the folder that holds an4}
features=$out-features
[ -f "$features/test.tsv" ] || python "$(dirname "$0")/sounds/an4.py" "$data/an4" "$features"
python -m regard train transcribe --data.train="$features/train.tsv" --data.valid="$features/dev.tsv" \
  --data.tokenizer=words --data.batch_seconds=200 \
  --data.augment=speed:low=0.85:high=1.15:steps=7+spec_augment:times=2:time=0.08:bands=2:band=0.25 \
  --model.encoder=conformer --model.encoder_layers=8 --model.hidden_size=256 --model.heads=4 --model.feedforward_size=1024 \
  --model.decoder=transformer --model.layers=3 --model.attention=transformer --model.self_attention=rotary \
  --model.positions=none --model.activation=swish \
  --dropout.encoder=0.15 --dropout.residual=0.15 --dropout.embedding=0.1 \
  --train.ctc_weight=0.3 --train.label_smoothing=0.1 --train.optimizer=adamw --train.weight_decay=0.01 \
  --train.learning_rate=1e-3 --train.schedule=cosine --train.warmup_steps=200 --train.ema_decay=0.998 \
  --train.max_steps=1500 --train.evaluate_every=500 --train.monitor=wer --search.ctc_weight=0 --out "$out" "$@"
for part in dev test; do
  echo "== $part"
  python -m regard evaluate "$out" --data.test="$features/$part.tsv" --beam 5 --search.ctc_weight=0.3
done
