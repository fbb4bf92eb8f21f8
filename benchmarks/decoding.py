"""Decoding on the CPU beside what people use instead: milliseconds a sentence, 15 tokens forced, with random weights.

The Transformer is 3 + 3 layers of 256 with 4 heads and 1,024 inside over a joint vocabulary of 8,000, beside Hugging Face's
Marian of the same shape (when `transformers` is there) and CTranslate2 with the same weights (when it is there). The
recurrent model is a bidirectional LSTM of 256 and an LSTM of 512 with Luong's general attention and input feeding, beside a
hand-written step loop over the same weights. "ONNX" is our export of either in onnxruntime, "reference" our own search
without the engine (decoding/beam.py). EOS is out of reach but for the length limit, so that all sides write 15 tokens. Sides
take turns; medians of wall and of CPU time go to results/decoding.csv.
"""

import argparse
import csv
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attention import commit, hardware
from regard.config import AttentionPart, Data, Dropout, Model
from regard.data.batch import Padded
from regard.data.table import Record
from regard.data.text import TextCodec
from regard.data.vocabulary import BOS, EOS, PAD
from regard.decoding import beam as reference
from regard.models.seq2seq import Seq2Seq, build
from regard.native.beam import beam as native
from regard.native.ready import ready
from regard.tasks.translate import Config
from regard.trained import Trained
from regard.training.errors import RefusedError

VOCABULARY, TOKENS = 8000, 15
DATA = Data(vocabulary=VOCABULARY, joint=True)
RESULTS = Path(__file__).parent / "results" / "decoding.csv"
HEADER = [
    "kind",
    "beam",
    "batch",
    "who",
    "threads",
    "wall_ms",
    "cpu_ms",
    "float32_over_it",
    "hardware",
    "versions",
    "commit",
]
MODELS = {
    "transformer": Model(
        size=256,
        layers=3,
        heads=4,
        feedforward=1024,
        encoder="transformer",
        decoder="transformer",
        attention=AttentionPart(name="transformer", heads=4),
    ),
    "lstm": Model(size=512, embedding=256, attention=AttentionPart(name="bilinear"), tie=False),
}
Side = Callable[[Padded, int], Any]


def made(kind: str) -> Seq2Seq:
    """A model with random weights that never ends a sentence by itself."""
    model = build(MODELS[kind], Dropout(), VOCABULARY, VOCABULARY, kind == "transformer").eval().requires_grad_(False)
    model.decoder.output.bias[EOS] = -1e4
    return model


def sources(batch: int, generator: torch.Generator) -> Padded:
    """Sentences of 8 to 21 tokens."""
    lengths = torch.randint(8, 22, (batch,), generator=generator)
    keep = torch.arange(int(lengths.max())) < lengths[:, None]
    data = torch.randint(4, VOCABULARY, keep.shape, generator=generator).masked_fill(~keep, PAD)
    return Padded(data, keep)


def ours(model: Seq2Seq, precision: str) -> Side:
    """The engine."""

    def run(source: Padded, beams: int) -> list[list[int]]:
        with torch.inference_mode():
            memory = model.encode(source)
        found = native(ready(model.decoder, memory, precision), memory, beams=beams, length=TOKENS)
        return [each[0].tokens for each in found]

    return run


def before(model: Seq2Seq) -> Side:
    """The search that knows every option."""

    def run(source: Padded, beams: int) -> list[list[int]]:
        with torch.no_grad():
            memory = model.encode(source)
        return [each[0].tokens for each in reference(model.decoder, memory, beams=beams, length=TOKENS)]

    return run


