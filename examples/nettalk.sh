#!/usr/bin/env bash
# NETtalk: letters to phones, where the corpus itself says which letter each phone belongs to. Does attention agree?
#
#   REGARD_DATA=folder/with/nettalk examples/nettalk.sh free|guided OUT [more settings]
#
# free learns from words alone; guided is also shown the gold letters of the training words (train.guided_alignment). Both are
# measured on the letters of the test words, which neither has seen. Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: examples/nettalk.sh free|guided OUT [more settings]" >&2
  exit 2
fi
model=$1 out=$2
shift 2
data=${REGARD_DATA:?name the folder that holds nettalk}/nettalk/nettalk.data.gz
case $model in
  free) settings=() ;;
  guided) settings=(--data.alignments="$out.data/train.links" --train.guided_alignment=0.5) ;;
  *) echo "which model? free or guided" >&2; exit 2 ;;
esac
mkdir -p "$out.data"
python - "$data" "$out.data" <<'PYTHON'
"""word TAB phones, one phone a letter, - where a letter is silent -> tables and Pharaoh files, split by a hash of the word."""
import gzip
import hashlib
import sys
from pathlib import Path

source, folder = sys.argv[1], Path(sys.argv[2])
parts = {name: [] for name in ("train", "dev", "test")}
for line in gzip.open(source, "rt", encoding="utf-8"):
    fields = line.rstrip("\n").split("\t")
    if len(fields) < 2 or len(fields[0]) != len(fields[1]):
        continue
    word, phones = fields[:2]
    spoken = [(letter, phone) for letter, phone in enumerate(phones) if phone != "-"]
    if not spoken:
        continue
    number = int(hashlib.sha1(word.encode()).hexdigest(), 16)
    part = "test" if number % 4 == 0 else "dev" if number % 20 == 1 else "train"
    links = " ".join(f"{letter}-{place}" for place, (letter, _) in enumerate(spoken))
    parts[part].append((f"{word}\t{' '.join(phone for _, phone in spoken)}", links))
for name, rows in parts.items():
    (folder / f"{name}.tsv").write_text("".join(f"{row}\n" for row, _ in rows), encoding="utf-8")
    (folder / f"{name}.links").write_text("".join(f"{links}\n" for _, links in rows), encoding="utf-8")
PYTHON
python -m regard train pronounce --data.train="$out.data/train.tsv" --data.valid="$out.data/dev.tsv" \
  --model.attention=additive --model.hidden_size=256 --model.layers=2 --model.embedding_size=128 --dropout.embedding=0.3 \
  --dropout.residual=0.4 --data.batch_tokens=2048 --train.monitor=exact --train.label_smoothing=0.1 --train.learning_rate=1e-3 \
  --train.schedule=cosine --train.max_steps=3000 --train.evaluate_every=1000 --search.batch_size=1000 "${settings[@]}" --out "$out" "$@"
echo "== choose on dev where to look"
python -m regard align "$out" --data.test="$out.data/dev.tsv" --gold "$out.data/dev.links" --letters --choose
echo "== test, beam 5, and its letters"
python -m regard evaluate "$out" --data.test="$out.data/test.tsv" --beam 5
python -m regard align "$out" --data.test="$out.data/test.tsv" --gold "$out.data/test.links" --letters
