"""Train, ask and look, from Python: the built-in English-Chinese grammar in twenty lines."""

import sys
import tempfile

import regard
from regard import tasks
from regard.cli.show.heatmap import heat
from regard.config import Data, Model, Train
from regard.tasks.translate import Config
from regard.training.loop import train

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400
config = Config(
    data=Data(batch_tokens=1024),
    model=Model(hidden_size=128),  # a bidirectional LSTM, an LSTM with additive attention
    train=Train(max_steps=steps, learning_rate=3e-3, label_smoothing=0.1, evaluate_every=100),
)
experiment, report = tasks.experiment("translate", config)
print(report)
with tempfile.TemporaryDirectory() as directory:
    print(train(experiment, directory, quiet=True)["valid"])
    model = regard.load(directory)
answer = model.predict("Tom chases Jerry", beam=5, align=True)
print(answer.text)
print(heat(answer.weights, answer.target, answer.source))
