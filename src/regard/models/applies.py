"""Which settings a model heeds: one that changes nothing is a mistake, and is told before anything is trained."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from regard.config import ConfigError


class Rule(NamedTuple):
    """When a setting counts, and that in words."""

    counts: Callable[[Any], bool]
    """Of a whole config."""
    needs: str


def _any(*kinds: str) -> Callable[[Any], bool]:
    return lambda config: config.model.encoder in kinds or config.model.decoder in kinds


def _attends(config: Any) -> bool:
    return bool(config.model.attention.name != "none")


def _has_heads(config: Any) -> bool:
    from regard.models.attentions import parts, takes

    named = parts(config.model.attention.name) if _attends(config) else {}
    return "mechanisms" in named and takes(named["mechanisms"], "heads")


def _draws(config: Any) -> bool:
    return "hard" in config.model.attention.name.split("+")


def _recurrent_look(config: Any) -> bool:
    return config.model.decoder == "recurrent" and _attends(config)


def _decodes_itself(config: Any) -> bool:
    return bool(config.train.self_decoding != "none")


RULES = {
    "model.cell": Rule(_any("recurrent"), "a recurrent encoder or decoder"),
    "model.bidirectional": Rule(lambda config: config.model.encoder == "recurrent", "the recurrent encoder"),
    "model.reverse_source": Rule(lambda config: config.model.encoder == "recurrent", "the recurrent encoder"),
    "model.order": Rule(_recurrent_look, "the recurrent decoder with an attention"),
    "model.input_feeding": Rule(
        lambda config: _recurrent_look(config) and config.model.order == "luong",
        "the recurrent decoder with an attention in Luong's order (in Bahdanau's the context is always fed)",
    ),
    "model.summary": Rule(
        lambda config: config.model.decoder == "recurrent" and not _attends(config),
        "the recurrent decoder without attention (model.attention=none)",
    ),
    "model.heads": Rule(_any("transformer"), "a transformer encoder or decoder (an attention has model.attention.heads)"),
    "model.feedforward": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.self_attention": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.norm": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.positions": Rule(_any("transformer", "convolution"), "a transformer or convolution encoder or decoder"),
    "model.join": Rule(_any("transformer", "convolution"), "a transformer or convolution encoder or decoder"),
    "model.kernel": Rule(_any("convolution"), "a convolution encoder or decoder"),
    "model.attention.heads": Rule(_has_heads, "an attention that has several heads, such as transformer"),
    "model.attention.size": Rule(_attends, "an attention"),
    "train.baseline": Rule(_draws, "an attention that draws where it looks, such as additive+hard"),
    "train.reward": Rule(_draws, "an attention that draws where it looks, such as additive+hard"),
    "train.entropy_bonus": Rule(_draws, "an attention that draws where it looks, such as additive+hard"),
    "train.coverage": Rule(_attends, "an attention"),
    "train.film": Rule(
        lambda config: _attends(config) or _any("transformer")(config), "an attention, or a transformer encoder or decoder"
    ),
    "train.film_every": Rule(lambda config: config.train.film is not None, "a film (train.film=SENTENCE)"),
    "train.self_decoding_most": Rule(_decodes_itself, "self-decoding (train.self_decoding=linear or another schedule)"),
    "train.self_decoding_steps": Rule(_decodes_itself, "self-decoding (train.self_decoding=linear or another schedule)"),
    "search.coverage_penalty": Rule(_attends, "an attention"),
    "data.samples": Rule(lambda config: config.data.train is None, "a task that draws its own data (no data.train)"),
    "dropout.attention": Rule(
        lambda config: _attends(config) or _any("transformer")(config), "an attention, or a transformer encoder or decoder"
    ),
    "dropout.variational": Rule(_any("recurrent"), "a recurrent encoder or decoder"),
}


def heeded(configs: Sequence[Any], default: Any) -> None:
    """Raise for a setting that was changed from its default and that none of these configs of a task pays heed to."""
    for path, rule in RULES.items():
        changed = [each for config in configs if (each := _at(config, path)) != _at(default, path)]
        if not changed or any(rule.counts(config) for config in configs):
            continue
        model = configs[0].model
        raise ConfigError(
            f"{path}={changed[0]} would change nothing: it needs {rule.needs}, and this model has a {model.encoder} "
            f"encoder, a {model.decoder} decoder and the attention {model.attention.name}; leave it out"
        )


def trainable(config: Any) -> None:
    """Raise for settings of a training that contradict each other, or need what is not there."""
    from importlib.util import find_spec

    train = config.train
    if train.schedule == "noam" and train.warmup < 1:
        raise ConfigError(f"train.schedule=noam needs train.warmup of 1 or more, got {train.warmup}; the paper has 4000")
    if train.self_decoding_most > 1:
        raise ConfigError(f"train.self_decoding_most needs to be from 0 to 1, got {train.self_decoding_most}")
    if train.tensorboard and find_spec("tensorboard") is None:
        raise ConfigError(
            "train.tensorboard needs the tensorboard package, which is not installed: pip install 'regard[track]', "
            "or leave the setting out; log.jsonl has the same numbers"
        )


def buildable(config: Any) -> None:
    """Raise where no network can be made of a config, without making one: its tensors take no room."""
    import torch

    from regard.models.seq2seq import build

    try:
        with torch.device("meta"):
            build(config.model, config.dropout, 8, 8, joint=config.data.joint)
    except (ValueError, LookupError) as error:
        raise ConfigError(str(error)) from error


def _at(config: Any, path: str) -> Any:
    """The value at a dotted path; None where this config has no such place."""
    for name in path.split("."):
        if not is_dataclass(config) or name not in {each.name for each in fields(config)}:
            return None
        config = getattr(config, name)
    return config
