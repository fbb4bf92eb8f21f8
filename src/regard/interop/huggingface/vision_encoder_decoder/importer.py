"""Take a VisionEncoderDecoder: its weights, its settings and its tokens become the run directory of a captioner."""

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
from regard.interop.huggingface.run_directory import packed, searched
from regard.interop.huggingface.settings import ACTIVATIONS
from regard.interop.huggingface.tensors import Tensors
from regard.interop.huggingface.vision_encoder_decoder import vit
from regard.interop.huggingface.vision_encoder_decoder.settings import PictureSettings, read
from regard.interop.huggingface.vocab import NEVER, copies, tokens_of
from regard.tasks.caption.experiment import PictureConfig


def files(folder: Path, task: str = "caption", first: str | None = None) -> dict[str, bytes]:
    """The run directory of a model that `save_pretrained` wrote, file by file; its answers begin with the token `first`."""
    told = read(folder)
    usual = tasks.find(task).Config()
    if not isinstance(usual, PictureConfig):
        raise RefusedError(
            f"a model of pictures is taken in for a task that tells them in words, such as caption, got {task!r}"
        )
    with Tensors(folder) as theirs:
        codec = codec_of(told, folder)
        table = (told.vocab_size, told.size)
        output = {told.kind.OUTPUT: table} if told.kind.OUTPUT in set(theirs) else {}
        theirs.match(vit.shapes(told) | told.kind.shapes(told) | output, (*vit.UNUSED, *told.kind.unused(told)))
        found = weights(told, codec, theirs)
    config = described(told, codec, usual, "decoder.output.weight" not in found, first)
    return packed(task, config, codec, found, str(folder))


def codec_of(told: PictureSettings, folder: Path) -> ImageTextCodec:
    """How pictures are read, and the tokens of what is written of them."""
    (height, width), longest = told.box, told.positions
    return ImageTextCodec(
        tokens_of(told, folder),
        max_target_length=longest,
        over_long="truncate",
        height=height,
        width=width,
        channels=told.channels,
        stride=told.patch,
        mean=told.standard.mean,
        deviation=told.standard.deviation,
        stretch=True,
        whole=len(vit.TOKENS[told.encoder["model_type"]]),
    )


def described(
    told: PictureSettings, codec: ImageTextCodec, usual: PictureConfig, tie: bool, first: str | None = None
) -> PictureConfig:
    """The config of a task whose network is this one."""
    (height, width), longest = told.box, told.positions
    data = ImageTextData(height=height, width=width, channels=told.channels, stretch=True, tokenizer="pretrained")
    data = replace(data, max_target_length=longest, over_long="truncate")
    alike: dict[str, Any] = {"decoder": "transformer", "hidden_size": told.size, "layers": told.layers, "heads": told.heads}
    alike |= {
        "feedforward_size": told.feedforward,
        "activation": ACTIVATIONS[told.decoder["activation_function"]],
        "tie_embeddings": tie,
    }
    alike |= {"attention": AttentionPart("transformer", heads=told.heads), "positions": "learned"}
    alike |= {"map_size": None if told.map == told.size else told.map}
    model = ImageToTextModel(**alike | vit.described(told) | told.kind.described(told))
    search = searched(told, codec, longest, first)
    return replace(usual, data=data, model=model, dropout=ImageDropout(), search=search)


def weights(told: PictureSettings, codec: ImageTextCodec, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their parameters by our names."""
    tokens = codec.target
    assert isinstance(tokens, Pretrained), "codec_of makes it"
    rows, table = torch.tensor(tokens.ids), theirs[told.kind.TABLE]
    found = vit.weights(told, theirs) | told.kind.weights(told, theirs)
    found["decoder.embedding.table.weight"] = table[rows]
    if told.kind.OUTPUT in set(theirs) and not torch.equal(output := theirs[told.kind.OUTPUT], table):
        found["decoder.output.weight"] = output[rows]
    found["decoder.output.bias"] = torch.zeros(len(rows)).index_fill(0, torch.tensor(copies(tokens)), NEVER)
    found |= {"mean": torch.tensor(codec.mean)[:, None, None], "deviation": torch.tensor(codec.deviation)[:, None, None]}
    return {name: tensor.float().contiguous() for name, tensor in found.items()}
