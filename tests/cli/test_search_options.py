from types import SimpleNamespace

import pytest

from regard.cli._search_options import override_search, read_constraints, split_arguments
from regard.decoding.constraints.spec import ConstraintSpec
from regard.errors import ConfigError, DataError
from regard.tasks.translate import Config

from .conftest import regard


def model():
    return SimpleNamespace(config=Config(), name="translate")


def test_settings_may_stand_on_either_side_of_the_input():
    assert split_arguments("--search.beam=3", ["Tom", "--search.mbr", "chrf"], "predict") == (
        "Tom",
        ["search.beam=3", "search.mbr=chrf"],
    )
    assert split_arguments(None, [], "predict") == (None, [])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--bem", "3"], "predict has no option --bem; see --help, or give --search.NAME=VALUE"),
        (["--train.learning_rate=3"], "predict has no option --train.learning_rate"),
        (["Tom", "chases"], "predict takes one INPUT, got 'Tom' and 'chases'; quote it, or use --file"),
        (["--search.beam"], "--search.beam needs a value: --search.beam=VALUE"),
    ],
)
def test_what_is_no_setting_of_a_search_is_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        split_arguments(None, given, "predict")


def test_two_beams_contradict_each_other():
    with pytest.raises(ConfigError, match=r"--beam is --search.beam for short; give one of them"):
        override_search(model(), ["search.beam=3"], 4)


def test_a_model_searches_by_what_it_is_told_and_keeps_the_rest():
    asked = model()
    override_search(asked, ["search.beam_groups=2", "search.diversity_penalty=1.5"], 4)
    assert (asked.config.search.beam, asked.config.search.beam_groups, asked.config.search.diversity_penalty) == (4, 2, 1.5)
    assert asked.config.data == Config().data


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["search.beam_groups=2"],
            "search.beam_groups=2 needs search.beam to be a multiple of it, got 1; search.beam=2 is the nearest",
        ),
        (["search.diversity_penalty=1"], "search.diversity_penalty=1.0 would change nothing: it needs groups to keep apart"),
        (["search.mbr_candidates=4"], "search.mbr_candidates=4 would change nothing: it needs search.mbr=chrf"),
        (["search.mbr_from=sample"], "search.mbr_from=sample would change nothing"),
        (["search.mbr=meteor"], "search.mbr needs to be none, chrf, bleu, edit or exact, got 'meteor'"),
        (["search.bem=4"], r"there is no setting search.bem; did you mean search.beam\?"),
        (["search.mbr_candidates=0", "search.mbr=chrf"], "search.mbr_candidates needs to be 1 or more, got 0"),
        (
            ["search.beam_groups=2", "search.beam=2", "search.mbr=chrf", "search.mbr_from=sample"],
            "search.beam_groups=2 would change nothing: with search.mbr_from=sample candidates are sampled",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        override_search(model(), given)


def test_every_input_comes_with_what_is_asked_of_its_answer(tmp_path):
    assert list(read_constraints(["a", "b"], "x", ["y"], [], None)) == [
        ("a", ConstraintSpec("x", ("y",))),
        ("b", ConstraintSpec("x", ("y",))),
    ]
    path = tmp_path / "c.jsonl"
    path.write_text('{"prefix": "x"}\n\n', encoding="utf-8")
    assert list(read_constraints(["a", "b"], None, [], [], str(path))) == [
        ("a", ConstraintSpec("x")),
        ("b", ConstraintSpec()),
    ]
    with pytest.raises(DataError, match=r"c.jsonl needs a line for each input, and ends before line 3; an empty line has"):
        list(read_constraints(["a", "b", "c"], None, [], [], str(path)))
    with pytest.raises(DataError, match=r"c.jsonl needs a line for each input, and has more lines than there are inputs"):
        list(read_constraints(["a"], None, [], [], str(path)))
    with pytest.raises(
        ConfigError, match="give --constraints, or --prefix, --include and --exclude for all inputs; not both"
    ):
        read_constraints(["a"], "x", [], [], str(path))


def test_answers_are_as_each_line_of_a_file_asks(run_directory, tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('{"prefix": "玛丽"}\n{"include": ["猫"], "exclude": ["汤"]}\n\n', encoding="utf-8")
    given = "Tom chases Jerry\n" * 3
    options = ["--constraints", path, "--search.block_ngrams=1", "--search.max_length=20"]
    done = regard("predict", run_directory, *options, given=given)
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert first.startswith("玛丽")
    assert "猫" in second
    assert "汤" not in second
    assert all(len(set(line)) == len(line) for line in (first, second, third))


def test_what_cannot_be_had_is_told_in_one_paragraph(run_directory):
    done = regard("predict", run_directory, "Tom chases Jerry", "--include", "xyz")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "regard: the model cannot write the phrase 'xyz'; include words that it has learnt\n"


def test_a_model_is_measured_by_another_search(run_directory, tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("Tom chases Jerry\t汤姆追逐杰瑞\n", encoding="utf-8")
    done = regard("evaluate", run_directory, f"--data.test={path}", "--search.mbr=chrf", "--search.mbr_candidates=3")
    assert done.returncode == 0, done.stderr
    assert "chrf" in done.stdout


def test_what_is_refused_is_quoted_short_and_on_one_line():
    for given in (["--" + "x" * 9999], ["a" * 9999, "b" * 9999], ["--a\nb\x1b[31m=1"]):
        with pytest.raises(ConfigError) as raised:
            split_arguments(None, given, "predict")
        assert len(str(raised.value)) < 400
        assert str(raised.value).isprintable()
