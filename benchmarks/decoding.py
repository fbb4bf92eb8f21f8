"""Decoding on the CPU beside what people use instead: milliseconds a sentence.

With `--run DIR`, once for each run: its trained weights on Multi30k's test_2016, where sentences end by themselves, and in
how many lines each side writes what our reference search writes. Rows go to results/decoding_run.csv:

    python benchmarks/decoding.py --run runs/transformer --run runs/lstm --data multi30k/tok --threads 1

Without it: random weights and 15 tokens forced, which times steps alone; rows go to results/decoding.csv. The Transformer
has 3 + 3 layers of 256 with 4 heads and 1,024 inside over a joint vocabulary of 8,000. The recurrent model is a
bidirectional LSTM of 256 and an LSTM of 512 with Luong's general attention and input feeding. EOS is out of reach.

All sides of _decoders.py have the same weights and the same batches, sorted by length, and take turns.
"""

import argparse
import copy
import csv
import gzip
import platform
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

from _decoders import Answers, Side, sides
from attention import commit, hardware
from regard import tasks
from regard.config import AttentionPart, Data, Dropout, Model
from regard.data.batch import Padded
from regard.data.special_tokens import EOS, PAD
from regard.data.table import Record
from regard.data.text.codec import TextCodec
from regard.inference.load import load
from regard.inference.sequence_predictor import SequencePredictor
from regard.models.seq2seq import build
from regard.tasks.translate import Config

VOCABULARY, TOKENS = 8000, 15
DATA = Data(vocab_size=VOCABULARY, joint_vocab=True)
RESULTS = Path(__file__).parent / "results"
CASES = ((1, 1), (1, 64), (5, 1), (5, 64))
"""Beams and sentences a batch."""
MODELS = {
    "transformer": Model(
        hidden_size=256,
        layers=3,
        heads=4,
        feedforward_size=1024,
        encoder="transformer",
        decoder="transformer",
        attention=AttentionPart(name="transformer", heads=4),
    ),
    "lstm": Model(hidden_size=512, embedding_size=256, attention=AttentionPart(name="bilinear"), tie_embeddings=False),
}


class Turn(NamedTuple):
    """One batch of one side: seconds of wall and of CPU, and what was written."""

    wall: float
    used: float
    answers: Answers


def made(kind: str) -> SequencePredictor:
    """A model with random weights that never ends a sentence by itself, and words for its tokens, as an export needs it."""
    model = build(MODELS[kind], Dropout(), VOCABULARY, VOCABULARY, kind == "transformer").eval().requires_grad_(False)
    model.decoder.output.bias[EOS] = -1e4
    codec = TextCodec.fit([Record(*[" ".join(f"w{number}" for number in range(VOCABULARY))] * 2, "")], DATA)
    return SequencePredictor(tasks.bind("translate"), Config(data=DATA, model=MODELS[kind]), codec, model)


def sources(batch: int, generator: torch.Generator) -> Padded:
    """Sentences of 8 to 21 tokens."""
    lengths = torch.randint(8, 22, (batch,), generator=generator)
    keep = torch.arange(int(lengths.max())) < lengths[:, None]
    data = torch.randint(4, VOCABULARY, keep.shape, generator=generator).masked_fill(~keep, PAD)
    return Padded(data, keep)


def test_set(trained: SequencePredictor, folder: Path, part: str, count: int, batch: int) -> list[Padded]:
    """The first sentences of a part of Multi30k as the model reads them, in batches of so many, the shortest first."""
    lines = gzip.decompress((folder / f"{part}.lc.norm.tok.en.gz").read_bytes()).decode().splitlines()[:count]
    records = [trained.task.prepare(Record(line, None, str(number))) for number, line in enumerate(lines, 1)]
    rows = sorted((each.source for each in trained.codec.encode_all(records, over_long="truncate").examples), key=len)
    found = []
    for few in (rows[first : first + batch] for first in range(0, len(rows), batch)):
        keep = torch.arange(len(few[-1])) < torch.tensor([[len(row)] for row in few])
        data = torch.tensor([[*row, *[PAD] * (len(few[-1]) - len(row))] for row in few])
        found.append(Padded(data, keep))
    return found


def turns(found: dict[str, Side], batches: list[Padded], beams: int, length: int) -> dict[str, list[Turn]]:
    """What each side took and wrote for each batch; the order goes to and fro."""
    taken: dict[str, list[Turn]] = {name: [] for name in found}
    for number, source in enumerate(batches):
        for name in list(found)[:: 1 if number % 2 else -1]:
            wall, used = time.perf_counter(), time.process_time()
            answers = found[name](source, beams, length)
            taken[name].append(Turn(time.perf_counter() - wall, time.process_time() - used, answers))
    return taken


