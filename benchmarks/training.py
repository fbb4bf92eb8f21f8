"""Training text models on the CPU beside what people use instead: target tokens a second, padding not counted.

All sides train on the same batches, with Adam, dropout 0.1 and cross-entropy over kept tokens; they take turns, and medians
of the time of a round are compared. The Transformer is 3 + 3 layers of 256 with 4 heads and 1,024 inside, beside Hugging
Face's Marian (when `transformers` is there) and a hand-written loop over nn.Transformer. The recurrent model is a
bidirectional LSTM of 256 and an LSTM of 512 with Luong's general attention and input feeding, beside a hand-written loop
over LSTMCell that projects its outputs once at the end. Sentences are those of Multi30k En-De, or of random lengths where
REGARD_DATA does not name it. Rows are appended to results/training.csv.
"""

import argparse
import csv
import dataclasses
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attention import commit, hardware
from regard.attention.positions.sinusoidal import Sinusoidal
from regard.config import Dropout, Model
from regard.data.batch import Batch, shifted
from regard.data.loader import SequenceLoader
from regard.data.table import Record, read
from regard.data.text.codec import Example, TextCodec
from regard.losses.teacher_forcing import teacher_forcing_loss
from regard.models.seq2seq import build

VOCABULARY = 8000
RESULTS = Path(__file__).parent / "results" / "training.csv"
FIGURES = {"transformer": 1.1, "lstm": 1.3}


def batches(tokens: int, count: int) -> list[Batch]:
    """The first batches of an epoch."""
    loader = SequenceLoader(examples(), tokens, seed=1)
    return [loader.batch(step) for step in range(count)]


def examples() -> list[Example]:
    folder = os.environ.get("REGARD_DATA")
    if folder:
        from regard.config import Data

        pair = "::".join(f"{folder}/multi30k/tok/train.lc.norm.tok.{side}.gz" for side in ("en", "de"))
        records = list(read(pair))
        data = Data(tokenizer="bpe", vocab_size=VOCABULARY, joint_vocab=True)
        return TextCodec.fit(records, data).encode_all(records).examples
    lengths = torch.randint(8, 22, (20_000, 2), generator=torch.Generator().manual_seed(0)).tolist()
    return [
        Example(*([*torch.randint(4, VOCABULARY, (n,)).tolist(), 2] for n in pair), Record("", "", "")) for pair in lengths
    ]


def cost(logits: Tensor, batch: Batch) -> Tensor:
    wanted = batch.target.data.masked_fill(~batch.target.keep, -100)
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=-100, reduction="sum")


class HandTransformer(nn.Module):
    """nn.Transformer with tied embeddings and sinusoidal positions."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 256)
        nn.init.normal_(self.embedding.weight, std=256**-0.5)
        self.positions = Sinusoidal(256)
        self.core = nn.Transformer(256, 4, 3, 3, 1024, 0.1, batch_first=True, norm_first=True)

    def forward(self, batch: Batch) -> Tensor:
        source, target = (
            self.positions(16 * self.embedding(each)) for each in (batch.source.data, shifted(batch.target.data))
        )
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1]).isinf()
        hidden = self.core(
            source,
            target,
            tgt_mask=mask,
            src_key_padding_mask=~batch.source.keep,
            memory_key_padding_mask=~batch.source.keep,
            tgt_is_causal=True,
        )
        return cost(hidden @ self.embedding.weight.mT, batch)


class HandLSTM(nn.Module):
    """Luong's general attention with input feeding, one LSTMCell step at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(VOCABULARY, 256), nn.Embedding(VOCABULARY, 256)
        self.encoder = nn.LSTM(256, 256, batch_first=True, bidirectional=True)
        self.cell = nn.LSTMCell(256 + 512, 512)
        self.general, self.combine = nn.Linear(512, 512, bias=False), nn.Linear(1024, 512, bias=False)
        self.output = nn.Linear(512, VOCABULARY)

    def forward(self, batch: Batch) -> Tensor:
        lengths = batch.source.keep.sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(
            F.dropout(self.source(batch.source.data), 0.1), lengths, batch_first=True, enforce_sorted=False
        )
        states, (h, c) = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        h, c = h.transpose(0, 1).flatten(1), c.transpose(0, 1).flatten(1)
        keys, hidden, feed = self.general(memory), [], torch.zeros_like(h)
        for word in F.dropout(self.target(shifted(batch.target.data)), 0.1).unbind(1):
            h, c = self.cell(torch.cat((word, feed), -1), (h, c))
            scores = (keys @ h[..., None])[..., 0].masked_fill(~batch.source.keep, -torch.inf)
            context = (scores.softmax(-1)[:, None] @ memory)[:, 0]
            feed = torch.tanh(self.combine(torch.cat((context, h), -1)))
            hidden.append(feed)
        return cost(self.output(F.dropout(torch.stack(hidden, 1), 0.1)), batch)


