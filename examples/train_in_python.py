"""Train, predict and show the attention, from Python: the built-in English-Chinese grammar in twenty lines."""

import sys
import tempfile

import regard
from regard.cli.show.heatmap import heat

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400
with tempfile.TemporaryDirectory() as directory:
    run = regard.train(
        "translate",
        model={"attention": "additive", "hidden_size": 128},  # a bidirectional LSTM and an LSTM
        train={"max_steps": steps, "evaluate_every": 100},
        out=directory,
    )
    print(run.metrics["valid"])
    model = regard.load(run.directory)
answer = model.predict("Tom chases Jerry", beam=5, align=True)
print(answer.text)
print(heat(answer.weights, answer.target, answer.source))
