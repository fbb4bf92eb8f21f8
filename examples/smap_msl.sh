#!/usr/bin/env bash
# SMAP and MSL: anomalies in the telemetry of two spacecraft, a detector for each channel, VUS-PR beside k-means, PCA and
# random scores. Settings were chosen on five channels of each spacecraft (examples/series/smap_msl.py names them).
#
#   REGARD_DATA=folder/with/smap_msl examples/smap_msl.sh OUT [more settings]
#
# JOBS is the number of processes; CHANNELS=chosen runs the ten channels alone. Figures are in docs/results.md.
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: examples/smap_msl.sh OUT [more settings]" >&2
  exit 2
fi
out=$1
shift
: "${REGARD_DATA:?name the folder that holds smap_msl}"
python "$(dirname "$0")/series/smap_msl.py" "$out" --model.name=memory --model.aggregate=window --data.window=96 \
  --model.baseline_window=128 --train.max_steps=60 --train.evaluate_every=60 --train.learning_rate=0.05 "$@"
