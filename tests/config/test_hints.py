import re
from pathlib import Path

import pytest

from regard import config, registry, tasks
from regard.config.hints import ELSEWHERE, FOREIGN, NOTES, foreign_option, meant_settings, unknown_setting
from regard.errors import ConfigError

CONFIGS = {name: tasks.find(name).Config for name in registry.names("tasks")}
SETTINGS = {path.removesuffix(".name") for kind in CONFIGS.values() for path in config.everything(kind)}

TRANSLATE = {
    "train.lr": "did you mean train.learning_rate?",
    "lr": "did you mean train.learning_rate?",
    "training.learning_rate": "did you mean train.learning_rate?",
    "optimizer.lr": "did you mean train.learning_rate?",
    "train.optimizer.lr": "did you mean train.learning_rate?",
    "train.batch_size": "did you mean data.batch_tokens, which counts tokens?",
    "batch-size": "did you mean data.batch_tokens, which counts tokens?",
    "max-tokens": "did you mean data.batch_tokens, which counts tokens?",
    "per_device_train_batch_size": "did you mean data.batch_tokens, which counts tokens?",
    "model.dropout": "did you mean dropout.embedding, dropout.residual or dropout.attention?",
    "dropout": "did you mean dropout.embedding, dropout.residual or dropout.attention?",
    "train.num_train_steps": "did you mean train.max_steps?",
    "max_update": "did you mean train.max_steps?",
    "train.epochs": "did you mean train.max_epochs?",
    "max-epoch": "did you mean train.max_epochs?",
    "num_train_epochs": "did you mean train.max_epochs?",
    "warmup": "did you mean train.warmup_steps, which counts steps?",
    "warmup-updates": "did you mean train.warmup_steps, which counts steps?",
    "clip": "did you mean train.gradient_clip?",
    "max_grad_norm": "did you mean train.gradient_clip?",
    "training.clip_grad_norm": "did you mean train.gradient_clip?",
    "update-freq": "did you mean train.accumulate_steps?",
    "label_smoothing_factor": "did you mean train.label_smoothing?",
    "fp16": "did you mean train.precision, which takes fp32 or bf16?",
    "seed": "did you mean train.seed?",
    "metric_for_best_model": "did you mean train.monitor?",
    "save_total_limit": "did you mean train.keep_checkpoints?",
    "model.num_layers": "did you mean model.layers?",
    "layers": "did you mean model.layers?",
    "d_model": "did you mean model.hidden_size?",
    "hidden": "did you mean model.hidden_size?",
    "rnn_size": "did you mean model.hidden_size?",
    "model.encoder.hidden_size": "did you mean model.hidden_size?",
    "encoder-ffn-embed-dim": "did you mean model.feedforward_size?",
    "num_attention_heads": "did you mean model.heads?",
    "heads": "did you mean model.attention.heads, model.heads or model.output.heads?",
    "share-all-embeddings": "did you mean model.tie_embeddings?",
    "arch": "did you mean model.encoder or model.decoder?",
    "beam": "did you mean search.beam?",
    "beam_size": "did you mean search.beam?",
    "num_beams": "did you mean search.beam?",
    "lenpen": "did you mean search.length_penalty?",
    "no_repeat_ngram_size": "did you mean search.block_ngrams?",
    "src_vocab_size": "did you mean data.vocab_size?",
    "data.max_len": "did you mean data.max_source_length or data.max_target_length?",
    "search.max_len": "did you mean search.max_length?",
    "train_file": "did you mean data.train?",
    "data.dev": "did you mean data.valid?",
    "data": "did you mean data.train?",
    "output_dir": "--out DIR names the run directory",
    "resume_from_checkpoint": "the same command with the same --out resumes a training",
    "num_workers": "batches are prepared while the device computes, and there is nothing to choose",
    "train.learning_rat": "did you mean train.learning_rate?",
    "learning_rat": "did you mean train.learning_rate?",
}
"""Names of other toolkits, groups and slips of the pen, with the answer of a task that reads text."""

