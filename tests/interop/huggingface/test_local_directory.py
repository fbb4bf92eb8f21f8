"""`regard view` on a directory that save_pretrained of transformers wrote."""

import json
import wave

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from typer.testing import CliRunner

from regard.cli import app
from regard.errors import DataError, RefusedError
from regard.interop.huggingface.local_directory import check_configs, is_model_directory, open_model, trace_input

from . import zoo

WORDS = ["<s>", "<pad>", "</s>", "Tom", "chases", "Jerry"]


def write_tokenizer(folder):
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<pad>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.decoder = decoders.WordPiece()
    tokens = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **tokens).save_pretrained(folder)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Directories by model type."""
    root = tmp_path_factory.mktemp("models")

    def write(model_type):
        folder = root / model_type
        if not folder.exists():
            model = zoo.build(model_type, "sdpa")
            if model.can_generate():
                model.generation_config.decoder_start_token_id = 2
            model.save_pretrained(folder)
            write_tokenizer(folder)
        return folder

    return write


@pytest.fixture
def copy(written, tmp_path):
    """A directory of its own, whose config can be changed."""

    def copied(kind, **changes):
        folder = tmp_path / kind
        folder.mkdir()
        for path in written(kind).iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        table = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps(table))
        return folder

    return copied


def test_a_directory_becomes_a_page_from_the_command_line(written, tmp_path):
    done = CliRunner().invoke(app, ["view", str(written("llama")), "Tom chases Jerry", "--html", str(tmp_path / "t.html")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "Tom chases Jerry" in page
    assert '"candidates":[[' in page
    assert '"name":"llama"' in page


@pytest.mark.parametrize("model_type", ["llama", "bart", "bert"])
def test_a_text_is_read_and_perhaps_answered(written, model_type):
    trace = trace_input(written(model_type), "Tom chases Jerry", beam=None if model_type == "bert" else 2)
    axes = trace.example().axes
    labels = axes["source" if model_type == "bart" else "tokens"].labels
    assert labels[:3] == ["Tom", "chases", "Jerry"]
    assert ("target" in axes) == (model_type == "bart")
    assert trace.attention().weights is not None


def test_a_picture_is_read(written, tmp_path):
    folder = written("vit")
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    Image.new("RGB", (50, 40), "red").save(tmp_path / "red.png")
    axis = trace_input(folder, str(tmp_path / "red.png")).example().axes["patches"]
    assert axis.grid == (4, 4)
    assert axis.pixels.reshape(-1, 3).mean(0).round().tolist() == [255, 0, 0]
    with pytest.raises(DataError, match="reads pictures: give the file of one, got 'Tom'"):
        trace_input(folder, "Tom")
    with pytest.raises(DataError, match="--beam is for a model that writes, and a ViTForImageClassification writes nothing"):
        trace_input(folder, str(tmp_path / "red.png"), beam=2)


def write_sound(path, channels=1, rate=16000):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.sin(np.arange(4000)) * 9000).astype("<i2").tobytes())
    return str(path)


def test_a_sound_is_read(written, tmp_path):
    folder = written("wav2vec2")
    transformers.Wav2Vec2FeatureExtractor().save_pretrained(folder)
    axis = trace_input(folder, write_sound(tmp_path / "a.wav")).example().axes["frames"]
    assert (axis.rate, len(axis.sound)) == (16000, 4000)
    with pytest.raises(DataError, match="needs one channel of 16 bits at 16000 Hz, got 2 of 16 bits at 8000 Hz; convert it"):
        trace_input(folder, write_sound(tmp_path / "b.wav", 2, 8000))
    (tmp_path / "c.wav").write_bytes(b"no sound")
    with pytest.raises(DataError, match=r"c\.wav needs to be a WAV file, and is not"):
        trace_input(folder, str(tmp_path / "c.wav"))
    with pytest.raises(DataError, match=r"reads sound: give a \.wav file, got 'Tom'"):
        trace_input(folder, "Tom")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"auto_map": {"AutoModel": "code.Model"}},
            r"config\.json names Python code of the directory \(auto_map\), which is never",
        ),
        ({"inner": {"auto_map": {"AutoModel": "code.Model"}}}, "names Python code of the directory"),
        ({"num_hidden_layers": 10**9}, r"config\.json needs num_hidden_layers of at most 4,096, got 1000000000"),
        ({"hidden_size": 10**15}, "needs hidden_size of at most 1,099,511,627,776"),
        ({"hidden_size": 320000}, "describes a model of .* parameters and the files hold .*: they do not belong together"),
        ({"model_type": "somebody"}, "has the model_type 'somebody', which transformers .* does not have"),
        ({"num_hidden_layers": 3}, r"has no weights for \d+ parameters of LlamaForCausalLM, such as model\.layers\.2"),
    ],
)
def test_a_hostile_or_damaged_config_is_refused(copy, changes, text):
    with pytest.raises(RefusedError, match=text):
        open_model(copy("llama", **changes))


def test_code_of_a_directory_never_runs(copy, tmp_path):
    folder = copy("llama", auto_map={"AutoModelForCausalLM": "evil.Model", "AutoConfig": "evil.Config"})
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    done = CliRunner().invoke(app, ["view", str(folder), "Tom", "--html", str(tmp_path / "t.html")])
    assert done.exit_code != 0
    assert not (tmp_path / "ran").exists()


def test_an_unknown_architecture_is_the_plain_model_of_its_type(copy):
    folder = copy("llama", architectures=["OsSystem"])
    assert type(open_model(folder)).__name__ == "LlamaModel"


def test_pickles_and_missing_weights_are_refused(copy):
    folder = copy("llama")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(RefusedError, match="has its weights in a pickle, which may run code when it is opened"):
        open_model(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(RefusedError, match="has no safetensors file: give the directory that save_pretrained"):
        open_model(folder)
    (folder / "config.json").unlink()
    with pytest.raises(RefusedError, match=r"has no config\.json: give the directory that save_pretrained"):
        check_configs(folder)


def test_a_directory_without_a_tokenizer_is_refused(copy):
    folder = copy("llama")
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(RefusedError, match="has not a tokenizer that transformers can open"):
        trace_input(folder, "Tom")


def test_an_empty_text_and_an_input_of_another_kind_are_refused(written, tmp_path):
    with pytest.raises(DataError, match="makes no token of ''; give a longer text"):
        trace_input(written("llama"), "")
    sizes = {"hidden_size": 8, "n_layer": 1, "n_head": 1, "state_dim": 2, "act_dim": 2, "n_positions": 64}
    model = transformers.DecisionTransformerModel(transformers.DecisionTransformerConfig(**sizes))
    model.save_pretrained(tmp_path / "states")
    with pytest.raises(RefusedError, match=r"a DecisionTransformerModel, which reads states; `regard view` takes models of"):
        trace_input(tmp_path / "states", "Tom")


def test_only_directories_of_transformers_are_taken_for_such(written, tmp_path):
    assert is_model_directory(written("llama"))
    assert not is_model_directory(tmp_path)
    weights = load_file(written("llama") / "model.safetensors")
    save_file(weights, tmp_path / "model.safetensors")
    assert not is_model_directory(tmp_path)
    assert torch.is_tensor(next(iter(weights.values())))


def test_options_of_tasks_are_refused(written, tmp_path):
    page = str(tmp_path / "t.html")
    done = CliRunner().invoke(app, ["view", str(written("llama")), "Tom", "--html", page, "--question", "what?"])
    assert done.exit_code == 2
    assert "--question is for a model that `regard train` made; drop it" in " ".join(done.output.split())
