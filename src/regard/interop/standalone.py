"""Stand-alone exports: the tokenizers beside a model, export.json that describes it, and README.md that runs it.

    export.json   special tokens, sizes of vocabularies, rule of the search for the length of an answer, digests of the files

Whoever reads them needs the runtime of the export and the tokenizers library, and nothing of regard.
"""

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from string import Template
from typing import Any, NamedTuple

import regard
from regard import manifest, tasks
from regard.config import Search
from regard.data.image.codec import ImageTextCodec
from regard.data.records import Record
from regard.data.special_tokens import BOS, EOS, PAD, UNK
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers import Tokenizer
from regard.decoding.max_length import SLACK
from regard.inference.sequence_predictor import SequencePredictor
from regard.interop.tokenizer import build_tokenizer

CONFIG, README = "export.json", "README.md"
FORMAT = 1
SIDES = ("source", "target")


class Tokenizers(NamedTuple):
    """The tokenizers of an export: their files by name, the file of each side, and why a side has none."""

    files: dict[str, bytes]
    names: dict[str, str | None]
    reasons: dict[str, str]


def build_tokenizers(codec: TextCodec | ImageTextCodec) -> Tokenizers:
    """The tokenizers of a codec with the ids of the exported graphs; one file where both sides share their tokens."""
    sides = (
        {"target": codec.target} if isinstance(codec, ImageTextCodec) else {"source": codec.source, "target": codec.target}
    )
    joint = len(sides) == 2 and codec.target is sides["source"]
    built = Tokenizers({}, {}, {})
    for side, tokens in sides.items():
        if joint and side == "target":
            built.names[side] = built.names["source"]
            continue
        model = build_tokenizer(tokens, codec.lowercase)
        if isinstance(model, str):
            built.names[side], built.reasons[side] = None, model
            continue
        built.names[side] = name = "tokenizer.json" if joint else f"{side}_tokenizer.json"
        built.files[name] = model.to_str().encode()
    return built


def describe(trained: SequencePredictor, tokenizers: Tokenizers, files: Mapping[str, bytes], **more: Any) -> dict[str, Any]:
    """Content of export.json: the model and the files of its export."""
    codec, search = trained.codec, trained.config.search
    reads = {} if isinstance(codec, ImageTextCodec) else {"source": codec.source.size}
    table: dict[str, Any] = {"format": FORMAT, "regard": regard.__version__, "task": trained.name}
    table |= {"special_tokens": {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK}, "forced_bos": search.forced_bos}
    table |= {"vocabulary": {**reads, "target": codec.target.size}, "tokenizers": tokenizers.names}
    if reads:
        table["max_source_length"] = codec.max_source_length
    table["search"] = {
        "beam": search.beam,
        "length_penalty": search.length_penalty,
        "block_ngrams": search.block_ngrams,
        "max_length": search.max_length,
        "max_length_ratio": search.max_length_ratio if reads else 0.0,
        "max_length_slack": SLACK,
        "length_rule": "min(max_length, int(max_length_ratio * source length) + max_length_slack), with EOS on both sides; "
        "max_length where max_length_ratio is 0",
    }
    digests = {name: manifest.digest(data) for name, data in files.items()}
    return {**table, **more, "files": digests}


def dump(table: Mapping[str, Any]) -> bytes:
    """JSON of a description."""
    return (json.dumps(table, indent=2, ensure_ascii=False) + "\n").encode()


