#!/usr/bin/env bash
# LJSpeech, the first 300 clips: speech synthesis by Tacotron 2 with an attention of your choice, or by Transformer TTS. It is
# trained on 250 clips; 30 are to test on: L1, mel-cepstral distortion, diagonality, and words skipped or repeated.
#
#   REGARD_DATA=folder/with/ljspeech-mini examples/ljspeech.sh ATTENTION OUT [more settings]
#
# ATTENTION is location_sensitive, forward, gmm, dynamic_convolution, or transformer (Transformer TTS). The sound of the test
# sentences is written to OUT/sounds. Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: examples/ljspeech.sh ATTENTION OUT [more settings]" >&2
  exit 2
fi
attention=$1
out=$2
shift 2
: "${REGARD_DATA:?name the folder that holds ljspeech-mini}"
case $attention in
location_sensitive) model="--model.attention=location_sensitive --model.attention.cumulative=true" ;;
gmm) model="--model.attention=gmm --model.attention.initial_move=0.7 --model.attention.initial_width=3" ;;
forward | dynamic_convolution) model="--model.attention=$attention" ;;
transformer) model="--model.network=transformer --model.attention=transformer --model.layers=3 --train.warmup_steps=1000" ;;
*)
  echo "ATTENTION is location_sensitive, forward, gmm, dynamic_convolution or transformer, got $attention" >&2
  exit 2
  ;;
esac
tables=$out/tables
mkdir -p "$out"
python "$(dirname "$0")/sounds/ljspeech.py" "$REGARD_DATA/ljspeech-mini" "$tables"
# shellcheck disable=SC2086
regard train speak --data.train="$tables/train.tsv" --data.valid="$tables/dev.tsv" --data.bins=80 --data.batch_seconds=200 \
  --model.hidden_size=256 --model.reduction=4 --model.layers=3 --model.prenet_size=128 --model.postnet_layers=5 \
  --model.postnet_size=256 --train.guided_attention=5 --train.learning_rate=1e-3 --train.schedule=constant \
  --train.warmup_steps=200 --train.max_steps=5000 --train.evaluate_every=500 --train.checkpoint_every=1000 \
  --train.ema_decay=0.999 $model "$@" --out "$out/run"
regard evaluate "$out/run" --data.test="$tables/test.tsv"
regard predict "$out/run" --file "$tables/test.txt" --out "$out/sounds" --json
