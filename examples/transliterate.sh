#!/usr/bin/env bash
# Names of Wikidata (Merhav and Ash 2018), English to Russian or Chinese: letters in, letters out.
#
#   REGARD_DATA=folder/with/netransliteration examples/transliterate.sh russian|chinese OUT [more settings]
#
# Settings were chosen on the 16 % part; the 20 % part is only measured. Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: examples/transliterate.sh russian|chinese OUT [more settings]" >&2
  exit 2
fi
language=$1 out=$2
shift 2
data=${REGARD_DATA:?name the folder that holds netransliteration}/netransliteration/wd_$language
mkdir -p "$out.data"
gunzip -c "${data}_16.gz" | sed -n "1,3000p" > "$out.data/valid.tsv"  # enough to choose a checkpoint by
python -m regard train pronounce --data.train="${data}_64.gz" --data.valid="$out.data/valid.tsv" \
  --model.encoder=transformer --model.decoder=transformer --model.attention=transformer --model.hidden_size=256 \
  --model.layers=4 --model.heads=4 --model.attention.heads=4 --model.feedforward_size=1024 \
  --dropout.embedding=0.1 --dropout.residual=0.2 --dropout.attention=0.1 --data.batch_tokens=12288 \
  --train.monitor=exact --train.label_smoothing=0.1 --train.learning_rate=1e-3 --train.schedule=cosine --train.warmup_steps=1500 \
  --train.max_steps=8000 --train.evaluate_every=2000 --train.precision=bf16 --search.batch_size=1000 --out "$out" "$@"
for part in 16 20; do
  echo "== $language $part, beam 5"
  python -m regard evaluate "$out" --data.test="${data}_$part.gz" --beam 5
done
