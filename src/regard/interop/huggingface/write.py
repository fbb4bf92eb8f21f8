"""Export to transformers: a directory that from_pretrained opens."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from regard.data.image.codec import ImageTextCodec
from regard.data.special_tokens import NAMES
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.errors import RefusedError
from regard.inference.load import load_sequence_predictor
from regard.inference.sequence_predictor import SequencePredictor
from regard.interop.huggingface import names, write_t5, write_vision_encoder_decoder
from regard.interop.huggingface import t5_import as theirs
from regard.interop.huggingface.families import FAMILIES
from regard.interop.huggingface.special import special
from regard.interop.huggingface.weights import fitting, refused, room, weights
from regard.interop.output import check_free, write_directory
from regard.interop.standalone import README, Tokenizers, fill_readme, show_preparation
from regard.interop.tokenizer import build_tokenizer

TOKENIZER = "PreTrainedTokenizerFast"
ROLES = ("pad_token", "bos_token", "eos_token", "unk_token")
LENGTH = (
    "`generation_config.json` limits answers by `max_length` alone: transformers has no limit that grows with the source,\n"
    "so the code computes that of regard for each source and gives it as `max_length`, which counts the\nfirst token too."
)
"""Note for the model card on a limit that a generation config cannot express."""


def write(run: Path, out: Path, precision: str = "float32") -> str:
    """Make the directory, and say what it is."""
    check_free(out)
    if precision != "float32":
        raise RefusedError(f"huggingface has the precision float32, got {precision!r}: transformers rounds when it loads")
    trained = load_sequence_predictor(run, "cpu")
    exported = files(trained)
    size = write_directory(out, exported)
    kind = json.loads(exported["config.json"])["architectures"][0]
    tokens = (
        "with its tokenizer" if "tokenizer.json" in exported else f"without a tokenizer: {write_tokenizer(trained.codec)}"
    )
    return f"{out}: a {kind} of transformers, {size:,} bytes, {tokens}"


def files(trained: SequencePredictor) -> dict[str, bytes]:
    """The directory that from_pretrained opens, file by file."""
    from safetensors.torch import save

    if isinstance(trained.codec, ImageTextCodec):
        return _pictured(trained)
    kind = fitting(trained)
    tensors = weights(trained, kind)
    vocabulary = len(tensors[theirs.SHARED if kind == write_t5.KIND else names.SHARED])
    exported = {
        "config.json": _json(config(trained, kind, vocabulary)),
        "generation_config.json": _json(generation(trained)),
        "model.safetensors": save(tensors, metadata={"format": "pt"}),
    }
    tokenizer = write_tokenizer(trained.codec)
    exported |= {} if isinstance(tokenizer, str) else tokenizer
    return exported | {
        README: readme(trained, FAMILIES[kind].architecture, tokenizer if isinstance(tokenizer, str) else None).encode()
    }


def readme(trained: SequencePredictor, architecture: str, reason: str | None) -> str:
    """README.md: code that searches with the length rule of the run, which generation_config.json has no field for."""
    side = None if reason else "tokenizer.json"
    sides = Tokenizers({}, {"source": side, "target": side}, {"source": reason} if reason else {})
    code = {"architecture": architecture, "auto": "", "load": "", "silent": "model.config.eos_token_id"}
    code |= {"encode": "[*map(int, text.split()), model.config.eos_token_id]", "decode": "generate(encode(text))"}
    if reason is None:
        code |= {"auto": ", AutoTokenizer", "load": 'tokenizer = AutoTokenizer.from_pretrained(".")\n'}
        code |= {"encode": "tokenizer(text).input_ids", "silent": "tokenizer.eos_token_id, tokenizer.unk_token_id"}
        code |= {"decode": "tokenizer.decode(generate(encode(text)), skip_special_tokens=True)"}
    notes = [LENGTH]
    if reason is not None:
        notes.append(f"Sources and answers are lists of token ids, since there is no tokenizer: {reason}.")
    if (preparation := show_preparation(trained)) is not None:
        notes.append(preparation)
    code["most"] = str(trained.codec.max_source_length)
    return fill_readme("huggingface/readme.md", trained, sides, notes="\n".join(notes), **code)


def _pictured(trained: SequencePredictor) -> dict[str, bytes]:
    """Files of a model that reads pictures."""
    from safetensors.torch import save

    if fault := write_vision_encoder_decoder.find_misfit(trained):
        raise refused(fault)
    exported = {
        "config.json": _json(write_vision_encoder_decoder.config(trained)),
        "generation_config.json": _json(generation(trained)),
        "preprocessor_config.json": _json(write_vision_encoder_decoder.processor(trained.codec)),
        "model.safetensors": save(write_vision_encoder_decoder.weights(trained), metadata={"format": "pt"}),
    }
    tokenizer = write_tokenizer(trained.codec)
    return exported | ({} if isinstance(tokenizer, str) else tokenizer)


def config(trained: SequencePredictor, kind: str, vocabulary: int) -> dict[str, Any]:
    """config.json."""
    ids = special(trained.codec.target)
    table: dict[str, Any] = {"model_type": kind, "architectures": [FAMILIES[kind].architecture], "dtype": "float32"}
    table |= {"is_encoder_decoder": True, "pad_token_id": ids["pad"], "bos_token_id": ids["start"]}
    table |= {"eos_token_id": ids["end"], "decoder_start_token_id": ids["start"]}
    return table | (write_t5.config if kind == write_t5.KIND else partial(_plain, kind))(trained, vocabulary, room(trained))


def _plain(kind: str, trained: SequencePredictor, vocabulary: int, room: int) -> dict[str, Any]:
    """Fields of a family with the names of BART's, beside those of all families."""
    model = trained.config.model
    table: dict[str, Any] = {"vocab_size": vocabulary, "d_model": model.hidden_size, "max_position_embeddings": room}
    table |= {"encoder_layers": model.layers, "decoder_layers": model.decoder_layers or model.layers}
    for half in ("encoder", "decoder"):
        table |= {f"{half}_attention_heads": model.heads, f"{half}_ffn_dim": model.feedforward_size or 4 * model.hidden_size}
    activation = "gelu_new" if model.activation == "gelu_tanh" else model.activation
    table |= {"activation_function": activation, "scale_embedding": model.scale_embedding}
    table |= {"tie_word_embeddings": True, "forced_eos_token_id": None, "dropout": trained.config.dropout.residual}
    if kind == "marian":
        table |= {"decoder_vocab_size": vocabulary, "share_encoder_decoder_embeddings": True}
    return table


