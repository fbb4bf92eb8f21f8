"""Speech recognition from end to end: one run of a few steps, shared by all tests."""

import json
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import torch
from typer.testing import CliRunner

import regard
from regard import tasks
from regard.cli import app
from regard.config import AudioTextData, AudioToTextModel, SpeechSearch, SpeechTrain
from regard.data.axis import Audio
from regard.errors import ConfigError, DataError, DataWarning, RefusedError
from regard.losses.types import Progress
from regard.tasks._validate import buildable, heeded, searchable
from regard.tasks.transcribe.loss import EncodedModel, ctc_loss
from regard.tasks.transcribe.task import Config, measure
from regard.training.loop import train
from regard.training.run_directory import verify

MODEL = AudioToTextModel(hidden_size=16, heads=2, encoder="conformer", encoder_layers=1, layers=1)
QUICK = SpeechTrain(max_steps=4, evaluate_every=4, checkpoint_every=3, ctc_weight=0.3, device="cpu", monitor="loss")


def config(data=(), model=(), train=(), **search):
    return Config(
        data=AudioTextData(**{"samples": 24, "bins": 20, "batch_seconds": 12.0, "rate": 8000, **dict(data)}),
        model=replace(MODEL, **dict(model)),
        train=replace(QUICK, **dict(train)),
        search=SpeechSearch(max_length=30, **search),
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("transcribe")
    experiment, _ = tasks.experiment("transcribe", config({"augment": "speed+spec_augment"}))
    train(experiment, directory, quiet=True)
    return directory, experiment


@pytest.fixture
def model(run):
    return regard.load(run[0], device="cpu")


def with_search(model, **settings):
    model.config = replace(model.config, search=replace(model.config.search, **settings))
    return model


def test_a_run_is_whole_and_leaves_recordings_to_begin_with(run, model):
    directory, experiment = run
    verify(directory)
    texts = (directory / "samples" / "texts.tsv").read_text().splitlines()
    assert [line.split("\t")[1] for line in texts] == [example.record.target for example in experiment.valid[: len(texts)]]
    times = (directory / "samples" / "times.tsv").read_text().splitlines()
    assert [line.split("\t")[3] for line in times if line.startswith("1.wav")] == texts[0].split("\t")[1].split()
    again = model.codec.features(model.codec.encode(model.read(str(directory / "samples" / "1.wav"))))
    torch.testing.assert_close(again, experiment.codec.features(experiment.valid[0]), atol=0.05, rtol=0)


def test_metrics_are_error_rates(run, model):
    metrics = model.evaluate_examples(run[1].valid)
    assert metrics.keys() == {"wer", "cer", "ser", "perplexity"}
    exact = measure(["a b", "c"], ["a b", "c d"], ["", ""], model.config)
    assert [round(exact[name].value, 1) for name in ("wer", "cer", "ser")] == [25.0, 33.3, 50.0]


def test_the_joint_loss_is_that_of_decoder_and_ctc(run):
    experiment = run[1]
    network, batch = experiment.model.eval(), experiment.train.batch(0)
    with torch.no_grad():
        joint = experiment.loss(network, batch, Progress(0, 1))
        encoded = network.read(batch.source)
        attention = super(type(experiment.loss), experiment.loss).forward(
            EncodedModel(network, encoded), batch, Progress(0, 1)
        )
        ctc = ctc_loss(network.label(encoded), encoded, batch.target)
        halves = [experiment.loss(network, batch.select_rows(rows), Progress(0, 1)) for rows in ([0], range(1, batch.rows))]
    torch.testing.assert_close(joint.total, 0.7 * attention.total + 0.3 * ctc)
    torch.testing.assert_close(sum(half.total for half in halves), joint.total, rtol=1e-3, atol=1e-2)
    assert joint.parts["ctc"] == ctc
    assert not experiment.loss.capturable


def test_words_have_times_by_ctc_and_by_attention(run, model):
    path, text = str(run[0] / "samples" / "2.wav"), run[1].valid[1].record.target
    for times in ("ctc", "attention"):
        aligned = with_search(model, times=times).align_pair(path, text)
        words = aligned.fields["words"]
        assert {word["word"] for word in words} <= set(text.split())
        assert all(0 <= word["start"] < word["end"] <= aligned.fields["seconds"] + 0.05 for word in words)
        assert aligned.printed.count("\n") == len(words) - 1
    model.set_times("srt")
    assert " --> " in model.align_pair(path, text).printed
    with pytest.raises(ConfigError, match=r"--times is one of textgrid, json, srt, vtt, got 'doc'"):
        model.set_times("doc")
    with pytest.raises(DataError, match=r"needs the text that is said"):
        model.align_pair(path, " ")


def test_ctc_takes_part_in_the_search(run, model):
    path = str(run[0] / "samples" / "1.wav")
    alone, joint = (
        with_search(model, ctc_weight=0.0).predict(path, beam=2),
        with_search(model, ctc_weight=0.5).predict(path, beam=2),
    )
    assert joint.score != alone.score
    with pytest.raises(ConfigError, match=r"search.ctc_weight is for search.precision=float32"):
        with_search(model, precision="int8").predict(path)
    assert with_search(model, ctc_weight=None).ctc_weight == 0.0
    assert with_search(model, precision="float32").ctc_weight == 0.3
    with_search(model, ctc_weight=0.5).model.ctc = None
    with pytest.raises(ConfigError, match=r"needs a model that was trained with CTC"):
        model.predict(path)


def test_hotwords_are_preferred(run, model, tmp_path):
    path = str(run[0] / "samples" / "1.wav")
    (tmp_path / "words.txt").write_text("mino\n\nkala mino\n")
    model.set_hotwords(str(tmp_path / "words.txt"))
    preferred = with_search(model, hotword_bonus=20.0, max_length=12).predict(path, beam=4)
    assert "mino" in preferred.text
    for content, message in (("q!\n", "words.txt:1: the model cannot write 'q!'"), ("\n", "has no phrases")):
        (tmp_path / "words.txt").write_text(content)
        with pytest.raises(DataError, match=message):
            model.set_hotwords(str(tmp_path / "words.txt"))


@pytest.mark.filterwarnings("ignore::regard.errors.DataWarning")
def test_long_recordings_are_read_in_excerpts(run, model, tmp_path):
    sound = np.concatenate([soundfile.read(run[0] / "samples" / f"{number}.wav")[0] for number in (1, 2, 1, 2)])
    soundfile.write(tmp_path / "long.wav", sound, 8000)
    long, short = with_search(model, excerpt_seconds=1.5).predict(
        [str(tmp_path / "long.wav"), str(run[0] / "samples" / "1.wav")], align=True
    )
    assert long.fields["seconds"] == pytest.approx(len(sound) / 8000, abs=0.02)
    starts = [word["start"] for word in long.fields["words"]]
    assert starts == sorted(starts)
    assert long.text == " ".join(word["word"] for word in long.fields["words"])
    assert short.weights is not None


def test_a_trace_has_the_sound_for_an_axis(run, model):
    [example] = model.trace([str(run[0] / "samples" / "1.wav")], beam=2).examples
    axis = example.axes["source"]
    assert isinstance(axis, Audio)
    assert axis.spectrogram.shape[0] == 20
    assert axis.rate == 8000


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"hello", "needs to be sound"), (None, r"1 of 1 recordings are missing: input:1 .*x\.wav")],
)
def test_a_bad_input_is_named(model, tmp_path, content, message):
    if content:
        (tmp_path / "x.wav").write_bytes(content)
    with pytest.raises(DataError, match=message):
        model.predict(str(tmp_path / "x.wav"))


