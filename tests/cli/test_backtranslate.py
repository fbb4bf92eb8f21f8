import pytest

from .conftest import regard


def test_targets_come_in_and_a_table_to_train_on_goes_out(run_directory, tmp_path):
    (tmp_path / "mono.txt").write_text("Tom chases Jerry\n\na cat sees a dog\n", encoding="utf-8")
    (tmp_path / "real.tsv").write_text("汤姆\tTom\n", encoding="utf-8")
    out = tmp_path / "合成.tsv"
    options = ["--file", tmp_path / "mono.txt", "--out", out, "--noise", "--tag", "<BT>", "--append", tmp_path / "real.tsv"]
    done = regard("backtranslate", run_directory, *options)
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == f"{out}: 2 pairs, 1 targets left out: no source, or longer than the model reads, 1 real pairs appended\n"
    )
    assert done.stderr == "3 targets read · 2 pairs\n"
    rows = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    assert [target for _, target in rows] == ["Tom chases Jerry", "a cat sees a dog", "Tom"]
    assert [source.startswith("<BT> ") for source, _ in rows] == [True, True, False]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["mono.txt", "real.tsv", "合成.tsv"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "backtranslate needs a table to write: --out NAME.tsv"),
        (["--out", "x.jsonl"], "backtranslate writes columns between tabs, got 'x.jsonl'; name it NAME.tsv"),
        (["--out", "nowhere/x.tsv"], "there is no directory nowhere; make it first"),
        (["--out", "x.tsv", "--draw", "best"], "--draw needs to be beam, sample or greedy, got 'best'"),
        (
            ["--out", "x.tsv", "--draw", "greedy", "--beam", "3"],
            "--beam would change nothing: it needs --draw beam, got greedy",
        ),
        (["--out", "x.tsv", "--temperature", "0.5"], "--temperature would change nothing: it needs --draw sample, got beam"),
        (
            ["--out", "x.tsv", "--draw", "sample", "--temperature", "0"],
            "--temperature 0 is greedy decoding: use --draw greedy",
        ),
        (["--out", "x.tsv", "--tag", "<B T>"], "--tag needs one word without spaces, got '<B T>'"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, message):
    done = regard("backtranslate", "run", *options, given="")
    assert done.returncode == 2
    assert message in done.stderr


def test_what_cannot_be_made_into_pairs_is_refused(run_directory, tmp_path):
    out = tmp_path / "x.tsv"
    done = regard("backtranslate", run_directory, "--out", out, given="δ\n\n")
    assert done.returncode == 2
    assert "standard input: the model found a source for none of the 2 targets" in done.stderr
    (tmp_path / "real.jsonl").write_text('["a\\tb", "c"]\n', encoding="utf-8")
    done = regard("backtranslate", run_directory, "--out", out, "--append", tmp_path / "real.jsonl", given="Tom\n")
    assert done.returncode == 2
    assert "real.jsonl:1 has a tab or a line's end in it, which a table of tabs cannot hold; take it out" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["real.jsonl"]  # nothing half-written either


def test_real_pairs_that_cannot_be_read_are_told_before_anything_is_translated(tmp_path):
    options = ["--out", tmp_path / "x.tsv", "--append", tmp_path / "real.tsv"]
    done = regard("backtranslate", "no run", *options, given="Tom\n")
    assert done.returncode == 2
    assert f"there is no file {tmp_path / 'real.tsv'}" in done.stderr
