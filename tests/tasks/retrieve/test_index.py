import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from regard.errors import DamagedError
from regard.tasks.retrieve.index import Index, fingerprint

VECTORS = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
NAMES = ["猫.png", "b.png", "c.png"]


def test_the_nearest_come_first_by_cosine():
    index = Index(VECTORS, NAMES)
    hits = index.search(torch.tensor([[2.0, 1.9], [0.0, 1.0]]), most=2)
    assert hits.rows.tolist() == [[2, 0], [1, 2]]
    assert_close(hits.scores[1], torch.tensor([1.0, 0.5**0.5]))
    assert [name for name, _ in index.name_hits(hits)[0]] == ["c.png", "猫.png"]
    assert index.search(torch.tensor([[-1.0, -1.0]])).rows.tolist() == [[0, 1, 2]]  # two are equally near: in their order
    assert len(index) == 3


def test_an_index_comes_back_from_its_file(tmp_path):
    Index(VECTORS, NAMES, "texts").save(tmp_path / "index.safetensors")
    index = Index.load(tmp_path / "index.safetensors")
    assert index.names == NAMES
    assert_close(index.vectors, Index(VECTORS, NAMES).vectors)
    assert [each.name for each in tmp_path.iterdir()] == ["index.safetensors"]


def test_an_empty_index_finds_nothing(tmp_path):
    Index(torch.zeros(0, 4), []).save(tmp_path / "i")
    assert Index.load(tmp_path / "i").search(torch.ones(2, 4)).rows.shape == (2, 0)


@pytest.mark.unhooked
def test_vectors_without_names_and_questions_of_another_size_are_refused():
    with pytest.raises(ValueError, match=r"one name for each vector, .* got shape \(3, 2\) and 2 names"):
        Index(VECTORS, NAMES[:2])
    with pytest.raises(
        ValueError, match=r"holds vectors of 2 numbers, got questions of shape \(1, 3\); query with the model"
    ):
        Index(VECTORS, NAMES).search(torch.ones(1, 3))
    with pytest.raises(ValueError, match="a search gives 1 hit or more, got 0"):
        Index(VECTORS, NAMES).search(torch.ones(1, 2), most=0)


def test_a_file_that_is_no_index_is_refused(tmp_path):
    path = tmp_path / "i"
    with pytest.raises(DamagedError, match=r"there is no file .*i; check the path; an index is made by regard index RUN "):
        Index.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(DamagedError, match="i is damaged: "):
        Index.load(path)
    save_file({"vectors": VECTORS}, path)
    with pytest.raises(DamagedError, match="is no index of this version of regard; make it anew"):
        Index.load(path)
    told = {"kind": "regard.index", "version": "2", "of": "texts", "model": ""}
    save_file({"vectors": VECTORS}, path, told | {"names": '["a"]'})
    with pytest.raises(DamagedError, match="its names and vectors do not belong together"):
        Index.load(path)
    save_file({"other": VECTORS}, path, told | {"names": "[]"})
    with pytest.raises(DamagedError, match="i is damaged: "):
        Index.load(path)


@pytest.mark.parametrize(
    ("number", "fault"), [(float("nan"), "has numbers that are not finite"), (float("inf"), "not finite"), (0.0, "is 0")]
)
def test_vectors_that_point_nowhere_are_refused(tmp_path, number, fault):
    bad = VECTORS.clone()
    bad[1] = number
    with pytest.raises(
        ValueError, match=f"an index needs vectors of finite numbers that are not all 0, and vector 1 .*{fault}"
    ):
        Index(bad, NAMES)
    with pytest.raises(
        ValueError, match=f"a search needs questions of finite numbers that are not all 0, and vector 1 .*{fault}"
    ):
        Index(VECTORS, NAMES).search(bad)
    told = {"kind": "regard.index", "version": "2", "of": "texts", "model": "", "names": '["a", "b", "c"]'}
    save_file({"vectors": bad}, tmp_path / "i", told)
    with pytest.raises(DamagedError, match=f"i is damaged: vector 1 .*{fault}, and points nowhere; make it anew"):
        Index.load(tmp_path / "i")


def test_a_pipe_and_a_name_that_no_file_can_have_are_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "i")
    with pytest.raises(DamagedError, match="i is no regular file but a pipe"):
        Index.load(tmp_path / "i")
    with pytest.raises(DamagedError, match="there is no file"):
        Index.load(tmp_path / ("x" * 300))


def test_a_directory_in_the_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(DamagedError, match="is a directory, and an index is one file; name the file"):
        Index.load(tmp_path)
    with pytest.raises(ValueError, match="is a directory, and an index is one file; name a file in it"):
        Index(VECTORS, NAMES).save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_index_and_its_pictures_may_be_moved_together(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    Index(VECTORS, ["a.png", "b/c.png", "/x/d.png"], folder=Path("here/pictures")).save(Path("here/i.safetensors"))
    (tmp_path / "here").rename(tmp_path / "there")
    index = Index.load(Path("there/i.safetensors"))
    assert [index.place(row) for row in range(3)] == ["there/pictures/a.png", "there/pictures/b/c.png", "/x/d.png"]


def test_texts_stay_as_they_are(tmp_path):
    Index(VECTORS, NAMES, "texts", "mark").save(tmp_path / "i")
    index = Index.load(tmp_path / "i")
    assert (index.of, index.model, index.place(0)) == ("texts", "mark", NAMES[0])


def test_a_model_is_told_by_its_weights():
    one, same = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
    same.load_state_dict(one.state_dict())
    assert fingerprint(one) == fingerprint(same)
    with torch.no_grad():
        same.bias[2] += 1e-6
    assert fingerprint(one) != fingerprint(same)
    assert fingerprint(one.bfloat16()) != fingerprint(one.half())
