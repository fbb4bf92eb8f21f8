import gc
import threading
from types import SimpleNamespace

import pytest
import torch

from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import pad
from regard.data.image.batch import collate_images
from regard.decoding.engines.cuda import encoder as file
from regard.decoding.engines.cuda.encoder import Encoding, encode, find_encoding, lock_device, pad_with_first
from regard.errors import ConfigError
from regard.models.seq2seq import build
from regard.tree import leaves

from .small import PRE, SOURCE, model

KINDS = (PRE, "recurrent, recurrent, lstm, luong", "convolution, convolution")


def kept(memory):
    """Keys, values and whether they may be seen, of the places that may."""
    for each in memory.memories.values():
        yield from (part.transpose(1, 2)[each.keep] for part in each[:2])


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_wider_sources_are_remembered_as_they_are(kind):
    built = model(kind, "transformer")
    run = Encoding(built.encode)
    for source in (SOURCE, pad([[4, 2], [5, 6, 7, 8, 2], [9, 2]])):
        for mine, right in zip(kept(run(source)), kept(built.encode(source)), strict=True):
            torch.testing.assert_close(mine, right)
    assert list(run.graphs) == [(4, 16), (3, 16)]


@pytest.mark.parametrize(("attention", "positions"), [("transformer", "learned"), ("location", "sinusoidal")])
@torch.no_grad()
def test_no_source_is_made_wider_than_the_model_has_places(attention, positions):
    config = Model(
        "transformer", "transformer", hidden_size=8, heads=2, attention=AttentionPart(attention), positions=positions
    )
    built = build(config, Dropout(), 11, 13, False, longest=(30, 12)).eval()
    run = find_encoding(built, "float32")
    for length, wide in ((3, 16), (17, 30), (30, 30)):
        run(pad([[4] * (length - 1) + [2]]))
        assert list(run.graphs)[-1] == (1, wide)


def test_only_so_many_shapes_are_kept(monkeypatch):
    monkeypatch.setattr(file, "MAX_SHAPES", 1)
    run = Encoding(model().encode)
    for count in (1, 2):
        run(pad([[4, 2]] * count))
    assert list(run.graphs) == [(2, 16)]


def test_no_source_is_encoded_as_it_is():
    run = Encoding(lambda source: source)
    assert run(pad([])).data.shape[0] == 0
    assert not run.graphs


def test_on_a_cpu_it_gives_what_the_model_gives():
    built = model()
    with torch.no_grad():
        memory, right = encode(built, SOURCE), built.encode(SOURCE)
    for one, other in zip(leaves(memory, torch.Tensor), leaves(right, torch.Tensor), strict=True):
        torch.testing.assert_close(one, other)


def test_half_precision_is_that_of_a_copy():
    built = model()
    found = find_encoding(built, "bf16")(SOURCE)
    assert next(leaves(found, torch.Tensor)).dtype == torch.bfloat16
    assert next(built.parameters()).dtype == torch.float32


def test_it_is_kept_until_a_weight_changes_and_goes_with_its_model():
    built = model()
    first = find_encoding(built, "float32")
    assert find_encoding(built, "float32") is first
    assert find_encoding(built, "bf16") is not first
    with torch.no_grad():
        built.encoder.embedding.table.weight += 1.0
    second = find_encoding(built, "bf16")
    assert second is not first
    before = len(file.ENCODINGS)
    del built, first, second
    gc.collect()
    assert len(file.ENCODINGS) == before - 1


def test_who_trains_or_is_listened_to_encodes_itself():
    built = model()
    hook = built.encoder.norm.register_forward_hook(lambda *_: None)
    assert find_encoding(built, "float32") is None
    hook.remove()
    assert find_encoding(built.train(), "float32") is None


def test_half_precision_is_refused_where_the_model_itself_would_encode():
    built = model()
    hook = built.encoder.norm.register_forward_hook(lambda *_: None)
    with pytest.raises(ConfigError, match="bf16 does not cover this model: its modules have forward hooks; use precision"):
        find_encoding(built, "bf16")
    hook.remove()
    with pytest.raises(ConfigError, match="bf16 does not cover this model: it is in training; use precision=float32"):
        find_encoding(built.train(), "bf16")


def test_rows_that_are_left_over_repeat_the_first():
    assert pad_with_first(torch.tensor([[1, 2], [3, 4]]), 4).tolist() == [[1, 2], [3, 4], [1, 2], [1, 2]]


def test_on_a_gpu_one_thread_at_a_time_encodes_and_searches():
    reached, begun = threading.Event(), threading.Event()

    def other():
        begun.set()
        with lock_device(torch.device("cuda")):
            reached.set()

    with lock_device(torch.device("cuda")), lock_device(torch.device("cuda")):  # the same thread may again
        thread = threading.Thread(target=other)
        thread.start()
        assert begun.wait(10)
        assert not reached.wait(0.1)
    assert reached.wait(10)
    thread.join()


def test_on_a_cpu_nobody_waits():
    assert lock_device(torch.device("cpu")) is not lock_device(torch.device("cuda"))


def test_pictures_are_encoded_as_they_are_and_not_in_half_precision():
    pictures = collate_images([torch.rand(3, 4, 4)])
    reading = SimpleNamespace(encode=lambda source: source.data.sum())
    assert encode(reading, pictures) == pictures.data.sum()
    with pytest.raises(ConfigError, match="precision=bf16 does not cover models that read pictures; use precision=float32"):
        encode(reading, pictures, "bf16")
