import os

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
import transformers
from PIL import Image
from torch.testing import assert_close

import regard
from regard import tasks
from regard.config import AttentionPart, ImageTextData, ImageToTextModel, VitPart
from regard.data.image.types import ImageExample
from regard.data.image.writing import png
from regard.data.records import Record
from regard.errors import RefusedError
from regard.inference.sequence_predictor import SequencePredictor
from regard.interop.huggingface.importer import files as take
from regard.interop.huggingface.write import files, write
from regard.interop.huggingface.write_vision_encoder_decoder import find_misfit
from regard.interop.onnx.write import graphs
from regard.interop.output import write_directory
from regard.tasks.caption.experiment import fit_codec
from regard.tasks.caption.task import Config

from .tiny import END, VOCABULARY, saved
from .vision_encoder_decoder.tiny import KINDS, scenes, seen, taught, tiny


def theirs(folder):
    """The model in a folder, of which nothing was missing and nothing left over."""
    model, told = transformers.VisionEncoderDecoderModel.from_pretrained(
        folder, local_files_only=True, output_loading_info=True
    )
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    return model.eval()


def round_trip(model, folder):
    """A model of theirs, taken in and written again: the run, and what transformers opens."""
    write_directory(folder / "run", take(saved(model, folder / "theirs")))
    write(folder / "run", folder / "out")
    return theirs(folder / "out")


OTHERS = [
    ("vit_gpt2", {"hidden_size": 12, "layer_norm_eps": 1e-3}, {"activation_function": "relu", "n_inner": 9}),
    ("vit_gpt2", {}, {"pad_token_id": END, "tie_word_embeddings": False}),
    ("vit_trocr", {}, {"cross_attention_hidden_size": 16, "scale_embedding": True, "layernorm_embedding": False}),
    ("vit_trocr", {}, {"use_learned_position_embeddings": False}),
]


@pytest.mark.parametrize(("kind", "encoder", "decoder"), [*((kind, {}, {}) for kind in KINDS), *OTHERS])
def test_in_and_out_again_is_the_same_model(kind, encoder, decoder, tmp_path):
    model = tiny(kind, encoder, decoder)
    again = round_trip(model, tmp_path)
    assert type(again.decoder) is type(model.decoder)
    pictures, target = seen(scenes(3)), torch.randint(4, VOCABULARY, (3, 7))
    target[:, 0] = model.config.decoder_start_token_id
    with torch.no_grad():
        first, second = (each(pixel_values=pictures, decoder_input_ids=target).logits for each in (model, again))
    assert_close(first, second, atol=1e-5, rtol=0)


def test_what_is_written_reads_pictures_and_generates_as_the_run_does(tmp_path):
    model = taught("vit_gpt2")
    again = round_trip(model, tmp_path)
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path / "out", local_files_only=True, backend="pil")
    pictures = scenes(50, seed=21)
    paths = [tmp_path / f"{number}.png" for number in range(50)]
    for path, picture in zip(paths, pictures, strict=True):
        path.write_bytes(png(picture))
    pixels = processor([Image.open(path) for path in paths], return_tensors="pt").pixel_values
    assert_close(pixels, seen(pictures))
    trained = regard.load(tmp_path / "run", "cpu")
    for beam in (1, 4):
        rows = again.generate(pixels, num_beams=beam, do_sample=False)[:, 1:].tolist()
        ours = [answer.text for answer in trained.predict(list(map(str, paths)), beam=beam)]
        assert ours == [" ".join(map(str, row[: row.index(END)])) for row in rows]


def captioner(data=None, vit=None, **model):
    """A captioner of ours that has learnt nothing, whose output adds nothing."""
    part = VitPart(**{"learned_positions": True, "cls_tokens": 1} | (vit or {}))
    chosen = {"hidden_size": 8, "depth": 1, "stride": 4, "heads": 2, "encoder": "vit", "decoder": "transformer"}
    chosen |= {"attention": AttentionPart("transformer", 2), "positions": "learned", "scale_embedding": False}
    data = ImageTextData(**{"height": 8, "width": 12, "stretch": True, "max_target_length": 9} | (data or {}))
    config = Config(data=data, model=ImageToTextModel(**chosen | {"vit": part} | model))
    codec = fit_codec([Record("a.png", "a red star", "t:1"), Record("b.png", "a blue star", "t:2")], config)
    return SequencePredictor(tasks.bind("caption"), config, codec, tasks.build(config, codec))


def test_a_captioner_of_ours_is_one_of_theirs_too(tmp_path):
    trained = captioner()
    write_directory(tmp_path / "out", files(trained))
    model, target = theirs(tmp_path / "out"), torch.tensor([[1, 5, 6, 4]])
    picture = torch.randint(0, 256, (3, 8, 12)).byte()
    with torch.no_grad():
        found = model(pixel_values=seen(picture[None]), decoder_input_ids=target).logits
        ours = trained.model(trained.codec.collate([ImageExample(picture)]), target).output
    assert_close(found, ours, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"encoder": "resnet", "vit": {"learned_positions": False, "cls_tokens": 0}},
            "has model.encoder=resnet, and vit is",
        ),
        ({"decoder": "recurrent"}, "has model.decoder=recurrent, and transformer is needed"),
        ({"gated": True}, "has model.gated=True, and False is needed"),
        ({"attention": AttentionPart("additive")}, "looks at its picture by additive with 4 heads, and transformer with 2"),
        ({"embedding_size": 4}, "has embeddings of another size than its layers"),
        ({"norm": "rms"}, "has model.norm=rms, and a GPT-2 has pre, a TrOCR post"),
        ({"scale_embedding": True}, "which needs model.embedding_norm=false and model.scale_embedding=false"),
        (
            {"data": {"stretch": False}},
            r"needs data.stretch=true, model.vit.learned_positions=true and model.vit.cls_tokens=1",
        ),
        (
            {"vit": {"cls_tokens": 0}},
            r"needs data.stretch=true, model.vit.learned_positions=true and model.vit.cls_tokens=1",
        ),
        ({"norm": "post"}, "has model.vit.norm=post, and a ViT has pre"),
        ({"data": {"height": 10}}, "has patches of 4 pixels, and a ViT's fill its pictures of 10 x 12"),
        ({"map_size": 16}, "has a map of 16 and a decoder of 8: leave model.map_size out, and set model.vit.hidden_size"),
    ],
)
def test_what_no_model_of_theirs_computes_is_refused_by_name(changes, told):
    with pytest.raises(RefusedError, match=told):
        files(captioner(**changes))


def test_an_output_that_adds_something_is_refused():
    trained = captioner()
    assert find_misfit(trained) is None
    with torch.no_grad():
        trained.model.decoder.output.bias[5] = 0.1
    assert find_misfit(trained) == "adds a bias to its output, which neither a GPT-2 nor a TrOCR has"


def test_onnx_refuses_what_is_bound_to_one_size():
    with pytest.raises(
        RefusedError, match=r"onnx leaves the sizes of pictures open, and this model has one vector for each"
    ):
        graphs(captioner())
