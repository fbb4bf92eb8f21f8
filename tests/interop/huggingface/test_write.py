import json
import os
import shutil

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
import transformers
from torch.testing import assert_close

from regard.data.batch import Padded
from regard.data.special_tokens import BOS, EOS
from regard.errors import DamagedError, RefusedError
from regard.inference.load import load
from regard.inference.sequence_predictor import Looking
from regard.interop.huggingface.importer import files as take
from regard.interop.huggingface.write import files, write
from regard.interop.output import write_directory

from ..transformers_ import opened, run, untrained
from .tiny import saved, tiny

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
CLASSES = {"pre": "Pegasus", "post": "Marian", "bart": "Bart", "mbart": "MBart", "t5": "T5", "t5_gated": "T5"}
SOAKED = ("pre", "mbart", "t5_gated")


def theirs(folder):
    """The model in a folder, of which nothing was missing and nothing left over."""
    kind = transformers.AutoModelForSeq2SeqLM
    model, told = kind.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    return model.eval()


def examples(trained, count, words=range(9)):
    records = [each for each in trained.task.module.synthesise(20 * count, seed=9)[0] if len(each.source.split()) in words][
        :count
    ]
    return trained.codec.encode_all(map(trained.task.prepare, records), "truncate").examples


@pytest.mark.parametrize("kind", CLASSES)
def test_transformers_opens_it_and_computes_the_same(kind, tmp_path):
    told = write(run(kind), tmp_path / "out")
    model, trained = theirs(tmp_path / "out"), opened(kind)
    assert CLASSES[kind] in told
    assert type(model).__name__.startswith(CLASSES[kind])
    few = examples(trained, 5)
    longest = max(len(each.source) for each in few)
    ids = torch.tensor([each.source + [0] * (longest - len(each.source)) for each in few])
    target = torch.randint(3, model.config.vocab_size, (5, 8))
    target[:, 0] = BOS
    with torch.no_grad():
        found = model(input_ids=ids, attention_mask=ids != 0, decoder_input_ids=target).logits
        assert_close(found, trained.model(Padded(ids, ids != 0), target).output, atol=1e-5, rtol=0)


def test_generate_writes_what_we_write(tmp_path):
    write(run("pre", 60), tmp_path / "out")
    model, trained = theirs(tmp_path / "out"), opened("pre", 60)
    few = [each for each in examples(trained, 160, words=[5]) if len(each.source) == 6][:90]
    ids = torch.tensor([each.source for each in few])
    for beam in (1, 4):
        found = model.generate(ids, num_beams=beam, max_new_tokens=trained.longest(6), do_sample=False)[:, 1:].tolist()
        ours = dict(trained._search(few, beam, 1, Looking()))
        ended = [(ours[place][0].tokens, row[: row.index(EOS) + 1]) for place, row in enumerate(found) if EOS in row]
        assert len(ended) >= 50  # ours ranks what was cut off behind what has ended, and theirs does not
        assert [mine for mine, _ in ended] == [row for _, row in ended]


@pytest.mark.parametrize("kind", ["post", "bart", "t5", *(pytest.param(kind, marks=pytest.mark.soak) for kind in SOAKED)])
def test_out_and_in_again_is_the_same_model(kind, tmp_path):
    write_directory(tmp_path / "theirs", files(opened(kind)))
    write_directory(tmp_path / "back", take(tmp_path / "theirs"))
    write_directory(tmp_path / "again", files(load(tmp_path / "back", "cpu")))
    first, second = theirs(tmp_path / "theirs"), theirs(tmp_path / "again")
    assert type(first) is type(second)
    ids = torch.randint(4, first.config.vocab_size, (3, 7))
    with torch.no_grad():
        assert torch.equal(first(ids, decoder_input_ids=ids).logits, second(ids, decoder_input_ids=ids).logits)
    assert second.config.decoder_start_token_id == BOS


