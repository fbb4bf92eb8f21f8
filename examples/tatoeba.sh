#!/usr/bin/env bash
# Tatoeba, English to Chinese: mechanisms side by side on one page. BLEU is sacreBLEU's with its zh tokenizer, and chrF.
#
#   REGARD_DATA=folder/with/tatoeba-cmn-eng examples/tatoeba.sh OUT --vary SETTING=VALUE,... [more of regard compare]
#
#   examples/tatoeba.sh cmp/ --vary model.attention=none,mechanisms,additive+hard --jobs 4 \
#     --with "model.attention=additive+hard: train.soft_attention_rate=0.5 train.reinforce_reward=token"
#   examples/tatoeba.sh cmp/ --vary model.attention=every --vary model.decoder=recurrent,convolution,transformer \
#     --with "model.decoder=convolution: model.encoder=convolution model.layers=3" \
#     --with "model.decoder=transformer: model.encoder=transformer model.layers=3" --jobs 8
#
# What is given comes after what stands here, and wins. The rate was chosen on dev for recurrent decoders, others were not tried
# (--train.learning_rate=1e-3). dev chooses the step whose model is kept; test is only measured. The split is the one of the folder's
# SOURCE.md: no test sentence of either language is in train. Source pieces are BPE; a target token is a Chinese character.
set -euo pipefail
if [ $# -lt 3 ]; then
  echo "usage: examples/tatoeba.sh OUT --vary SETTING=VALUE,... [more of regard compare]" >&2
  exit 2
fi
out=$1
shift
data=${REGARD_DATA:?name the folder that holds tatoeba-cmn-eng}/tatoeba-cmn-eng
python -m regard compare translate --out "$out" --seeds 3 --beam 5 \
  --data.train="$data/train.tsv.gz" --data.valid="$data/dev.tsv.gz" --data.test="$data/test.tsv.gz" \
  --data.tokenizer=bpe --data.target_tokenizer=words --data.vocab_size=8000 --data.bleu_tokenizer=zh --data.batch_tokens=2048 \
  --model.hidden_size=256 --dropout.embedding=0.3 --dropout.residual=0.3 --search.batch_size=512 \
  --train.learning_rate=4e-3 --train.schedule=cosine --train.label_smoothing=0.1 --train.max_steps=2000 --train.evaluate_every=1000 "$@"
