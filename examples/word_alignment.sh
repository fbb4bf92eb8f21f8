#!/usr/bin/env bash
# Word alignment, Spanish and English: two directions learn to translate 5,401 sentences of Europarl, and the links that
# 200 further pairs were given by hand tell whether they looked where people look.
#
#   REGARD_DATA=folder/with/word-alignment examples/word_alignment.sh ATTENTION OUT [more settings]
#
# Every word is cut to its first 5 letters, so that forms of a word are one; LETTERS=99 leaves words whole.
# additive+marginal looks at one word at a time, so that its posterior is an alignment in the sense of the IBM models; its
# encoder sees each word alone (a convolution of width 1), so that what is read at a place is that word and no other.
# Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: examples/word_alignment.sh ATTENTION OUT [more settings]" >&2
  exit 2
fi
attention=$1 out=$2
shift 2
data=${REGARD_DATA:?name the folder that holds word-alignment}/word-alignment/es-en
mkdir -p "$out"
for part in corpus dev; do  # English TAB Spanish; a few lines of the corpus have nothing on one side
  paste <(gunzip -c "$data/$part.en.gz") <(gunzip -c "$data/$part.es.gz") | awk -F'\t' '$1 != "" && $2 != ""' |
    python -c '
import sys
letters = int(sys.argv[1])
for line in sys.stdin:
    print(*(" ".join(word[:letters] for word in side.split(" ")) for side in line.rstrip("\n").split("\t")), sep="\t")' \
      "${LETTERS:-5}" > "$out/$part.tsv"
done
gunzip -c "$data/dev.key.gz" > "$out/dev.key"
head -n 200 "$out/corpus.tsv" > "$out/valid.tsv"  # nothing is chosen by it
both=()
for pair in en-es es-en; do
  if [ $pair = en-es ]; then from=1 to=2; else from=2 to=1; fi
  python -m regard train translate --data.train="$out/corpus.tsv" --data.valid="$out/valid.tsv" --data.source=$from \
    --data.target=$to --data.min_frequency=2 --data.batch_tokens=512 --data.bleu_tokenizer=none \
    --model.encoder=convolution --model.kernel_size=1 --model.decoder=recurrent --model.attention="$attention" \
    --model.hidden_size=128 --model.input_feeding=false --dropout.embedding=0.2 --dropout.residual=0.2 --train.label_smoothing=0 \
    --train.learning_rate=2e-3 --train.schedule=cosine --train.max_steps=2500 --train.evaluate_every=0 --train.guided_attention=0.3 \
    --train.cuda_graphs=false --out "$out/$pair" "$@" &
  both+=($!)
done
for each in "${both[@]}"; do wait "$each"; done
for method in none intersection union grow-diag grow-diag-final-and; do
  if [ "$method" = none ]; then ways=(); else ways=(--reverse "$out/es-en" --symmetrise "$method"); fi
  echo "== $method"
  python -m regard align "$out/en-es" --data.test="$out/dev.tsv" --gold "$out/dev.key" "${ways[@]}"
done
