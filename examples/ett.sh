#!/usr/bin/env bash
# ETTh1 and ETTh2: seven hourly measurements of a transformer station; forecasts of 96 to 720 hours.
#
#   REGARD_DATA=folder/with/ett examples/ett.sh SET HORIZON NETWORK OUT [more settings]
#
# SET is ETTh1 or ETTh2, HORIZON 96, 192, 336 or 720, NETWORK linear, patch or lstm. Rows 1 to 8,640 train, the next 2,880
# validate and choose the look-back, the next 2,880 test: every window at stride 1, none dropped, standardised by the training
# rows. The table has the linear baseline in closed form beside the network. Figures are in docs/results.md.
#
# The last lines are the rolling origins of fev-bench (horizon 168, 20 windows, season 24), where HORIZON is 168.
set -euo pipefail
usage="usage: examples/ett.sh ETTh1|ETTh2 HORIZON linear|patch|lstm OUT [more settings]"
if [ $# -lt 4 ]; then
  echo "$usage" >&2
  exit 2
fi
set_name=$1 horizon=$2 network=$3 out=$4
shift 4
: "${REGARD_DATA:?name the folder that holds ett}"
case $network in
linear) settings=(--model.network=linear --train.learning_rate=2e-3 --train.max_steps=400 --train.evaluate_every=200) ;;
patch) settings=(--model.network=patch --model.hidden_size=16 --model.layers=3 --model.norm=batch --dropout.embedding=0.3
  --dropout.residual=0.3 --train.learning_rate=2e-3 --train.max_steps=480 --train.evaluate_every=160 --data.look_back=336) ;;
lstm) settings=(--model.network=recurrent --model.layers=1 --train.scheduled_sampling=linear --train.learning_rate=1e-3
  --train.max_steps=1000 --train.evaluate_every=250 --data.look_back=96) ;;
*) echo "$usage" >&2 && exit 2 ;;
esac
case " ${settings[*]} $* " in *data.look_back=*) ;; *) settings+=(--data.look_backs=96,192,336,512,720) ;; esac
table="$REGARD_DATA/ett/$set_name.csv.gz"
python -m regard train forecast --data.train="$table" --data.time=date --data.split=8640,2880,2880 --data.calendar=false \
  --data.horizon="$horizon" --data.batch_size=128 --search.batch_size=256 --model.output=points "${settings[@]}" --out "$out" "$@"
python -m regard evaluate "$out" --data.test="$table"
if [ "$horizon" = 168 ]; then
  echo "== 20 rolling windows"
  python -m regard evaluate "$out" --data.test="$table" --backtest 20
fi
