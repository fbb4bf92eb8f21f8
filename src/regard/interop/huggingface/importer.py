"""Take a model of Hugging Face's: its weights, its settings and its tokens become a run directory."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard import registry, tasks
from regard.boundary import boundary
from regard.config import AttentionPart, Data, Dropout, Model
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.errors import RefusedError
from regard.interop.huggingface import names, sinusoids, t5_import
from regard.interop.huggingface.families import PICTURES, usual_task
from regard.interop.huggingface.run_directory import pack_run, search_settings
from regard.interop.huggingface.settings import Settings, opened, read
from regard.interop.huggingface.tensors import Tensors
from regard.interop.huggingface.vision_encoder_decoder.importer import files as pictured
from regard.interop.huggingface.vocab import NEVER, build_codec, copies
from regard.tasks import TextConfig


def files(folder: Path, task: str | None = None, first: str | None = None) -> dict[str, bytes]:
    """The run directory of a model that `save_pretrained` wrote, file by file; its answers begin with the token `first`.

    The task is translate, or caption for a model of pictures, unless another is named.
    """
    if task is not None:
        registry.locate(task, "tasks")  # before the boundary: a name is the user's, and no fault of the folder
    with boundary(folder):
        if opened(folder)[1] == PICTURES:
            return pictured(folder, task or usual_task(PICTURES), first)
        settings, task = read(folder), task or usual_task("")
        with Tensors(folder) as theirs:
            codec = build_codec(settings, folder)
            theirs.fit(settings)
            tie = settings.family.positions != "bias" or t5_import.tied(theirs)
            usual = tasks.find(task).Config()
            if not isinstance(usual, TextConfig):
                raise RefusedError(f"a model of transformers that reads text is taken in for a task that does, got {task!r}")
            config = describe_config(settings, codec, usual, tie, first)
            tensors = weights(settings, codec.target, theirs)  # type: ignore[arg-type]  # build_codec makes it
        return pack_run(task, config, codec, tensors, str(folder))


def describe_config(
    settings: Settings, codec: TextCodec, usual: TextConfig, tie: bool = True, first: str | None = None
) -> TextConfig:
    """The config of a task whose network is this one."""
    longest, (activation, gated) = settings.max_position_embeddings, settings.activation
    alike: dict[str, Any] = {"encoder": "transformer", "decoder": "transformer", "hidden_size": settings.d_model}
    alike |= {"layers": settings.encoder_layers, "decoder_layers": settings.decoder_layers, "gated": gated}
    alike |= {
        "heads": settings.encoder_attention_heads,
        "feedforward_size": settings.encoder_ffn_dim,
        "activation": activation,
    }
    special = t5_import.described(settings, tie) if settings.family.positions == "bias" else _plain(settings)
    data = Data(
        tokenizer="pretrained", joint_vocab=True, max_source_length=longest, max_target_length=longest, over_long="truncate"
    )
    search = search_settings(settings, codec, longest, first)
    return replace(usual, data=data, model=Model(**alike | special), dropout=Dropout(), search=search)


def _plain(settings: Settings) -> dict[str, Any]:
    """Settings of our config for a network with BART's names."""
    kind = settings.family
    special: dict[str, Any] = {"attention": AttentionPart("transformer", heads=settings.encoder_attention_heads)}
    special |= {"norm": kind.norm, "embedding_norm": kind.embedding_norm, "scale_embedding": bool(settings.scale_embedding)}
    return special | {"positions": "sinusoidal" if kind.positions == "waves" else "learned"}


def weights(settings: Settings, tokens: Pretrained, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their parameters by our names."""
    kind, size = settings.family, settings.d_model
    if kind.positions == "bias":
        return t5_import.weights(settings, tokens, theirs)
    order = torch.argsort(sinusoids.order(size)) if kind.positions == "waves" else torch.arange(size)
    rows = torch.tensor(tokens.ids)
    tensors = {"encoder.embedding.table.weight": theirs[names.SHARED][rows][:, order]}
    for pair in names.layers(settings.encoder_layers, settings.decoder_layers, kind):
        value = theirs[pair.theirs]
        tensors[pair.ours] = value if pair.axis is None else value.index_select(pair.axis, order)
    bias = theirs[names.BIAS][0][rows] if kind.bias else torch.zeros(len(rows))
    tensors["decoder.output.bias"] = bias.index_fill(0, torch.tensor(copies(tokens)), NEVER)
    if kind.positions != "waves":
        for half in ("encoder", "decoder"):
            tensors[f"{half}.embedding.positions.table.weight"] = positions(settings, theirs, half)
    return {name: tensor.float().contiguous() for name, tensor in tensors.items()}


def positions(settings: Settings, theirs: Mapping[str, Tensor], half: str) -> Tensor:
    """The vector of each position."""
    kind, rows = settings.family, settings.max_position_embeddings
    if kind.positions == "table":
        return theirs[f"model.{half}.embed_positions.weight"][kind.first :]
    return sinusoids.spaced(rows, settings.d_model, settings.pad_token_id + 1)
