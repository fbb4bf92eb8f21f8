#!/usr/bin/env bash
# Multi30k, lower-cased Moses tokens. German to English, greedy: why attention exists, in three models. English to German,
# beam 5: the Transformer again, against the published figure.
#
#   REGARD_DATA=folder/with/multi30k examples/multi30k.sh de-en|en-de none|additive|transformer OUT [more settings]
#
# Settings were chosen on val; test_2016_flickr is only measured. Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 3 ]; then
  echo "usage: examples/multi30k.sh de-en|en-de none|additive|transformer OUT [more settings]" >&2
  exit 2
fi
from=${1%-*} to=${1#*-} model=$2 out=$3
shift 3
tok=${REGARD_DATA:?name the folder that holds multi30k}/multi30k/tok
pair() { echo "$tok/$1.lc.norm.tok.$from.gz::$tok/$1.lc.norm.tok.$to.gz"; }
if [ "$from" = de ]; then beam=1; else beam=5; fi
common=(--data.train="$(pair train)" --data.valid="$(pair val)" --data.tokenizer=bpe --data.bleu_tokenizer=none
  --train.label_smoothing=0.1 --train.evaluate_every=250 --train.checkpoint_every=1000)
recurrent=(--model.hidden_size=512 --model.embedding_size=256 --dropout.embedding=0.4 --dropout.residual=0.4
  --data.vocab_size=8000 --data.batch_tokens=4096 --train.learning_rate=1e-3 --train.patience=10 --train.max_steps=6000)
case $model in
  none) settings=("${recurrent[@]}" --model.attention=none --model.layers=2 --model.reverse_source=true) ;;
  additive) settings=("${recurrent[@]}" --model.attention=additive) ;;
  transformer) settings=(--model.encoder=transformer --model.decoder=transformer --model.attention=transformer
    --model.hidden_size=256 --model.layers=4 --model.heads=4 --model.attention.heads=4 --model.feedforward_size=1024
    --dropout.embedding=0.3 --dropout.residual=0.3 --dropout.attention=0.1 --data.joint_vocab=true --data.vocab_size=8000
    --data.batch_tokens=6144 --train.learning_rate=1e-3 --train.schedule=inverse_sqrt --train.warmup_steps=1500
    --train.max_steps=9000 --train.average_checkpoints=5 --train.keep_checkpoints=5 --train.checkpoint_every=250) ;;
  *) echo "which model? none, additive or transformer" >&2; exit 2 ;;
esac
python -m regard train translate "${common[@]}" "${settings[@]}" --out "$out" "$@"
for part in val test_2016_flickr; do
  echo "== $part, beam $beam"
  python -m regard evaluate "$out" --data.test="$(pair "$part")" --beam $beam
done
