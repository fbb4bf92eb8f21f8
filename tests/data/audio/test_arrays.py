import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from regard.data.audio.arrays import is_array, read_array, read_shape, split_name
from regard.errors import DataError

ARRAY = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_arrays_are_read_from_each_kind_of_file(tmp_path):
    np.save(tmp_path / "a.npy", ARRAY.astype(np.float16))
    np.savez(tmp_path / "b.npz", one=ARRAY, two=2 * ARRAY)
    save_file({"one": ARRAY, "two": ARRAY[:2]}, tmp_path / "c.safetensors")
    np.savez(tmp_path / "d.npz", only=ARRAY)
    for name, factor in (("a.npy", 1), ("b.npz#two", 2), ("c.safetensors#one", 1), ("d.npz", 1)):
        path = f"{tmp_path}/{name}"
        assert is_array(path)
        assert read_shape(path) == (4, 3)
        torch.testing.assert_close(read_array(path), torch.from_numpy(ARRAY) * factor)
    assert split_name("a#b.wav") == ("a#b.wav", None)
    assert not is_array("a.wav")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("b.npz", r"t\.tsv:1: .*b\.npz holds 2 arrays; name one, as .*b\.npz#NAME: there are one, two"),
        ("b.npz#three", "has no array 'three'; there are one, two"),
        ("gone.npy", "there is no file"),
        ("text.npy", "is no .npy file of features, or it is damaged"),
        ("text.npz", "is no .npz file of features, or it is damaged"),
        ("text.safetensors", "is no .safetensors file of features, or it is damaged"),
        ("flat.npy", r"needs an array of numbers, frames x channels, .* got one of shape \(12,\)"),
        ("pickle.npy", r"got one of shape .* kind 'O'"),
        ("nan.npy", "needs finite features, got NaN or infinity, first in frame 3"),
    ],
)
def test_what_is_no_array_of_features_is_named(tmp_path, name, message):
    np.savez(tmp_path / "b.npz", one=ARRAY, two=ARRAY)
    for suffix in ("npy", "npz", "safetensors"):
        (tmp_path / f"text.{suffix}").write_text("hello")
    np.save(tmp_path / "flat.npy", ARRAY.flatten())
    np.save(tmp_path / "pickle.npy", np.array([[{}]]), allow_pickle=True)
    broken = ARRAY.copy()
    broken[2, 1] = np.nan
    np.save(tmp_path / "nan.npy", broken)
    with pytest.raises(DataError, match=message):
        read_array(f"{tmp_path}/{name}", "t.tsv:1")