def by_hand(model: Seq2Seq) -> Side:
    """What a person writes: step after step over (sentences x beams) rows, log-softmax, top-k, states reordered."""
    decoder, encoder = model.decoder, model.encoder
    cell = torch.nn.LSTMCell(256 + 512, 512).requires_grad_(False)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(cell, name, torch.nn.Parameter(decoder.layers[0].get_parameter(f"{name}_l0"), requires_grad=False))

    @torch.no_grad()
    def run(source: Padded, beams: int) -> list[list[int]]:
        encoded = encoder(source)
        batch, rows = len(source.data), len(source.data) * beams
        values = encoded.data.repeat_interleave(beams, 0)
        keys = decoder.cross.score.W(encoded.data[:, None])[:, 0].repeat_interleave(beams, 0)
        keep = source.keep.repeat_interleave(beams, 0)
        h, c = (each[:, 0].repeat_interleave(beams, 0) for each in encoded.final)
        feed, token = torch.zeros_like(h), torch.full((rows,), BOS)
        scores = torch.full((batch, beams), -torch.inf)
        scores[:, 0] = 0.0
        written = torch.zeros(rows, 0, dtype=torch.long)
        for _ in range(TOKENS):
            h, c = cell(torch.cat((decoder.embedding.table(token), feed), -1), (h, c))
            weights = (keys @ h[..., None])[..., 0].masked_fill(~keep, -torch.inf).softmax(-1)
            context = (weights[:, None] @ values)[:, 0]
            feed = torch.tanh(decoder.readout(torch.cat((h, context), -1)))
            logs = decoder.output(feed, decoder.embedding.table.weight).log_softmax(-1)
            logs[:, [PAD, BOS]] = -torch.inf
            totals = (scores.view(-1, 1) + logs).view(batch, -1)
            scores, places = totals.topk(beams)
            parents = (places // VOCABULARY + torch.arange(batch)[:, None] * beams).flatten()
            token = (places % VOCABULARY).flatten()
            h, c, feed, written = h[parents], c[parents], feed[parents], torch.cat((written[parents], token[:, None]), 1)
        return written.view(batch, beams, -1)[:, 0].tolist()

    return run


def hugging_face(model: Seq2Seq) -> Side:
    """Marian with our shape. Its weights are its own: time does not depend on them."""
    from transformers import MarianConfig, MarianMTModel

    half = {"layers": 3, "attention_heads": 4, "ffn_dim": 1024}
    shape = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in half.items()}
    special = {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": BOS, "forced_eos_token_id": None}
    inner = MarianMTModel(MarianConfig(vocab_size=VOCABULARY, d_model=256, **shape, **special)).eval()

    @torch.no_grad()
    def run(source: Padded, beams: int) -> Tensor:
        options = {"num_beams": beams, "do_sample": False, "min_new_tokens": TOKENS, "max_new_tokens": TOKENS}
        return inner.generate(input_ids=source.data, attention_mask=source.keep.long(), **options)

    return run


def whole(model: Seq2Seq, kind: str) -> Trained:
    """The model with words for its tokens, as an export needs it."""
    codec = TextCodec.fit([Record(*[" ".join(f"w{number}" for number in range(VOCABULARY))] * 2, "")], DATA)
    return Trained("translate", Config(data=DATA, model=MODELS[kind]), codec, model)


def onnx(model: Seq2Seq, kind: str, precision: str) -> Side:
    """onnxruntime with our weights, through our export; the search is the engine's."""
    from regard.export.onnx.engine import exported

    graphs = exported(whole(model, kind), precision).model

    def run(source: Padded, beams: int) -> list[list[int]]:
        memory = graphs.encode(source)
        found = native(ready(graphs.decoder, memory), memory, beams=beams, length=TOKENS)
        return [each[0].tokens for each in found]

    return run


def ctranslate2(model: Seq2Seq, precision: str, threads: int) -> Side:
    """CTranslate2 with our weights, through our export."""
    import ctranslate2 as library

    from regard.export.ctranslate2.specification import files, spellings

    trained = whole(model, "transformer")
    spelt = spellings(trained.codec.source)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files(trained, precision).items():
            (Path(folder) / name).write_bytes(data)
        translator = library.Translator(folder, device="cpu", intra_threads=threads, compute_type=precision)

    def run(source: Padded, beams: int) -> Any:
        rows = [[spelt[token] for token in row[keep].tolist()] for row, keep in zip(source.data, source.keep, strict=True)]
        return translator.translate_batch(rows, beam_size=beams, min_decoding_length=TOKENS, max_decoding_length=TOKENS)

    return run


def sides(kind: str, threads: int) -> dict[str, Side]:
    """Who decodes with a model of this kind: ours first; a peer that is not installed is left out, and said so."""
    model = made(kind)
    found = {"float32": ours(model, "float32"), "int8": ours(made(kind), "int8"), "reference": before(model)}
    peers: dict[str, Callable[[], Side]] = {"hand-written": lambda: by_hand(model)}
    if kind == "transformer":
        peers = {
            "Hugging Face": lambda: hugging_face(model),
            "CTranslate2 float32": lambda: ctranslate2(model, "float32", threads),
            "CTranslate2 int8": lambda: ctranslate2(model, "int8", threads),
        }
    peers |= {f"ONNX {precision}": partial(onnx, model, kind, precision) for precision in ("float32", "int8")}
    for name, make in peers.items():
        try:
            found[name] = make()
        except (ImportError, RefusedError) as error:
            print(f"without {name}: {error}")
    return found


def compare(found: dict[str, Side], beams: int, batch: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Milliseconds a sentence of each side, wall and CPU: medians over rounds in which they take turns."""
    generator = torch.Generator().manual_seed(0)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
    for number in range(rounds + 2):
        source = sources(batch, generator)
        for name in list(found)[:: 1 if number % 2 else -1]:
            wall, used = time.perf_counter(), time.process_time()
            found[name](source, beams)
            if number > 1:  # the first rounds warm up
                times[name].append((time.perf_counter() - wall, time.process_time() - used))
    return {
        name: (1000 * statistics.median(wall) / batch, 1000 * statistics.median(used) / batch)
        for name, took in times.items()
        for wall, used in [zip(*took, strict=True)]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", choices=["", *MODELS])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    versions = f"python {platform.python_version()} torch {torch.__version__}"
    print(f"{options.threads} threads, {hardware()}, torch {torch.__version__}")
    for kind in MODELS:
        if options.only not in ("", kind):
            continue
        found = sides(kind, options.threads)
        source = sources(4, torch.Generator().manual_seed(1))
        for name in {"float32", "ONNX float32"} & found.keys():
            assert found[name](source, 5) == found["reference"](source, 5), f"{name} and the reference differ"
        for beams, batch in ((1, 1), (1, 64), (5, 1), (5, 64)):
            took = compare(found, beams, batch, options.rounds * (8 if batch == 1 else 1))
            told = ", ".join(f"{name} {wall:.2f} ({used:.2f})" for name, (wall, used) in took.items())
            print(f"{kind} beam {beams} batch {batch}: ms a sentence, wall (CPU): {told}", flush=True)
            alike = [kind, beams, batch], [hardware(), versions, commit()]
            for name, (wall, used) in took.items():
                figures = [f"{wall:.3f}", f"{used:.3f}", f"{wall / took['float32'][0]:.3f}"]
                write([*alike[0], name, options.threads, *figures, *alike[1]])


def write(row: list[Any]) -> None:
    """Append to the results at once: whoever stops in between keeps what was measured."""
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, row] if fresh else [row])


if __name__ == "__main__":
    main()
