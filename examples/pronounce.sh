#!/usr/bin/env bash
# SIGMORPHON 2021 task 1, medium: grapheme to phoneme in ten languages. One language, several seeds, one ensemble of them.
#
#   REGARD_DATA=folder/with/sigmorphon2021-g2p examples/pronounce.sh LANGUAGE recurrent|transformer SEEDS OUT [more settings]
#
# Languages: arm_e bul dut fre geo hbs_latn hun jpn_hira kor vie_hanoi. Letters are taken apart (Unicode NFD): a Korean syllable is
# its two or three sounds, an accented letter its letter and its accent. Settings were chosen on dev; figures are in
# docs/results.md. WER is 100 - exact.
set -euo pipefail
if [ $# -lt 4 ]; then
  echo "usage: examples/pronounce.sh LANGUAGE recurrent|transformer SEEDS OUT [more settings]" >&2
  exit 2
fi
language=$1 model=$2 seeds=$3 out=$4
shift 4
data=${REGARD_DATA:?name the folder that holds sigmorphon2021-g2p}/sigmorphon2021-g2p/medium/$language
common=(--data.train="$out/train.tsv" --data.valid="$out/dev.tsv" --train.monitor=exact --train.label_smoothing=0.1
  --train.learning_rate=1e-3 --train.schedule=cosine --train.evaluate_every=1000 --search.batch_size=1000)
case $model in
  recurrent) settings=(--model.attention=additive --model.hidden_size=512 --model.embedding_size=128 --dropout.embedding=0.3
    --dropout.residual=0.5 --data.batch_tokens=2048 --train.max_steps=3000) ;;
  transformer) settings=(--model.encoder=transformer --model.decoder=transformer --model.attention=transformer
    --model.hidden_size=256 --model.layers=4 --model.heads=4 --model.attention.heads=4 --model.feedforward_size=1024
    --dropout.embedding=0.3 --dropout.residual=0.3 --dropout.attention=0.1 --data.batch_tokens=4096
    --train.warmup_steps=1000 --train.max_steps=4000) ;;
  *) echo "which model? recurrent or transformer" >&2; exit 2 ;;
esac
mkdir -p "$out"
for part in train dev test; do
  gunzip -c "${data}_$part.tsv.gz" | python -c '
import sys, unicodedata
for line in sys.stdin:
    word, phones = line.rstrip("\n").split("\t")
    print(unicodedata.normalize("NFD", word), phones, sep="\t")' > "$out/$part.tsv"
done
runs=()
for ((seed = 0; seed < seeds; seed++)); do
  python -m regard train pronounce "${common[@]}" "${settings[@]}" --train.seed=$seed --out "$out/$seed" "$@"
  runs+=("$out/$seed")
done
all=${runs[0]}
if [ "$seeds" -gt 1 ]; then
  all=$out/all
  python -m regard ensemble "${runs[@]}" --out "$all"
fi
for part in dev test; do
  echo "== $language $part, beam 5"
  python -m regard evaluate "$all" --data.test="$out/$part.tsv" --beam 5
done