CLASSIFY = {
    "batch_size": "did you mean data.batch_size?",
    "num_layers": "did you mean model.depth?",
    "image_size": "did you mean data.height or data.width?",
    "patch_size": "did you mean model.stride?",
}
"""Answers of a task that reads pictures, where they differ."""


@pytest.mark.parametrize(
    ("task", "name", "hint"),
    [("translate", *row) for row in TRANSLATE.items()] + [("classify", *row) for row in CLASSIFY.items()],
)
def test_the_name_of_another_toolkit_is_answered_with_the_setting_that_is_meant(task, name, hint):
    with pytest.raises(ConfigError, match=f"^{re.escape(f'there is no setting {name}; {hint}')}$"):
        config.read(CONFIGS[task], overrides=[f"{name}=1"])


@pytest.mark.parametrize(
    ("text", "name", "hint"),
    [
        ("[train]\nlr = 0.1", "train.lr", "did you mean train.learning_rate?"),
        ("[optimizer]\nlr = 0.1", "optimizer.lr", "did you mean train.learning_rate?"),
        ("[training]\nbatch_size = 8", "training.batch_size", "did you mean data.batch_tokens, which counts tokens?"),
        ("dropout = 0.3", "dropout", "did you mean dropout.embedding, dropout.residual or dropout.attention?"),
        ("data = ['a.tsv']", "data", "did you mean data.train?"),
        ("[model]\nencoder = {layers = 2}", "model.encoder.layers", "did you mean model.layers?"),
        ("[train.seed]\nx = 1", "train.seed.x", "did you mean train.seed?"),
    ],
)
def test_a_toml_file_gets_the_same_answers(tmp_path, text, name, hint):
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=f"^{re.escape(f'there is no setting {name}; {hint}')}$"):
        config.read(CONFIGS["translate"], path)


def test_a_table_from_python_gets_the_same_answers():
    with pytest.raises(ConfigError, match=r"^there is no setting train\.lr; did you mean train\.learning_rate\?$"):
        config.check(CONFIGS["translate"], {"train": {"lr": 0.1}})


@pytest.mark.parametrize("setting", sorted({setting for settings in FOREIGN for setting in settings.split()} | set(NOTES)))
def test_every_setting_in_the_table_exists(setting):
    assert setting in SETTINGS


def test_no_name_in_the_table_is_a_setting_at_its_own_place():
    names = {name for words in FOREIGN.values() for name in words.split()}
    assert not {path for path in SETTINGS if path in names}
    twice = [words.split() for words in (*FOREIGN.values(), *ELSEWHERE.values())]
    assert all(len(set(words)) == len(words) for words in twice)
    assert not names & {name for words in ELSEWHERE.values() for name in words.split()}


@pytest.mark.parametrize("kind", CONFIGS.values(), ids=CONFIGS)
def test_a_setting_without_its_group_is_answered_with_a_setting_of_that_name(kind):
    paths = [path.removesuffix(".name") for path in config.everything(kind)]
    for path in paths:
        name = path.rpartition(".")[2]
        if name not in ("data", "model", "dropout", "train", "search", "batch_size"):  # these are in the table
            assert set(meant_settings(name, paths)) & {other for other in paths if other.rpartition(".")[2] == name}, path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fp16", "there is no setting fp16; did you mean train.precision, which takes fp32 or bf16?"),
        ("resume", "there is no setting resume; the same command with the same --out resumes a training"),
        ("train.seed", None),
        ("zzz", None),
    ],
)
def test_a_flag_of_another_toolkit_is_answered_before_its_value_is_missed(name, text):
    assert foreign_option(name) == text


def test_a_name_like_no_other_gets_the_list_of_its_group():
    text = unknown_setting("model.zzz", ["model.heads", "model.attention.name", "model.attention.size", "train.seed"])
    assert text == "there is no setting model.zzz; there are heads, attention"


def test_the_readme_names_no_setting_of_another_toolkit():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert not re.findall(r"--train\.(?:lr|batch_size|epochs)\b", readme)
