"""Decoding on a GPU beside Hugging Face: milliseconds a sentence and memory, 16 source and 16 forced target tokens.

The model is Transformer-base (6 + 6 layers of 512 with 8 heads and 2,048 inside, a joint vocabulary of 16,000) in bf16 with
random weights, and EOS is out of reach, so that all sides write 16 tokens; Hugging Face's Marian has the same shape. Parity
comes first: in float32, on the same GPU, the engine finds what our own search that knows every option finds, token by token,
with sentences of several lengths that end when they like; where tokens differ, both must be worth the same, to a ten
thousandth, and how many do is printed. Then every side for itself, Hugging Face first, and its memory, weights and all.
"first" is the time to the first answer, of one sentence, of a model that nothing has been made ready for; with --only times
nothing else either. Rows are appended to results/decoding_gpu.csv as they come.

    python benchmarks/decoding_gpu.py                      parity, ours, Hugging Face: on one GPU in about a minute
    python benchmarks/decoding_gpu.py --compile            ours with compiled layers too, which takes its time
    python benchmarks/decoding_gpu.py --only parity        without the times
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

import _bare  # noqa: F401
from _timing import WHERE, Measured, put, tried, where
from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import Padded
from regard.data.special_tokens import BOS, EOS, PAD
from regard.decoding import beam as reference
from regard.decoding.engines.cuda import encoder, select
from regard.decoding.hypothesis import Hypothesis
from regard.models.seq2seq import Seq2Seq, build

RESULTS = Path(__file__).parent / "results" / "decoding_gpu.csv"
HEADER = [
    "name",
    "beam",
    "batch",
    "dtype",
    "ms_a_sentence",
    "spread_ms",
    "peak_bytes",
    "hugging_face_over_it",
    "asked",
    *WHERE,
]
ASKED = {(1, 1): 12, (1, 64): 9, (1, 512): 5, (5, 1): 12, (5, 64): 7, (5, 512): 4}
"""How many times as fast as Hugging Face, by beam and batch."""
MEMORY = 1.3
"""What a beam of 5 may take of what greedy search takes."""
WIDE = {"hidden_size": 512, "layers": 6, "heads": 8, "feedforward_size": 2048}
VOCABULARY, TOKENS = 16_000, 16
DEVICE = torch.device("cuda")
Side = Callable[[Padded, int], object]
Case = tuple[int, int]
"""Beams and sentences."""


def made(ends: float, tie: bool = True) -> Seq2Seq:
    """A model with random weights; `ends` is what EOS is likelier by than other tokens, in spreads of their logits.

    Tied, it says the same again and again; untied, one thing after the other.
    """
    halves = {"encoder": "transformer", "decoder": "transformer", "tie_embeddings": tie}
    model = Model(**WIDE, **halves, attention=AttentionPart(name="transformer", heads=WIDE["heads"]))
    built = build(model, Dropout(), VOCABULARY, VOCABULARY, joint=True).eval().requires_grad_(False).to(DEVICE)
    source = sources(8, 8, 16)
    built.decoder.output.bias[EOS] = ends * built(source, source.data).output.std()
    return built


def sources(batch: int, shortest: int, longest: int) -> Padded:
    lengths = torch.randint(shortest, longest + 1, (batch,))
    lengths[0] = longest
    keep = torch.arange(longest) < lengths[:, None]
    data = torch.randint(4, VOCABULARY, keep.shape).masked_fill(~keep, PAD)
    return Padded(data, keep).to(DEVICE)


def found(model: Seq2Seq, source: Padded, beams: int, length: int, compiled: bool = False) -> list[Hypothesis]:
    """The engine's best."""
    memory = encoder.encode(model, source)
    search = select.find_search(model.decoder, memory, compiled=compiled)
    return [each[0] for each in search(memory, beams=beams, length=length)]


def parity() -> int:
    """How many sentences of some batches the engine answers worse than our own search, or better."""
    strange = 0
    for ends in (-1e4, 1.5, 2.5):
        model = made(ends, tie=False)
        for beams, batch, most in ((1, 37, 40), (5, 37, 40), (5, 1, 70), (1, 3, 70), (4, 8, 9)):
            source = sources(batch, 1, 21)
            with torch.no_grad():
                memory = model.encode(source)
            right = [each[0] for each in reference(model.decoder, memory, beams=beams, length=most)]
            lengths = sorted({len(each.tokens) for each in right})
            for turn in ("recorded", "replayed"):
                pairs = list(zip(found(model, source, beams, most), right, strict=True))
                other = [(one, two) for one, two in pairs if one.tokens != two.tokens]
                wrong = sum(abs(one.normalised - two.normalised) > 1e-4 for one, two in other)
                case = f"beam {beams}, {batch} sentences of {lengths[0]} to {lengths[-1]} tokens, {turn}"
                print(f"parity: {case}: {wrong} wrong, {len(other) - wrong} as good", flush=True)
                strange += wrong
    return strange


