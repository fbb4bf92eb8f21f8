"""Decoding engines of a CPU side by side: prepared weights, the module's own steps, the reference search, compiled C++.

    python benchmarks/decoding_engines.py --threads 1 --rounds 5

All engines search for the same sources with the same random weights (EOS out of reach, 20 tokens) and take turns. Their
tokens have to be the same. A row of results/decoding_engines.csv has the median CPU time of prepared weights, and the median
of each engine's ratio to it, round by round. The models have a vocabulary of 8,000.
"""

import argparse
import csv
import platform
import statistics
import time
from pathlib import Path
from unittest.mock import patch

import torch

from attention import commit, hardware
from regard.config import AttentionPart, Dropout, Model, Search
from regard.data.batch import Padded
from regard.data.special_tokens import EOS
from regard.decoding.engines import select
from regard.decoding.search import Searcher
from regard.models.seq2seq import Seq2Seq, build

VOCABULARY, SOURCE, TOKENS = 8000, 12, 20
CASES = ((1, 1), (4, 1), (1, 64), (4, 64))
"""Beams and sentences a batch."""
TRANSFORMER = {"encoder": "transformer", "decoder": "transformer", "layers": 3, "attention": AttentionPart("transformer")}
CONVOLUTION = {"encoder": "convolution", "decoder": "convolution", "layers": 3, "attention": AttentionPart("dot")}
MODELS = {
    "LSTM 128, additive": Model(hidden_size=128),
    "LSTM 512, additive": Model(hidden_size=512),
    "Transformer 3 + 3 x 128": Model(hidden_size=128, **TRANSFORMER),
    "Transformer 3 + 3 x 512": Model(hidden_size=512, **TRANSFORMER),
    "convolution 3 + 3 x 256": Model(hidden_size=256, **CONVOLUTION),
}
ENGINES = ("prepared", "module", "reference", "C++")


class ReferenceSearcher(Searcher):
    """Searcher that never selects a fast engine."""

    def fast(self, *arguments, **options):
        return None


def search(engine: str, model: Seq2Seq, memory, beams: int) -> tuple[float, list[list[int]]]:
    """CPU seconds of one search, and the tokens of each source."""
    searcher = (ReferenceSearcher if engine == "reference" else Searcher)(Search(beam=beams), str, compiled=engine == "C++")
    rows = len(select.find_tensor(memory))
    kinds = () if engine == "module" else select.KINDS
    with patch.object(select, "KINDS", kinds), torch.inference_mode():
        began = time.process_time()
        hypotheses = searcher(model.decoder, memory, [TOKENS] * rows)
        return time.process_time() - began, [few[0].tokens for few in hypotheses]


def compare(name: str, beams: int, batch: int, rounds: int) -> dict[str, object]:
    """One row: the time of prepared weights, and the ratio of each other engine to it."""
    torch.manual_seed(0)
    model = build(MODELS[name], Dropout(), VOCABULARY, VOCABULARY, joint=False).eval().requires_grad_(False)
    model.decoder.output.bias[EOS] = -1e4
    data = torch.randint(4, VOCABULARY, (batch, SOURCE))
    with torch.inference_mode():
        memory = model.encode(Padded(data, torch.ones_like(data, dtype=torch.bool)))
    tokens = {engine: search(engine, model, memory, beams)[1] for engine in ENGINES}
    assert all(tokens[engine] == tokens["prepared"] for engine in ENGINES), f"{name}: engines differ"
    seconds: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for turn in range(rounds):
        for engine in ENGINES[turn % 4 :] + ENGINES[: turn % 4]:
            seconds[engine].append(search(engine, model, memory, beams)[0])
    ratios = {
        engine: statistics.median(own / base for own, base in zip(seconds[engine], seconds["prepared"], strict=True))
        for engine in ENGINES[1:]
    }
    row = {
        "model": name,
        "beam": beams,
        "batch": batch,
        "prepared_ms": f"{statistics.median(seconds['prepared']) * 1e3:.2f}",
    }
    return row | {f"{engine}_over_it": f"{ratio:.2f}" for engine, ratio in ratios.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    versions = f"python {platform.python_version()} torch {torch.__version__}"
    origin = {"threads": arguments.threads, "hardware": hardware(), "versions": versions, "commit": commit()}
    rows = []
    for name in MODELS:
        for beams, batch in CASES:
            rows.append(compare(name, beams, batch, arguments.rounds) | origin)
            print(*list(rows[-1].values())[:7], sep="\t", flush=True)
    with (Path(__file__).parent / "results/decoding_engines.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
