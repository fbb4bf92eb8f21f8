import json

import pytest
import torch
from safetensors.torch import save_file

from regard.errors import RefusedError
from regard.interop.huggingface.settings import read
from regard.interop.huggingface.tensors import Tensors, shapes

from .tiny import NAMES, VOCABULARY, saved, tiny


@pytest.mark.parametrize("kind", NAMES)
def test_the_shapes_of_a_model_follow_from_its_settings(kind, tmp_path):
    folder = saved(tiny(kind), tmp_path)
    with Tensors(folder) as tensors:
        found = {name: tuple(each.shape) for name, each in tensors.items()}
        assert len(found) == len(tensors)
        assert found.pop("lm_head.weight", None) == ((VOCABULARY, 16) if kind == "t5_gated" else None)
        assert found == shapes(read(folder))
        tensors.fit(read(folder))


def altered(folder, change):
    """A good folder whose tensors were changed."""
    folder = saved(tiny("bart"), folder)
    with Tensors(folder) as tensors:
        held = dict(tensors)
    change(held)
    save_file(held, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda held: held.pop("model.encoder.layers.1.fc1.bias"), r"it has no model.encoder.layers.1.fc1.bias, .* \(24,\)"),
        (lambda held: held.update({"model.shared.weight": torch.ones(9, 16)}), r"needs the shape \(53, 16\), got \(9, 16\)"),
        (
            lambda held: held.update({"model.encoder.spy": torch.ones(1)}),
            "it has model.encoder.spy, which such a model has no",
        ),
        (lambda held: held.update({"lm_head.weight": torch.ones(9, 16)}), r"lm_head.weight needs the shape \(53, 16\), got"),
        (
            lambda held: held.update({"lm_head.weight": torch.ones(53, 16)}),
            "lm_head.weight is not the same as model.shared.weight, and models with one table can be taken",
        ),
    ],
)
def test_weights_that_do_not_fit_the_config_are_refused(change, told, tmp_path):
    folder = altered(tmp_path, change)
    with Tensors(folder) as tensors, pytest.raises(RefusedError, match=f"does not fit config.json: .*{told}"):
        tensors.fit(read(folder))


def test_sizes_that_the_file_has_not_are_refused_before_they_are_allocated(tmp_path):
    folder = saved(tiny("bart"), tmp_path)
    table = json.loads((folder / "config.json").read_text()) | {"vocab_size": 1_900_000, "d_model": 16_384}
    (folder / "config.json").write_text(json.dumps(table))
    with (
        Tensors(folder) as tensors,
        pytest.raises(RefusedError, match=r"needs the shape \(1900000, 16384\), got \(53, 16\)"),
    ):
        tensors.fit(read(folder))


def test_a_pickle_is_refused_with_advice(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(RefusedError, match=r"weights in a .bin file, which is a pickle and may run code when it is opened"):
        Tensors(tmp_path)


def test_several_files_are_refused_with_advice(tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(RefusedError, match="has its weights in several files: save it with max_shard_size='100GB', in one"):
        Tensors(tmp_path)


def test_no_weights_are_refused(tmp_path):
    with pytest.raises(RefusedError, match=r"has no model.safetensors: give the directory that save_pretrained"):
        Tensors(tmp_path)


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"123")
    with pytest.raises(RefusedError, match="is not a whole safetensors file"), Tensors(tmp_path):
        pass
