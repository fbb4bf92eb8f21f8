"""A trained model: a run directory, opened and ready to be asked."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard import config as configuration
from regard import tasks
from regard.data.loader import Loader
from regard.data.table import Record
from regard.data.text import Example, TextCodec
from regard.data.vocabulary import EOS, UNK
from regard.decoding.align import align
from regard.decoding.beam import beam as beam_search
from regard.decoding.found import Found
from regard.decoding.greedy import greedy
from regard.decoding.looked import crosses
from regard.decoding.rate import rate
from regard.decoding.tree import Tree as Branches
from regard.models.seq2seq import Seq2Seq
from regard.models.types import Tree
from regard.tasks import Figures, Task, TextConfig
from regard.training.device import choose
from regard.training.directory import CONFIG, MODEL, verify
from regard.training.errors import DamagedError
from regard.training.manifest import NAME as MANIFEST
from regard.training.metrics import Measured, perplexity
from regard.training.weights import restore

if TYPE_CHECKING:
    from regard.viewer.record import Recorder
    from regard.viewer.trace import Trace


class Prediction(NamedTuple):
    """One answer: its text, what the model thinks of it, and, where asked for, what each piece of it looked at.

    `weights` are those of the last attention over the source, averaged over its heads; `links` are (source piece, target
    piece) pairs.
    """

    text: str
    score: float
    source: list[str]
    target: list[str]
    weights: Float[Tensor, "target source"] | None = None
    links: list[tuple[int, int]] | None = None


class Trained:
    """A model with its codec and its config."""

    def __init__(self, name: str, config: TextConfig, codec: TextCodec, model: Seq2Seq):
        self.name, self.config, self.codec = name, config, codec
        self.task: Task = tasks.find(name)
        self.model = model.eval()
        self.recorder: Recorder | None = None
        """Who listens to what is predicted, while somebody does."""

    def predict(
        self, texts: Sequence[str], *, beam: int | None = None, best: int = 1, align: bool = False
    ) -> list[list[Prediction]]:
        """The `best` answers to each text, best first."""
        if self.recorder is not None and texts:
            self.recorder.take(lambda: self.trace(texts, beam=max(beam or self.config.search.beam, best)))
        with nullcontext() if self.recorder is None else self.recorder.pause():
            return self._predict(texts, beam, best, align)

    def _predict(self, texts: Sequence[str], beam: int | None, best: int, align: bool) -> list[list[Prediction]]:
        records = [self.task.prepare(Record(text, None, f"input:{number}")) for number, text in enumerate(texts, 1)]
        examples = self.codec.encode_all(records, over_long="cut").examples
        answers: list[list[Prediction]] = [[] for _ in texts]
        for index, found in self._search(examples, beam or self.config.search.beam, best, align):
            answers[index] = [self._told(examples[index], each) for each in found]
        return answers

    def trace(
        self, texts: Sequence[str], *, beam: int | None = None, targets: Sequence[str] | None = None, scores: bool = False
    ) -> "Trace":
        """Where the model looks while it answers, step by step; with `targets`, while these are written.

        A model without attention has a trace too, of its network and its steps.
        """
        from regard.viewer.record.predicted import trace

        with nullcontext() if self.recorder is None else self.recorder.pause():
            return trace(self, texts, beam=beam, targets=targets, scores=scores)

    def evaluate(self, records: Sequence[Record], *, beam: int | None = None) -> Figures:
        """The task's measures on records with targets, as a file has them."""
        return self.measure([self.task.prepare(record) for record in records], beam=beam)

    def measure(self, prepared: Sequence[Record], *, beam: int | None = None) -> Figures:
        """The same for records that the task has prepared already."""
        examples = self.codec.encode_all(prepared, over_long="cut").examples
        outputs = [""] * len(examples)
        likely = self._perplexity(examples)
        for index, found in self._search(examples, beam or self.config.search.beam, best=1, weights=False):
            outputs[index] = self.task.finish(self.codec.decode(found[0].tokens))
        references = [self.task.finish(self.codec.prepare(record.target or "")) for record in prepared]
        figures = self.task.measure(outputs, references, [record.source for record in prepared], self.config)
        return figures if likely is None else figures | {"perplexity": likely}

    def knows(self, text: str) -> bool:
        """Whether any token of a source is one that the model has seen; without one, its answer would be a guess."""
        example = self.codec.encode(self.task.prepare(Record(text, None, "input:1")))
        return any(token not in (UNK, EOS) for token in example.source)

    def _perplexity(self, examples: list[Example]) -> Measured | None:
        """How surprising the targets are to the model, sentence by sentence."""
        device = next(self.model.parameters()).device
        nll, tokens = list[float](), list[int]()
        for _, batch in Loader(examples, self._budget(examples), shuffle=False).in_order() if examples else ():
            if batch.target is None:
                return None
            with torch.no_grad():
                rated = rate(self.model.decoder, self.model.encode(batch.source.to(device)), batch.target)
            nll += (-rated.scores).tolist()
            tokens += batch.target.keep.sum(1).tolist()
        return perplexity(nll, tokens) if nll else None

    def _search(self, examples: list[Example], beams: int, best: int, weights: bool) -> Iterator[tuple[int, list[Found]]]:
        device = next(self.model.parameters()).device
        for indices, batch in Loader(examples, self._budget(examples), shuffle=False).in_order() if examples else ():
            with torch.no_grad():
                memory = self.model.encode(batch.source.to(device))
            lengths = [self.longest(int(length)) for length in batch.source.keep.sum(1)]
            yield from zip(indices, self.search(memory, lengths, beams, best=best, weights=weights), strict=True)

    def longest(self, source: int) -> int:
        """The most tokens that the answer to a source of so many may have."""
        return min(self.config.search.length, 3 * source + 10)

    def search(
        self,
        memory: Tree,
        lengths: list[int],
        beams: int,
        *,
        best: int = 1,
        weights: bool = False,
        tree: Branches | None = None,
    ) -> list[list[Found]]:
        """The answers to sources that the model has read, as the config says they are looked for."""
        if beams == 1 and best == 1:
            return [[each] for each in greedy(self.model.decoder, memory, length=lengths, weights=weights)]
        return beam_search(
            self.model.decoder,
            memory,
            beams=max(beams, best),
            length=lengths,
            best=best,
            length_penalty=self.config.search.length_penalty,
            coverage_penalty=self.config.search.coverage_penalty,
            weights=weights,
            tree=tree,
        )

    def _budget(self, examples: list[Example]) -> int:
        """Tokens a batch: as many sentences of middling length as the config says."""
        lengths = sorted(len(example.source) for example in examples)
        return self.config.search.batch * max(1, lengths[len(lengths) // 2])

    def _told(self, example: Example, found: Found) -> Prediction:
        text = self.task.finish(self.codec.decode(found.tokens))
        source = [piece.text for piece in self.codec.source_pieces(example.record)]
        target = self.codec.target_pieces(found.tokens)
        over = [each for name, each in (found.weights or {}).items() if crosses(name)]
        if not over:
            return Prediction(text, found.normalised, source, target)
        weights = over[-1]
        return Prediction(text, found.normalised, source, target, weights.float().mean(0).cpu(), align(weights))


def load(directory: Path | str, device: str = "auto") -> Trained:
    """Open a run directory. Every file is checked against the manifest; nothing in it is run."""
    from safetensors.torch import load as load_tensors

    path = Path(directory)
    if not (path / MANIFEST).is_file():
        what = "has no manifest.json" if path.is_dir() else "is no directory"
        raise DamagedError(f"{path} is no trained model: it {what}; give the directory that `regard train --out DIR` wrote")
    contents = verify(path)
    for needed in (CONFIG, MODEL):
        if needed not in contents:
            raise DamagedError(f"{path} has no {needed}: train into it first, or choose a directory that regard train made")
    table = configuration.parse_text(contents[CONFIG].decode(), path / CONFIG)
    name = str(table.pop("task", ""))
    config = configuration.check(tasks.find(name).Config, table)
    strange = [each.name for side in ("codec", "source", "target", "joint") for each in path.glob(f"{side}.*")]
    if unlisted := sorted(set(strange) - contents.keys()):
        raise DamagedError(f"{path / unlisted[0]} is not in the manifest: it was put there by something else")
    codec = TextCodec.load(path)
    model = tasks.build(config, codec)
    restore(model, load_tensors(contents[MODEL]), str(path / MODEL))
    return Trained(name, config, codec, model.to(choose(device)))
