"""Baseline of text2sql: a classifier chooses a template of the training, and a tagger finds the constants of its slots.

    python examples/texts/templates.py TABLES/geography-question

After the template baseline of Finegan-Dollak et al. 2018, https://aclanthology.org/P18-1033, whose two parts are LSTMs:
here they are linear models of words and their neighbours, trained on train and dev. A query that is no template of the
training cannot be right, so that the query split is out of reach.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.tasks.parse.task import Config, measure, separate

CONSTANT = re.compile(r"\"([^\"]*)\"|'([^']*)'|(?<![\w.])(\d+(?:\.\d+)?)(?![\w.])")
OUTSIDE, BEGIN, INSIDE = range(3)


def read(path: Path) -> list[tuple[str, str]]:
    """Questions and queries of a table."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines]  # type: ignore[misc]


def find(words: Sequence[str], phrase: Sequence[str]) -> int:
    """First place of a phrase among words, or -1."""
    return next((at for at in range(len(words) - len(phrase) + 1) if list(words[at : at + len(phrase)]) == list(phrase)), -1)


def split(question: str, query: str) -> tuple[str, list[int]]:
    """Template of a query, its slots numbered as their constants stand in the question, and a tag for each word of that."""
    words = separate(question).split()
    constants = [next(filter(None, match), "") for match in CONSTANT.findall(query)]
    places = {constant: find(words, separate(constant).split()) for constant in constants if constant}
    order = sorted((constant for constant, place in places.items() if place >= 0), key=lambda constant: places[constant])
    tags = [OUTSIDE] * len(words)
    for constant in order:
        length = len(separate(constant).split())
        tags[places[constant] : places[constant] + length] = [BEGIN, *[INSIDE] * (length - 1)]

    def name(match: re.Match[str]) -> str:
        constant = next(filter(None, match.groups()), "")
        if constant not in order:
            return match[0]
        quote = match[0][0] if match[0][0] in "\"'" else ""
        return f"{quote}@{order.index(constant)}@{quote}"

    return CONSTANT.sub(name, query), tags


class Linear:
    """Linear classifier of sets of features, by softmax regression with weight decay."""

    def __init__(self, features: Sequence[Sequence[str]], labels: Sequence[int], decay: float = 1e-4, steps: int = 300):
        torch.manual_seed(0)
        self.numbers = {name: number for number, name in enumerate(sorted({name for row in features for name in row}))}
        self.table = nn.EmbeddingBag(len(self.numbers) + 1, max(labels) + 1, mode="sum", padding_idx=len(self.numbers))
        nn.init.zeros_(self.table.weight)
        optimiser = torch.optim.AdamW(self.table.parameters(), lr=0.05, weight_decay=decay)
        data, target = self.encode(features), torch.tensor(labels)
        for _ in range(steps):
            optimiser.zero_grad()
            nn.functional.cross_entropy(self.table(data), target).backward()
            optimiser.step()

    def encode(self, features: Sequence[Sequence[str]]) -> Tensor:
        """Numbers of features; those that were not in the training are left out."""
        nothing = len(self.numbers)
        rows = [[self.numbers.get(name, nothing) for name in row] for row in features]
        longest = max(map(len, rows))
        return torch.tensor([[*row, *[nothing] * (longest - len(row))] for row in rows])

    @torch.no_grad()
    def scores(self, features: Sequence[Sequence[str]]) -> Tensor:
        """Scores of all labels."""
        scores: Tensor = self.table(self.encode(features))
        return scores


def describe(words: Sequence[str], tags: Sequence[int]) -> list[str]:
    """Features of a question: words and pairs of words, constants alike."""
    masked = ["@" if tag == BEGIN else word for word, tag in zip(words, tags, strict=True) if tag != INSIDE]
    return [
        *masked,
        *(f"{left} {right}" for left, right in zip(["<s>", *masked], [*masked, "</s>"], strict=True)),
        f"{tags.count(BEGIN)}",
    ]


def describe_word(words: Sequence[str], place: int, known: set[str]) -> list[str]:
    """Features of one word: itself, its neighbours, its shape."""
    at = [words[place + step] if 0 <= place + step < len(words) else "<>" for step in (-2, -1, 0, 1, 2)]
    shape = ["digit"] * at[2][0].isdigit() + ["upper"] * at[2].isupper() + ["new"] * (at[2] not in known)
    names = [f"{step}:{word}" for step, word in zip((-2, -1, 0, 1, 2), at, strict=True)]
    return [*names, f"{at[1]} {at[2]}", f"{at[1]}|{'new' if 'new' in shape else ''}", *shape]


def fill(template: str, constants: Sequence[str]) -> str:
    """Query of a template, without a constant where there are too few."""
    values = {f"@{number}@": constant for number, constant in enumerate(constants)}
    return re.sub(r"@\d+@", lambda match: values.get(match[0], ""), template)


def main(folder: Path) -> None:
    """Train both parts, and print the exact match on test."""
    training, test = read(folder / "train.tsv") + read(folder / "dev.tsv"), read(folder / "test.tsv")
    parsed = [split(*pair) for pair in training]
    questions = [separate(question).split() for question, _ in training]
    templates = sorted({template for template, _ in parsed})
    known = {word for words in questions for word in words}
    rows = [describe_word(words, place, known) for words in questions for place in range(len(words))]
    tagger = Linear(rows, [tag for _, tags in parsed for tag in tags])
    bags = [describe(words, tags) for words, (_, tags) in zip(questions, parsed, strict=True)]
    classifier = Linear(bags, [templates.index(template) for template, _ in parsed])
    slots = torch.tensor([len(set(re.findall(r"@(\d+)@", template))) for template in templates])
    outputs = []
    for question, _ in test:
        words = separate(question).split()
        tags = tagger.scores([describe_word(words, place, known) for place in range(len(words))]).argmax(-1).tolist()
        constants: list[list[str]] = []
        for word, tag in zip(words, tags, strict=True):
            if tag == BEGIN or (tag == INSIDE and not constants):
                constants.append([word])
            elif tag == INSIDE:
                constants[-1].append(word)
        scores = classifier.scores(
            [describe(words, [BEGIN if tag == INSIDE and not place else tag for place, tag in enumerate(tags)])]
        )[0]
        scores = scores.masked_fill(slots != len(constants), scores.min() - 1)
        template = templates[int(scores.argmax())]
        outputs.append(fill(template, [" ".join(constant) for constant in constants]))
    figures = measure(outputs, [query for _, query in test], [question for question, _ in test], Config())
    for name, figure in figures.items():
        print(f"{name:9} {figure.value:.1f}   95 % [{figure.low:.1f}, {figure.high:.1f}]")  # type: ignore[union-attr]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
