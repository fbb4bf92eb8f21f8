import re

import pytest

import regard.attention
from regard import registry


def test_everything_it_promises_is_there():
    for name in regard.attention.__all__:
        assert hasattr(regard.attention, name)


def test_every_stage_and_mechanism_is_there_by_its_class_name():
    from regard.attention import Additive, Bahdanau, Causal, Sinusoidal, Sparsemax

    assert [each.__name__ for each in (Additive, Sparsemax, Causal, Sinusoidal, Bahdanau)] == [
        "Additive",
        "Sparsemax",
        "Causal",
        "Sinusoidal",
        "Bahdanau",
    ]
    for kind in registry.FINDABLE:
        for name in registry.names(kind):
            assert getattr(regard.attention, registry.class_name(name)) is registry.find(name, kind)


def test_what_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match=re.escape("module 'regard.attention' has no attribute 'Sparcemax'")):
        regard.attention.Sparcemax  # noqa: B018
