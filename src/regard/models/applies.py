"""Which settings a model heeds: one that changes nothing is a mistake, and is told before anything is trained."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from regard.config import ConfigError, Model


class Rule(NamedTuple):
    """When a setting counts, and that in words."""

    counts: Callable[[Model], bool]
    needs: str


def _any(*kinds: str) -> Callable[[Model], bool]:
    return lambda model: model.encoder in kinds or model.decoder in kinds


def _attends(model: Model) -> bool:
    return model.attention.name != "none"


def _has_heads(model: Model) -> bool:
    from regard.models.attentions import parts, takes

    named = {} if model.attention.name == "none" else parts(model.attention.name)
    return "mechanisms" in named and takes(named["mechanisms"], "heads")


def _draws(model: Model) -> bool:
    return "hard" in model.attention.name.split("+")


def _recurrent_look(model: Model) -> bool:
    return model.decoder == "recurrent" and _attends(model)


RULES = {
    "model.cell": Rule(_any("recurrent"), "a recurrent encoder or decoder"),
    "model.bidirectional": Rule(lambda model: model.encoder == "recurrent", "the recurrent encoder"),
    "model.reverse_source": Rule(lambda model: model.encoder == "recurrent", "the recurrent encoder"),
    "model.order": Rule(_recurrent_look, "the recurrent decoder with an attention"),
    "model.input_feeding": Rule(
        lambda model: _recurrent_look(model) and model.order == "luong",
        "the recurrent decoder with an attention in Luong's order (in Bahdanau's the context is always fed)",
    ),
    "model.summary": Rule(
        lambda model: model.decoder == "recurrent" and not _attends(model),
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
    "dropout.attention": Rule(
        lambda model: _attends(model) or _any("transformer")(model), "an attention, or a transformer encoder or decoder"
    ),
    "dropout.variational": Rule(_any("recurrent"), "a recurrent encoder or decoder"),
}


def heeded(configs: Sequence[Any], default: Any) -> None:
    """Raise for a setting that was changed from its default and that none of these configs of a task pays heed to."""
    for path, rule in RULES.items():
        first = [_at(config, path) for config in configs]
        if _at(default, path) in first or any(rule.counts(config.model) for config in configs):
            continue
        model = configs[0].model
        raise ConfigError(
            f"{path}={first[0]} would change nothing: it needs {rule.needs}, and this model has a {model.encoder} "
            f"encoder, a {model.decoder} decoder and the attention {model.attention.name}; leave it out"
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
