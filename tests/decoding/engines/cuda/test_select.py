import gc

import pytest
import torch

from regard.decoding.engines.cuda import generic, transformer
from regard.decoding.engines.cuda import select as file
from regard.decoding.engines.cuda.select import find_reason, find_search, select_gpu_search
from regard.errors import ConfigError

from .small import PRE, SOURCE, model

LUONG = "recurrent, recurrent, lstm, luong"


def memory(built):
    with torch.no_grad():
        return built.encode(SOURCE)


def test_each_decoder_gets_the_engine_that_covers_it():
    for kind, attention, engine in ((PRE, "transformer", transformer), (LUONG, "bilinear", generic)):
        built = model(kind, attention)
        assert type(find_search(built.decoder, memory(built)).engine) is engine.Engine


@pytest.mark.parametrize("kind", [PRE, LUONG])
def test_it_is_kept_until_a_weight_changes_and_goes_with_its_decoder(kind):
    built = model(kind)
    source = memory(built)
    first = find_search(built.decoder, source)
    assert find_search(built.decoder, source) is first
    with torch.no_grad():
        built.decoder.output.bias += 1.0
    assert find_search(built.decoder, source) is not first
    before = len(file.SEARCHES)
    del built
    gc.collect()
    assert len(file.SEARCHES) == before - 1


def test_what_is_not_covered_is_left_to_the_reference_and_refused_in_half_precision():
    built = model(LUONG, "additive+sparsemax")
    assert find_search(built.decoder, memory(built)) is None
    with pytest.raises(ConfigError, match=r"precision=bf16 does not cover this model: .*use precision=float32"):
        find_search(built.decoder, memory(built), "bf16")


def test_who_trains_or_is_listened_to_is_left_alone():
    built = model()
    built.decoder.norm.register_forward_hook(lambda *_: None)
    assert find_reason(built.decoder) == "its modules have forward hooks"
    built = model().train()
    assert find_reason(built.decoder) == "it needs a trained module"
    assert find_search(built.decoder, memory(built)) is None
    assert find_reason(object()) == "it needs a trained module"


def test_on_a_cpu_there_is_no_gpu():
    built = model()
    assert select_gpu_search(built.decoder, memory(built)) is None