def fill_readme(template: str, trained: SequencePredictor, tokenizers: Tokenizers, **more: str) -> str:
    """README.md from a template of the package: the code for the tokenizers that there are, and what else is to be known."""
    package, _, name = template.rpartition("/")
    page = resources.files(f"regard.interop.{package}").joinpath(name).read_text(encoding="utf-8")
    known = [side for side, file in tokenizers.names.items() if file is not None]
    code = {"imports": "from tokenizers import Tokenizer" if known else "", "limit": compute_limit(trained)}
    code["load"] = "\n".join(f'{side} = Tokenizer.from_file(export["tokenizers"]["{side}"])' for side in known)
    if "source" in known:
        code["load"] += "\nsource.encode_special_tokens = True  # a text may hold the name of one"
    code["encode"] = "source.encode(text).ids" if "source" in known else "[*map(int, text.split()), eos]"
    call = "generate(image)" if "source" not in tokenizers.names else "generate(encode(text))"
    code["decode"] = f"target.decode({call})" if "target" in known else call
    if "source" in tokenizers.names:
        code["example"] = repr(choose_example(trained, ids="source" not in known))
    values = {"title": trained.name, "task": trained.name, "notes": "\n".join(write_notes(trained, tokenizers)), **code}
    return Template(page).substitute({**values, **more})


def write_notes(trained: SequencePredictor, tokenizers: Tokenizers) -> Iterator[str]:
    """Lines on what the code leaves out: other searches, preparation of texts, sides without a tokenizer."""
    search = trained.config.search
    yield "The code searches greedily. `export.json` has the special tokens, the sizes of vocabularies, the settings of the"
    yield "search with its rule for the length of an answer, and the digests by which files of another export are refused."
    if "source" in tokenizers.names:
        yield "A token that is out of the vocabulary, and a source in which the model knows nothing, are errors."
    settings = {name: getattr(search, name) for name in ("beam", "block_ngrams", "mbr")}
    usual = Search()
    if different := [f"search.{name} = {value}" for name, value in settings.items() if value != getattr(usual, name)]:
        yield f"The model is set to {', '.join(different)}, which `regard predict` follows."
    for side, reason in tokenizers.reasons.items():
        noun = "A source" if side == "source" else "An answer"
        yield f"{noun} is a list of token ids, since the tokenizers library has no tokenizer for it: {reason}."
    if (prepared := show_preparation(trained)) is not None:
        yield prepared


def show_preparation(trained: SequencePredictor) -> str | None:
    """A sentence on how the task writes its texts for the model, by an example; None where it leaves them as they are."""
    if isinstance(trained.codec, ImageTextCodec):
        return None
    record = tasks.find(trained.name).synthesise(20, 0)[0][0]
    prepared = trained.task.prepare(record)
    if (prepared.source, prepared.target) == (record.source, record.target):
        return None
    return (
        f"The task `{trained.name}` prepares its texts before they are tokenized: {record.source!r} becomes "
        f"{prepared.source!r}, and the model answers {prepared.target!r} for {record.target!r}."
    )


def compute_limit(trained: SequencePredictor) -> str:
    """The length rule of a model as an expression of Python over `ids`, a source."""
    search = trained.config.search
    if isinstance(trained.codec, ImageTextCodec) or not search.max_length_ratio:
        return str(search.max_length)
    return f"min({search.max_length}, int({search.max_length_ratio} * len(ids)) + {SLACK})"


def choose_example(trained: SequencePredictor, ids: bool = False) -> str:
    """A source that the model knows, as its task prepares it: of the task's synthetic data, or some of its own tokens."""
    codec = trained.codec
    if ids:
        return " ".join(map(str, range(UNK + 1, min(codec.source.size, UNK + 5))))
    records = tasks.find(trained.name).synthesise(20, 0)[1]
    for record in records:
        text = codec.prepare(trained.task.prepare(Record(record.source, None, "example")).source)
        if UNK not in codec.source.encode(text):
            return str(text)
    return _join_known(codec.source)


def _join_known(tokens: Tokenizer) -> str:
    """Text of some tokens of letters, and of any others where there are none."""
    spelt = (spelling.decode("utf-8", "replace").strip(" ▁") for spelling in tokens.table)
    letters = [number for number, text in enumerate(spelt) if number > UNK and text.isalnum() and len(text) > 1]
    return tokens.decode(letters[:4] or range(UNK + 1, min(tokens.size, UNK + 5))).strip()