class Marian(nn.Module):
    """Hugging Face's encoder-decoder of the same shape."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import MarianConfig, MarianMTModel

        half = {"layers": 3, "attention_heads": 4, "ffn_dim": 1024}
        sides = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in half.items()}
        self.inner = MarianMTModel(
            MarianConfig(
                vocab_size=VOCABULARY,
                d_model=256,
                dropout=0.1,
                pad_token_id=0,
                eos_token_id=2,
                decoder_start_token_id=1,
                **sides,
            )
        )

    def forward(self, batch: Batch) -> Tensor:
        mask = batch.source.keep.long()
        target = shifted(batch.target.data)
        return cost(
            self.inner(batch.source.data, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits, batch
        )


class Ours(nn.Module):
    """regard's model, and its loss."""

    def __init__(self, model: Model, joint: bool):
        super().__init__()
        self.inner = build(model, Dropout(), VOCABULARY, VOCABULARY, joint)

    def forward(self, batch: Batch) -> Tensor:
        return teacher_forcing_loss(self.inner, batch).total


def sides(kind: str) -> dict[str, Callable[[], nn.Module]]:
    """Who trains a model of this kind: regard first."""
    usual = Model(hidden_size=256, layers=3, heads=4, feedforward_size=1024, encoder="transformer", decoder="transformer")
    if kind == "transformer":
        attention = dataclasses.replace(usual.attention, name="transformer", heads=4)
        found = {
            "regard": lambda: Ours(dataclasses.replace(usual, attention=attention), True),
            "nn.Transformer": HandTransformer,
        }
        try:
            import transformers  # noqa: F401
        except ImportError:
            return found
        return {**found, "Hugging Face": Marian}
    attention = dataclasses.replace(usual.attention, name="bilinear")
    return {
        "regard": lambda: Ours(Model(hidden_size=512, embedding_size=256, attention=attention, tie_embeddings=False), False),
        "LSTMCell": HandLSTM,
    }


def compare(kind: str, tokens: int, rounds: int) -> dict[str, float]:
    """Target tokens a second of each side, from the median time of a round over the same batches."""
    made = {name: make() for name, make in sides(kind).items()}
    optimisers = {name: torch.optim.Adam(model.parameters(), 1e-4) for name, model in made.items()}
    used = batches(tokens, 6)
    kept = sum(int(batch.target.keep.sum()) for batch in used)
    times: dict[str, list[float]] = {name: [] for name in made}
    for number in range(rounds + 1):
        for name in list(made)[:: 1 if number % 2 else -1]:
            start = time.perf_counter()
            for batch in used:
                optimisers[name].zero_grad()
                (made[name](batch) / batch.target.keep.sum()).backward()
                optimisers[name].step()
            if number:  # the first round warms up
                times[name].append(time.perf_counter() - start)
    return {name: kept / statistics.median(each) for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--tokens", type=int, default=2048, help="the budget of a batch")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", choices=["", *FIGURES])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    rows = []
    print(f"{options.threads} threads, {options.tokens} tokens a batch, {hardware()}, torch {torch.__version__}")
    for kind, figure in FIGURES.items():
        if options.only not in ("", kind):
            continue
        speeds = compare(kind, options.tokens, options.rounds)
        best = max(value for name, value in speeds.items() if name != "regard")
        told = ", ".join(f"{name} {value:,.0f}" for name, value in speeds.items())
        print(
            f"{kind:12} {told} target tokens/s: {speeds['regard'] / best:.2f} of the fastest other, asked {figure}",
            flush=True,
        )
        versions = f"python {platform.python_version()} torch {torch.__version__}"
        rows += [
            [
                kind,
                name,
                options.tokens,
                options.threads,
                f"{value:.1f}",
                f"{speeds['regard'] / value:.3f}",
                hardware(),
                versions,
                commit(),
            ]
            for name, value in speeds.items()
        ]
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(
                [
                    "kind",
                    "who",
                    "batch_tokens",
                    "threads",
                    "tokens_per_second",
                    "regard_over_it",
                    "hardware",
                    "versions",
                    "commit",
                ]
            )
        writer.writerows(rows)


if __name__ == "__main__":
    main()