def test_silence_and_one_sample_are_answered(model, tmp_path):
    for name, samples in (("silence", np.zeros(8000)), ("one", np.ones(1))):
        soundfile.write(tmp_path / f"{name}.wav", samples, 8000)
        assert isinstance(model.predict(str(tmp_path / f"{name}.wav")).text, str)


def test_settings_without_effect_are_refused():
    for changed, message in (
        ({"train": {"ctc_weight": 0.0}, "ctc_weight": 0.5}, "search.ctc_weight=0.5 would change nothing"),
        ({"data": {"coefficients": 5}}, "data.coefficients=5 would change nothing"),
        (
            {"model": {"encoder": "pyramid", "heads": 4, "convolution_kernel": 7}},
            "model.convolution_kernel=7 would change nothing",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            heeded([config(**changed)], Config())
    for changed, message in (
        ({"train": {"ctc_weight": 2.0}}, "train.ctc_weight needs to be from 0 to 1, got 2"),
        ({"data": {"augment": "loud"}}, "data.augment needs to be none, or speed, spec_augment"),
        ({"data": {"bins": 300}}, "300 mel bins are narrower"),
    ):
        with pytest.raises(ConfigError, match=message):
            buildable(config(**changed))
    searchable(config())
    heeded([config({"features": "mfcc", "coefficients": 5})], Config())


def test_a_table_of_recordings_is_split_by_recording(run):
    table = run[0] / "samples" / "texts.tsv"
    experiment, report = tasks.experiment("transcribe", config({"train": str(table)}, {"encoder": "pyramid"}))
    assert report.held_out is not None
    with torch.no_grad():
        loss = experiment.loss(experiment.model.eval(), experiment.train.batch(0), Progress(0, 1))
    assert loss.total.isfinite()


@pytest.mark.unhooked  # the hook does not know the context that typer passes to a command
def test_the_commands_write_word_times(run, tmp_path):
    path = str(run[0] / "samples" / "1.wav")

    def regard(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    done = regard("align", run[0], path, "kala", "--times", "json", "--device", "cpu", "--out", tmp_path / "a.json")
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "a.json").read_text())["words"][0]["word"] == "kala"
    done = regard("align", run[0])
    assert done.exit_code == 2
    assert "a model that reads sound (transcribe) aligns one recording with what is said in it" in done.stderr
    for arguments in (("align", run[0], path), ("align", run[0], path, "kala", "--letters")):
        refused = regard(*arguments)
        assert refused.exit_code == 2 or isinstance(refused.exception, ConfigError)
        assert "takes INPUT and TEXT" in f"{refused.output}{refused.exception}"
    answered = regard("predict", run[0], path, "--times", "vtt", "--device", "cpu")
    assert answered.stdout.startswith("WEBVTT")


def test_an_alignment_of_one_input_is_for_sound(run, model):
    other, _ = tasks.experiment("reverse", replace(tasks.find("reverse").Config(), data=regard.config.Data(samples=20)))
    from regard.inference.sequence_predictor import SequencePredictor

    text = SequencePredictor(tasks.bind("reverse"), other.config, other.codec, other.model)
    with pytest.raises(RefusedError, match=r"is for models that read sound, and this one \(reverse\) reads text"):
        text.align_pair("a b", "b a")


def test_a_hole_is_warned_of(run, model, monkeypatch):
    monkeypatch.setattr(
        "regard.tasks.transcribe.predictor.find_stretches",
        lambda *arguments, **options: regard.alignment.stretches.Stretches(
            (regard.alignment.stretches.Stretch(0.1, 0.9, 0),), ()
        ),
    )
    with pytest.warns(DataWarning, match=r"1\.wav: never read 0\.10 to 0\.90 s"):
        model.align_pair(str(run[0] / "samples" / "1.wav"), run[1].valid[0].record.target)
