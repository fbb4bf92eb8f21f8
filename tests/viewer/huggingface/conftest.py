"""Tiny models with random weights and a byte-level tokenizer, all made on the spot: nothing is fetched."""

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

transformers.logging.set_verbosity_error()
SPECIAL = ["<s>", "<pad>", "</s>"]


@pytest.fixture(scope="module")
def tokenizer():
    """Byte-level BPE that knows a few words of English and no Chinese, so that it cuts Chinese characters into bytes."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=280, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    inner.train_from_iterator(["Tom chases Jerry", "Tom chases Tom", "Jerry chases Tom", "汤 汤 汤"] * 20, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", pad_token="<pad>", eos_token="</s>", clean_up_tokenization_spaces=False
    )


def tiny(kind, seed=0, vocabulary=280, spread=0.6, **options):
    """A model of random weights, large enough that beams change places."""
    torch.manual_seed(seed)
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    if kind in ("Bart", "Marian"):
        sizes = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 64}
        sizes |= {f"{side}_{part}": 2 for side in ("encoder", "decoder") for part in ("layers", "attention_heads")}
        ids |= {"decoder_start_token_id": 2, "forced_eos_token_id": None, "init_std": spread}
    elif kind == "T5":
        sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "initializer_factor": 4.0}
        ids |= {"decoder_start_token_id": 1}
    elif kind == "GPT2":
        sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "initializer_range": spread}
    else:
        sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    classes = {"Bart": "BartForConditionalGeneration", "Marian": "MarianMTModel", "T5": "T5ForConditionalGeneration"}
    classes |= {"GPT2": "GPT2LMHeadModel", "Bert": "BertModel"}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=vocabulary, attn_implementation="eager", **sizes, **ids, **options
    )
    return getattr(transformers, classes[kind])(config).eval()


@pytest.fixture(scope="module")
def model():
    """Makes models by kind and seed."""
    return tiny
