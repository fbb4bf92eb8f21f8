"""A model with NaN in the vector of one word: inputs with that word have no answer, and all others have theirs."""

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

from regard.data.text.codec import TextCodec
from regard.manifest import NAME, digest, seal, unseal

from .conftest import regard

LINES = ["Mary likes Tom", "Tom chases Jerry", "Tom", "the big dog likes a small cat", "Jerry", "a small cat"]
FINITE = [line for line in LINES if "Jerry" not in line]
WHY = "decoding needs an output that gives some token a probability, got NaN"


@pytest.fixture(scope="module")
def broken(run_directory, tmp_path_factory):
    """The run with NaN in the vector of Jerry, and a right manifest."""
    directory = tmp_path_factory.mktemp("broken") / "run"
    shutil.copytree(run_directory, directory)
    path = directory / "model.safetensors"
    tensors, [token] = load_file(path), TextCodec.load(directory).source.encode("Jerry")[:1]
    tensors["encoder.embedding.table.weight"][token] = float("nan")
    save_file(tensors, path)
    table = unseal(directory / NAME)
    table["files"][path.name] = digest(path.read_bytes())
    (directory / NAME).write_bytes(seal({name: table[name] for name in table if name not in ("format", "versions")}))
    return directory


def listed(folder, lines):
    path = folder / "in.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("options", [(), ("--precision", "int8"), ("--align", "--beam", "3")], ids=" ".join)
def test_a_row_without_finite_scores_is_left_empty_and_named_and_all_others_are_answered(
    run_directory, broken, tmp_path, options
):
    done = regard("predict", broken, "--file", listed(tmp_path, LINES), *options, "--json")
    assert done.returncode == 2
    told = done.stderr.splitlines()
    assert [line[: line.find(",")] for line in sorted(told[:2])] == [
        f"regard: {tmp_path}/in.txt:{number}: {WHY.partition(',')[0]}" for number in (2, 5)
    ]
    assert " lines in " in told[2]
    assert "in.txt:2 has no answer (2 such in all): 2 have scores that are not finite" in told[3]
    whole = regard("predict", run_directory, "--file", listed(tmp_path, FINITE), *options, "--json")
    expected = {line["input"]: line["answers"] for line in map(json.loads, whole.stdout.splitlines())}
    for line in map(json.loads, done.stdout.splitlines()):
        answers = expected.get(line["input"], [])
        assert [each["text"] for each in line["answers"]] == [each["text"] for each in answers]
        scores = [each["score"] for each in answers]
        assert [each["score"] for each in line["answers"]] == pytest.approx(scores, abs=0.1 if "int8" in options else 1e-5)


def test_a_file_of_answers_is_whole_though_a_row_has_none(run_directory, broken, tmp_path):
    done = regard("predict", broken, "--file", listed(tmp_path, LINES), "--out", tmp_path / "out.txt")
    assert done.returncode == 2
    assert f"in.txt:2: {WHY}" in done.stderr
    whole = regard("predict", run_directory, "--file", listed(tmp_path, FINITE))
    answers = iter(whole.stdout.splitlines())
    expected = ["" if "Jerry" in line else next(answers) for line in LINES]
    assert (tmp_path / "out.txt").read_text(encoding="utf-8").splitlines() == expected
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_a_single_input_without_finite_scores_is_refused(broken):
    done = regard("predict", broken, "Tom chases Jerry")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"regard: {WHY}")


def test_answers_that_are_streamed_go_on_after_a_row_without_finite_scores(run_directory, broken, tmp_path):
    done = regard("predict", broken, "--file", listed(tmp_path, LINES), "--stream")
    assert done.returncode == 2
    assert f"in.txt:2: {WHY}" in done.stderr
    lines = done.stdout.splitlines()
    assert [not line for line in lines] == ["Jerry" in line for line in LINES]


def test_figures_are_those_of_the_rows_with_finite_scores_and_the_others_are_named(broken, tmp_path):
    def table(lines):
        path = tmp_path / "test.tsv"
        path.write_text("".join(f"{line}\t汤姆喜欢猫\n" for line in lines), encoding="utf-8")
        return f"--data.test={path}"

    done = regard("evaluate", broken, table(LINES), "--json")
    assert done.returncode == 2
    assert f"test.tsv:2: {WHY}" in done.stderr
    assert "test.tsv:2 cannot be measured (2 such of 6 in all): its scores are not finite" in done.stderr
    whole = regard("evaluate", broken, table(FINITE), "--json")
    assert whole.returncode == 0, whole.stderr
    assert json.loads(done.stdout) == json.loads(whole.stdout)


def test_nothing_with_finite_scores_is_nothing_to_measure(broken, tmp_path):
    (tmp_path / "test.tsv").write_text("Jerry\t杰瑞\nTom chases Jerry\t汤姆追逐杰瑞\n", encoding="utf-8")
    done = regard("evaluate", broken, f"--data.test={tmp_path / 'test.tsv'}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"regard: {WHY}")
