"""Retriever: pictures for a text, and texts for a picture."""

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data import table
from regard.data.axis import Axis, Text
from regard.data.image.axis import image_axis
from regard.data.image.reading import missing, size
from regard.data.image.types import ImageBatch, ImageExample
from regard.data.records import Record, locate
from regard.data.table import DataError
from regard.decoding.logprobs import UndistributedError
from regard.errors import RefusedError
from regard.inference.forward_predictor import AxisWeights, ForwardPredictor, ForwardTrace, unscored_error
from regard.inference.prediction import Prediction
from regard.inference.predictor import Input, text_of
from regard.metrics.text import Metrics
from regard.tasks.retrieve.codec import pairs
from regard.tasks.retrieve.index import KINDS, Index, Kind, fingerprint
from regard.tasks.retrieve.metrics import FIGURES as FIGURES
from regard.tasks.retrieve.metrics import figures
from regard.tasks.retrieve.model import Matching
from regard.tasks.retrieve.ranking import Pair, encode_pictures, encode_texts, merge_rankings, score_pairs, select_nearest
from regard.viewer.record.spelling import Words

SAMPLES = "samples/texts.tsv"
"""The pictures and texts that a run leaves to begin with."""
ENDINGS = (".png", ".jpg", ".jpeg", ".webp")
VECTOR = "vector"
"""Name of the axis of a tower's one query."""


class Hit(NamedTuple):
    """A picture and a text, of which one was asked and the other found, and how well they fit."""

    pair: ImageExample
    score: float
    text: str
    """The retrieved text, or the path of the retrieved picture."""


