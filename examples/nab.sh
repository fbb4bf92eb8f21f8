#!/usr/bin/env bash
# NAB: streaming anomalies in 58 series, a detector for each file that has read its probation rows, without look-ahead. First
# the windowed Gaussian of the benchmark is scored: 39.6 is published.
#
#   REGARD_DATA=folder/with/nab examples/nab.sh OUT [more settings]
#
# JOBS is the number of processes; FILES=chosen runs the files that settings were chosen on. Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: examples/nab.sh OUT [more settings]" >&2
  exit 2
fi
out=$1
shift
: "${REGARD_DATA:?name the folder that holds nab}"
REFRACTORY=${REFRACTORY:-0.2} python "$(dirname "$0")/series/nab.py" "$out" --model.name=memory --model.aggregate=last \
  --data.window=1 --data.stride=1 --model.smooth=4 --model.likelihood=5000 --train.max_steps=60 --train.evaluate_every=60 \
  --train.learning_rate=0.05 "$@"
