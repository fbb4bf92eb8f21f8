import json
import shutil

import pytest
from typer.testing import CliRunner

from regard import tasks
from regard.cli import app
from regard.config import Data, Model, Train
from regard.data.text import synthetic
from regard.training.loop import train

pytestmark = pytest.mark.unhooked  # the hook does not know the context that typer passes to a command
PAIRS = synthetic.aligned(12, 7)


def regard(*arguments):
    """The command in this process: the others have shown that it starts in one of its own."""
    return CliRunner().invoke(app, [str(each) for each in arguments])


def trained(task, directory, path, **data):
    """A model that has learnt next to nothing."""
    part = Data(train=str(path), valid=str(path), **data)
    config = tasks.find(task).Config(data=part, model=Model(hidden_size=16), train=Train(max_steps=2, device="cpu"))
    train(tasks.experiment(task, config)[0], directory, quiet=True)
    return directory


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Pairs of the grammar, whose target marks no words: they are aligned token by token."""
    folder = tmp_path_factory.mktemp("pairs")
    pairs = "".join(f"{each.record.source}\t{each.record.target}\n" for each in PAIRS)
    (folder / "test.tsv").write_text(pairs, encoding="utf-8")
    spread = ([(source, place) for source, span in each.links for place in range(*span)] for each in PAIRS)
    links = "".join(" ".join(f"{source}-{target}" for source, target in each) + "\n" for each in spread)
    (folder / "gold.txt").write_text(links, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run_directory(files):
    return trained("translate", files / "run", files / "test.tsv")


def test_links_are_printed_one_line_for_each_pair(run_directory, files):
    done = regard("align", run_directory, f"--data.test={files / 'test.tsv'}", "--letters")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(PAIRS)
    for line, each in zip(lines, PAIRS, strict=True):
        assert sorted(int(link.partition("-")[2]) for link in line.split()) == list(range(len(each.record.target)))


def test_the_best_head_is_chosen_noted_and_used_from_then_on(run_directory, files, tmp_path):
    directory = shutil.copytree(run_directory, tmp_path / "run")
    asked = ["align", directory, f"--data.test={files / 'test.tsv'}", "--gold", files / "gold.txt", "--letters"]
    done = regard(*asked, "--choose", "--by", "aer", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    best, other = told["candidates"]
    assert {best["shift"], other["shift"]} == {True, False}
    assert best["aer"] <= other["aer"]
    assert told["aer"]["value"] == best["aer"]
    assert {"precision", "recall", "f1", "accuracy", "within_one"} < told.keys()
    noted = json.loads((directory / "manifest.json").read_bytes())["alignment"]
    assert noted == {name: best[name] for name in ("attention", "head", "shift")}
    again = regard(*asked, "--out", tmp_path / "links.txt")
    assert again.exit_code == 0, again.stderr
    assert f"aer {told['aer']['value']:12.2f}".split() == again.stdout.splitlines()[0].split()[:2]
    assert len((tmp_path / "links.txt").read_text(encoding="utf-8").splitlines()) == len(PAIRS)
    turned = regard(*asked, "--no-shift" if best["shift"] else "--shift", "--json")
    assert json.loads(turned.stdout)["aer"]["value"] == other["aer"]


def test_two_directions_are_symmetrised(run_directory, files, tmp_path):
    back = trained("translate", tmp_path / "back", files / "test.tsv", source="2", target="1")
    asked = ["align", run_directory, f"--data.test={files / 'test.tsv'}", "--letters", "--reverse", back]
    counts = {}
    for how in ("intersection", "union"):
        done = regard(*asked, "--symmetrise", how)
        assert done.exit_code == 0, done.stderr
        counts[how] = [set(line.split()) for line in done.stdout.splitlines()]
    assert all(both <= either for both, either in zip(counts["intersection"], counts["union"], strict=True))
    assert any(both < either for both, either in zip(counts["intersection"], counts["union"], strict=True))


def test_a_model_from_letters_to_phones_is_aligned_letter_by_letter(tmp_path):
    data = tmp_path / "words.tsv"
    data.write_text("ban\tb a n\nlin\tl i n\nban\tb a n\n", encoding="utf-8")
    (tmp_path / "gold.txt").write_text("0-0 1-1 2-2\n" * 3, encoding="utf-8")
    trained("pronounce", tmp_path / "run", data, tokenizer="characters", target_tokenizer="words")
    done = regard("align", tmp_path / "run", f"--data.test={data}", "--gold", tmp_path / "gold.txt", "--choose")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.split()[:6] == ["aer", "precision", "recall", "f1", "accuracy", "within_one"]
    assert "chosen: decoder.cross:mean" in done.stdout
    ranked = [float(line.split()[-2]) for line in done.stdout.splitlines()[1:3]]
    assert ranked == sorted(ranked, reverse=True)  # letters are judged by their accuracy


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "align takes --data.test=FILE"),
        (["--data.tests=x"], "align has no setting data.tests; it takes --data.test=FILE"),
        (["--symmetrise", "grow"], "--symmetrise is one of intersection, union, grow-diag"),
        (["--symmetrise", "union"], "--symmetrise needs a second model, of the other direction: --reverse DIR"),
        (["--choose"], "--choose finds the head that agrees best with gold links: --gold FILE"),
        (["--choose", "--gold", "g", "--reverse", "d"], "--choose is about one model: choose for each of the two"),
        (["--by", "bleu"], "--by is one of aer, f1, accuracy, got 'bleu'"),
        (["--by", "f1"], "--by says which head is best, and needs --choose"),
        (["--choose", "--gold", "g", "--attention", "decoder.cross"], "--choose tries every head, with and without a shift"),
        (["--choose", "--gold", "g", "--head", "0"], "heeds no --head; leave it out, or give it in a second command"),
        (["--choose", "--gold", "g", "--no-shift"], "heeds no --shift"),
        (["--choose", "--gold", "g", "--threshold", "0.2"], "by its largest weights, and heeds no --threshold"),
        (["--flip"], "--flip would change nothing: it is about gold links and the figures they give, --gold FILE"),
        (["--from-one"], "--from-one would change nothing"),
        (["--json"], "--json would change nothing"),
        (["--merge", "words"], "--merge is one of weights, links, got 'words'"),
        (
            ["--out", "nowhere/links.txt"],
            "cannot write nowhere/links.txt: there is no directory nowhere; make it first",
        ),
        (["--attention", "encoder", "TEST"], "no attention over the source is called 'encoder'; there are decoder.cross"),
        (["--head", "1", "TEST"], "the last attention has 1 head, counted from 0, and 1 was asked for"),
        (["--gold", "GOLD", "TEST"], "gold.txt, pair 1, links"),
    ],
)
def test_what_does_not_go_together_is_refused(run_directory, files, options, told):
    known = {"TEST": f"--data.test={files / 'test.tsv'}", "GOLD": files / "gold.txt"}
    done = regard("align", run_directory, *(known.get(each, each) for each in options))
    assert done.exit_code == 2
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_unknown_words_are_copied_on_the_command_line(tmp_path):
    data = tmp_path / "pairs.tsv"
    data.write_text("a b\tu v\na b\tw x\na b\ty z\n", encoding="utf-8")
    directory = trained("translate", tmp_path / "run", data, min_frequency=2)  # no target word is known
    kept, copied = (regard("predict", directory, "a b", "--unknown", each) for each in ("keep", "copy"))
    assert kept.exit_code == copied.exit_code == 0
    assert set(kept.stdout.split()) <= {"<unk>"}
    assert len(kept.stdout.split()) == len(copied.stdout.split())
    assert set(copied.stdout.split()) <= {"a", "b"}
    wrong = regard("predict", directory, "a b", "--unknown", "copi")
    assert wrong.exit_code == 2
    assert "there is no file copi; " in wrong.stderr
