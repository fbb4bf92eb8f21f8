"""A run with a component of the user's own: named by file and digest, opened where the user hands the file over."""

import json
import sys
from hashlib import sha256
from pathlib import Path

import pytest

import regard
from regard import io, manifest, registry
from regard.components import HANDED, PREFIX, hand_over, list_entry_points, open_component, read_component, settle
from regard.errors import ConfigError
from regard.inference.load import load

pytestmark = pytest.mark.unhooked

SCORE = '''"""A score of one's own."""
import os
from dataclasses import dataclass
from pathlib import Path

with Path(os.environ.get("IMPORTED", os.devnull)).open("a") as file:
    file.write("imported ")


@dataclass(frozen=True)
class L1:
    """Negative L1 distance, divided by `tau`."""

    tau: float = 1.0

    def prepare(self, key):
        return key

    def __call__(self, query, prepared):
        return -(query[..., :, None, :] - prepared[..., None, :, :]).abs().sum(-1) / self.tau
'''
TINY = {
    "data": {"samples": 60},
    "train": {"max_steps": 2, "device": "cpu", "checkpoint_every": 1},
    "quiet": True,
}
SIZES = {"hidden_size": 8}


@pytest.fixture(scope="module")
def score(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "my_scores.py"
    path.write_text(SCORE)
    return path


@pytest.fixture(scope="module")
def run(score, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    regard.train("reverse", out=out, model={"attention": {"name": f"{score}:L1+sparsemax", "tau": 2}, **SIZES}, **TINY)
    return out


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """What the file says when it is imported: nothing may, where it was not handed over."""
    note = tmp_path / "imported"
    note.touch()
    monkeypatch.setenv("IMPORTED", str(note))
    for name in [name for name in sys.modules if name.startswith(PREFIX)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(registry, "COMPONENTS", {})
    return note


def test_a_run_has_the_name_the_digest_and_the_parameter(run, score):
    digest = sha256(score.read_bytes()).hexdigest()
    text = (run / "config.toml").read_text()
    assert f'name = "my_scores.py:L1@{digest}+sparsemax"' in text
    assert "tau = 2.0" in text
    assert str(score.parent) not in text


def test_with_the_file_it_opens_and_answers(run, score, imported):
    model = load(run, components=[score])
    assert model.model.decoder.cross.score.tau == 2.0
    assert len(model.predict(["a b c"])) == 1
    assert imported.read_text() == "imported "


def test_with_the_class_it_opens_with_that_class(run, score, imported, monkeypatch):
    monkeypatch.syspath_prepend(score.parent)
    from my_scores import L1

    assert type(load(run, components=[L1]).model.decoder.cross.score) is L1
    monkeypatch.delitem(sys.modules, "my_scores")


def test_a_file_of_another_name_and_equal_content_will_do(run, score, tmp_path, imported):
    copy = tmp_path / "renamed.py"
    copy.write_bytes(score.read_bytes())
    assert load(run, components=[copy]).name == "reverse"


def test_without_the_file_one_sentence_says_which_is_needed(run, score, imported):
    digest = sha256(score.read_bytes()).hexdigest()
    with pytest.raises(ConfigError) as error:
        load(run)
    assert str(error.value).endswith(
        f"the component my_scores.py:L1 needs its file my_scores.py with SHA-256 {digest}, since a config imports no code by "
        "itself: pass --component my_scores.py, or components=['my_scores.py'] in Python"
    )
    assert imported.read_text() == ""


def test_a_changed_file_is_refused_with_both_digests_and_does_not_run(run, score, tmp_path, imported):
    changed = tmp_path / "my_scores.py"
    changed.write_text(f"{SCORE}# changed\n")
    old, new = (sha256(path.read_bytes()).hexdigest() for path in (score, changed))
    with pytest.raises(
        ConfigError, match=rf"my_scores\.py:L1 has changed: its SHA-256 was {old}, and .* has {new}; give the"
    ):
        load(run, components=[changed])
    assert imported.read_text() == ""


def test_a_file_inside_an_untrusted_run_runs_nothing(run, score, tmp_path, imported, monkeypatch):
    """Whatever a run names, by path or by digest, and whatever lies in it or in the current directory."""
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    for file in (file for file in run.iterdir() if file.is_file()):
        io.write(hostile / file.name, file.read_bytes())
    (hostile / "my_scores.py").write_bytes(score.read_bytes())
    monkeypatch.chdir(hostile)
    digest = sha256(score.read_bytes()).hexdigest()
    table = manifest.unseal(hostile / manifest.NAME)
    text = (hostile / "config.toml").read_text()
    for name in (
        f"my_scores.py:L1@{digest}",
        "my_scores.py:L1",
        f"{hostile}/my_scores.py:L1",
        f"./my_scores.py:L1@{digest}",
        "os:system",
        "my_scores:L1",
    ):
        config = text.replace(f"my_scores.py:L1@{digest}", name).encode()
        io.write(hostile / "config.toml", config)
        io.write(
            hostile / manifest.NAME,
            manifest.seal({**table, "files": {**table["files"], "config.toml": manifest.digest(config)}}),
        )
        with pytest.raises(
            ConfigError, match="needs its file" if ".py:" in name else "no stage or mechanism is called|needs"
        ):
            load(hostile)
        for opening in (load, lambda path: regard.ensemble([path, path]), lambda path: regard.train(out=path)):
            with pytest.raises((ConfigError, regard.errors.TrainingError, LookupError)):
                opening(hostile)
    assert imported.read_text() == ""
    assert not [name for name in sys.modules if name.startswith(PREFIX)]


def test_what_one_call_hands_over_another_does_not_have(run, score):
    load(run, components=[score])
    assert HANDED.get() == ()
    with pytest.raises(ConfigError, match="needs its file"):
        load(run)


def test_it_resumes_with_the_file_alone(run, score, tmp_path):
    with pytest.raises(ConfigError, match="needs its file"):
        regard.train(out=run, train={"max_steps": 3}, quiet=True)
    again = regard.train(out=run, train={"max_steps": 3}, components=[score], quiet=True)
    assert again.metrics["step"] in (1, 2, 3)
    assert again.load().name == "reverse"


def test_a_toml_file_does_not_import_what_it_names(score, tmp_path, imported, monkeypatch):
    monkeypatch.chdir(score.parent)
    config = tmp_path / "config.toml"
    config.write_text('[model]\nattention = "my_scores.py:L1"\n')
    with pytest.raises(ConfigError, match=r"needs its file my_scores\.py, since a config imports no code by itself"):
        regard.train("reverse", out=tmp_path / "run", config=config, **TINY)
    assert imported.read_text() == ""
    done = regard.train("reverse", out=tmp_path / "run", config=config, model=SIZES, components=[score], **TINY)
    assert done.load().name == "reverse"


def test_an_ensemble_hands_the_file_to_its_members(run, score):
    assert regard.ensemble([run, run], components=[score]).name == "reverse"
    with pytest.raises(ConfigError, match="needs its file"):
        regard.ensemble([run, run])


@pytest.fixture
def installed(tmp_path, score, monkeypatch):
    """A package with an entry point, as an installer leaves it."""
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "__init__.py").write_text("")
    (tmp_path / "own_package" / "scores.py").write_bytes(score.read_bytes())
    info = tmp_path / "own_package-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[regard.score]\nmanhattan = own_package.scores:L1\nadditive = own_package.scores:L1\n"
    )
    (info / "RECORD").write_text("own_package/__init__.py,,\nown_package/scores.py,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    list_entry_points.cache_clear()
    yield tmp_path
    list_entry_points.cache_clear()
    for name in ("own_package", "own_package.scores"):
        sys.modules.pop(name, None)


def test_an_installed_component_is_opened_where_its_name_is_given(installed, tmp_path, imported):
    assert list(list_entry_points()) == ["manhattan"]  # additive is regard's own
    assert imported.read_text() == ""
    out = tmp_path / "run"
    done = regard.train("reverse", out=out, model={"attention": "manhattan", **SIZES}, **TINY)
    assert type(done.load().model.decoder.cross.score).__module__ == "own_package.scores"
    with pytest.raises(ConfigError, match="component manhattan needs the installed component manhattan with SHA-256"):
        load(out)
    assert load(out, components=["manhattan"]).name == "reverse"


def test_an_installed_component_is_checked_by_its_name(installed):
    assert open_component("manhattan").__module__ == "own_package.scores"
    with pytest.raises(
        ConfigError, match=r"'manhatan' names no class in a Python file; write it as my_scores\.py:L1, or name"
    ):
        open_component("manhatan")


def test_one_component_is_handed_over_without_a_list(run, score):
    assert load(run, components=score).name == "reverse"
    assert load(run, components=str(score)).name == "reverse"


def test_what_is_no_component_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="'nothing' is neither a Python file"):
        read_component("nothing")
    with pytest.raises(ConfigError, match="has no file, whose digest would name it"):
        read_component(int)


def test_names_without_components_stay_as_they_are(score):
    table = {"attention": {"name": "additive+sparsemax", "heads": 4}, "self_attention": "rotary"}
    assert settle(table) == table
    with hand_over([score]):
        assert settle(table) == table
        assert settle("my_scores.py:L1+sparsemax").endswith("+sparsemax")


def test_a_comparison_hands_the_file_to_its_workers(score, tmp_path):
    from typer.testing import CliRunner

    from regard import cli

    options = [
        "--data.samples=60",
        "--train.max_steps=1",
        "--model.hidden_size=8",
        "--quiet",
        "--out",
        str(tmp_path / "cmp"),
    ]
    result = CliRunner().invoke(cli.app, ["compare", "reverse", "--vary", f"model.attention=additive,{score}:L1", *options])
    assert result.exit_code == 0, result.output
    names = [run["values"] for run in json.loads((tmp_path / "cmp" / "compare.json").read_text())["runs"]]
    assert len(names) == 2


def test_the_command_takes_the_file(run, score):
    from typer.testing import CliRunner

    from regard import cli

    without = CliRunner().invoke(cli.app, ["predict", str(run), "a b"])
    assert without.exit_code == 2
    assert "pass --component my_scores.py" in without.output
    given = CliRunner().invoke(cli.app, ["evaluate", str(run), "--component", str(score), "--help"])
    assert given.exit_code == 0
    missing = CliRunner().invoke(cli.app, ["predict", str(run), "--component", str(Path(score).parent / "no.py")])
    assert missing.exit_code == 2
    assert "no.py is missing" in missing.output
