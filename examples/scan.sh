#!/usr/bin/env bash
# SCAN: commands such as "jump twice and look left" into actions; which mechanism generalises to lengths and words it never saw.
#
#   REGARD_DATA=folder/with/scan examples/scan.sh SPLIT MODEL OUT [more settings]
#
# SPLIT is simple, length, addprim_jump, addprim_turn_left or template_around_right. MODEL is lstm (no attention), additive,
# luong (dot), values (additive, whose values are bare word embeddings), convolution, convolution_top (the top layer alone
# attends), transformer or rotary. One line in ten of the training file validates, none of the test file. Answers are greedy,
# and the figure is exact, the share of action sequences that are right as a whole.
set -euo pipefail
models="lstm|additive|luong|values|convolution|convolution_top|transformer|rotary"
if [ $# -lt 3 ]; then
  echo "usage: examples/scan.sh simple|length|addprim_jump|addprim_turn_left|template_around_right $models OUT" >&2
  exit 2
fi
split=$1 model=$2 out=$3
shift 3
: "${REGARD_DATA:?name the folder that holds scan}"
recurrent=(--model.hidden_size=200 --model.layers=2 --dropout.embedding=0.5 --dropout.residual=0.5 --train.learning_rate=1e-3)
convolution=(--model.encoder=convolution --model.decoder=convolution --model.hidden_size=256 --model.layers=6
  --model.kernel_size=5 --dropout.embedding=0.25 --dropout.residual=0.25 --train.learning_rate=5e-4)
transformer=(--model.encoder=transformer --model.decoder=transformer --model.attention=transformer --model.hidden_size=128
  --model.layers=3 --model.heads=8 --model.attention.heads=8 --train.learning_rate=1e-3 --train.warmup_steps=400)
case $model in
lstm) settings=("${recurrent[@]}" --model.attention=none) ;;
additive) settings=("${recurrent[@]}" --model.attention=additive) ;;
luong) settings=("${recurrent[@]}" --model.attention=dot) ;;
values) settings=("${recurrent[@]}" --model.attention=additive --model.values=embeddings --model.input_feeding=false) ;;
convolution) settings=("${convolution[@]}" --model.attention=dot) ;;
convolution_top) settings=("${convolution[@]}" --model.attention=dot --model.cross_attention_layers=6) ;;
transformer) settings=("${transformer[@]}") ;;
rotary) settings=("${transformer[@]}" --model.self_attention=rotary --model.positions=none) ;;
*) echo "MODEL is one of $models, got $model" >&2 && exit 2 ;;
esac
mkdir -p "$out.data"
for part in train test; do
  gzip -dc "$REGARD_DATA/scan/tasks_${part}_$split.txt.gz" | sed 's/^IN: //; s/ OUT: /\t/' >"$out.data/$part.tsv"
done
awk 'NR % 10' "$out.data/train.tsv" >"$out.data/training.tsv"
awk 'NR % 10 == 0' "$out.data/train.tsv" >"$out.data/valid.tsv"
python -m regard train translate --data.train="$out.data/training.tsv" --data.valid="$out.data/valid.tsv" \
  --data.tokenizer=words --data.over_long=truncate --data.batch_tokens=4096 --train.schedule=cosine --train.max_steps=4000 \
  --train.evaluate_every=1000 "${settings[@]}" --out "$out" "$@"
python -m regard evaluate "$out" --data.test="$out.data/test.tsv"