class Retriever(ForwardPredictor):
    """Retrieval of entries of an index: of one that it is given (`among`), or of the samples that its run left."""

    model: Matching
    index: Index | None = None

    def among(self, index: Index | Path | str) -> "Retriever":
        """Search this index from now on; one that another model made is refused."""
        loaded = index if isinstance(index, Index) else Index.load(Path(index))
        if loaded.model != fingerprint(self.model):
            raise RefusedError(
                f"{index if not isinstance(index, Index) else 'the index'} was made by another model, whose vectors mean "
                "nothing to this one; make it anew: regard index RUN --file LIST --out NAME.safetensors"
            )
        self.index = loaded
        return self

    def set_index(self, path: str) -> None:
        """Search the index of a file from now on."""
        self.among(path)

    def indexed(self, records: Sequence[Record], of: Kind) -> Index:
        """An index of pictures, whose paths are the records' sources, or of texts, which are."""
        names = [record.source if of == "texts" else str(locate(record)) for record in records]
        return Index(self.embed(records, of), names, of, fingerprint(self.model))

    def embed(self, records: Sequence[Record], of: Kind) -> Float[Tensor, "records space"]:
        """The vectors of pictures or of texts."""
        if of == "texts":
            return encode_texts(self.model, self.codec.tokens([record.source for record in records]))
        examples = self.codec.encode_all([record._replace(target=None) for record in records]).examples
        return encode_pictures(self.model, examples, self.batches)

    def searched(self, of: Kind) -> Index:
        """The index that a question is answered from."""
        if self.index is not None:
            return self.index
        samples = None if self.home is None else self.home / SAMPLES
        if samples is None or not samples.is_file():
            raise RefusedError(
                f"there is nothing to search: this run left no samples ({SAMPLES}); make an index with regard index RUN "
                f"--file LIST --out {of}.safetensors, and name it with --index"
            )
        records = list(table.read(samples))
        if of == "texts":
            records = [Record(record.target or "", None, record.where) for record in records]
        return self.indexed(records, of)

    def query_kind(self, text: str) -> Kind:
        """Kind of an input: the one that the index does not hold; without an index, a picture if there is such a file."""
        picture = os.path.isfile(text) or text.lower().endswith(ENDINGS)
        if self.index is None:
            return "pictures" if picture else "texts"
        if picture and self.index.of == "pictures":
            raise DataError(f"{text} is a picture, and this index holds pictures, which a text is asked for; give a text")
        return "texts" if self.index.of == "pictures" else "pictures"

    def is_known(self, source: Input) -> bool:
        """True if there is a picture to read, or a text of which the model knows something."""
        text = query_text(source)
        if self.query_kind(text) == "texts":
            return bool(self.codec.knows_token(text))
        size(Path(text))
        return True

    def fits(self, source: Input) -> bool:
        """True if an input is known and, if it is a text, not longer than the model reads."""
        text = query_text(source)
        return bool(self.codec.familiar(text)) if self.query_kind(text) == "texts" else self.is_known(text)

    def outcomes(
        self, inputs: Sequence[Input], *, best: int = 1, align: bool = False, done: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        """The place of each input with its answers, or with the error of one whose scores are not finite.

        All questions of a kind are searched for together, unless all of their places are in `done`.
        """
        if self.recorder is not None and inputs:
            self.recorder.take(lambda: self.trace(inputs))
        for number, hits in self.hits(list(map(query_text, inputs)), best, done):
            yield number, hits if isinstance(hits, UndistributedError) else self.answers(hits, align)

    def hits(
        self, inputs: Sequence[str], best: int, done: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, list[Hit] | UndistributedError]]:
        """The place of an input, and the `best` that it finds: nothing where all questions of its kind are `done`."""
        for kind in KINDS:
            numbers = [number for number, text in enumerate(inputs) if self.query_kind(text) == kind]
            if done.issuperset(numbers):
                yield from ((number, []) for number in numbers)
            else:
                hits = self.search_and_rerank([inputs[number] for number in numbers], kind, best)
                yield from zip(numbers, hits, strict=True)

    def search_and_rerank(self, questions: Sequence[str], kind: Kind, best: int) -> list[list[Hit] | UndistributedError]:
        """The nearest of each question by their vectors and, of these, those that fit best."""
        index = self.searched("pictures" if kind == "texts" else "texts")
        records = [Record(question, None, f"input:{number}") for number, question in enumerate(questions, 1)]
        vectors = self.embed(records, kind)
        pointing = (vectors.isfinite().all(1) & vectors.any(1)).tolist()
        if not all(pointing):
            some = [question for question, points in zip(questions, pointing, strict=True) if points]
            answers = iter(self.search_and_rerank(some, kind, best) if some else ())
            return [next(answers) if points else unscored_error() for points in pointing]
        queries = Index(vectors, [record.source if kind == "texts" else str(locate(record)) for record in records], kind)
        again = self.config.model.rerank_top_k if self.config.model.reranking_layers else 0
        rows = index.search(queries.vectors, max(best, again)).rows.tolist()
        entries = {row: number for number, row in enumerate(sorted({row for few in rows for row in few}))}
        names, ways = [index.place(row) for row in entries], [(n, entries[row]) for n, few in enumerate(rows) for row in few]
        if kind == "texts":
            weighed = self.weighed(names, queries.names, [(entry, number) for number, entry in ways])
        else:
            weighed = self.weighed(queries.names, names, ways)
        hits: list[list[Hit]] = [[] for _ in questions]
        for (number, entry), (pair, score) in zip(ways, weighed, strict=True):
            hits[number].append(Hit(pair, score, names[entry]))
        finite = [all(math.isfinite(hit.score) for hit in few) for few in hits]
        return [
            sorted(few, key=lambda hit: -hit.score)[:best] if whole else unscored_error()
            for few, whole in zip(hits, finite, strict=True)
        ]

    def weighed(
        self, pictures: Sequence[str], texts: Sequence[str], both: Sequence[Pair]
    ) -> list[tuple[ImageExample, float]]:
        """Pairs, by the numbers of a picture and a text, and how well each fits."""
        records = [Record(picture, None, f"index:{number}") for number, picture in enumerate(pictures, 1)]
        if gone := missing(records):
            raise DataError(
                f"{len(gone):,} of the {len(records):,} nearest pictures are no longer where the index has them, such as "
                f"{gone[0].source}; put them back, or make the index anew"
            )
        examples, tokens = self.codec.encode_all(records).examples, self.codec.tokens(texts)
        scores = score_pairs(self.model, examples, tokens, both, self.batches).tolist()
        pairs = [
            examples[picture]._replace(target=tokens[text], record=records[picture]._replace(target=texts[text]))
            for picture, text in both
        ]
        return list(zip(pairs, scores, strict=True))

    def answers(self, hits: Sequence[Hit], align: bool) -> list[Prediction]:
        """Predictions of the hits for one query."""
        examples = [hit.pair for hit in hits]
        if not align:
            return [Prediction(hit.text, hit.score, *self.sides(hit.pair)) for hit in hits]
        answers: dict[int, Prediction] = {}
        for places, batch in self.batches(examples):
            predictions = self.decode([examples[place] for place in places], self.infer(batch, weights=True), 1, align=True)
            answers |= {place: answer for place, [answer] in zip(places, predictions, strict=True)}
        return [answers[n]._replace(text=hit.text, score=hit.score) for n, hit in enumerate(hits)]

    def encode(self, inputs: Sequence[Input]) -> list[ImageExample]:
        """Pair of each input and its best hit: what a trace shows."""
        texts = list(map(query_text, inputs))
        pairs: list[ImageExample] = [ImageExample(text) for text in texts]
        for number, hits in self.hits(texts, 1):
            if isinstance(hits, UndistributedError):
                raise UndistributedError(f"input:{number + 1}: {hits}")
            pairs[number] = hits[0].pair
        return pairs

    def forward(self, batch: ImageBatch, weights: bool = False) -> Any:
        """Scores of pairs, with their attention."""
        assert batch.target is not None, "what is asked together with what was found is a pair"
        return self.model.paired(batch.source, batch.target, weights=weights)

    def decode(self, examples: Sequence[ImageExample], output: Any, best: int, align: bool) -> list[list[Prediction]]:
        """Attention of each word of a text over its picture; without a re-ranker, that of the picture's tower."""
        return [[self.align_pair(example, row, output)] for row, example in enumerate(examples)]

    def align_pair(self, example: ImageExample, row: int, output: Any) -> Prediction:
        """One pair."""
        places, words = self.sides(example)
        across = [name for name in output.weights if name.startswith("reranking.")]
        chosen = output.weights[(across or ["picture.query.attention"])[-1]][row]
        weights = chosen.float().mean(0)[: len(words), : len(places)].cpu()
        words = words if across else [example.record.target]
        links = [(int(where), word) for word, where in enumerate(weights.argmax(-1))]
        score = float(output.scores[row])
        return Prediction(str(example.picture), score, places, words, weights, links, self.codec.grid(example))

    def sides(self, example: ImageExample) -> tuple[list[str], list[str]]:
        """The places of a picture, and the pieces of a text."""
        return self.codec.pieces(example), self.codec.target_pieces(example.target or [])

    def evaluate_records(self, prepared: Sequence[Any], *, beam: int | None = None) -> Metrics:
        """The task's measures; every record is judged, and a text that is too long is cut."""
        return self.evaluate_examples(self.codec.encode_all(prepared, "truncate").examples)

    def find_unscored(self, prepared: Sequence[Any], *, beam: int | None = None) -> dict[int, UndistributedError]:
        """The places of the records whose picture or text has a vector of numbers that are not finite."""
        examples = self.codec.encode_all(prepared, "truncate").examples
        vectors = (
            encode_pictures(self.model, examples, self.batches),
            encode_texts(self.model, [example.target or [] for example in examples]),
        )
        finite = torch.stack([vector.isfinite().all(1) for vector in vectors]).all(0).tolist()
        return {place: unscored_error() for place, whole in enumerate(finite) if not whole}

    def evaluate_examples(self, examples: Sequence[ImageExample], *, beam: int | None = None) -> Metrics:
        """Retrieval metrics of texts for pictures and of pictures for texts, among all records."""
        both = pairs(examples)
        pictures = {picture: example for (picture, _), example in zip(both, examples, strict=True)}
        texts = {text: example.target or [] for (_, text), example in zip(both, examples, strict=True)}
        right = torch.zeros(len(pictures), len(texts), dtype=torch.bool)
        right[tuple(torch.tensor(both).mT)] = True
        some, words = ([side[number] for number in range(len(side))] for side in (pictures, texts))
        return figures(*self.compared(some, words), right)

    def compared(self, pictures: Sequence[Any], texts: Sequence[Any]) -> tuple[Tensor, Tensor]:
        """Scores of all texts for each picture, and of all pictures for each text, as a search arranges them."""
        with torch.no_grad():
            vectors = encode_pictures(self.model, pictures, self.batches), encode_texts(self.model, texts)
            logits = float(self.model.scale) * vectors[0] @ vectors[1].mT
        if self.model.reranking is None:
            return logits, logits.mT
        reranked = [select_nearest(scores, self.config.model.rerank_top_k) for scores in (logits, logits.mT)]
        wanted = (reranked[0] | reranked[1].mT).nonzero()
        closer = logits.clone()
        closer[tuple(wanted.mT)] = score_pairs(
            self.model, pictures, texts, [(p, t) for p, t in wanted.tolist()], self.batches
        )
        return merge_rankings(logits, closer, reranked[0]), merge_rankings(logits.mT, closer.mT, reranked[1])

    def trace_parts(self, example: ImageExample, output: Any) -> ForwardTrace:
        """Each word over the picture, and what the towers looked at."""
        picture = image_axis(self.codec.read_image(example), self.codec.stride)
        axes: dict[str, Axis] = {"text": Words(self.codec).answered(example.target or []), "picture": picture}
        axes[VECTOR] = Text.of([VECTOR])
        ways = {"picture": (VECTOR, "picture"), "text": (VECTOR, "text"), "reranking": ("text", "picture")}
        looks = {}
        for name, weights in output.weights.items():
            query, key = ways[name.partition(".")[0]]
            looks[name] = AxisWeights(query, key, weights[0][:, : len(axes[query]), : len(axes[key])])
        return ForwardTrace(axes, looks)


def query_text(source: Input) -> str:
    """Text or path of an input; the path of a record's picture counts from the folder of its table."""
    if isinstance(source, Record):
        path = locate(source)
        return str(path) if os.path.isfile(path) else source.source
    return text_of(source)
