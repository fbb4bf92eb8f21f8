"""Which settings a model heeds: one that changes nothing is a mistake, and is told before anything is trained."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from regard.config import PatchesPart
from regard.errors import ConfigError
from regard.models.packing import check_settings


class Rule(NamedTuple):
    """When a setting counts, and that in words."""

    counts: Callable[[Any], bool]
    """Of a whole config."""
    needs: str


def _any(*kinds: str) -> Callable[[Any], bool]:
    parts = "encoder", "decoder", "text_encoder", "question"
    return lambda config: _whole(config) and any(getattr(config.model, part, None) in kinds for part in parts)


def _glimpses(config: Any) -> bool:
    return bool(getattr(config.model, "glimpses", 0))


def _whole(config: Any) -> bool:
    return not _glimpses(config)


def _cnn(config: Any) -> bool:
    return config.model.encoder in ("residual", "dense") and _whole(config)


def _reads_text(config: Any) -> bool:
    return config.model.encoder in ("recurrent", "convolution", "transformer")


def _finds(config: Any) -> bool:
    return hasattr(config.model, "queries")


def _layered(config: Any) -> bool:
    return _any("transformer", "patches")(config) or _finds(config)


def _chooses(config: Any) -> bool:
    return not _finds(config) and not hasattr(config.model, "reranking")


def _with_heads(config: Any) -> bool:
    return _layered(config) or getattr(config.model, "reranking", 0) > 0


def _output(name: str) -> Callable[[Any], bool]:
    return lambda config: bool(config.model.output.name == name)


def _attends(config: Any) -> bool:
    return bool(config.model.attention.name != "none") and _whole(config)


def _has_heads(config: Any) -> bool:
    from regard.models.attention_factory import accepts_option, split_name

    named = split_name(config.model.attention.name) if _attends(config) else {}
    return "mechanisms" in named and accepts_option(named["mechanisms"], "heads")


def _draws(config: Any) -> bool:
    return "hard" in config.model.attention.name.split("+")


def _risks(*kinds: str) -> Callable[[Any], bool]:
    return lambda config: config.train.risk in (kinds or ("minimum_risk", "self_critical"))


def _recurrent_look(config: Any) -> bool:
    return config.model.decoder == "recurrent" and _attends(config)


def _decodes_itself(config: Any) -> bool:
    return bool(config.train.self_decoding != "none")


WHOLE = "a model that sees all of a picture (model.glimpses=0)"
GLIMPSES = "a model that takes glimpses at a picture (model.glimpses=6)"

RULES = {
    "model.cell": Rule(_any("recurrent"), "a recurrent encoder or decoder"),
    "model.bidirectional": Rule(lambda config: config.model.encoder == "recurrent", "the recurrent encoder"),
    "model.reverse_source": Rule(lambda config: config.model.encoder == "recurrent", "the recurrent encoder"),
    "model.order": Rule(_recurrent_look, "the recurrent decoder with an attention"),
    "model.input_feeding": Rule(
        lambda config: _recurrent_look(config) and config.model.order == "luong",
        "the recurrent decoder with an attention in Luong's order (in Bahdanau's the context is always fed)",
    ),
    "model.initial": Rule(_recurrent_look, "the recurrent decoder with an attention"),
    "model.summary": Rule(
        lambda config: config.model.decoder == "recurrent" and not _attends(config),
        "the recurrent decoder without attention (model.attention=none)",
    ),
    "model.heads": Rule(_with_heads, "a transformer encoder or decoder (an attention has model.attention.heads)"),
    "model.feedforward": Rule(_layered, "a transformer encoder or decoder"),
    "model.self_attention": Rule(_any("transformer", "patches"), "a transformer encoder or decoder"),
    "model.self_size": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.shared_bias": Rule(
        lambda config: _any("transformer")(config) and "t5" in config.model.self_attention.split("+"),
        "a transformer encoder or decoder whose self-attention is t5 (model.self_attention=t5)",
    ),
    "model.gated": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.bias": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.decoder_layers": Rule(lambda config: config.model.decoder == "transformer", "the transformer decoder"),
    "model.activation": Rule(_any("transformer", "patches"), "a transformer encoder or decoder"),
    "model.scale_embedding": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.norm_embedding": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.norm": Rule(_any("transformer", "patches"), "a transformer encoder or decoder"),
    "model.positions": Rule(
        _any("transformer", "convolution", "patches"), "a transformer or convolution encoder or decoder"
    ),
    "model.join": Rule(_any("transformer", "convolution"), "a transformer or convolution encoder or decoder"),
    "model.visual": Rule(_cnn, "a residual or dense encoder"),
    "model.map_positions": Rule(_cnn, "a residual or dense encoder (patches have model.positions)"),
    "model.map_norm": Rule(_cnn, "a residual or dense encoder"),
    **{f"model.patches.{each.name}": Rule(_any("patches"), "the encoder called patches") for each in fields(PatchesPart)},
    "model.encoder": Rule(_whole, WHOLE),
    "model.stride": Rule(_whole, WHOLE),
    "model.depth": Rule(_whole, WHOLE),
    "model.map": Rule(_whole, WHOLE),
    "model.attention.name": Rule(_whole, WHOLE),
    "model.side": Rule(_glimpses, GLIMPSES),
    "model.scales": Rule(_glimpses, GLIMPSES),
    "model.core": Rule(_glimpses, GLIMPSES),
    "model.deviation": Rule(_glimpses, GLIMPSES),
    "model.copies": Rule(_glimpses, GLIMPSES),
    "model.runs": Rule(_glimpses, GLIMPSES),
    "data.frames": Rule(lambda config: config.data.clips, "clips (data.clips=true)"),
    "model.kernel": Rule(_any("convolution"), "a convolution encoder or decoder"),
    "model.attention.heads": Rule(_has_heads, "an attention that has several heads, such as transformer"),
    "model.attention.size": Rule(_attends, "an attention"),
    "model.output.score": Rule(_output("attention"), "model.output=attention"),
    "model.output.scale": Rule(_output("attention"), "model.output=attention"),
    "model.output.heads": Rule(_output("mixture"), "model.output=mixture"),
    "train.smoothing": Rule(
        lambda config: not (_finds(config) or hasattr(config.model, "reranking")),
        "a task that chooses among words or labels",
    ),
    "train.baseline": Rule(_draws, "an attention that draws where it looks, such as additive+hard"),
    "train.reward": Rule(_draws, "an attention that draws where it looks, such as additive+hard"),
    "train.entropy_bonus": Rule(_draws, "an attention that draws where it looks, such as additive+hard"),
    "train.soft_looks": Rule(_draws, "an attention that draws where it looks, such as additive+hard"),
    "train.coverage": Rule(_attends, "an attention"),
    "train.doubly_stochastic": Rule(_attends, "an attention"),
    "train.diagonal": Rule(
        lambda config: _attends(config) and _reads_text(config), "an attention over a text (a map has no diagonal)"
    ),
    "train.guided": Rule(
        lambda config: _attends(config) and getattr(config.data, "alignments", None) is not None,
        "an attention, and links to guide it by (data.alignments=FILE)",
    ),
    "train.guided_attention": Rule(lambda config: config.train.guided > 0, "guidance by links (train.guided=WEIGHT)"),
    "data.aligned": Rule(lambda config: config.data.alignments is not None, "links (data.alignments=FILE)"),
    "data.alignments": Rule(
        lambda config: config.train.guided > 0 and config.data.train is not None,
        "guidance by links (train.guided=WEIGHT), and the pairs that they belong to (data.train=FILE)",
    ),
    "train.statistics": Rule(_attends, "an attention"),
    "train.risk_metric": Rule(_risks(), "train.risk=minimum_risk or self_critical"),
    "train.risk_samples": Rule(_risks(), "train.risk=minimum_risk or self_critical"),
    "train.risk_share": Rule(_risks(), "train.risk=minimum_risk or self_critical"),
    "train.risk_from": Rule(_risks(), "train.risk=minimum_risk or self_critical"),
    "train.risk_alpha": Rule(_risks("minimum_risk"), "train.risk=minimum_risk"),
    "train.risk_reference": Rule(_risks("minimum_risk"), "train.risk=minimum_risk"),
    "train.film": Rule(
        lambda config: _reads_text(config) and (_attends(config) or _any("transformer")(config)),
        "an attention, or a transformer encoder or decoder, in a task that reads text",
    ),
    "train.film_every": Rule(lambda config: config.train.film is not None, "a film (train.film=SENTENCE)"),
    "train.self_decoding_most": Rule(_decodes_itself, "self-decoding (train.self_decoding=linear or another schedule)"),
    "train.self_decoding_steps": Rule(_decodes_itself, "self-decoding (train.self_decoding=linear or another schedule)"),
    "train.packed": Rule(
        lambda config: _reads_text(config) and config.model.encoder == config.model.decoder == "transformer",
        "a transformer encoder and a transformer decoder",
    ),
    "train.compile": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "search.coverage_penalty": Rule(_attends, "an attention"),
    "search.diversity": Rule(lambda config: config.search.groups > 1, "groups to keep apart (search.groups=2 or more)"),
    "search.candidates": Rule(lambda config: config.search.risk != "none", "search.risk=chrf or another metric"),
    "search.draw": Rule(lambda config: config.search.risk != "none", "search.risk=chrf or another metric"),
    "data.samples": Rule(lambda config: config.data.train is None, "a task that draws its own data (no data.train)"),
    "data.max_bytes": Rule(lambda config: config.data.train is not None, "a table of your own (data.train=FILE)"),
    "data.max_records": Rule(lambda config: config.data.train is not None, "a table of your own (data.train=FILE)"),
    "data.box_form": Rule(lambda config: config.data.train is not None, "boxes of your own (data.train=FILE)"),
    "data.language": Rule(lambda config: config.data.train is None, "a task that draws its own data (no data.train)"),
    "dropout.attention": Rule(
        lambda config: _attends(config) or _any("transformer", "patches")(config),
        "an attention, or a transformer encoder or decoder",
    ),
    "model.reranked": Rule(
        lambda config: getattr(config.model, "reranking", 0) > 0,
        "layers that look at a picture and a text together (model.reranking=1 or more)",
    ),
    "dropout.variational": Rule(_any("recurrent"), "a recurrent encoder or decoder"),
}


TEACHING = ["confidence", "coverage", "doubly_stochastic", "diagonal", "guided", "guided_attention", "statistics"]
TEACHING += ["baseline", "reward", "entropy_bonus", "self_decoding", "self_decoding_most", "self_decoding_steps"]
TEACHING += ["risk", "risk_metric", "risk_samples", "risk_alpha", "risk_reference", "risk_share", "risk_from"]
TEACHING += ["packed", "graphs", "compile", "film", "film_every"]
"""What of a training is only for models that write text."""


def unwritten(config: Any) -> list[str]:
    """The settings that need a model that writes text, of a config whose models write none."""
    search = [each.name for each in fields(config.search) if each.name != "batch"]
    of_texts = ["data.bleu", *(f"train.{name}" for name in TEACHING), *(f"search.{name}" for name in search)]
    return [] if config.WRITES else of_texts


def heeded(configs: Sequence[Any], default: Any) -> None:
    """Raise for a setting that was changed from its default and that none of these configs of a task pays heed to."""
    for path in unwritten(default):
        if changed := [each for config in configs if (each := _at(config, path)) != _at(default, path)]:
            raise ConfigError(
                f"{path}={changed[0]} would change nothing: it needs a task whose models write text, such as caption; leave "
                "it out"
            )
    for path, rule in RULES.items():
        changed = [each for config in configs if (each := _at(config, path)) != _at(default, path)]
        if not changed or any(rule.counts(config) for config in configs):
            continue
        model = configs[0].model
        decoder = f", a {model.decoder} decoder" if hasattr(model, "decoder") else ""
        raise ConfigError(
            f"{path}={changed[0]} would change nothing: it needs {rule.needs}, and this model has a {model.encoder} "
            f"encoder{decoder} and the attention {model.attention.name}; leave it out"
        )


def trainable(config: Any) -> None:
    """Raise for settings of a training that contradict each other, or need what is not there."""
    from importlib.util import find_spec

    train = config.train
    check_settings(train)
    if train.schedule == "noam" and train.warmup < 1:
        raise ConfigError(f"train.schedule=noam needs train.warmup of 1 or more, got {train.warmup}; the paper has 4000")
    if train.self_decoding_most > 1:
        raise ConfigError(f"train.self_decoding_most needs to be from 0 to 1, got {train.self_decoding_most}")
    if train.risk != "none" and train.better in ("loss", "perplexity"):
        raise ConfigError(
            f"train.risk={train.risk} needs train.better to name a measure of the task, such as chrf or exact, got "
            f"{train.better}: the likelihood of the targets falls while the metric rises, and the first model would be kept"
        )
    if train.risk_share > 1:
        raise ConfigError(f"train.risk_share needs to be from 0 to 1, got {train.risk_share}")
    if train.risk != "none" and train.risk_share == 0:
        raise ConfigError(f"train.risk_share=0 leaves train.risk={train.risk} no say; give it a share, or leave both out")
    if train.risk == "minimum_risk" and train.risk_samples == 1 and not train.risk_reference:
        raise ConfigError(
            "train.risk=minimum_risk compares several outputs, and train.risk_samples=1 without the reference leaves one, "
            "from which nothing is learned; draw 2 or more, or keep the reference (train.risk_reference=true)"
        )
    if train.risk == "minimum_risk" and train.risk_alpha == 0:
        raise ConfigError("train.risk_alpha needs to be above 0: at 0 every output counts alike, whatever the model learns")
    if train.statistics and "memory_network" in config.model.attention.name.split("+"):
        raise ConfigError(
            "train.statistics compares what an attention finds with what it reads, and memory_network adds its question to "
            "that; set it to 0, or use another attention"
        )
    if train.tensorboard and find_spec("tensorboard") is None:
        raise ConfigError(
            "train.tensorboard needs the tensorboard package, which is not installed: pip install 'regard[track]', "
            "or leave the setting out; log.jsonl has the same numbers"
        )


def searchable(config: Any) -> None:
    """Raise for settings of a search that contradict each other."""
    search = config.search
    if search.unknown == "copy" and config.model.attention.name == "none":
        raise ConfigError("search.unknown=copy copies what an attention looks at, and this model has none; leave it out")
    if search.unknown == "copy" and not _reads_text(config):
        raise ConfigError("search.unknown=copy copies words of a text, and this model reads pictures; leave it out")
    if search.beam % search.groups:
        raise ConfigError(
            f"search.groups={search.groups} needs search.beam to be a multiple of it, got {search.beam}; "
            f"search.beam={search.groups * max(1, round(search.beam / search.groups))} is the nearest"
        )
    if search.risk != "none" and search.draw == "sample" and search.groups > 1:
        raise ConfigError(
            f"search.groups={search.groups} would change nothing: with search.draw=sample candidates are drawn, not looked "
            "for; leave it out"
        )


def buildable(config: Any) -> None:
    """Raise where no network can be made of a config, without making one: its tensors take no room."""
    import torch

    from regard.tasks._protocol import family  # above this folder, since a config alone says which network is its

    try:
        with torch.device("meta"):
            family(config).outline(config)
    except (ValueError, LookupError) as error:
        raise ConfigError(str(error)) from error


def _at(config: Any, path: str) -> Any:
    """The value at a dotted path; None where this config has no such place."""
    for name in path.split("."):
        if not is_dataclass(config) or name not in {each.name for each in fields(config)}:
            return None
        config = getattr(config, name)
    return config
