from .conftest import regard


def test_a_model_that_a_format_cannot_express_is_refused_in_one_paragraph(run_directory, tmp_path):
    done = regard("export", run_directory, "--to", "ctranslate2", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "regard: ctranslate2 cannot express this model: it has a recurrent encoder, and a transformer"
    )
    assert not (tmp_path / "out").exists()


def test_a_format_and_a_directory_are_needed(run_directory):
    done = regard("export", run_directory, "--to", "paper", "--out", "out")
    assert (done.returncode, done.stderr) == (
        2,
        "regard: --to needs to be one of onnx, ctranslate2, huggingface, got 'paper'\n",
    )
    done = regard("export", run_directory, "--to", "onnx")
    assert (done.returncode, done.stderr) == (2, "regard: export needs a directory for what it makes: --out DIR\n")


def test_a_trace_through_an_engine_that_gives_none_is_refused_before_anything_is_answered(run_directory, tmp_path):
    done = regard("predict", run_directory, "Tom", "--engine", "ctranslate2", "--trace", tmp_path / "a.attn.safetensors")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("regard: a trace needs the weights of every attention, and the engine ctranslate2 gives")
