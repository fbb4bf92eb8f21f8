"""Tiny models of Hugging Face's families with random weights, made offline, and folders of them."""

import os
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()

FIRST = {"marian": "Marian", "bart": "Bart", "mbart": "MBart", "pegasus": "Pegasus", "m2m_100": "M2M100"}
NAMES = FIRST | {"t5": "T5", "t5_gated": "T5", "mt5": "MT5"}
"""The second T5 is version 1.1: gated, with an output of its own."""
PAD, END, VOCABULARY = 1, 2, 53


def tiny(kind: str, **settings):
    """A model whose every parameter is random, norms and biases too."""
    return _relative(kind, settings) if kind not in FIRST else _plain(kind, settings)


def _plain(kind: str, settings):
    usual = {"vocab_size": VOCABULARY, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
    usual |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 48}
    usual |= {"pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": END, "forced_eos_token_id": None}
    if kind == "marian":
        usual |= {"scale_embedding": True, "decoder_vocab_size": settings.get("vocab_size", VOCABULARY)}
    config = getattr(transformers, f"{FIRST[kind]}Config")(**usual | settings)
    name = "MarianMTModel" if kind == "marian" else f"{FIRST[kind]}ForConditionalGeneration"
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for each, parameter in model.named_parameters():
            if "embed_positions" not in each or kind in ("bart", "mbart"):
                parameter.add_(torch.randn_like(parameter) * 0.3)
        if kind != "m2m_100":
            model.final_logits_bias.copy_(torch.randn(1, config.vocab_size))
    return model


def _relative(kind: str, settings):
    """One of T5's: the heads together are wider than the model, and less wide in an mT5."""
    usual = {"vocab_size": VOCABULARY, "d_model": 16, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2, "d_ff": 24}
    usual |= {"d_kv": 5 if kind == "mt5" else 12, "pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": PAD}
    usual |= {"t5_gated": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}}.get(kind, {})
    model = getattr(transformers, f"{NAMES[kind]}ForConditionalGeneration")(
        getattr(transformers, f"{NAMES[kind]}Config")(**usual | settings)
    ).eval()
    if kind == "t5_gated":
        model.lm_head.weight = torch.nn.Parameter(torch.randn(model.config.vocab_size, 16))
        model.config.tie_word_embeddings = False
    with torch.no_grad():
        for each, parameter in model.named_parameters():
            spread = 0.15 if "block" in each else 0.3  # products are not scaled
            parameter.copy_(torch.randn_like(parameter) * spread + ("norm" in each))
    return model


def taught(kind: str, steps: int = 60, **settings):
    """A model that has begun to learn to repeat its source, so that answers differ and end."""
    model = tiny(kind, dropout=0.0, attention_dropout=0.0, **settings)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(steps):
        rows = torch.randint(4, VOCABULARY, (24, 6))
        rows[:, -1] = END
        before = torch.cat((torch.full((24, 1), model.config.decoder_start_token_id), rows[:, :-1]), dim=1)
        logits = model(input_ids=rows, decoder_input_ids=before).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows.flatten()).backward()
        optimiser.step()
        optimiser.zero_grad()
    return model.eval()


def saved(model, folder: Path) -> Path:
    model.save_pretrained(folder)
    return folder


def sentences(count: int, longest: int = 9, vocabulary: int = VOCABULARY) -> list[list[int]]:
    """Sources of ids with the end at their end."""
    draw = torch.Generator().manual_seed(3)
    sizes = torch.randint(1, longest, (count,), generator=draw).tolist()
    return [[*torch.randint(4, vocabulary, (size,), generator=draw).tolist(), END] for size in sizes]


def padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
    return ids, torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