def test_a_model_of_many_languages_goes_back_as_it_came(tmp_path):
    config = transformers.M2M100Config(
        vocab_size=30, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2
    )
    config.update({"encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "max_position_embeddings": 16, "decoder_start_token_id": 2})
    first = transformers.M2M100ForConditionalGeneration(config).eval()
    first.generation_config.forced_bos_token_id = 7
    first.save_pretrained(tmp_path / "theirs")
    write_directory(tmp_path / "run", take(tmp_path / "theirs"))
    write_directory(tmp_path / "again", files(load(tmp_path / "run", "cpu")))
    second = theirs(tmp_path / "again")
    assert type(second) is type(first)
    assert second.generation_config.forced_bos_token_id == 7
    ids = torch.randint(4, 30, (3, 7))
    with torch.no_grad():
        assert torch.equal(first(ids, decoder_input_ids=ids).logits, second(ids, decoder_input_ids=ids).logits)


def test_one_that_was_trained_since_goes_out_as_the_family_that_learns_its_positions(tmp_path):
    write_directory(tmp_path / "theirs", files(opened("pre")))
    write_directory(tmp_path / "back", take(tmp_path / "theirs"))
    assert json.loads(files(load(tmp_path / "back", "cpu"))["config.json"])["model_type"] == "pegasus"


def test_a_t5_that_was_trained_here_leaves_as_one(tmp_path):
    trained = opened("t5_gated", 3)
    write(run("t5_gated", 3), tmp_path / "out")
    model = theirs(tmp_path / "out")
    assert not trained.model.decoder.output.bias.any()
    ids = torch.randint(4, model.config.vocab_size, (3, 7))
    with torch.no_grad():
        found = trained.model(Padded(ids, ids != 0), ids).output
        assert_close(model(ids, decoder_input_ids=ids).logits, found, atol=1e-5, rtol=0)


def test_the_settings_of_the_search_go_along(tmp_path):
    trained = untrained()
    search = {"beam": 3, "block_ngrams": 2, "length_penalty": 0.5, "forced_bos": 9}
    object.__setattr__(trained.config, "search", type(trained.config.search)(**search))
    table = json.loads(files(trained)["generation_config.json"])
    assert (table["num_beams"], table["length_penalty"], table["no_repeat_ngram_size"]) == (3, 0.5, 2)
    assert (table["forced_bos_token_id"], table["max_length"], table["suppress_tokens"]) == (9, 201, [0, 1])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"encoder": "recurrent"}, "it has a recurrent encoder, and a transformer is needed"),
        (
            {"joint_vocab": False},
            "has several tables of embeddings, and one for all is needed: train with data.joint_vocab=true",
        ),
        ({"tie_embeddings": False}, "has several tables of embeddings"),
        ({"norm": "post", "positions": "learned"}, "has learned positions and norms behind its layers, and Marian"),
        (
            {"norm": "post", "hidden_size": 33, "heads": 1, "attention": "one"},
            r"has an odd size \(33\), and an even one is needed",
        ),
    ],
)
def test_what_no_family_computes_is_refused_with_the_reason(settings, told):
    from regard.config import AttentionPart

    if settings.get("attention") == "one":
        settings = settings | {"attention": AttentionPart("transformer", heads=1)}
    with pytest.raises(RefusedError, match=f"no architecture of transformers computes what this model computes.*{told}"):
        files(untrained(**settings))


def test_tables_of_different_length_are_refused():
    trained = untrained(positions="learned")
    trained.model.encoder.embedding.positions.limit = 9
    with pytest.raises(RefusedError, match="has 9 positions in the encoder and 256 in the decoder, and one number for both"):
        files(trained)


def test_a_run_with_an_altered_or_a_missing_file_is_refused(tmp_path):
    shutil.copytree(run("pre"), tmp_path / "run")
    (tmp_path / "run" / "config.toml").write_bytes((tmp_path / "run" / "config.toml").read_bytes() + b"\n")
    with pytest.raises(DamagedError, match=r"config\.toml"):
        write(tmp_path / "run", tmp_path / "out")
    (tmp_path / "run" / "config.toml").unlink()
    with pytest.raises(DamagedError, match=r"config\.toml"):
        write(tmp_path / "run", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_precision_is_refused(tmp_path):
    with pytest.raises(RefusedError, match="huggingface has the precision float32, got 'int8'"):
        write(run("pre"), tmp_path / "out", "int8")


def test_an_imported_model_whose_beginning_was_trained_apart_is_refused(tmp_path):
    write_directory(tmp_path / "theirs", files(opened("post")))
    write_directory(tmp_path / "back", take(tmp_path / "theirs"))
    back = load(tmp_path / "back", "cpu")
    with torch.no_grad():
        back.model.decoder.embedding.table.weight[BOS] += 1
    with pytest.raises(RefusedError, match="came from transformers and was trained since, with a beginning of its own"):
        files(back)


def test_what_has_no_tokenizer_says_why(tmp_path):
    assert write(run("pre"), tmp_path / "out").endswith(", with its tokenizer")
    write_directory(tmp_path / "run", take(saved(tiny("bart"), tmp_path / "theirs")))
    assert write(tmp_path / "run", tmp_path / "ids").endswith(", without a tokenizer: its texts are made of ids")
