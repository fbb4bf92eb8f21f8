"""Small runs: a language model, and a model of the task reverse whose tokens another language model has."""

import pytest

import regard

SMALL = {"hidden_size": 16}
TEXTS = (
    "Tom sees a cat",
    "Jerry sees a dog",
    "a cat sees Tom",
    "a dog sees Jerry",
    "Tom chases a dog",
    "a cat chases Jerry",
)


@pytest.fixture(scope="package")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    return path


@pytest.fixture(scope="package")
def language(texts, tmp_path_factory):
    """A language model that was trained on the texts."""
    out = tmp_path_factory.mktemp("runs") / "lm"
    data = {"train": str(texts), "valid": str(texts)}
    train = {"max_steps": 60, "learning_rate": 0.02, "evaluate_every": 60, "device": "cpu"}
    regard.train("language_model", data=data, model=SMALL, train=train, out=out, quiet=True)
    return regard.load(out, "cpu")


@pytest.fixture(scope="package")
def reverser(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "reverser"
    train = {"max_steps": 1, "device": "cpu"}
    regard.train("reverse", data={"samples": 40}, model=SMALL, train=train, out=out, quiet=True)
    return regard.load(out, "cpu")


@pytest.fixture(scope="package")
def joinable(reverser, tmp_path_factory):
    """A run of a language model with the tokens of that model."""
    table = tmp_path_factory.mktemp("tables") / "letters.txt"
    table.write_text("a b c d\nb c d e\nc d e f\n")
    out = table.parent / "lm"
    data = {"train": str(table), "valid": str(table), "vocab_from": str(reverser.home)}
    model = {**SMALL, "decoder": "transformer"}
    train = {"max_steps": 1, "device": "cpu"}
    regard.train("language_model", data=data, model=model, train=train, out=out, quiet=True)
    return out
