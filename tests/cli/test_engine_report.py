from .conftest import regard


def test_predict_reports_its_engine_once_on_standard_error(run_directory):
    done = regard("predict", run_directory, "--device", "cpu", "--verbose", given="Tom chases Jerry\na cat sees a dog\n")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    line, end = done.stderr.splitlines()
    assert end.startswith("2 lines in ")
    assert line.startswith("engine: ")
    assert " on cpu" in line


def test_evaluate_reports_its_engine(run_directory, tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("Tom chases Jerry\t汤姆追逐杰瑞\n", encoding="utf-8")
    done = regard("evaluate", run_directory, f"--data.test={path}", "--device", "cpu", "--verbose")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("engine: ")


def test_without_verbose_nothing_is_reported(run_directory):
    done = regard("predict", run_directory, "Tom chases Jerry", "--device", "cpu")
    assert done.stderr == ""


def test_an_alignment_keeps_the_engine_and_says_where_it_comes_from(run_directory):
    plain = regard("predict", run_directory, "Tom chases Jerry", "--device", "cpu", "--verbose")
    done = regard("predict", run_directory, "Tom chases Jerry", "--device", "cpu", "--verbose", "--align")
    assert done.stderr == f"{plain.stderr.rstrip()}; the attention comes from a second pass over the answers\n"
    assert done.stdout.splitlines()[0] == plain.stdout.splitlines()[0]


def test_what_needs_the_reference_search_is_said(run_directory):
    done = regard("predict", run_directory, "Tom chases Jerry", "--device", "cpu", "--verbose", "--search.block_ngrams=2")
    assert (
        done.stderr
        == "engine: reference on cpu; prefixes, phrases, block_ngrams and grammars are constraints on each step\n"
    )
