"""Validation of settings against the model: a setting without effect is an error before training begins."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from regard.config import VitPart
from regard.errors import ConfigError
from regard.extras import describe_install
from regard.models.packing import check_settings


class Rule(NamedTuple):
    """Condition under which a setting has an effect, and its description."""

    counts: Callable[[Any], bool]
    """Predicate of a whole config."""
    needs: str


def _any(*kinds: str) -> Callable[[Any], bool]:
    parts = "encoder", "decoder", "text_encoder", "question_encoder"
    kinds += ("conformer",) * ("transformer" in kinds)  # it has the same sublayers
    return lambda config: _whole(config) and any(getattr(config.model, part, None) in kinds for part in parts)


def _glimpses(config: Any) -> bool:
    return bool(getattr(config.model, "glimpses", 0))


def _whole(config: Any) -> bool:
    return not _glimpses(config)


def _cnn(config: Any) -> bool:
    return config.model.encoder in ("resnet", "densenet") and _whole(config)


def _reads_text(config: Any) -> bool:
    encoders = ("recurrent", "convolution", "transformer", "hierarchical")
    return config.model.encoder in encoders and not _reads_frames(config)


def _reads_frames(config: Any) -> bool:
    return hasattr(config.data, "hop_ms")


def _finds(config: Any) -> bool:
    return hasattr(config.model, "queries")


def _layered(config: Any) -> bool:
    return _any("transformer", "vit")(config) or _finds(config)


def _chooses(config: Any) -> bool:
    return not _finds(config) and not hasattr(config.model, "reranking_layers")


def _with_heads(config: Any) -> bool:
    return _layered(config) or getattr(config.model, "reranking_layers", 0) > 0


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
    return lambda config: config.train.sequence_loss in (kinds or ("minimum_risk", "self_critical"))


def _recurrent_look(config: Any) -> bool:
    return config.model.decoder == "recurrent" and _attends(config)


def _decodes_itself(config: Any) -> bool:
    return bool(config.train.scheduled_sampling != "none")


WHOLE = "a model that reads the whole picture (model.glimpses=0)"
GLIMPSES = "a model that takes glimpses at a picture (model.glimpses=6)"

RULES = {
    "model.cell": Rule(_any("recurrent", "hierarchical"), "a recurrent encoder or decoder"),
    "model.bidirectional": Rule(lambda config: config.model.encoder == "recurrent", "the recurrent encoder"),
    "model.reverse_source": Rule(lambda config: config.model.encoder == "recurrent", "the recurrent encoder"),
    "model.cross_attention_layers": Rule(
        lambda config: config.model.decoder in ("transformer", "convolution") and _attends(config),
        "a transformer or convolution decoder with an attention",
    ),
    "model.values": Rule(_attends, "an attention"),
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
    "model.feedforward_size": Rule(_layered, "a transformer encoder or decoder"),
    "model.self_attention": Rule(_any("transformer", "vit"), "a transformer encoder or decoder"),
    "model.self_attention_size": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.shared_bias": Rule(
        lambda config: _any("transformer")(config) and "t5" in config.model.self_attention.split("+"),
        "a transformer encoder or decoder whose self-attention is t5 (model.self_attention=t5)",
    ),
    "model.gated": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.bias": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.decoder_layers": Rule(lambda config: config.model.decoder == "transformer", "the transformer decoder"),
    "model.activation": Rule(_any("transformer", "vit"), "a transformer encoder or decoder"),
    "model.scale_embedding": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.embedding_norm": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "model.norm": Rule(_any("transformer", "vit"), "a transformer encoder or decoder"),
    "model.positions": Rule(_any("transformer", "convolution", "vit"), "a transformer or convolution encoder or decoder"),
    "model.join": Rule(_any("transformer", "convolution"), "a transformer or convolution encoder or decoder"),
    "model.visual_attention": Rule(_cnn, "a resnet or densenet encoder"),
    "model.map_positions": Rule(_cnn, "a resnet or densenet encoder (vit has model.positions)"),
    "model.map_norm": Rule(_cnn, "a resnet or densenet encoder"),
    **{f"model.vit.{field.name}": Rule(_any("vit"), "the vit encoder") for field in fields(VitPart)},
    "model.encoder": Rule(_whole, WHOLE),
    "model.stride": Rule(_whole, WHOLE),
    "model.depth": Rule(_whole, WHOLE),
    "model.map_size": Rule(_whole, WHOLE),
    "model.attention.name": Rule(_whole, WHOLE),
    "model.glimpse_size": Rule(_glimpses, GLIMPSES),
    "model.glimpse_scales": Rule(_glimpses, GLIMPSES),
    "model.core": Rule(_glimpses, GLIMPSES),
    "model.location_std": Rule(_glimpses, GLIMPSES),
    "model.episodes": Rule(_glimpses, GLIMPSES),
    "model.eval_episodes": Rule(_glimpses, GLIMPSES),
    "data.max_frames": Rule(lambda config: config.data.clips, "clips (data.clips=true)"),
    "model.kernel_size": Rule(_any("convolution"), "a convolution encoder or decoder"),
    "model.attention.heads": Rule(_has_heads, "an attention that has several heads, such as transformer"),
    "model.attention.size": Rule(_attends, "an attention"),
    "model.output.score": Rule(_output("attention"), "model.output=attention"),
    "model.output.scale": Rule(_output("attention"), "model.output=attention"),
    "model.output.heads": Rule(_output("mixture"), "model.output=mixture"),
    "train.label_smoothing": Rule(
        lambda config: not (_finds(config) or hasattr(config.model, "reranking_layers")),
        "a task that chooses among words or labels",
    ),
    "train.reinforce_baseline": Rule(_draws, "an attention that samples its positions, such as additive+hard"),
    "train.reinforce_reward": Rule(_draws, "an attention that samples its positions, such as additive+hard"),
    "train.entropy_bonus": Rule(_draws, "an attention that samples its positions, such as additive+hard"),
    "train.soft_attention_rate": Rule(_draws, "an attention that samples its positions, such as additive+hard"),
    "train.coverage_weight": Rule(_attends, "an attention"),
    "train.doubly_stochastic_weight": Rule(_attends, "an attention"),
    "train.guided_attention": Rule(
        lambda config: _attends(config) and (_reads_text(config) or _reads_frames(config)),
        "an attention over a text or sound (a map has no diagonal)",
    ),
    "train.guided_alignment": Rule(
        lambda config: _attends(config) and getattr(config.data, "alignments", None) is not None,
        "an attention, and links to guide it by (data.alignments=FILE)",
    ),
    "train.guided_alignment_head": Rule(
        lambda config: config.train.guided_alignment > 0, "guidance by links (train.guided_alignment=WEIGHT)"
    ),
    "data.alignment_unit": Rule(lambda config: config.data.alignments is not None, "links (data.alignments=FILE)"),
    "data.alignments": Rule(
        lambda config: config.train.guided_alignment > 0 and config.data.train is not None,
        "guidance by links (train.guided_alignment=WEIGHT), and the pairs that they belong to (data.train=FILE)",
    ),
    "train.moment_matching": Rule(_attends, "an attention"),
    "train.sequence_metric": Rule(_risks(), "train.sequence_loss=minimum_risk or self_critical"),
    "train.sequence_samples": Rule(_risks(), "train.sequence_loss=minimum_risk or self_critical"),
    "train.sequence_weight": Rule(_risks(), "train.sequence_loss=minimum_risk or self_critical"),
    "train.sequence_start": Rule(_risks(), "train.sequence_loss=minimum_risk or self_critical"),
    "train.minimum_risk_alpha": Rule(_risks("minimum_risk"), "train.sequence_loss=minimum_risk"),
    "train.minimum_risk_reference": Rule(_risks("minimum_risk"), "train.sequence_loss=minimum_risk"),
    "train.record_example": Rule(
        lambda config: _reads_text(config) and (_attends(config) or _any("transformer")(config)),
        "an attention, or a transformer encoder or decoder, in a task that reads text",
    ),
    "train.record_every": Rule(
        lambda config: config.train.record_example is not None, "a recorded example (train.record_example=SENTENCE)"
    ),
    "train.scheduled_sampling_max": Rule(
        _decodes_itself, "scheduled sampling (train.scheduled_sampling=linear or another schedule)"
    ),
    "train.scheduled_sampling_steps": Rule(
        _decodes_itself, "scheduled sampling (train.scheduled_sampling=linear or another schedule)"
    ),
    "train.packing_length": Rule(
        lambda config: _reads_text(config) and config.model.encoder == config.model.decoder == "transformer",
        "a transformer encoder and a transformer decoder",
    ),
    "train.compile": Rule(_any("transformer"), "a transformer encoder or decoder"),
    "search.coverage_penalty": Rule(_attends, "an attention"),
    "search.diversity_penalty": Rule(
        lambda config: config.search.beam_groups > 1, "groups to keep apart (search.beam_groups=2 or more)"
    ),
    "search.lm": Rule(
        lambda config: config.search.mbr == "none" or config.search.mbr_from == "beam",
        "a beam search (search.mbr_from=beam); samples are drawn from the model alone",
    ),
    "search.lm_weight": Rule(lambda config: config.search.lm is not None, "a language model (search.lm=RUN)"),
    "search.mbr_candidates": Rule(lambda config: config.search.mbr != "none", "search.mbr=chrf or another metric"),
    "search.mbr_from": Rule(lambda config: config.search.mbr != "none", "search.mbr=chrf or another metric"),
    "data.samples": Rule(lambda config: config.data.train is None, "a task with synthetic data (no data.train)"),
    "data.max_bytes": Rule(lambda config: config.data.train is not None, "a table of your own (data.train=FILE)"),
    "data.max_records": Rule(lambda config: config.data.train is not None, "a table of your own (data.train=FILE)"),
    "data.header": Rule(lambda config: config.data.train is not None, "a table of your own (data.train=FILE)"),
    "data.box_format": Rule(lambda config: config.data.train is not None, "boxes of your own (data.train=FILE)"),
    "data.language": Rule(lambda config: config.data.train is None, "a task with synthetic data (no data.train)"),
    "dropout.attention": Rule(
        lambda config: _attends(config) or _any("transformer", "vit")(config),
        "an attention, or a transformer encoder or decoder",
    ),
    "model.rerank_top_k": Rule(
        lambda config: getattr(config.model, "reranking_layers", 0) > 0,
        "cross-attention layers over a picture and a text (model.reranking_layers=1 or more)",
    ),
    "dropout.variational": Rule(_any("recurrent", "hierarchical"), "a recurrent encoder or decoder"),
}


TEACHING = ["confidence_penalty", "coverage_weight", "doubly_stochastic_weight", "guided_attention", "guided_alignment"]
TEACHING += ["guided_alignment_head", "moment_matching", "reinforce_baseline", "reinforce_reward", "entropy_bonus"]
TEACHING += ["scheduled_sampling", "scheduled_sampling_max", "scheduled_sampling_steps", "sequence_loss", "sequence_metric"]
TEACHING += ["sequence_samples", "minimum_risk_alpha", "minimum_risk_reference", "sequence_weight", "sequence_start"]
TEACHING += ["packing_length", "cuda_graphs", "compile", "record_example", "record_every"]
"""Settings of train that only models that write text have."""


def unwritten(config: Any) -> list[str]:
    """Paths of the settings that need a model that writes text; empty for a config whose models do."""
    search = [field.name for field in fields(config.search) if field.name != "batch_size"]
    of_texts = ["data.bleu_tokenizer", *(f"train.{name}" for name in TEACHING), *(f"search.{name}" for name in search)]
    return [] if config.WRITES else [path for path in of_texts if path not in config.HEEDED]


def rules_of(config: Any) -> dict[str, Rule]:
    """Conditions that the family of a config has for its own settings."""
    from regard.tasks.kinds.types import family  # imported late: kinds.types imports this folder

    return dict(getattr(family(config), "RULES", {}))


def heeded(configs: Sequence[Any], default: Any) -> None:
    """Raise for a setting that differs from its default and has an effect in none of these configs of a task."""
    for path in unwritten(default):
        if changed := [value for config in configs if (value := _at(config, path)) != _at(default, path)]:
            raise ConfigError(
                f"{path}={changed[0]} would change nothing: it needs a task whose models write text, such as caption; leave "
                "it out"
            )
    for path, rule in {**RULES, **rules_of(default)}.items():
        changed = [value for config in configs if (value := _at(config, path)) != _at(default, path)]
        if not changed or any(rule.counts(config) for config in configs):
            continue
        raise ConfigError(
            f"{path}={changed[0]} would change nothing: it needs {rule.needs}, and this model "
            f"{_describe_model(configs[0].model)}; leave it out"
        )


def _describe_model(model: Any) -> str:
    """Description of a model by its settings."""
    if not hasattr(model, "encoder"):
        return f"is {getattr(model, 'network', getattr(model, 'kind', type(model).__name__))}"
    decoder = f", a {model.decoder} decoder" if hasattr(model, "decoder") else ""
    return f"has a {model.encoder} encoder{decoder} and the attention {model.attention.name}"


def trainable(config: Any) -> None:
    """Raise for training settings that contradict each other or need a missing package."""
    from importlib.util import find_spec

    train = config.train
    check_settings(train)
    copyable(config)
    if train.max_epochs is not None and train.max_steps != type(config)().train.max_steps:
        raise ConfigError(
            f"train.max_epochs={train.max_epochs:g} and train.max_steps={train.max_steps} are both the length of the "
            "training: use one of them"
        )
    if train.schedule == "noam" and train.warmup_steps < 1:
        raise ConfigError(
            f"train.schedule=noam needs train.warmup_steps of 1 or more, got {train.warmup_steps}; the paper has 4000"
        )
    if train.scheduled_sampling_max > 1:
        raise ConfigError(f"train.scheduled_sampling_max needs to be from 0 to 1, got {train.scheduled_sampling_max}")
    if train.sequence_loss != "none" and train.monitor in ("loss", "perplexity"):
        raise ConfigError(
            f"train.sequence_loss={train.sequence_loss} needs train.monitor to name a measure of the task, such as chrf or "
            f"exact, got {train.monitor}: the likelihood of the targets falls while the metric rises, and the first model "
            "would be kept"
        )
    if train.sequence_weight > 1:
        raise ConfigError(f"train.sequence_weight needs to be from 0 to 1, got {train.sequence_weight}")
    if train.sequence_loss != "none" and train.sequence_weight == 0:
        raise ConfigError(
            f"train.sequence_weight=0 leaves train.sequence_loss={train.sequence_loss} without weight; raise it, or leave "
            "both out"
        )
    if train.sequence_loss == "minimum_risk" and train.sequence_samples == 1 and not train.minimum_risk_reference:
        raise ConfigError(
            "train.sequence_loss=minimum_risk compares several outputs, and train.sequence_samples=1 without the reference "
            "leaves one, from which nothing is learned; sample 2 or more, or keep the reference "
            "(train.minimum_risk_reference=true)"
        )
    if train.sequence_loss == "minimum_risk" and train.minimum_risk_alpha == 0:
        raise ConfigError(
            "train.minimum_risk_alpha needs to be above 0: at 0 every output counts alike, whatever the model learns"
        )
    if train.moment_matching and "memory_network" in config.model.attention.name.split("+"):
        raise ConfigError(
            "train.moment_matching compares the context of an attention with its values, and memory_network adds its "
            "query to the context; set it to 0, or use another attention"
        )
    if train.tensorboard and find_spec("tensorboard") is None:
        raise ConfigError(
            f"train.tensorboard needs the tensorboard package, which is not installed: {describe_install('track')}, "
            "or leave the setting out; log.jsonl has the same numbers"
        )


def copyable(config: Any) -> None:
    """Raise for settings that need one vocabulary, where each source brings words of its own to copy."""
    if not getattr(config.model, "copy", False):
        return
    for name, needed in (("confidence_penalty", "a distribution over one vocabulary"), ("packing_length", "one a row")):
        if value := getattr(config.train, name):
            raise ConfigError(
                f"train.{name}={value} needs {needed}, and with model.copy=true each source has words of its own; leave one "
                "of the two out"
            )
    if config.search.unknown == "copy":
        raise ConfigError(
            "search.unknown=copy replaces unknown words after the search, and model.copy=true writes them by itself; leave "
            "search.unknown out"
        )


def searchable(config: Any) -> None:
    """Raise for search settings that contradict each other."""
    search = config.search
    if search.unknown == "copy" and config.model.attention.name == "none":
        raise ConfigError(
            "search.unknown=copy copies the source token with the largest weight, and this model has none; leave it out"
        )
    if search.unknown == "copy" and not _reads_text(config):
        raise ConfigError("search.unknown=copy copies words of a text, and this model reads pictures; leave it out")
    if search.beam % search.beam_groups:
        raise ConfigError(
            f"search.beam_groups={search.beam_groups} needs search.beam to be a multiple of it, got {search.beam}; "
            f"search.beam={search.beam_groups * max(1, round(search.beam / search.beam_groups))} is the nearest"
        )
    if search.mbr != "none" and search.mbr_from == "sample" and search.beam_groups > 1:
        raise ConfigError(
            f"search.beam_groups={search.beam_groups} would change nothing: with search.mbr_from=sample candidates are "
            "sampled, not searched for; leave it out"
        )


def buildable(config: Any) -> None:
    """Raise where no model can be built from a config; it is built on the meta device, where tensors take no memory."""
    import torch

    from regard.tasks.kinds.types import family  # imported late: kinds.types imports this folder

    try:
        with torch.device("meta"):
            family(config).build_small(config)
    except (ValueError, LookupError) as error:
        raise ConfigError(str(error)) from error


def _at(config: Any, path: str) -> Any:
    """The value at a dotted path; None where this config has no such setting."""
    for name in path.split("."):
        if not is_dataclass(config) or name not in {field.name for field in fields(config)}:
            return None
        config = getattr(config, name)
    return config
