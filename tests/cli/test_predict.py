import contextlib
import io
import json
import random
import re
import shutil
from dataclasses import replace

import pytest

from .conftest import ready, regard


def test_what_answers_do_without_is_not_imported_for_them():
    assert ready.heavy == []


def test_a_line_comes_in_and_its_answer_goes_out(run_directory):
    done = regard("predict", run_directory, given="Tom chases Jerry\n\na cat sees a dog\n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[1] == ""
    assert all((lines[0], lines[2]))


def test_several_answers_come_with_their_scores_best_first(run_directory):
    done = regard("predict", run_directory, "Tom chases Jerry", "--beam", "5", "--nbest", "3")
    scores = [float(line.split("\t")[0]) for line in done.stdout.splitlines() if line]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


def test_an_alignment_is_drawn_below_its_answer(run_directory):
    done = regard("predict", run_directory, "Tom chases Jerry", "--align")
    lines = done.stdout.splitlines()
    assert lines[2].split() == ["Tom", "chases", "Jerry", "<eos>"]
    assert lines[-1].startswith("<eos>") or lines[-2].startswith("<eos>")


def test_json_has_everything(run_directory):
    done = regard("predict", run_directory, "Tom chases Jerry", "--align", "--json")
    [answer] = json.loads(done.stdout)["answers"]
    assert answer["source"] == ["Tom", "chases", "Jerry", "<eos>"]
    assert len(answer["links"]) == len(answer["target"])


def test_a_file_of_answers_appears_only_when_it_is_whole(run_directory, tmp_path):
    (tmp_path / "问.txt").write_text("Tom chases Jerry\n" * 3, encoding="utf-8")
    done = regard("predict", run_directory, "--file", tmp_path / "问.txt", "--out", tmp_path / "答.txt")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "答.txt").read_text(encoding="utf-8").splitlines()) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["问.txt", "答.txt"])


