"""Tiny VisionEncoderDecoder models with random weights, made offline, and pictures for them."""

import torch
import transformers

from ..tiny import END, PAD, VOCABULARY

KINDS = ("vit_gpt2", "vit_trocr", "deit_trocr")
SIDE, PATCH = 12, 4


def tiny(kind: str = "vit_gpt2", encoder=None, decoder=None, **whole):
    """A model whose every parameter is random, norms and biases too."""
    first, second = kind.split("_")
    seen = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    seen |= {"image_size": SIDE, "patch_size": PATCH}
    maker = {"vit": transformers.ViTConfig, "deit": transformers.DeiTConfig}[first]
    written = {"vocab_size": VOCABULARY, "pad_token_id": PAD, "eos_token_id": END, "bos_token_id": 3}
    if second == "gpt2":
        sizes = {"n_positions": 20, "n_embd": 12, "n_layer": 2, "n_head": 2}
        half = transformers.GPT2Config(**written | sizes | (decoder or {}))
    else:
        sizes = {"max_position_embeddings": 20, "d_model": 12, "decoder_layers": 2, "decoder_attention_heads": 2}
        half = transformers.TrOCRConfig(**written | sizes | {"decoder_ffn_dim": 20} | (decoder or {}))
    make = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs
    config = make(maker(**seen | (encoder or {})), half, **{"decoder_start_token_id": 3} | whole)
    model = transformers.VisionEncoderDecoderModel(config).eval()
    model.generation_config.decoder_start_token_id = config.decoder_start_token_id
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def scenes(count: int, side: int = SIDE, seed: int = 3) -> torch.Tensor:
    """Pictures of bytes: each of one colour, with noise."""
    draw = torch.Generator().manual_seed(seed)
    colours = torch.randint(0, 200, (count, 3, 1, 1), generator=draw)
    return (colours + torch.randint(0, 56, (count, 3, side, side), generator=draw)).byte()


def seen(pictures: torch.Tensor, mean: float = 0.5, deviation: float = 0.5) -> torch.Tensor:
    """As a ViTImageProcessor gives them to a model."""
    return (pictures.float() / 255 - mean) / deviation


def taught(kind: str, steps: int = 150):
    """A model that has begun to learn to name the colour of a picture, so that answers differ and end."""
    model = tiny(kind)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(steps):
        pictures = scenes(32, seed=100 + step)
        rows = named(pictures)
        before = torch.cat((torch.full((32, 1), 3), rows[:, :-1]), dim=1)
        logits = model(pixel_values=seen(pictures), decoder_input_ids=before).logits
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows.flatten()).backward()
        optimiser.step()
        optimiser.zero_grad()
    return model.eval()


def named(pictures: torch.Tensor) -> torch.Tensor:
    """Three tokens that say how much red, green and blue there is, and the end."""
    levels = pictures.float().mean((2, 3)).long() // 32
    return torch.cat((4 + levels, torch.full((len(pictures), 1), END)), dim=1)
