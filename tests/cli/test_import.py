import json

import torch
from safetensors.torch import save_file

from regard import load
from regard.cli.import_ import import_model
from regard.data.image.writing import png
from regard.interop.huggingface.settings import read
from regard.interop.huggingface.tensors import shapes
from regard.interop.huggingface.vision_encoder_decoder import gpt2, vit
from regard.interop.huggingface.vision_encoder_decoder.settings import read as pictured

from .conftest import regard


def test_a_folder_becomes_a_run_that_answers(tmp_path, capsys):
    table = {"model_type": "marian", "d_model": 8, "vocab_size": 20, "max_position_embeddings": 12}
    table |= {"pad_token_id": 19, "decoder_start_token_id": 19, "eos_token_id": 0, "activation_function": "swish"}
    for half in ("encoder", "decoder"):
        table |= {f"{half}_layers": 1, f"{half}_attention_heads": 2, f"{half}_ffn_dim": 8}
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(table))
    save_file({name: torch.randn(shape) for name, shape in shapes(read(folder)).items()}, folder / "model.safetensors")
    import_model(folder, tmp_path / "run", "translate", first="7")
    told = capsys.readouterr().out
    assert "a run of the task translate" in told
    assert "its texts tokenized by spaces into ids (it has no tokenizer.json)" in told
    [answer] = load(tmp_path / "run", "cpu").predict(["4 5 6"])
    assert answer.text.split()[0] == "7"
    assert all(word.isdecimal() for word in answer.text.split())


def test_a_folder_that_cannot_be_taken_is_one_paragraph(tmp_path):
    done = regard("import", tmp_path, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert done.stderr.startswith(f"regard: {tmp_path} has no config.json: give the directory that save_pretrained")
    (tmp_path / "config.json").write_text('{"model_type": "whisper"}')
    done = regard("import", tmp_path, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "is a model of the type whisper, which listens to speech: there is no such model here" in done.stderr
    done = regard("import", tmp_path)
    assert done.returncode == 2
    assert "import needs a new run directory: --out DIR" in done.stderr


def test_a_model_of_pictures_becomes_a_run_that_tells_them(tmp_path):
    encoder = {"model_type": "vit", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 8}
    decoder = {"model_type": "gpt2", "vocab_size": 20, "n_positions": 6, "n_embd": 12, "n_layer": 1, "n_head": 2}
    decoder |= {"eos_token_id": 2, "bos_token_id": 2}
    table = {"encoder": encoder | {"intermediate_size": 8, "patch_size": 4}, "decoder": decoder}
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "vision-encoder-decoder"} | table))
    told = pictured(folder)
    every = vit.shapes(told) | gpt2.shapes(told)
    save_file({name: torch.randn(shape) for name, shape in every.items()}, folder / "model.safetensors")
    done = regard("import", folder, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "a run of the task caption" in done.stdout
    (tmp_path / "photo.png").write_bytes(png(torch.rand(3, 20, 30)))
    done = regard("predict", tmp_path / "run", tmp_path / "photo.png", "--align")
    assert done.returncode == 0, done.stderr
    assert all(word.isdecimal() for word in done.stdout.splitlines()[0].split())