def test_a_damaged_directory_is_refused_by_name(run_directory, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run_directory, copy)
    data = bytearray((copy / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (copy / "model.safetensors").write_bytes(data)
    done = regard("predict", copy, "Tom")
    assert done.returncode == 2
    assert "model.safetensors" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_directory_that_is_none_is_refused(tmp_path):
    done = regard("predict", tmp_path / "nothing", "Tom")
    assert done.returncode == 2
    assert "nothing" in done.stderr


def test_what_the_model_knows_nothing_of_or_cannot_read_to_its_end_is_left_empty_and_told(run_directory, tmp_path):
    lines = ["Tom chases Jerry", "☃ ☂ ⚛", "Tom chases Jerry", "Tom " * 256]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = regard("predict", run_directory, "--file", tmp_path / "in.txt", "--out", tmp_path / "out.txt")
    assert done.returncode == 2
    assert (
        "in.txt:2 has no answer (2 such in all): 1 has nothing in it that the model knows, 1 has more than the 255 tokens that "
        "the model reads"
    ) in done.stderr
    assert re.search(r"^4 lines in [0-9.]+ s$", done.stderr, re.MULTILINE)
    first, second, third, fourth = (tmp_path / "out.txt").read_text(encoding="utf-8").splitlines()
    assert first == third != ""
    assert second == fourth == ""


def test_a_tab_in_an_input_is_warned_of_once(run_directory, tmp_path):
    (tmp_path / "in.txt").write_text("Tom chases Jerry\nTom\tJerry\nTom\tJerry\n", encoding="utf-8")
    done = regard("predict", run_directory, "--file", tmp_path / "in.txt")
    assert done.returncode == 0
    told = "in.txt:2 has a tab, and the whole line is read as one input; of a table, give the source column alone"
    assert done.stderr.count("has a tab") == done.stderr.count(told) == 1


def test_lines_before_one_that_cannot_be_read_are_answered(run_directory, tmp_path):
    (tmp_path / "in.txt").write_bytes(b"Tom chases Jerry\nTom chases Jerry\n\xff\n")
    done = regard("predict", run_directory, "--file", tmp_path / "in.txt")
    assert done.returncode == 2
    assert "in.txt:3 is not UTF-8" in done.stderr
    assert len(done.stdout.splitlines()) == 2


def test_a_trace_is_written_beside_the_answer_and_says_what_it_took(run_directory, tmp_path):
    from regard.viewer.io import load

    path = tmp_path / "tom.attn.safetensors"
    plain = regard("predict", run_directory, "Tom chases Jerry", "--beam", 3)
    done = regard("predict", run_directory, "Tom chases Jerry", "--beam", 3, "--trace", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain.stdout
    assert done.stderr.startswith(f"{path}: traced inputs: 1. Recording took ")
    trace = load(path)
    assert trace.example().title == "Tom chases Jerry"
    assert trace.example().axes["target"].text == plain.stdout.strip()
    assert trace.example().beams is not None


def test_many_inputs_are_traced_up_to_a_number_that_is_told(run_directory, tmp_path):
    from regard.viewer.io import load

    path = tmp_path / "many.attn.safetensors"
    given = "Tom chases Jerry\n\n" + "Mary likes Tom\n" * 40
    done = regard("predict", run_directory, "--trace", path, given=given)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 42
    assert "traced inputs: 31 (the first 32 inputs; --file with fewer lines picks others)" in done.stderr
    assert len(load(path).examples) == 31


def test_a_trace_that_cannot_be_written_is_refused_before_anything_is_computed(run_directory, tmp_path):
    done = regard("predict", run_directory, "Tom", "--trace", tmp_path / "tom.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--trace writes a file called NAME.attn.safetensors, got 'tom.json'; name it so" in done.stderr
    done = regard("predict", run_directory, "Tom", "--trace", tmp_path / "no" / "tom.attn.safetensors")
    assert done.returncode == 2
    assert "there is no directory" in done.stderr


@pytest.mark.parametrize("option", ["--precision=int8", "--search.precision=int8"])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_trace_of_rounded_numbers_is_refused_before_anything_is_answered(run_directory, tmp_path, option, beam):
    path = tmp_path / "t.attn.safetensors"
    done = regard("predict", run_directory, "Tom chases Jerry", option, "--beam", beam, "--trace", path, "--device", "cpu")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a trace shows what is computed in float32, and search.precision=int8 answers by other numbers" in done.stderr
    assert not path.exists()


def test_nothing_known_is_nothing_to_trace(run_directory, tmp_path):
    done = regard("predict", run_directory, "--trace", tmp_path / "t.attn.safetensors", given="\n\n")
    assert done.returncode == 2
    assert "--trace has nothing to show: there is no input in which the model knows anything" in done.stderr


def test_a_trace_of_nothing_but_a_long_input_names_its_length(run_directory, tmp_path):
    done = regard("predict", run_directory, "--trace", tmp_path / "t.attn.safetensors", given="Tom " * 300)
    assert (done.returncode, done.stdout) == (2, "\n")
    assert "the model knows anything and that is not longer than what it reads" in done.stderr


class Stopped(BaseException):
    """The process is killed."""


def answer(model, texts, out, notes=None, **options):
    """Answer texts into a file, in windows of 15; be stopped when so many answers are noted."""
    from regard.cli._bad_inputs import BadInputs
    from regard.cli._journal import Journal
    from regard.cli._predict_io import AnswerWriter, write_to_file
    from regard.cli._progress import ProgressLine
    from regard.decoding.constraints.spec import ConstraintSpec

    wishes = [ConstraintSpec(include=("喜欢",)) if place % 11 == 5 else ConstraintSpec() for place in range(len(texts))]
    with Journal(out, {"input": "a"}) as journal:
        note = journal.note

        def stopping(*given):
            nonlocal notes
            if notes == 0:
                raise Stopped
            notes = None if notes is None else notes - 1
            note(*given)

        journal.note = stopping
        asking = AnswerWriter(model, as_json=True, bad_inputs=BadInputs("in.txt", tokens=255), **options)
        write_to_file(asking, zip(texts, wishes, strict=True), journal, 15, ProgressLine(None, stream=io.StringIO()))


def test_scores_after_any_kill_are_those_of_an_undisturbed_run(run_directory, tmp_path):
    """What shares a batch changes the last bits of a score: the batches have to be the same."""
    import regard as package

    model = package.load(run_directory, "cpu")
    model.config = replace(model.config, search=replace(model.config.search, batch_size=5, max_length=5))
    words = ["Tom", "Jerry", "chases", "likes", "the", "big", "dog", "Mary"]
    chance, stops = random.Random(1), 0
    texts = [" ".join(chance.choices(words, k=chance.randint(1, 9))) for _ in range(24)]
    texts[11], texts[17] = "☃", ""
    answer(model, texts, tmp_path / "calm.txt", beam=2)
    while not (tmp_path / "wild.txt").exists():
        with contextlib.suppress(Stopped):
            answer(model, texts, tmp_path / "wild.txt", chance.randint(3, 11), beam=2)
        stops += 1
    assert stops > 2
    assert (tmp_path / "wild.txt").read_bytes() == (tmp_path / "calm.txt").read_bytes()


def test_an_input_that_is_the_name_of_a_file_is_warned_of(run_directory, tmp_path):
    (tmp_path / "in.txt").write_text("Tom chases Jerry\n")
    done = regard("predict", run_directory, tmp_path / "in.txt")
    name = tmp_path / "in.txt"
    assert f"regard: {name} is a file, and its name is read as the input; --file {name} answers its lines" in done.stderr
    assert done.stderr.endswith("input:1 has nothing in it that the model knows; its answer was left empty\n")
