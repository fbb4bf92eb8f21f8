"""Small Transformers, with weights that are drawn or trained for a moment, as run directories."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import save

from regard import tasks
from regard.config import AttentionPart, Data, Model, Search, Train
from regard.data.special_tokens import BOS, PAD
from regard.data.table import Record
from regard.inference.load import load
from regard.inference.sequence_predictor import SequencePredictor
from regard.tasks.translate import Config
from regard.training.loop import train
from regard.training.run_directory import MODEL, RunDirectory
from regard.training.state_dict import weights

KINDS = {
    "pre": {"norm": "pre"},
    "post": {"norm": "post"},
    "bart": {"norm": "post", "positions": "learned", "embedding_norm": True, "activation": "gelu", "decoder_layers": 1},
    "mbart": {
        "norm": "pre",
        "positions": "learned",
        "embedding_norm": True,
        "activation": "swish",
        "scale_embedding": False,
    },
}
"""Norms in all four places, both kinds of positions, every activation."""
T5 = {"norm": "rms", "bias": False, "self_attention": "t5", "shared_bias": True, "positions": "none"}
T5 |= {"scale_embedding": False, "attention": AttentionPart("transformer+dot", heads=2)}
T5 |= {"hidden_size": 16}
RELATIVE = {"t5": T5, "t5_gated": T5 | {"activation": "gelu_tanh", "gated": True, "self_attention_size": 12}}
RELATIVE["t5_gated"]["attention"] = AttentionPart("transformer+dot", heads=2, size=12)
"""T5 and its version 1.1."""
HOME = TemporaryDirectory(prefix="regard-test-")
"""Where the runs of a worker lie; it goes when the worker goes."""


def model(**settings) -> Model:
    attention = AttentionPart("transformer", heads=2)
    usual = {
        "encoder": "transformer",
        "decoder": "transformer",
        "attention": attention,
        "hidden_size": 32,
        "layers": 2,
        "heads": 2,
    }
    return Model(**usual | settings)


@cache
def run(kind: str, steps: int = 0) -> Path:
    """The run directory of one kind, made once for each worker; without steps its weights are drawn, norms and biases too."""
    config = Config(
        data=Data(samples=100, batch_tokens=512, joint_vocab=True),
        model=model(**(KINDS | RELATIVE)[kind]),
        train=Train(max_steps=max(steps, 1), learning_rate=8e-3, evaluate_every=100),
        search=Search(max_length=14 if steps else 12),
    )
    experiment, _ = tasks.experiment("translate", config)
    folder = Path(HOME.name) / f"{kind} {steps}"
    if steps:
        train(experiment, folder, quiet=True)
        return folder
    torch.manual_seed(2)
    drawn(experiment.model)
    with RunDirectory(folder) as held:
        held.claim(experiment)
        held.publish({MODEL: save(weights(experiment.model))})
    return folder


@torch.no_grad()
def drawn(network: torch.nn.Module) -> None:
    """Weights far from where training begins, so that answers differ; padding and beginning are never likely."""
    for name, parameter in network.named_parameters():
        if parameter.requires_grad and "table" not in name:
            parameter.add_(torch.randn_like(parameter) * 0.3)
    if network.decoder.output.bias.requires_grad:
        network.decoder.output.bias[[PAD, BOS]] = -20.0


def opened(kind: str, steps: int = 0) -> SequencePredictor:
    return load(run(kind, steps), "cpu")


def sources(count: int) -> list[str]:
    """Sentences that the model was not trained on."""
    records: list[Record] = tasks.find("translate").synthesise(3 * count, seed=5)[0]
    return [record.source for record in records if len(record.source.split()) < 9][:count]


def untrained(**settings) -> SequencePredictor:
    """A model of the same task with random weights, or one that is no plain Transformer."""
    config = Config(data=Data(samples=40, joint_vocab=settings.pop("joint_vocab", True)), model=model(**settings))
    experiment, _ = tasks.experiment("translate", config)
    return SequencePredictor(tasks.bind("translate"), config, experiment.codec, experiment.model)
