"""Transformer-base as others have it: models from source, mask and target to logits."""

from torch import Tensor, nn
from torch.nn import functional as F

import _bare  # noqa: F401
from regard.attention.positions.sinusoidal import Sinusoidal

VOCABULARY, SIZE, HEADS, INNER, LAYERS = 16000, 512, 8, 2048, 6


class Torch(nn.Module):
    """nn.Transformer with tied embeddings and sinusoidal positions; weights are not dropped, as ours are not."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, SIZE)
        nn.init.normal_(self.embedding.weight, std=SIZE**-0.5)
        self.positions = Sinusoidal(SIZE)
        self.core = nn.Transformer(SIZE, HEADS, LAYERS, LAYERS, INNER, 0.1, batch_first=True, norm_first=True)
        for each in self.core.modules():
            if isinstance(each, nn.MultiheadAttention):
                each.dropout = 0.0
        mask = nn.Transformer.generate_square_subsequent_mask(512).isinf()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, source: Tensor, keep: Tensor, target: Tensor) -> Tensor:
        there, here = (
            F.dropout(self.positions(SIZE**0.5 * self.embedding(each)), 0.1, self.training) for each in (source, target)
        )
        mask = self.mask[: target.shape[1], : target.shape[1]]
        hidden = self.core(
            there,
            here,
            tgt_mask=mask,
            src_key_padding_mask=~keep,
            memory_key_padding_mask=~keep,
            tgt_is_causal=True,
        )
        return hidden @ self.embedding.weight.mT


class Marian(nn.Module):
    """Hugging Face's encoder-decoder of the same shape."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import MarianConfig, MarianMTModel

        half = {"layers": LAYERS, "attention_heads": HEADS, "ffn_dim": INNER}
        sides = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in half.items()}
        special = {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1}
        self.inner = MarianMTModel(MarianConfig(vocab_size=VOCABULARY, d_model=SIZE, dropout=0.1, **special, **sides))

    def forward(self, source: Tensor, keep: Tensor, target: Tensor) -> Tensor:
        return self.inner(source, attention_mask=keep.long(), decoder_input_ids=target, use_cache=False).logits
