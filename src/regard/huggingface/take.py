"""Take a model of Hugging Face's: its weights, its settings and its tokens become a run directory."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard import config as configuration
from regard import tasks
from regard.config import AttentionPart, Data, Dropout, Model, Search
from regard.data.text import TextCodec
from regard.data.tokenise.pretrained import SPECIAL, Pretrained
from regard.data.vocabulary import PAD
from regard.huggingface import names, t5, waves
from regard.huggingface.numbers import NEVER, codec_of, copies, number_of
from regard.huggingface.settings import Settings, read
from regard.huggingface.tensors import Tensors
from regard.tasks import TextConfig
from regard.training import manifest
from regard.training.directory import CONFIG, MODEL
from regard.training.errors import RefusedError
from regard.training.weights import agree, named


def files(folder: Path, task: str = "translate", first: str | None = None) -> dict[str, bytes]:
    """The run directory of a model that `save_pretrained` wrote, file by file; its answers begin with the token `first`."""
    from safetensors.torch import save

    settings = read(folder)
    with Tensors(folder) as theirs:
        codec = codec_of(settings, folder)
        theirs.fit(settings)
        tie = settings.family.positions != "bias" or t5.tied(theirs)
        usual = tasks.find(task).Config()
        if not isinstance(usual, TextConfig):
            raise RefusedError(f"a model of transformers is taken in for a task that reads text, got {task!r}")
        config = described(settings, codec, usual, tie, first)
        with torch.device("meta"):
            expected = tasks.build(config, codec)
        found = weights(settings, codec.target, theirs)  # type: ignore[arg-type]  # codec_of makes it
    agree(named(expected), found, str(folder))
    every = {CONFIG: f'task = "{task}"\n{configuration.write(config)}'.encode(), MODEL: save(found)}
    with tempfile.TemporaryDirectory() as room:
        every |= {each.name: each.read_bytes() for each in codec.save(Path(room))}
    digests = {name: manifest.digest(data) for name, data in every.items()}
    return {**every, manifest.NAME: manifest.seal({"files": digests, "pending": {}})}


def described(
    settings: Settings, codec: TextCodec, usual: TextConfig, tie: bool = True, first: str | None = None
) -> TextConfig:
    """The config of a task whose network is this one."""
    longest, (activation, gated) = settings.max_position_embeddings, settings.activation
    alike: dict[str, Any] = {"encoder": "transformer", "decoder": "transformer", "size": settings.d_model}
    alike |= {"layers": settings.encoder_layers, "decoder_layers": settings.decoder_layers, "gated": gated}
    alike |= {"heads": settings.encoder_attention_heads, "feedforward": settings.encoder_ffn_dim, "activation": activation}
    special = t5.described(settings, tie) if settings.family.positions == "bias" else _plain(settings)
    data = Data(tokens="pretrained", joint=True, longest_source=longest, longest_target=longest, over_long="cut")
    search = searched(settings, codec, longest, first)
    return replace(usual, data=data, model=Model(**alike | special), dropout=Dropout(), search=search)


def _plain(settings: Settings) -> dict[str, Any]:
    """What sets the network of a family with BART's names apart, in the words of our config."""
    kind = settings.family
    special: dict[str, Any] = {"attention": AttentionPart("transformer", heads=settings.encoder_attention_heads)}
    special |= {"norm": kind.norm, "norm_embedding": kind.norm_embedding, "scale_embedding": bool(settings.scale_embedding)}
    return special | {"positions": "sinusoidal" if kind.positions == "waves" else "learned"}


def searched(settings: Settings, codec: TextCodec, longest: int, first: str | None = None) -> Search:
    """How it looks for an answer when nothing is said: what generate of transformers does with the same settings."""
    tokens: Any = codec.target
    forced = settings.forced_bos_token_id
    if forced is not None and (type(forced) is not int or tokens.numbers.get(forced, PAD) in SPECIAL):
        raise RefusedError(
            f"forced_bos_token_id needs to be from 0 to {settings.vocab_size - 1}, and not padding, end or unknown, got "
            f"{forced!r}"
        )
    number = None if forced is None else tokens.numbers[forced]
    return Search(
        beam=settings.num_beams or 1,
        length=max(1, min(settings.max_length or longest, longest) - 1),
        times=0.0,
        length_penalty=1.0 if settings.length_penalty is None else settings.length_penalty,
        block_ngrams=settings.no_repeat_ngram_size or 0,
        first=number if first is None else number_of(tokens, first),
    )


def weights(settings: Settings, tokens: Pretrained, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their parameters by our names."""
    kind, size = settings.family, settings.d_model
    if kind.positions == "bias":
        return t5.weights(settings, tokens, theirs)
    order = torch.argsort(waves.order(size)) if kind.positions == "waves" else torch.arange(size)
    rows = torch.tensor(tokens.ids)
    found = {"encoder.embedding.table.weight": theirs[names.SHARED][rows][:, order]}
    for pair in names.layers(settings.encoder_layers, settings.decoder_layers, kind):
        value = theirs[pair.theirs]
        found[pair.ours] = value if pair.axis is None else value.index_select(pair.axis, order)
    bias = theirs[names.BIAS][0][rows] if kind.bias else torch.zeros(len(rows))
    found["decoder.output.bias"] = bias.index_fill(0, torch.tensor(copies(tokens)), NEVER)
    if kind.positions != "waves":
        for half in ("encoder", "decoder"):
            found[f"{half}.embedding.positions.table.weight"] = positions(settings, theirs, half)
    return {name: tensor.float().contiguous() for name, tensor in found.items()}


def positions(settings: Settings, theirs: Mapping[str, Tensor], half: str) -> Tensor:
    """The vector of each position."""
    kind, rows = settings.family, settings.max_position_embeddings
    if kind.positions == "table":
        return theirs[f"model.{half}.embed_positions.weight"][kind.first :]
    return waves.spaced(rows, settings.d_model, settings.pad_token_id + 1)
