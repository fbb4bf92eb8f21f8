import errno
import io
import json
import os
import shutil
import signal
import sys
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from regard.errors import ConfigError, DamagedWarning, FailedError, Interrupted, UnwritableError
from regard.losses.teacher_forcing import teacher_forcing_loss
from regard.training import step as update
from regard.training.checkpoint import load, steps
from regard.training.loop import train
from regard.training.run_directory import verify
from regard.training.state_dict import weights

from .small import Network, Plain, account, experiment, fingerprint


@pytest.fixture
def unhurried(monkeypatch):
    """Attentions are looked at for every line of the log, and not as time allows: two logs are compared."""
    monkeypatch.setattr("regard.training.attention_metrics.SHARE", 1e9)


def log(directory):
    return [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]


def test_training_learns_and_leaves_a_whole_directory(tmp_path):
    told = train(experiment(max_steps=60, evaluate_every=20, checkpoint_every=20), tmp_path, quiet=True)
    valid = [line["valid"]["loss"] for line in log(tmp_path) if "valid" in line]
    assert len(valid) == 3
    assert valid[-1] < 0.7 * valid[0]
    assert told["valid"]["loss"] == min(valid)
    assert sorted(verify(tmp_path)) == ["config.toml", "model.safetensors", "vocabulary.json"]
    assert steps(tmp_path / "checkpoints") == [40, 60]


def test_the_log_has_the_figures_of_each_stretch(tmp_path):
    train(experiment(max_steps=10, log_every=5), tmp_path, quiet=True)
    lines = [line for line in log(tmp_path) if "loss" in line]
    assert [line["step"] for line in lines] == [5, 10]
    assert {"step", "loss", "nll", "learning_rate", "tokens_per_second", "gradient", "skipped"} <= set(lines[0])


def test_the_model_in_memory_is_the_one_in_the_directory(tmp_path):
    made = experiment(max_steps=20, learning_rate=1.0)  # far too fast: the best is not the last
    told = train(made, tmp_path, quiet=True)
    assert told["step"] < 20
    saved = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(value, saved[name]) for name, value in weights(made.model).items())
    assert made.evaluate(made.model.eval())["loss"] == pytest.approx(told["valid"]["loss"])


@pytest.mark.parametrize(
    "settings",
    [{}, {"ema_decay": 0.9, "schedule": "plateau"}, {"average_checkpoints": 2, "accumulate_steps": 2}, {"optimizer": "sgd"}],
)
def test_stopping_anywhere_and_going_on_changes_no_bit(tmp_path, settings):
    train(experiment(max_steps=20, **settings), tmp_path / "whole", quiet=True)
    for last in (3, 10, 13, 20):
        train(experiment(max_steps=last, **settings), tmp_path / "cut", quiet=True)
    whole, cut = fingerprint(tmp_path / "whole"), fingerprint(tmp_path / "cut")
    assert whole["20"] == cut["20"]


def test_the_length_may_be_in_epochs(tmp_path, capsys):
    train(experiment(max_epochs=1.5, accumulate_steps=2), tmp_path)  # of 6 batches
    assert "finished: all 1.5 epochs are done, which are 5 steps" in capsys.readouterr().err
    train(experiment(max_epochs=2.0, accumulate_steps=2), tmp_path)
    assert "resuming" in (shown := capsys.readouterr().err)
    assert "finished: all 2 epochs are done, which are 6 steps" in shown


def test_epochs_are_the_same_training_as_their_number_of_steps(tmp_path):
    train(experiment(max_epochs=2.0, schedule="cosine"), tmp_path / "epochs", quiet=True)
    train(experiment(max_steps=12, schedule="cosine"), tmp_path / "steps", quiet=True)
    assert fingerprint(tmp_path / "epochs")["12"] == fingerprint(tmp_path / "steps")["12"]


def test_that_comparison_bites(tmp_path, monkeypatch):
    monkeypatch.setattr(update, "reseed", lambda *arguments: None)
    torch.manual_seed(1)
    train(experiment(max_steps=10), tmp_path / "whole", quiet=True)
    for last in (5, 10):
        torch.manual_seed(1)
        train(experiment(max_steps=last), tmp_path / "cut", quiet=True)
    assert fingerprint(tmp_path / "whole") != fingerprint(tmp_path / "cut")


def test_other_seeds_give_other_models(tmp_path):
    model = Network().state_dict()
    prints = []
    for seed in (0, 0, 1):
        network = Network()
        network.load_state_dict(model)
        train(experiment(network, seed=seed, max_steps=5), tmp_path / str(len(prints)), quiet=True)
        prints.append(fingerprint(tmp_path / str(len(prints))))
    assert prints[0] == prints[1] != prints[2]


