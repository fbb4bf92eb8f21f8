import pytest

from regard.errors import ConfigError
from regard.inference.sequence_predictor import SequencePredictor
from regard.interop.ctranslate2.engine import Ctranslate2
from regard.interop.engine import opened, traceable

from .transformers_ import run


def test_an_engine_is_chosen_by_its_name():
    assert type(opened(run("pre"), "cpu")) is SequencePredictor
    assert type(opened(run("pre"), "cpu", "ctranslate2")) is Ctranslate2


def test_an_engine_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match=r"--engine needs to be one of native, .*ctranslate2, got 'steam'"):
        opened(run("pre"), engine="steam")


def test_the_native_engine_rounds_too():
    assert opened(run("pre"), "cpu").config.search.precision == "auto"
    model = opened(run("pre"), "cpu", precision="int8")
    assert model.config.search.precision == "int8"
    assert model.predict(["a b"])[0].text is not None


def test_half_precision_is_for_a_gpu():
    model = opened(run("pre"), "cpu", precision="bf16")
    assert model.config.search.precision == "bf16"
    with pytest.raises(ValueError, match="precision=bf16 is for whole answers of a trained model on a GPU"):
        model.predict(["a b"])


def test_compiling_is_for_the_native_engine():
    with pytest.raises(ConfigError, match="--compile is for the engine native, got --engine onnx: leave one of the two out"):
        opened(run("pre"), "cpu", "onnx", compiled=True)
    assert opened(run("pre"), "cpu", compiled=True).compiled


def test_the_native_engine_names_its_precisions():
    with pytest.raises(ConfigError, match=r"--precision needs to be one of auto, float32, int8.*, got 'int4'"):
        opened(run("pre"), precision="int4")


def test_an_engine_that_gives_no_trace_says_so_before_it_is_asked():
    traceable("native")
    traceable("onnx")
    with pytest.raises(ConfigError, match="the engine ctranslate2 gives those of one: leave --engine or --trace out"):
        traceable("ctranslate2")
