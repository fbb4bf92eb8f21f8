#!/usr/bin/env bash
# AESLC: an e-mail in, its subject line out, trained from scratch. Measured is ROUGE F1 against the original subjects of test, and
# against the three human ones, of which the best counts (test-annotations).
#
#   REGARD_DATA=folder/with/aeslc examples/aeslc.sh recurrent|coverage|transformer|hierarchical|plain OUT [more settings]
#
# Texts are in lower case, words as the package cuts them; ROUGE is metrics/rouge.py, lower case, no stemming. Settings were chosen
# on dev, and dev chooses the step whose model is kept. plain copies nothing. Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: examples/aeslc.sh recurrent|coverage|transformer|hierarchical|plain OUT [more settings]" >&2
  exit 2
fi
model=$1 out=$2
shift 2
data=${REGARD_DATA:?name the folder that holds aeslc}
case $model in
  recurrent) settings=(--model.hidden_size=512 --model.embedding_size=256) ;;
  coverage) settings=(--model.hidden_size=512 --model.embedding_size=256 --model.coverage=true) ;;
  hierarchical) settings=(--model.hidden_size=512 --model.embedding_size=256 --model.encoder=hierarchical) ;;
  plain) settings=(--model.hidden_size=512 --model.embedding_size=256 --model.copy=false) ;;
  transformer) settings=(--model.encoder=transformer --model.decoder=transformer --model.attention=transformer --model.hidden_size=256
    --model.layers=3 --model.heads=4 --model.attention.heads=4 --train.warmup_steps=600) ;;
  *) echo "which model? recurrent, coverage, transformer, hierarchical or plain" >&2; exit 2 ;;
esac
tables=${TABLES:-$out-tables}
[ -f "$tables/test.jsonl" ] || REGARD_DATA=$data python "$(dirname "$0")/texts/aeslc.py" "$tables"
python -m regard train summarise --data.source=body --data.target=subject --data.train="$tables/train.jsonl" \
  --data.valid="$tables/dev.jsonl" --data.lowercase=true --data.max_source_length=256 --data.max_target_length=32 \
  --data.vocab_size=20000 --data.min_frequency=4 --data.batch_tokens=16384 --dropout.embedding=0.4 --dropout.residual=0.4 \
  --train.learning_rate=2e-3 --train.schedule=cosine --train.label_smoothing=0.1 --train.max_steps=2400 --train.evaluate_every=200 \
  --train.checkpoint_every=2400 --train.cuda_graphs=false --search.max_length=24 --search.block_ngrams=2 --search.batch_size=256 \
  "${settings[@]}" --out "$out" "$@"
for part in dev test test-annotations; do
  [ -f "$tables/$part.jsonl" ] || continue
  echo "== $part"
  python -m regard evaluate "$out" --data.test="$tables/$part.jsonl" --beam 5
done