def generation(trained: SequencePredictor) -> dict[str, Any]:
    """generation_config.json: search as ours does. What no target holds is forbidden there by name."""
    search, tokens, ids = trained.config.search, trained.codec.target, special(trained.codec.target)
    pretrained = isinstance(tokens, Pretrained)
    table: dict[str, Any] = {"pad_token_id": ids["pad"], "eos_token_id": ids["end"], "bos_token_id": ids["start"]}
    table |= {"decoder_start_token_id": ids["start"], "max_length": search.max_length + 1, "num_beams": search.beam}
    if ids["pad"] != ids["end"]:
        table |= {"suppress_tokens": [ids["pad"]] if pretrained else [ids["pad"], ids["start"]]}
    if search.beam > 1:
        table |= {"length_penalty": search.length_penalty, "early_stopping": False}
    if search.block_ngrams:
        table["no_repeat_ngram_size"] = search.block_ngrams
    if search.forced_bos is not None:
        table["forced_bos_token_id"] = tokens.ids[search.forced_bos] if isinstance(tokens, Pretrained) else search.forced_bos
    return table


def _json(table: dict[str, Any]) -> bytes:
    return (json.dumps(table, indent=2, sort_keys=True) + "\n").encode()


def write_tokenizer(codec: TextCodec | ImageTextCodec) -> dict[str, bytes] | str:
    """tokenizer.json and tokenizer_config.json, or the reason why there are none: `regard` encodes then."""
    if isinstance(codec, ImageTextCodec):
        tokens, longest = codec.target, codec.max_target_length
    else:
        tokens, longest = codec.source, codec.max_source_length
    if isinstance(tokens, Pretrained) and tokens.model is not None and not codec.lowercase:
        roles = [tokens.model.id_to_token(tokens.ids[number]) for number in range(len(NAMES))]
        return _tokenizer_files(tokens.model.to_str(), roles, longest)
    model = build_tokenizer(tokens, codec.lowercase)
    return model if isinstance(model, str) else _tokenizer_files(model.to_str(), list(NAMES), longest)


def _tokenizer_files(text: str, roles: list[str | None], longest: int) -> dict[str, bytes]:
    table: dict[str, Any] = {
        "tokenizer_class": TOKENIZER,
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
    }
    table |= {role: token for role, token in zip(ROLES, roles, strict=True) if token is not None}
    return {"tokenizer.json": text.encode(), "tokenizer_config.json": (json.dumps(table, indent=2) + "\n").encode()}
