"""Tokenizers of imported models with the ids of our graphs: the special four first, then the others in their order."""

import json
from collections.abc import Mapping
from typing import Any

from regard.data.special_tokens import EOS, NAMES
from regard.data.text.tokenizers.pretrained import SPECIAL, Pretrained

NEVER = -1e4
"""The log-probability of a piece that no text is cut into."""


def renumber(tokens: Pretrained) -> Any:
    """The tokenizer of an imported model with our numbers as its ids, and EOS behind each text; or why there is none.

    Ids stand in the vocabulary of its model, among the tokens that were added, and in the template around a text.
    """
    from tokenizers import Tokenizer

    table = json.loads(tokens.model.to_str())
    added = [
        {**token, "id": tokens.numbers[token["id"]]} for token in table["added_tokens"] if token["id"] in tokens.numbers
    ]
    table["added_tokens"] = sorted(added, key=lambda token: int(token["id"]))
    table["model"] |= _renumber_model(table["model"], {token["id"]: token["content"] for token in added}, tokens)
    table["post_processor"] = _renumber_template(table.get("post_processor"), tokens)
    try:
        model = Tokenizer.from_str(json.dumps(table))
    except Exception as error:  # the library raises nothing narrower
        return f"the tokenizers library has no such model with other ids ({' '.join(str(error).split())})"
    if model.encode("a").ids[-1:] != [EOS]:
        model = Tokenizer.from_str(json.dumps(_end(table, str(model.id_to_token(EOS)))))
    if any(model.encode(text).ids != [*tokens.encode(text), EOS] for text in ("a b", "A text, of 12 words.", "汤姆 é")):
        return "the tokenizers library numbers its texts otherwise"
    return model


def _renumber_model(model: dict[str, Any], added: Mapping[int, str], tokens: Pretrained) -> dict[str, Any]:
    """The vocabulary of a model, listed by our numbers, without gaps: the library would number added tokens into them."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        named = {tokens.numbers[token_id]: token for token, token_id in vocabulary.items() if token_id in tokens.numbers}
        return {"vocab": {named.get(number) or _fill(number, added): number for number in range(tokens.size)}}
    own = {tokens.numbers[token_id]: piece for token_id, piece in enumerate(vocabulary) if token_id in tokens.numbers}
    pieces = [own.get(number) or [_fill(number, added), NEVER] for number in range(tokens.size)]
    unknown = model.get("unk_id")
    return {"vocab": pieces, "unk_id": None if unknown is None else tokens.numbers.get(unknown)}


def _fill(number: int, added: Mapping[int, str]) -> str:
    """The name of a number that the vocabulary lacks: of an added token, of a copy, or of an id without any token."""
    return added.get(number) or (NAMES[number] if number in SPECIAL else f"<number {number}>")


def _renumber_template(template: Any, tokens: Pretrained) -> Any:
    """A post-processor in JSON with our numbers: `ids` of a template, and pairs of a token and its id."""
    if isinstance(template, dict):
        return {
            name: [tokens.numbers.get(token_id, token_id) for token_id in value]
            if name == "ids"
            else _renumber_template(value, tokens)
            for name, value in template.items()
        }
    if isinstance(template, list):
        if len(template) == 2 and isinstance(template[0], str) and type(template[1]) is int:
            return [template[0], tokens.numbers.get(template[1], template[1])]
        return [_renumber_template(part, tokens) for part in template]
    return template


def _end(table: dict[str, Any], name: str) -> dict[str, Any]:
    """The JSON of a tokenizer whose template puts EOS behind each text too; a sequence takes one template alone."""
    own = table.get("post_processor")
    steps = own["processors"] if own is not None and own["type"] == "Sequence" else [own] if own is not None else []
    end = {"SpecialToken": {"id": name, "type_id": 0}}
    special = {name: {"id": name, "ids": [EOS], "tokens": [name]}}
    template = next((processor for processor in steps if processor["type"] == "TemplateProcessing"), None)
    if template is None:
        text = [{"Sequence": {"id": side, "type_id": 0}} for side in "AB"]
        ended = {"type": "TemplateProcessing", "single": [text[0], end], "pair": [*text, end], "special_tokens": special}
        steps = [*steps, ended]
    else:
        ended = {"single": [*template["single"], end], "special_tokens": template["special_tokens"] | special}
        steps = [processor | ended if processor is template else processor for processor in steps]
    return table | {"post_processor": {"type": "Sequence", "processors": steps}}
