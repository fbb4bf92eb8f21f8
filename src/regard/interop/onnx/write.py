"""Export to ONNX: what regard.load opens, and whose graphs any runtime of ONNX can run.

    encoder.onnx  step.onnx  tokenizers  export.json  README.md  config.toml  codec files  manifest.json

These lie in one file where its name ends in .zip (`archive.py` says why), else in a directory. Each graph has its weights
inside; `graphs.py` says what goes in and comes out.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from regard import config as configuration
from regard import manifest
from regard.alignment.heads import Head
from regard.errors import RefusedError
from regard.inference.alignment_head import ENTRY
from regard.inference.load import load
from regard.inference.sequence_predictor import SequencePredictor
from regard.interop.compat import refuse_unfinite
from regard.interop.onnx import parity, tracing
from regard.interop.onnx.archive import packed
from regard.interop.onnx.quantise import quantised
from regard.interop.onnx.sessions import ENCODER, Graph
from regard.interop.onnx.sources import source_limit
from regard.interop.output import check_free, write_directory, write_file
from regard.interop.require import needed
from regard.interop.standalone import CONFIG as DESCRIPTION
from regard.interop.standalone import README, build_tokenizers, describe, dump, fill_readme
from regard.models.seq2seq import Seq2Seq
from regard.training.run_directory import ARCHIVE, CONFIG, STEP

PRECISIONS = ("float32", "int8")
MOST = 2**31 - 2**20
"""Bytes that a file of ONNX may hold, with room for what is not weights."""


def write(run: Path, out: Path, precision: str = "float32") -> str:
    """Make the directory or the file, and say what it is."""
    check_free(out)
    exported = files(writer(run), precision)
    size = write_file(out, packed(exported)) if out.suffix == ARCHIVE else write_directory(out, exported)
    return (
        f"{out}: graphs of ONNX in {precision}, {size:,} bytes; `regard predict {out}` runs them, and the code in its "
        "README.md does so without regard"
    )


def writer(run: Path) -> SequencePredictor:
    """The model of a run, where it writes text."""
    predictor = load(run, "cpu")
    if isinstance(predictor, SequencePredictor):
        return predictor
    raise RefusedError(
        f"{run} is a run of {predictor.name}, and onnx takes models that write: of those that see pictures, caption's; "
        f"`regard predict {run}` without --engine runs it, and regard.load(...).model is its network, for torch.export"
    )


def files(trained: SequencePredictor, precision: str = "float32") -> dict[str, bytes]:
    """The directory that `regard.load` opens, file by file. The graphs equal the model, or nothing comes.

    With int8 the weights of products, recurrent layers and embeddings have 8 bits; that they equal the model is seen before.
    """
    if precision not in PRECISIONS:
        raise RefusedError(f"onnx has the precisions {', '.join(PRECISIONS)}, got {precision!r}; name one of them")
    encoded_graphs = graphs(trained, precision)
    texts = {CONFIG: f'task = "{trained.name}"\n{configuration.write(trained.config)}'.encode(), **codec(trained)}
    every = {ENCODER: encoded_graphs[0], STEP: encoded_graphs[1], **texts}
    every |= standalone(trained, every)
    noted = {} if trained.head == Head() else {ENTRY: trained.head._asdict()}
    digests = {name: manifest.digest(data) for name, data in every.items()}
    return {**every, manifest.NAME: manifest.seal({"files": digests, "pending": {}, **noted})}


def standalone(trained: SequencePredictor, graphs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Tokenizers, export.json and README.md, by which the graphs run without regard."""
    tokenizers, most = build_tokenizers(trained.codec), source_limit(trained.config)
    described, template, more = {}, "onnx/readme_text.md", {}
    if not isinstance(most, int):
        data, stride = trained.config.data, most.stride
        described["image"] = {"height": data.height, "width": data.width, "channels": data.channels, "stride": stride}
        template, more = "onnx/readme_image.md", {"mode": "L" if data.channels == 1 else "RGB"}
    forced = trained.config.search.forced_bos is not None
    likeliest = "int(scores.argmax())"
    more["choice"] = f'{likeliest} if answer else export["forced_bos"]' if forced else likeliest
    page = fill_readme(template, trained, tokenizers, **more)
    files = {name: graphs[name] for name in (ENCODER, STEP)} | tokenizers.files
    return {**tokenizers.files, DESCRIPTION: dump(describe(trained, tokenizers, files, **described)), README: page.encode()}


def graphs(trained: SequencePredictor, precision: str = "float32") -> tuple[bytes, bytes]:
    """The encoder and the step of a model, as the bytes of their files."""
    model = trained.model
    if not isinstance(model, Seq2Seq):
        raise RefusedError(
            "onnx takes one network of PyTorch, and this is an ensemble or an export: take one of its members, or the run "
            "that it was made from"
        )
    refuse_unfinite(model, "onnx")
    if not trained.reads_source:
        raise RefusedError(
            f"onnx takes an encoder and a decoder, and this model ({trained.name}) has no source to encode: it runs "
            "as it is with `regard predict`"
        )
    own = getattr(trained.config.model, "vit", None)
    if own is not None and (own.cls_tokens or own.learned_positions):
        raise RefusedError(
            "onnx leaves the sizes of pictures open, and this model has one vector for each place or some for the whole "
            "(model.vit.learned_positions, model.vit.cls_tokens): `regard export --to huggingface` takes a ViT"
        )
    if getattr(trained.config.model, "copy", False):
        raise RefusedError(
            "onnx takes the tokens of a source alone, and this model copies words that no vocabulary lists "
            "(model.copy=true): it runs as it is with `regard predict`"
        )
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    if weights > MOST:
        raise RefusedError(
            f"a file of ONNX holds up to 2 GiB, and the weights of this model take {weights:,} bytes; it runs as it is with "
            "`regard predict`"
        )
    for library in ("onnx", "onnxscript", "onnxruntime"):
        needed(library, "onnx")
    most = source_limit(trained.config)
    traced = tracing.encoder(model, most), tracing.step(model, most)
    parity.check_parity(model, Graph(traced[0], ENCODER), Graph(traced[1], STEP), most)
    return traced if precision == "float32" else (quantised(traced[0]), quantised(traced[1]))


def codec(trained: SequencePredictor) -> dict[str, bytes]:
    """Files of the codec by name, with their content."""
    with tempfile.TemporaryDirectory() as folder:
        saved = trained.codec.save(Path(folder))
        return {str(path.relative_to(folder)): path.read_bytes() for path in saved}