def forced(kind: str, threads: int, rounds: int) -> None:
    """Random weights and forced lengths: medians over rounds."""
    trained = made(kind)
    found = sides(trained, copy.deepcopy(trained.model), threads, forced=True)
    source = sources(4, torch.Generator().manual_seed(1))
    for name in {"float32", "compiled", "ONNX float32"} & found.keys():
        assert found[name](source, 5, TOKENS) == found["reference"](source, 5, TOKENS), f"{name} and the reference differ"
    for beams, batch in CASES:
        generator = torch.Generator().manual_seed(0)
        batches = [sources(batch, generator) for _ in range(2 + rounds * (8 if batch == 1 else 1))]
        taken = turns(found, batches, beams, TOKENS)
        figures = {  # the first two rounds warm up
            name: [1000 * statistics.median(side) / batch for side in list(zip(*each[2:], strict=True))[:2]]
            for name, each in taken.items()
        }
        tell(RESULTS / "decoding.csv", {"kind": kind, "beam": beams, "batch": batch}, threads, figures)


def real(run: Path, threads: int, options: argparse.Namespace) -> None:
    """Trained weights on the test set: all time over all sentences, and the share of lines that are the reference's."""
    trained = load(run, "cpu")
    found = sides(trained, load(run, "cpu").model, threads, forced=False)
    for beams, batch in CASES:
        count = options.sentences if batch > 1 else min(options.alone, options.sentences)
        batches = test_set(trained, options.data, options.part, count, batch)
        turns(found, batches[len(batches) // 2 :][:2], beams, options.length)  # warm up
        taken = turns(found, batches, beams, options.length)
        right = [tokens for turn in taken["reference"] for tokens in turn.answers]
        figures, told = {}, {}
        for name, each in taken.items():
            wall, used = (1000 * sum(side) / len(right) for side in list(zip(*each, strict=True))[:2])
            written = [tokens for turn in each for tokens in turn.answers]
            same = sum(tokens == other for tokens, other in zip(written, right, strict=True)) / len(right)
            figures[name], told[name] = [wall, used], {"equal": f"{same:.4f}", "tokens": sum(map(len, written))}
        about = {"kind": trained.config.model.decoder, "beam": beams, "batch": batch, "sentences": len(right)}
        tell(RESULTS / "decoding_run.csv", about, threads, figures, told)


def tell(
    path: Path,
    about: dict[str, Any],
    threads: int,
    figures: dict[str, list[float]],
    told: dict[str, dict[str, Any]] | None = None,
) -> None:
    """Print a row for each side and append it to the results at once: whoever stops in between keeps what was measured."""
    versions = f"python {platform.python_version()} torch {torch.__version__}"
    for name, (wall, used) in figures.items():
        row = {**about, "who": name, "threads": threads, "wall_ms": f"{wall:.3f}", "cpu_ms": f"{used:.3f}"}
        ours = figures["float32"]
        ratio = used / ours[1] if threads == 1 else wall / ours[0]  # of CPU time where that is all: others may be at work
        row |= {"float32_over_it": f"{ratio:.3f}", **(told or {}).get(name, {})}
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        row |= {"hardware": hardware(), "versions": versions, "commit": commit()}
        fresh = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(row))
            if fresh:
                writer.writeheader()
            writer.writerow(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7, help="random weights: batches a case")
    parser.add_argument("--only", default="", choices=["", *MODELS], help="random weights: one kind")
    parser.add_argument("--run", type=Path, action="append", help="a run trained on Multi30k; may be repeated")
    parser.add_argument("--data", type=Path, help="with --run: the folder with test_2016_flickr.lc.norm.tok.en.gz")
    parser.add_argument("--part", default="test_2016_flickr")
    parser.add_argument("--sentences", type=int, default=1000, help="with --run: how many")
    parser.add_argument("--alone", type=int, default=1000, help="with --run: how many of them one by one")
    parser.add_argument("--length", type=int, default=60, help="with --run: the most tokens of an answer, for all sides")
    options = parser.parse_args()
    if options.run and not options.data:
        parser.error("--run needs --data, the folder that holds Multi30k's tokenized files")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(f"{options.threads} threads, {hardware()}, torch {torch.__version__}")
    for run in options.run or ():
        real(run, options.threads, options)
    for kind in () if options.run else MODELS:
        if options.only in ("", kind):
            forced(kind, options.threads, options.rounds)


if __name__ == "__main__":
    main()