def test_patience_ends_a_training_that_gets_no_better(tmp_path):
    made = replace(experiment(max_steps=100, patience=2), evaluate=lambda model: {"loss": 1.0})
    told = train(made, tmp_path, quiet=True)
    assert told["updates"] == 15
    assert told["step"] == 5
    assert told["ended"] == "2 evaluations brought nothing better"


def test_minutes_end_a_training_and_more_minutes_let_it_go_on(tmp_path):
    told = train(experiment(max_minutes=0.0), tmp_path, quiet=True)
    assert (told["updates"], told["ended"]) == (0, "the 0 minutes are over")
    assert train(experiment(max_minutes=1.0), tmp_path, quiet=True)["updates"] == 20


def test_a_model_without_attention_trains_as_well(tmp_path):
    made = experiment(Plain(), max_steps=10)
    train(made, tmp_path, quiet=True)
    assert not any("attention" in line for line in log(tmp_path))


def test_attention_health_is_in_the_log_by_default(tmp_path, unhurried):
    train(experiment(max_steps=5), tmp_path, quiet=True)
    (line,) = (line for line in log(tmp_path) if "loss" in line)
    assert set(line["attention"]["attention"]) == {"entropy", "coverage", "diagonality", "dead", "heads", "gradient"}


def test_whoever_stops_it_is_told_what_is_kept_and_how_to_go_on(tmp_path, capsys):
    def asked(model, batch, progress):
        if progress.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return teacher_forcing_loss(model, batch)

    with pytest.raises(Interrupted):
        train(replace(experiment(max_steps=5), loss=asked), tmp_path)
    assert "stopped at step 3, which is kept; the same command goes on from there" in capsys.readouterr().err
    assert steps(tmp_path / "checkpoints") == [3]


def test_news_goes_to_standard_error(tmp_path, capsys):
    train(experiment(max_steps=5), tmp_path)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "step 5 · loss" in shown.err
    assert "step 5 · valid loss" in shown.err
    assert "finished: all 5 steps are done" in shown.err


def test_determinism_is_on_where_it_is_asked_for(tmp_path):
    seen = []

    def watched(model, batch, progress):
        seen.append(torch.are_deterministic_algorithms_enabled())
        return teacher_forcing_loss(model, batch)

    train(replace(experiment(max_steps=2, deterministic=True), loss=watched), tmp_path, quiet=True)
    assert seen == [True, True]
    assert not torch.are_deterministic_algorithms_enabled()


def test_an_evaluation_that_does_not_fit_into_memory_ends_with_advice(tmp_path):
    def evaluate(model):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    with pytest.raises(FailedError, match=r"out of memory at step 5 \(CUDA out of memory"):
        train(replace(experiment(), evaluate=evaluate), tmp_path, quiet=True)


def test_errors_of_the_task_stay_what_they_are(tmp_path):
    def broken(model, batch, progress):
        raise RuntimeError("a mistake in the task")

    with pytest.raises(RuntimeError, match="a mistake in the task"):
        train(replace(experiment(), loss=broken), tmp_path, quiet=True)


def stopped_at(step, number=signal.SIGTERM, **settings):
    """An experiment that gets a signal during the update after so many steps."""
    usual, due = experiment(**settings), [step]

    def asked(model, batch, progress):
        if progress.step in due:
            due.clear()  # a second signal would end the process at once
            os.kill(os.getpid(), number)
        return usual.loss(model, batch, progress)

    return replace(usual, loss=asked)


@pytest.mark.parametrize("settings", [{"accumulate_steps": 2, "log_every": 7}, {"ema_decay": 0.9, "log_every": 3}])
def test_the_log_after_a_stop_is_the_undisturbed_one_line_for_line(tmp_path, settings, unhurried):
    train(experiment(**settings), tmp_path / "whole", quiet=True)
    for step in (2, 11, 12):
        with pytest.raises(Interrupted):
            train(stopped_at(step, **settings), tmp_path / "cut", quiet=True)
        assert log(tmp_path / "cut")[-1] == {"step": step + 1, "stopped": "SIGTERM"}
    train(experiment(**settings), tmp_path / "cut", quiet=True)
    assert account(tmp_path / "cut") == account(tmp_path / "whole")


def test_an_evaluation_made_again_is_in_the_log_once(tmp_path, unhurried):
    """Stopped during the evaluation of step 10, then killed between that evaluation, made again, and the next checkpoint."""
    usual, evaluations = experiment(), []

    def evaluate(model):
        evaluations.append(1)
        if len(evaluations) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return usual.evaluate(model)

    with pytest.raises(Interrupted):
        train(replace(usual, evaluate=evaluate), tmp_path / "cut", quiet=True)
    shutil.copytree(tmp_path / "cut" / "checkpoints", tmp_path / "checkpoints")
    train(experiment(max_steps=12), tmp_path / "cut", quiet=True)
    shutil.rmtree(tmp_path / "cut" / "checkpoints")
    shutil.move(tmp_path / "checkpoints", tmp_path / "cut" / "checkpoints")
    train(experiment(), tmp_path / "cut", quiet=True)
    train(experiment(), tmp_path / "whole", quiet=True)
    assert account(tmp_path / "cut")["log"] == account(tmp_path / "whole")["log"]