def ours(model: Seq2Seq, compiled: bool = False) -> Side:
    return lambda source, beams: found(model, source, beams, TOKENS, compiled)


def hugging_face() -> Side:
    """Marian with our shape. Its weights are its own: time does not depend on them."""
    from transformers import MarianConfig, MarianMTModel

    half = {"layers": WIDE["layers"], "attention_heads": WIDE["heads"], "ffn_dim": WIDE["feedforward"]}
    shape = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in half.items()}
    special = {"pad_token_id": PAD, "eos_token_id": EOS, "decoder_start_token_id": BOS, "forced_eos_token_id": None}
    config = MarianConfig(vocab_size=VOCABULARY, d_model=WIDE["size"], **shape, **special)
    inner = MarianMTModel(config).eval().to(DEVICE, torch.bfloat16)

    @torch.no_grad()
    def run(source: Padded, beams: int) -> Tensor:
        options = {"num_beams": beams, "do_sample": False, "min_new_tokens": TOKENS, "max_new_tokens": TOKENS}
        return inner.generate(input_ids=source.data, attention_mask=source.keep.long(), **options)

    return run


def forget() -> None:
    """Nothing is ready any more, and memory is as it was."""
    select.SEARCHES.clear()
    encoder.ENCODINGS.clear()
    gc.collect()
    torch.cuda.empty_cache()


def first(side: Side) -> float:
    """Seconds to the first answer."""
    source = sources(1, TOKENS, TOKENS)
    began = time.perf_counter()
    side(source, 5)
    return time.perf_counter() - began


def peak(side: Side, source: Padded, beams: int) -> int:
    """Bytes at the highest, weights and all, from the first call of a shape to the third."""
    forget()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        side(source, beams)
    return torch.cuda.max_memory_allocated()


class Took(NamedTuple):
    """What a case took, and its memory at the highest."""

    time: Measured
    peak: int


def times(name: str, make: Callable[[], Side], batches: list[int], peers: dict[Case, Took]) -> dict[Case, Took]:
    """Every case of one side, each of which is a row as soon as it is measured."""
    took: dict[Case, Took] = {}
    forget()
    try:
        side = make()
        print(f"{name}: first answer after {first(side):.2f} s", flush=True)
    except Exception as error:  # a side that cannot run here is a finding, not the end
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
        return took
    for beams, batch in ((beams, batch) for beams in (1, 5) for batch in batches):
        source = sources(batch, TOKENS, TOKENS)
        case = f"{name}, beam {beams}, batch {batch}"
        highest = peak(side, source, beams)
        found = tried(case, partial(partial, side, source, beams), rounds=20)
        if found is None:
            continue
        took[beams, batch] = Took(found, highest)
        each = f"{found.ms / batch:.4f} ms a sentence (spread {found.spread / batch:.4f})"
        print(f"{case:40} {each}, peak {highest / 2**20:.0f} MiB", flush=True)
        put(RESULTS, HEADER, row(name, (beams, batch), took[beams, batch], peers or took))
    return took


def row(name: str, case: Case, mine: Took, peers: dict[Case, Took]) -> list[object]:
    """For the file of results: a sentence's time, and how many times as fast as Hugging Face that is."""
    (beams, batch), (found, highest) = case, mine
    ratio = peers[case].time.ms / found.ms if case in peers else float("nan")
    figures = [f"{found.ms / batch:.5f}", f"{found.spread / batch:.5f}", highest, f"{ratio:.2f}"]
    asked = ASKED.get(case, "") if name.startswith("ours") else ""
    return [name, beams, batch, "bf16", *figures, asked, *where()]


def compared(name: str, mine: dict[Case, Took], peers: dict[Case, Took]) -> None:
    """Say how a side stands to Hugging Face, and what a beam adds to its memory."""
    for (beams, batch), each in mine.items():
        ratio = peers[beams, batch].time.ms / each.time.ms if (beams, batch) in peers else float("nan")
        print(f"{name:16} beam {beams} batch {batch:3}: {ratio:5.2f} times Hugging Face, asked {ASKED.get((beams, batch))}")
        if beams > 1 and (1, batch) in mine:
            print(f"{'':16} memory {each.peak / max(1, mine[1, batch].peak):.2f} of greedy's, asked under {MEMORY}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["parity", "times"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64, 512])
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("needs a GPU, and there is none; on a CPU run benchmarks/decoding.py", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    strange = 0
    if options.only != "times":
        strange = parity()
        print(f"parity: {strange} sentences differ" if strange else "parity: none worse or better", flush=True)
    if options.only == "parity" or strange:
        return 1 if strange else 0
    model = made(ends=-1e4).to(torch.bfloat16)
    sides: dict[str, Callable[[], Side]] = {"ours": lambda: ours(model)}
    if options.compile:
        sides["ours, compiled"] = lambda: ours(model, compiled=True)
    peers = times("Hugging Face", hugging_face, options.batches, {})
    for name, make in sides.items():
        compared(name, times(name, make, options.batches, peers), peers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
