"""Files of the run directory of an imported model, and its search settings."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard import config as configuration
from regard import manifest, tasks
from regard.config import Search
from regard.data.image.codec import ImageTextCodec
from regard.data.special_tokens import PAD
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers.pretrained import SPECIAL
from regard.errors import RefusedError
from regard.interop.huggingface.vocab import number_of
from regard.training.run_directory import CONFIG, MODEL
from regard.training.state_dict import check_shapes, named_tensors


def pack_run(
    task: str, config: Any, codec: TextCodec | ImageTextCodec, weights: Mapping[str, Tensor], origin: str
) -> dict[str, bytes]:
    """Files of a run, after checking that the weights fit the model of the config."""
    from safetensors.torch import save

    with torch.device("meta"):
        expected = tasks.build(config, codec)
    check_shapes(named_tensors(expected), weights, origin)
    every = {CONFIG: f'task = "{task}"\n{configuration.write(config)}'.encode(), MODEL: save(dict(weights))}
    with tempfile.TemporaryDirectory() as room:
        every |= {path.name: path.read_bytes() for path in codec.save(Path(room))}
    digests = {name: manifest.digest(data) for name, data in every.items()}
    return {**every, manifest.NAME: manifest.seal({"files": digests, "pending": {}})}


def search_settings(settings: Any, codec: TextCodec | ImageTextCodec, longest: int, first: str | None = None) -> Search:
    """Default search settings, equal to those of generate of transformers."""
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
        max_length=max(1, min(settings.max_length or longest, longest) - 1),
        max_length_ratio=0.0,
        length_penalty=1.0 if settings.length_penalty is None else settings.length_penalty,
        block_ngrams=settings.no_repeat_ngram_size or 0,
        forced_bos=number if first is None else number_of(tokens, first),
    )
