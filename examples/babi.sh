#!/usr/bin/env bash
# bAbI tasks 1-20, trained jointly: questions about short stories, with 1,000 or 10,000 training questions a task.
#
#   REGARD_DATA=folder/with/babi examples/babi.sh 1k|10k KIND OUT [more settings]
#
# KIND is memory, dynamic, entity, universal or reader. REGARD_DATA/babi holds babi_en_1k_and_10k.tar.xz, or en/ and en-10k/
# unpacked. One in ten of the training stories validates and chooses the step; the official test questions are read once. The
# supporting facts only score the attention. The 10k set lacks task 3 and has no test files of its own: those of en/ serve both.
set -euo pipefail
if [ $# -lt 3 ]; then
  echo "usage: examples/babi.sh 1k|10k memory|dynamic|entity|universal|reader OUT [more settings]" >&2
  exit 2
fi
size=$1 kind=$2 out=$3
shift 3
: "${REGARD_DATA:?name the folder that holds babi}"
data="$REGARD_DATA/babi"
if [ ! -d "$data/en" ]; then
  mkdir -p "$out.data"
  tar -xf "$data/babi_en_1k_and_10k.tar.xz" -C "$out.data"
  data="$out.data"
fi
tasks=()
folder="$data/en"
if [ "$size" = 10k ]; then
  folder="$data/en-10k"
  tasks=(--data.tasks=qa1,qa2,qa4,qa5,qa6,qa7,qa8,qa9,qa10,qa11,qa12,qa13,qa14,qa15,qa16,qa17,qa18,qa19,qa20)
fi
common=(--train.schedule=cosine --train.monitor=error)
case $kind in
memory) settings=(--model.hidden_size=64 --data.batch_size=32 --train.learning_rate=3e-3 --train.linear_start=1500
  --train.max_steps=12000 --train.evaluate_every=1500) ;;
dynamic) settings=(--model.hidden_size=96 --data.batch_size=128 --train.learning_rate=1e-3 --train.warmup_steps=200
  --train.max_steps=12000 --train.evaluate_every=1000 --dropout.residual=0.1) ;;
entity) settings=(--model.hidden_size=100 --data.batch_size=128 --train.learning_rate=3e-3 --train.warmup_steps=200
  --train.max_steps=12000 --train.evaluate_every=1000) ;;
universal) settings=(--model.hidden_size=128 --model.heads=8 --model.hops=6 --data.batch_size=256 --train.learning_rate=1e-3
  --train.warmup_steps=1000 --train.max_steps=40000 --train.evaluate_every=2000 --dropout.residual=0.1) ;;
reader) settings=(--model.hidden_size=64 --data.batch_size=32 --train.learning_rate=2e-3 --train.max_steps=12000
  --train.evaluate_every=1500) ;;
*) echo "KIND is memory, dynamic, entity, universal or reader, got $kind" >&2 && exit 2 ;;
esac
python -m regard train answer --data.train="$folder" "${tasks[@]}" "${common[@]}" "${settings[@]}" --out "$out" "$@"
python -m regard evaluate "$out" --data.test="$data/en"
