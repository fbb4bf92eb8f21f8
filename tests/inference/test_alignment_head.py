import json

import pytest

import regard
from regard import manifest
from regard.alignment.heads import Head
from regard.errors import DamagedError
from regard.inference.alignment_head import load_head, save_head
from regard.training.run_directory import RunDirectory, verify


def noted(directory):
    return load_head(manifest.unseal(directory / manifest.NAME), directory)


def test_nothing_is_chosen_in_a_new_directory(run_directory):
    assert noted(run_directory) == Head()
    assert regard.load(run_directory, "cpu").head == Head()


def test_a_choice_is_kept_beside_the_files_and_a_model_aligns_by_it(run_directory):
    before = verify(run_directory)
    head = Head("decoder.0.cross", 1, shift=True)
    save_head(run_directory, head)
    assert json.loads((run_directory / "manifest.json").read_bytes())["alignment"] == {
        "attention": "decoder.0.cross",
        "head": 1,
        "shift": True,
    }
    assert verify(run_directory) == before
    loaded = regard.load(run_directory, "cpu")
    assert loaded.head == head
    [answer] = loaded.predict(["the dog sleeps"], align=True)
    assert answer.weights[-1].sum() == 0  # no step after the last
    loaded.head = head._replace(shift=False)
    [plain] = loaded.predict(["the dog sleeps"], align=True)
    assert answer.weights[:-1].tolist() == plain.weights[1:].tolist()


def test_a_choice_outlives_new_files(run_directory):
    save_head(run_directory, Head("decoder.1.cross"))
    with RunDirectory(run_directory) as run:
        run.publish({"codec.json": (run_directory / "codec.json").read_bytes()})
    assert noted(run_directory) == Head("decoder.1.cross")


def test_a_choice_that_is_none_is_damage(run_directory):
    table = manifest.unseal(run_directory / "manifest.json")
    (run_directory / "manifest.json").write_bytes(manifest.seal({**table, "alignment": {"head": "x"}}))
    with pytest.raises(DamagedError, match=r"manifest.json has a chosen head that is none: .* by `regard align --choose`"):
        noted(run_directory)