def test_a_training_killed_before_its_first_checkpoint_logs_its_data_once(tmp_path, unhurried):
    noted = replace(experiment(max_steps=5), data_report={"records": 3})
    train(noted, tmp_path, quiet=True)
    before = account(tmp_path)["log"]
    shutil.rmtree(tmp_path / "checkpoints")
    train(replace(experiment(max_steps=5), data_report={"records": 3}), tmp_path, quiet=True)
    assert account(tmp_path)["log"] == before
    assert before[0] == {"step": 0, "data": {"records": 3}}


def test_a_hang_up_saves_and_exits_with_its_code(tmp_path):
    with pytest.raises(Interrupted) as caught:
        train(stopped_at(6, signal.SIGHUP), tmp_path, quiet=True)
    assert caught.value.code == 129
    assert steps(tmp_path / "checkpoints") == [5, 7]
    assert log(tmp_path)[-1] == {"step": 7, "stopped": "SIGHUP"}


class Gone(io.StringIO):
    """Standard error whose reader goes away after some lines."""

    def __init__(self, lines, terminal=False):
        super().__init__()
        self.left, self.terminal = lines, terminal

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.left -= text.count("\n")
        if self.left < 0:
            raise OSError(errno.EIO, "Input/output error") if self.terminal else BrokenPipeError(errno.EPIPE, "Broken pipe")
        return super().write(text)


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_a_training_whose_reader_is_gone_is_saved_and_says_so_in_the_log(tmp_path, monkeypatch, terminal, unhurried):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Gone(1, terminal))
        with pytest.raises(Interrupted) as caught:
            train(experiment(), tmp_path / "run")
    assert caught.value.code == 141
    (*_, last) = log(tmp_path / "run")
    assert last == {"step": steps(tmp_path / "run" / "checkpoints")[-1], "stopped": "SIGPIPE"}
    train(experiment(), tmp_path / "run", quiet=True)
    train(experiment(), tmp_path / "whole", quiet=True)
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")
    assert account(tmp_path / "run")["log"] == account(tmp_path / "whole")["log"]


def test_a_warning_that_nobody_reads_does_not_end_a_training_without_a_checkpoint(tmp_path, monkeypatch):
    def warned(model, batch, progress):
        if progress.step == 6:
            print("a warning", file=sys.stderr)
        return teacher_forcing_loss(model, batch)

    monkeypatch.setattr(sys, "stderr", Gone(0))
    with pytest.raises(Interrupted):
        train(replace(experiment(), loss=warned), tmp_path, quiet=True)
    assert steps(tmp_path / "checkpoints") == [5, 7]


