#!/usr/bin/env bash
# SIGMORPHON-UniMorph 2023 task 0: a lemma and its features in, the form out. One language, one model.
#
#   REGARD_DATA=folder/with/sigmorphon2023-inflection examples/inflect.sh LANGUAGE transformer|recurrent|pointer OUT [more settings]
#
# Languages: deu eng fin fra heb hun jap kat klr nav rus spa swa tur. A letter that training has once is unknown to the model, so
# that it learns what to do with those that it has never seen: copy them. Settings were chosen on dev; figures are in
# docs/results.md.
set -euo pipefail
if [ $# -lt 3 ]; then
  echo "usage: examples/inflect.sh LANGUAGE transformer|recurrent|pointer OUT [more settings]" >&2
  exit 2
fi
language=$1 model=$2 out=$3
shift 3
data=${REGARD_DATA:?name the folder that holds sigmorphon2023-inflection}/sigmorphon2023-inflection/$language
mkdir -p "$out.data"
for part in trn dev tst; do  # lemma TAB features TAB form -> lemma|features TAB form
  gunzip -c "$data.$part.gz" | awk -F'\t' '{print $1 "|" $2 "\t" $3}' > "$out.data/$part.tsv"
done
common=(--data.train="$out.data/trn.tsv" --data.valid="$out.data/dev.tsv" --data.joint_vocab=true --data.min_frequency=2 --search.unknown=copy
  --train.monitor=exact --train.label_smoothing=0.1 --train.learning_rate=1e-3 --train.schedule=cosine --search.batch_size=1000)
recurrent=(--model.hidden_size=512 --model.embedding_size=128 --dropout.embedding=0.3 --dropout.residual=0.5 --data.batch_tokens=2048
  --train.max_steps=4000 --train.evaluate_every=1000)
case $model in
  transformer) settings=(--model.encoder=transformer --model.decoder=transformer --model.attention=transformer
    --model.hidden_size=256 --model.layers=4 --model.heads=4 --model.attention.heads=4 --model.feedforward_size=1024
    --dropout.embedding=0.3 --dropout.residual=0.3 --dropout.attention=0.1 --data.batch_tokens=4096
    --train.warmup_steps=1000 --train.max_steps=15000 --train.evaluate_every=3000 --train.precision=bf16) ;;
  recurrent) settings=("${recurrent[@]}" --model.attention=additive) ;;
  pointer) settings=("${recurrent[@]}" --model.attention=pointer) ;;
  *) echo "which model? transformer, recurrent or pointer" >&2; exit 2 ;;
esac
python -m regard train inflect "${common[@]}" "${settings[@]}" --out "$out" "$@"
for part in dev tst; do
  echo "== $language $part, beam 5"
  python -m regard evaluate "$out" --data.test="$out.data/$part.tsv" --beam 5
done
