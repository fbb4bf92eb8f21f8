import gc
import weakref

import pytest
import torch

from regard.decoding.engines.cpp import convolution, recurrent, transformer
from regard.decoding.engines.cpp import select as file
from regard.decoding.engines.cpp.build import UnavailableError
from regard.decoding.engines.cpp.select import find_engine, find_reason, is_usable
from regard.decoding.engines.select import select_engine as any_engine

from ....models.small import made
from ..eager.test_transformer import built
from ..eager.walked import SOURCE


@pytest.fixture(autouse=True)
def asked_anew():
    is_usable.cache_clear()
    yield
    is_usable.cache_clear()


def read(model):
    with torch.no_grad():
        return model.encode(SOURCE)


def test_each_decoder_gets_the_engine_of_its_kind_when_it_is_asked_for():
    model, other = built(), made("bilinear").eval()
    assert isinstance(any_engine(model.decoder, read(model), compiled=True), transformer.Engine)
    assert isinstance(any_engine(other.decoder, read(other), compiled=True), recurrent.Engine)
    third = made("bilinear", decoder="convolution").eval()
    assert isinstance(any_engine(third.decoder, read(third), compiled=True), convolution.Engine)
    assert not isinstance(any_engine(model.decoder, read(model)), transformer.Engine)


@torch.no_grad()
def test_it_is_kept_until_a_weight_or_the_precision_changes(monkeypatch):
    monkeypatch.setattr(file, "is_usable", lambda _: True)  # also where 8 bits are slow
    model = built()
    memory = read(model)
    first = find_engine(model.decoder, memory)
    assert find_engine(model.decoder, memory) is first
    rounded = find_engine(model.decoder, memory, "int8")
    assert rounded is not first
    model.decoder.output.bias += 1.0
    assert find_engine(model.decoder, memory, "int8") is not rounded


def test_it_goes_when_the_decoder_goes():
    model = built()
    engine = weakref.ref(find_engine(model.decoder, read(model)))
    del model
    gc.collect()
    assert engine() is None


def test_what_somebody_listens_to_or_reads_nothing_or_is_no_module_is_left_to_another():
    model = built()
    memory = read(model)
    assert find_engine(object(), memory) is None
    with torch.no_grad():
        keep = memory.memories["decoder.0.cross"].keep
        blind = memory._replace(memories={name: each._replace(keep=keep & False) for name, each in memory.memories.items()})
    assert find_engine(model.decoder, blind) is None
    hook = model.decoder.norm.register_forward_hook(lambda *_: None)
    assert find_engine(model.decoder, memory) is None
    hook.remove()
    assert find_engine(model.decoder, memory) is not None
    assert find_engine(model.double().decoder, read(model)) is None


def test_what_it_does_not_take_it_says():
    assert find_reason(built().decoder) is None
    assert find_reason(built().double().decoder) == "needs a module in float32"
    told = find_reason(made("none", decoder="convolution").decoder)
    others = "needs the Transformer decoder, got Convolution; needs the recurrent decoder, got Convolution"
    assert told == f"{others}; needs an attention to the source in every layer"


def test_where_nothing_can_be_compiled_a_warning_says_why_and_the_usual_engine_answers(monkeypatch):
    def fails():
        raise UnavailableError("there is no C++ compiler")

    monkeypatch.setattr(file, "load_library", fails)
    model = built()
    memory = read(model)
    with pytest.warns(RuntimeWarning, match=r"nothing is compiled: there is no C\+\+ compiler. The usual engine answers"):
        assert find_engine(model.decoder, memory) is None
    assert any_engine(model.decoder, memory, compiled=True) is not None  # and it is said once


def test_a_processor_that_does_not_multiply_bytes_leaves_int8_to_the_usual_engine(monkeypatch):
    class Slow:
        def regard_multiplies_bytes(self):
            return 0

    monkeypatch.setattr(file, "load_library", Slow)
    assert is_usable("float32")
    with pytest.warns(RuntimeWarning, match="nothing is compiled in int8: this processor has no instruction for it"):
        assert not is_usable("int8")
