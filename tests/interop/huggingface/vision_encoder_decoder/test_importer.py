import json

import pytest
import torch
import transformers
from torch.testing import assert_close

import regard
from regard.data.image.batch import collate_images
from regard.data.image.types import ImageExample
from regard.data.image.writing import png
from regard.data.special_tokens import BOS
from regard.errors import RefusedError
from regard.interop.huggingface.importer import files
from regard.interop.output import write_directory

from ..tiny import END, PAD, VOCABULARY, saved
from .tiny import KINDS, scenes, seen, taught, tiny


def taken(model, folder):
    """A model's folder as a run, opened."""
    write_directory(folder / "run", files(saved(model, folder / "theirs")))
    return regard.load(folder / "run", "cpu")


def logits(trained, pictures, target):
    """Ours, in the order of their ids; the first of the target is where a decoder begins."""
    numbers = trained.codec.target.numbers
    before = torch.tensor([[BOS, *(numbers[each] for each in row[1:])] for row in target.tolist()])
    with torch.no_grad():
        found = trained.model(collate_images(list(pictures.float() / 255), trained.codec.stride), before).output
    return found[..., torch.tensor([numbers[each] for each in range(len(numbers))])]


def compared(model, trained, count=4, length=7):
    """Their logits beside ours."""
    pictures = scenes(count, model.config.encoder.image_size)
    begin = torch.full((count, 1), model.config.decoder_start_token_id)
    target = torch.cat((begin, torch.randint(4, VOCABULARY, (count, length))), dim=1)
    with torch.no_grad():
        theirs = model(pixel_values=seen(pictures), decoder_input_ids=target).logits
    assert_close(logits(trained, pictures, target), theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_theirs(kind, tmp_path):
    model = tiny(kind)
    compared(model, taken(model, tmp_path))


@pytest.mark.parametrize(
    ("kind", "encoder", "decoder"),
    [
        ("vit_gpt2", {"hidden_size": 12}, {}),
        ("vit_gpt2", {"image_size": 20, "hidden_act": "relu", "layer_norm_eps": 1e-3}, {"n_inner": 9, "n_layer": 1}),
        ("vit_gpt2", {}, {"activation_function": "relu", "tie_word_embeddings": False}),
        ("vit_trocr", {}, {"cross_attention_hidden_size": 16, "scale_embedding": True}),
        ("vit_trocr", {}, {"layernorm_embedding": False, "use_learned_position_embeddings": False}),
    ],
)
def test_logits_are_theirs_for_other_shapes_too(kind, encoder, decoder, tmp_path):
    model = tiny(kind, encoder, decoder)
    compared(model, taken(model, tmp_path))


def test_padding_and_end_may_be_one_token_and_an_answer_begin_with_it(tmp_path):
    model = tiny("vit_gpt2", None, {"pad_token_id": END, "bos_token_id": END}, decoder_start_token_id=END)
    trained = taken(model, tmp_path)
    compared(model, trained)
    assert trained.codec.target.numbers[END] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_and_beam_search_write_what_generate_writes(kind, tmp_path):
    model = taught(kind)
    trained = taken(model, tmp_path)
    pictures = scenes(60, seed=11)
    paths = [tmp_path / f"{number}.png" for number in range(60)]
    for path, picture in zip(paths, pictures, strict=True):
        path.write_bytes(png(picture))
    for beam in (1, 4):
        options = {"do_sample": False, "early_stopping": False, "suppress_tokens": [PAD], "max_new_tokens": 12}
        theirs = model.generate(seen(pictures), num_beams=beam, **options)[:, 1:].tolist()
        ours = [answer.text for answer in trained.predict(list(map(str, paths)), beam=beam)]
        ended = [(mine, row[: row.index(END)]) for mine, row in zip(ours, theirs, strict=True) if END in row]
        assert len(ended) >= 50
        assert [mine for mine, _ in ended] == [" ".join(map(str, row)) for _, row in ended]
        assert len(set(ours)) > 8


def test_pictures_of_any_size_are_read_by_its_processor_and_answered_by_its_search(tmp_path):
    model = tiny("vit_gpt2")
    folder = saved(model, tmp_path / "theirs")
    said = {"size": 12, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4], "resample": 2}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    (folder / "generation_config.json").write_text(json.dumps({"num_beams": 3, "max_length": 7}))
    write_directory(tmp_path / "run", files(folder, first="9"))
    trained = regard.load(tmp_path / "run", "cpu")
    assert (trained.config.search.beam, trained.config.search.max_length, trained.name) == (3, 6, "caption")
    assert_close(trained.model.mean.flatten(), torch.tensor([0.4, 0.5, 0.6]))
    assert_close(trained.model.deviation.flatten(), torch.tensor([0.2, 0.3, 0.4]))
    path = tmp_path / "wide.png"
    path.write_bytes(png(scenes(1, 30)[0, :, :20]))
    [answer] = trained.predict([str(path)], align=True)
    assert answer.text.split()[0] == "9"
    assert answer.weights.shape == (len(answer.target), 1 + 9)
    assert answer.source[:2] == ["whole", "1,1"]


def test_a_task_that_tells_no_pictures_in_words_is_refused(tmp_path):
    with pytest.raises(RefusedError, match="taken in for a task that tells them in words, such as caption, got 'translate'"):
        files(saved(tiny(), tmp_path), "translate")


def test_weights_that_do_not_fit_are_refused(tmp_path):
    folder = saved(tiny(), tmp_path)
    told = json.loads((folder / "config.json").read_text())
    told["encoder"]["num_hidden_layers"] = 1
    (folder / "config.json").write_text(json.dumps(told))
    with pytest.raises(RefusedError, match=r"it has encoder\.encoder\.layer\.1\..*, which such a model has no place for"):
        files(folder)


@pytest.mark.parametrize("sides", [(30, 20), (9, 5), (12, 40)])
def test_a_picture_is_made_as_large_as_its_processor_makes_it(sides, tmp_path):
    trained = taken(tiny(), tmp_path)
    picture = torch.randint(0, 256, (3, *sides)).byte()
    whole = transformers.models.vit.image_processing_pil_vit.ViTImageProcessorPil(size={"height": 12, "width": 12})
    theirs = whole([picture.permute(1, 2, 0).numpy()], return_tensors="pt").pixel_values[0]
    ours = (trained.codec.collate([ImageExample(picture)]).data[0] - 0.5) / 0.5
    assert_close(ours, theirs, atol=2 * 1.01 / 255, rtol=0)  # one step of 255, of numbers that are halved
