#!/usr/bin/env bash
# GeoQuery and ATIS: a question in, its SQL query out. Measured is the exact match of whole queries, with the constants filled in.
#
#   REGARD_DATA=folder/with/text2sql examples/text2sql.sh geography|atis question|query none|attention|copy SEED OUT [more settings]
#
# question: queries of test may be in train too; query: none is. As in Finegan-Dollak et al. 2018 the final training is on train and
# dev, for a fixed number of steps, after settings were chosen on dev (FINAL=0 trains on train and measures dev). Constants are not
# replaced by variables. Beside it stands a classifier of templates with slots: examples/texts/templates.py. Figures are in
# docs/results.md.
set -euo pipefail
if [ $# -lt 5 ]; then
  echo "usage: examples/text2sql.sh geography|atis question|query none|attention|copy SEED OUT [more settings]" >&2
  exit 2
fi
data=${REGARD_DATA:?name the folder that holds text2sql}
set_name=$1 split=$2 model=$3 seed=$4 out=$5
shift 5
case $model in
  none) settings=(--model.attention=none --model.copy=false --model.input_feeding=true) ;;
  attention) settings=(--model.copy=false --model.input_feeding=false) ;;
  copy) settings=(--model.copy=true --model.input_feeding=false) ;;
  *) echo "which model? none, attention or copy" >&2; exit 2 ;;
esac
case $set_name in
  geography) steps=1500 batch=1024 ;;
  atis) steps=3000 batch=4096 ;;
  *) echo "which set? geography or atis" >&2; exit 2 ;;
esac
tables=${TABLES:-$out-tables}
[ -f "$tables/$set_name-$split/test.tsv" ] || REGARD_DATA=$data python "$(dirname "$0")/texts/text2sql.py" "$tables"
folder=$tables/$set_name-$split
if [ "${FINAL:-1}" = 1 ]; then train=$folder/train.tsv+$folder/dev.tsv test=$folder/test.tsv; else train=$folder/train.tsv test=$folder/dev.tsv; fi
python -m regard train parse --data.train="$train" --data.valid="$folder/dev.tsv" --data.max_target_length=500 --data.batch_tokens=$batch \
  --model.hidden_size=256 --dropout.embedding=0.4 --dropout.residual=0.4 --train.learning_rate=2e-3 --train.schedule=cosine \
  --train.max_steps=$steps --train.evaluate_every=$steps --train.checkpoint_every=$steps --train.cuda_graphs=false --train.seed="$seed" \
  --search.max_length=500 --search.batch_size=256 "${settings[@]}" --out "$out" "$@"
python -m regard evaluate "$out" --data.test="$test"