def test_without_any_standard_error_training_is_quiet(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert train(experiment(), tmp_path)["updates"] == 20


def meanwhile(step, act, **settings):
    """An experiment during whose training somebody does something to its directory."""
    usual = experiment(**settings)

    def loss(model, batch, progress):
        if progress.step == step:
            act()
        return usual.loss(model, batch, progress)

    return replace(usual, loss=loss)


@pytest.mark.parametrize("step", [3, 19])
def test_a_directory_deleted_while_training_is_not_made_again(tmp_path, step):
    run = tmp_path / "run"
    with pytest.raises(UnwritableError, match=r"run was deleted or renamed while it was written to, and nothing more"):
        train(
            meanwhile(step, lambda: shutil.rmtree(run), checkpoint_every=2, evaluate_every=3, log_every=4), run, quiet=True
        )
    assert list(tmp_path.iterdir()) == []


def test_checkpoints_deleted_while_training_are_missed_in_one_paragraph_and_the_training_begins_again(tmp_path):
    with pytest.raises(UnwritableError, match=r"cannot write .*run/checkpoints/.*: No such file or directory; make"):
        train(meanwhile(8, lambda: shutil.rmtree(tmp_path / "run" / "checkpoints")), tmp_path / "run", quiet=True)
    train(experiment(), tmp_path / "run", quiet=True)
    train(experiment(), tmp_path / "whole", quiet=True)
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


@pytest.mark.parametrize("replaced", [False, True])
def test_a_directory_renamed_while_training_goes_on_under_its_new_name(tmp_path, replaced, unhurried):
    run, moved = tmp_path / "run", tmp_path / "moved"

    def move():
        run.rename(moved)
        if replaced:
            run.mkdir()

    with pytest.raises(UnwritableError, match="give its new name, and start again to go on"):
        train(meanwhile(8, move), run, quiet=True)
    assert not replaced or list(run.iterdir()) == []
    assert not list(moved.rglob(".tmp-*"))
    train(experiment(), moved, quiet=True)
    train(experiment(), tmp_path / "whole", quiet=True)
    assert fingerprint(moved) == fingerprint(tmp_path / "whole")
    assert account(moved) == account(tmp_path / "whole")


@pytest.mark.parametrize("place", [".", "checkpoints", "log.jsonl"])
def test_a_directory_made_read_only_while_training_ends_it_in_one_paragraph(tmp_path, place):
    """Root may write anywhere, so that the training runs as somebody else while it lasts.

    Who may not be able to read the sources: what a training imports and looks up is there before.
    """
    run, me = tmp_path / "run", os.geteuid()
    train(experiment(max_steps=1), tmp_path / "before", quiet=True)
    run.mkdir()
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == me and path.stat().st_mode & 0o005 != 0o005:
            path.chmod(0o755)

    def protect():
        (run / place).chmod(0o555 if (run / place).is_dir() else 0o444)

    disturbed = meanwhile(8, protect)
    try:
        if me == 0:
            os.chown(run, 65534, -1)
            os.seteuid(65534)
        with pytest.raises(UnwritableError, match=rf"cannot write {run}.*: Permission denied; choose a place"):
            train(disturbed, run, quiet=True)
    finally:
        os.seteuid(me)
    assert not list(run.rglob(".tmp-*"))
    for path in (run, run / "checkpoints"):
        path.chmod(0o777)
    (run / "log.jsonl").chmod(0o666)
    train(experiment(), run, quiet=True)
    train(experiment(), tmp_path / "whole", quiet=True)
    assert fingerprint(run) == fingerprint(tmp_path / "whole")


def test_a_log_that_is_a_full_device_ends_the_training_in_one_paragraph(tmp_path):
    def fill():
        (tmp_path / "log.jsonl").unlink()
        (tmp_path / "log.jsonl").symlink_to("/dev/full")

    with pytest.raises(UnwritableError, match=r"no room to write .*log.jsonl: it needs"):
        train(meanwhile(8, fill), tmp_path, quiet=True)
    (tmp_path / "log.jsonl").unlink()
    train(experiment(), tmp_path, quiet=True)


def test_errors_of_files_elsewhere_stay_what_they_are(tmp_path):
    def missing():
        (tmp_path / "data.tsv").read_bytes()

    with pytest.raises(FileNotFoundError, match=r"data.tsv"):
        train(meanwhile(8, missing), tmp_path / "run", quiet=True)


@pytest.mark.parametrize(("damage", "step"), [("deleted", 2), ("deleted", 18), ("emptied", 7), ("changed", 12)])
def test_a_manifest_deleted_or_damaged_while_training_is_written_again_with_a_warning(tmp_path, damage, step, unhurried):
    path = tmp_path / "run" / "manifest.json"

    def harm():
        if damage == "deleted":
            path.unlink()
        else:
            path.write_bytes(b"" if damage == "emptied" else path.read_bytes().replace(b"vocabulary", b"dictionary"))

    with pytest.warns(
        DamagedWarning, match=r"manifest.json .*, changed by somebody else while the run goes on; it is written"
    ):
        train(meanwhile(step, harm), tmp_path / "run", quiet=True)
    train(experiment(), tmp_path / "whole", quiet=True)
    assert sorted(verify(tmp_path / "run")) == ["config.toml", "model.safetensors", "vocabulary.json"]
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")
    assert account(tmp_path / "run") == account(tmp_path / "whole")


@pytest.mark.parametrize(("optimiser", "rate"), [("adam", 1e30), ("sgd", 1e308)])
def test_a_learning_rate_that_overflows_ends_in_one_sentence_and_leaves_the_directory_free(tmp_path, optimiser, rate):
    with pytest.raises(
        ConfigError, match=r"train.learning_rate is too large: with train.schedule it gives a learning rate of"
    ):
        train(experiment(learning_rate=rate, optimizer=optimiser), tmp_path, quiet=True)
    train(experiment(max_steps=1), tmp_path, quiet=True)


def test_onednn_without_memory_halves_the_batch(tmp_path):
    def loss(model, batch, progress):
        if batch.rows > 2:
            raise RuntimeError("could not create a primitive")
        return teacher_forcing_loss(model, batch)

    train(replace(experiment(max_steps=2), loss=loss), tmp_path, quiet=True)
    assert load(tmp_path / "checkpoints" / "2").counters["parts"] == 2
