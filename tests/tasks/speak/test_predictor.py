import json
import wave

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.errors import ConfigError, DataError
from regard.tasks.speak.metrics import ReadingFigures
from regard.tasks.speak.predictor import describe

pytestmark = pytest.mark.unhooked  # the hook does not know the context that typer passes to a command


def test_an_answer_is_sound_with_the_times_of_its_words(predictor):
    answer = predictor.predict("kala mino", align=True)
    assert answer.output.ndim == 1
    assert answer.text.startswith(f"{answer.fields['seconds']:.2f} s of sound")
    assert answer.weights.shape[1] == len("kala mino") + 1
    assert len(answer.target) == len(answer.weights)
    words = answer.fields["words"]
    assert {word["word"] for word in words} <= {"kala", "mino"}
    assert all(0 <= word["start"] < word["end"] <= answer.fields["seconds"] + 0.1 for word in words)
    again = predictor.predict("kala mino").output
    assert again.equal(answer.output)  # the prenet drops out, from a fixed seed


def test_the_command_writes_a_sound_file_and_one_of_times(run, tmp_path):
    arguments = ["predict", str(run[0]), "kala mino", "--out", str(tmp_path / "a.wav"), "--times", str(tmp_path / "a.json")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "s of sound" in result.stdout
    with wave.open(str(tmp_path / "a.wav")) as sound:
        assert sound.getframerate() == 8000
    content = json.loads((tmp_path / "a.json").read_text())
    assert content["text"] == "kala mino"
    assert content["duration"] == pytest.approx(json.loads(json.dumps(content["duration"])))
    assert {"words", "skipped", "repeated"} <= content.keys()


def test_several_texts_fill_a_folder_and_times_are_printed(run, tmp_path):
    (tmp_path / "texts.txt").write_text("kala\nmino\n")
    arguments = ["predict", str(run[0]), "--file", str(tmp_path / "texts.txt"), "--out", str(tmp_path / "sounds")]
    result = CliRunner().invoke(app, [*arguments, "--times", "vtt"])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in (tmp_path / "sounds").iterdir()) == ["1.wav", "2.wav"]
    assert result.stdout.count("WEBVTT") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kala", "--out", "a.txt"], "--out needs a file called NAME.wav"),
        (["--file", "texts.txt", "--out", "a.wav"], "--out needs a folder for the answers to several inputs"),
        (["kala", "--times", "a.txt"], "--times needs a file called NAME.textgrid, NAME.json, NAME.srt, NAME.vtt"),
        (["kala", "--beam", "3"], "--beam is for models that write text"),
        (["kala", "--mark-copied"], "--mark-copied is for models that write text"),
        ([" ", "--out", "a.wav"], "--out=a.wav needs an input to answer, got an empty one"),
    ],
)
def test_options_that_make_no_sense_are_refused(run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("kala\n")
    result = CliRunner().invoke(app, ["predict", str(run[0]), *arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_times_of_several_texts_do_not_fit_one_file(predictor, tmp_path):
    predictor.set_times(str(tmp_path / "a.srt"))
    with pytest.raises(ConfigError, match="is for one text, got 2; name a format, such as json"):
        predictor.predict(["kala", "mino"])
    with pytest.raises(ConfigError, match="a text is spoken in one way, got 2 to choose from"):
        predictor.predict("kala", best=2)


def test_evaluation_compares_with_recordings(run, predictor):
    examples = run[1].valid[:3]
    figures = predictor.evaluate_examples(examples)
    assert list(figures) == ["l1", "mcd", "diagonality", "diagonality_forced", "skipped", "repeated", "misread"]
    assert figures["mcd"].value > 0
    assert 0 < figures["diagonality"].value <= 1
    with pytest.raises(DataError, match="has no recording to compare with; give a table with both columns"):
        predictor.evaluate_examples([examples[0]._replace(sound=None)])


def test_a_trace_lays_the_attention_over_the_spectrogram(predictor):
    trace = predictor.trace("kala")
    [example] = trace.examples
    assert example.axes["speech"].spectrogram.shape[0] == 12
    names = {attention.name: (attention.query, attention.key) for attention in example.attentions}
    assert names["decoder.cross"] == ("speech", "text")


def test_a_line_says_what_went_wrong():
    assert describe(1.0, ReadingFigures(1.0, (), (), 2), True) == "1.00 s of sound"
    worse = describe(1.0, ReadingFigures(0.5, ("a",), ("b", "c"), 3), False)
    assert worse == "1.00 s of sound; skipped: a; repeated: b c; it did not stop by itself"
