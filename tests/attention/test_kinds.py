"""Kinds of components, told by what a class has."""

import pytest
import torch

from regard import registry
from regard.attention import Everywhere, Memory, ScaledDot, Softmax, dispatch
from regard.attention.attend import build_request
from regard.attention.kinds import classify, require_kind
from regard.attention.score import prepare
from regard.errors import ConfigError


class Unprepared:
    def __call__(self, query, prepared): ...


class Uncallable:
    def prepare(self, key): ...


class Unpromised:
    def __call__(self, scores, allowed=None): ...


class Rootless:
    def __call__(self, b, h, q, k): ...


class Stranger:
    def __call__(self, anything): ...


@pytest.mark.parametrize("kind", ["score", "normalise", "scope", "mechanisms"])
def test_every_class_of_a_folder_is_of_its_kind(kind):
    for component in registry.every(kind):
        assert classify(component) == (kind, None), component


@pytest.mark.parametrize(
    ("component", "kind", "text"),
    [
        (Unprepared, "score", "Unprepared has no prepare(key): the key's side of the score"),
        (Uncallable, "score", "Uncallable cannot be called with (query, prepared); add `forward`"),
        (Unpromised, "normalise", "Unpromised has no sums_to_one: True where the weights"),
        (Rootless, "scope", "Rootless does not derive from regard.attention.scope.Scope; make that its base class"),
    ],
)
def test_what_a_class_lacks_is_one_sentence(component, kind, text):
    classified = classify(component)
    assert classified.name == kind
    assert classified.lacks.startswith(text)
    with pytest.raises(ConfigError) as error:
        require_kind(component)
    assert str(error.value) == classified.lacks


def test_a_class_of_no_kind_is_refused_unless_its_kind_is_said():
    with pytest.raises(ConfigError, match="Stranger is no score, normaliser, scope or mechanism"):
        classify(Stranger)
    assert "no prepare" in classify(Stranger, "score").lacks


@pytest.mark.parametrize("kind", ["score", "normalise"])
def test_no_kernel_takes_a_class_that_derives_from_ours_for_ours(kind):
    """What a subclass computes is its own; a kernel goes by the exact class."""
    for component in registry.every(kind):
        stage = registry.build(type("Derived", (component,), {}), kind, query=8, key=8, value=8, heads=2)
        score, normalise = (stage, Softmax()) if kind == "score" else (ScaledDot(), stage)
        request = build_request(
            torch.randn(2, 2, 3, 8),
            Memory(prepare(score, torch.randn(2, 2, 4, 8)), torch.randn(2, 2, 4, 8)),
            score=score,
            normalise=normalise,
            scope=Everywhere(),
        )
        covering = [name for name, kernel in dispatch.KERNELS.items() if kernel.covers(request) is None]
        assert covering == [], component
