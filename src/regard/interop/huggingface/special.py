"""Special tokens, and whose row of the table each id gets."""

import torch
from torch import Tensor

from regard.data.special_tokens import BOS, EOS, PAD
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.errors import RefusedError


def owners(tokens: Tokenizer, embeddings: Tensor) -> list[int]:
    """The number whose row each id gets: ours are their ids, unless the tokens came from elsewhere and go back there."""
    if not isinstance(tokens, Pretrained):
        return list(range(tokens.size))
    start = tokens.numbers[tokens.ids[BOS]]
    if not torch.equal(embeddings[BOS], embeddings[start]):
        raise RefusedError(
            "this model came from transformers and was trained since, with a beginning of its own: there it shares an id "
            "with another token, and the two differ now. `regard export --to ctranslate2` or onnx takes it"
        )
    return [tokens.numbers[number] for number in range(max(tokens.ids) + 1)]


def special(tokens: Tokenizer) -> dict[str, int]:
    """The ids of padding, beginning and end."""
    ids = tokens.ids if isinstance(tokens, Pretrained) else range(tokens.size)
    return {"pad": ids[PAD], "start": ids[BOS], "end": ids[EOS]}
