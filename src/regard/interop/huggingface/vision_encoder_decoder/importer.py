"""Import of a VisionEncoderDecoder: weights, settings and tokens become the run directory of a caption model."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard import tasks
from regard.config import AttentionPart, ImageDropout, ImageTextData, ImageToTextModel
from regard.data.image.codec import ImageTextCodec
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.errors import RefusedError
from regard.interop.huggingface.run_directory import pack_run, search_settings
from regard.interop.huggingface.settings import ACTIVATIONS
from regard.interop.huggingface.tensors import Tensors
from regard.interop.huggingface.vision_encoder_decoder import vit
from regard.interop.huggingface.vision_encoder_decoder.settings import PictureSettings, read
from regard.interop.huggingface.vocab import NEVER, copies, tokens_of
from regard.tasks.caption.experiment import PictureConfig


def files(folder: Path, task: str = "caption", first: str | None = None) -> dict[str, bytes]:
    """The run directory of a model that `save_pretrained` wrote, file by file; its answers begin with the token `first`."""
    settings = read(folder)
    defaults = tasks.find(task).Config()
    if not isinstance(defaults, PictureConfig):
        raise RefusedError(
            f"a model of pictures is taken in for a task that tells them in words, such as caption, got {task!r}"
        )
    with Tensors(folder) as theirs:
        codec = build_codec(settings, folder)
        table = (settings.vocab_size, settings.size)
        output = {settings.kind.OUTPUT: table} if settings.kind.OUTPUT in set(theirs) else {}
        theirs.match(
            vit.shapes(settings) | settings.kind.shapes(settings) | output, (*vit.UNUSED, *settings.kind.unused(settings))
        )
        parameters = weights(settings, codec, theirs)
    config = describe_config(settings, codec, defaults, "decoder.output.weight" not in parameters, first)
    return pack_run(task, config, codec, parameters, str(folder))


def build_codec(settings: PictureSettings, folder: Path) -> ImageTextCodec:
    """Codec: preprocessing of pictures, and the vocabulary of captions."""
    (height, width), longest = settings.box, settings.positions
    return ImageTextCodec(
        tokens_of(settings, folder),
        max_target_length=longest,
        over_long="truncate",
        height=height,
        width=width,
        channels=settings.channels,
        stride=settings.patch,
        mean=settings.standard.mean,
        deviation=settings.standard.deviation,
        stretch=True,
        whole=len(vit.TOKENS[settings.encoder["model_type"]]),
    )


def describe_config(
    settings: PictureSettings, codec: ImageTextCodec, defaults: PictureConfig, tie: bool, first: str | None = None
) -> PictureConfig:
    """Config of the task for this model."""
    (height, width), longest = settings.box, settings.positions
    data = ImageTextData(height=height, width=width, channels=settings.channels, stretch=True, tokenizer="pretrained")
    data = replace(data, max_target_length=longest, over_long="truncate")
    options: dict[str, Any] = {
        "decoder": "transformer",
        "hidden_size": settings.size,
        "layers": settings.layers,
        "heads": settings.heads,
    }
    options |= {
        "feedforward_size": settings.feedforward,
        "activation": ACTIVATIONS[settings.decoder["activation_function"]],
        "tie_embeddings": tie,
    }
    options |= {"attention": AttentionPart("transformer", heads=settings.heads), "positions": "learned"}
    options |= {"map_size": None if settings.map == settings.size else settings.map}
    model = ImageToTextModel(**options | vit.describe_config(settings) | settings.kind.describe_config(settings))
    search = search_settings(settings, codec, longest, first)
    return replace(defaults, data=data, model=model, dropout=ImageDropout(), search=search)


def weights(settings: PictureSettings, codec: ImageTextCodec, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Parameters by our names."""
    tokens = codec.target
    assert isinstance(tokens, Pretrained), "codec_of makes it"
    rows, table = torch.tensor(tokens.ids), theirs[settings.kind.TABLE]
    parameters = vit.weights(settings, theirs) | settings.kind.weights(settings, theirs)
    parameters["decoder.embedding.table.weight"] = table[rows]
    if settings.kind.OUTPUT in set(theirs) and not torch.equal(output := theirs[settings.kind.OUTPUT], table):
        parameters["decoder.output.weight"] = output[rows]
    parameters["decoder.output.bias"] = torch.zeros(len(rows)).index_fill(0, torch.tensor(copies(tokens)), NEVER)
    parameters |= {
        "mean": torch.tensor(codec.mean)[:, None, None],
        "deviation": torch.tensor(codec.deviation)[:, None, None],
    }
    return {name: tensor.float().contiguous() for name, tensor in parameters.items()}
