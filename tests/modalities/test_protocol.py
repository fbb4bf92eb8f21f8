"""One suite over all modalities: text, recordings and images with texts, and two toys that no file of the package knows."""

from io import StringIO
from typing import Any, NamedTuple

import pytest
import soundfile
import torch
from torch import Tensor
from torch.testing import assert_close

from regard.config import (
    AttentionPart,
    AudioDropout,
    AudioTextData,
    AudioToTextModel,
    Data,
    Dropout,
    ImageDropout,
    ImageTextData,
    ImageToTextModel,
    Model,
)
from regard.data.audio.codec import AudioTextCodec
from regard.data.audio.synthetic.syllables import synthesise
from regard.data.batch import Batch, tensors
from regard.data.image.codec import ImageTextCodec
from regard.data.image.types import ImageExample
from regard.data.image.writing import png
from regard.data.modality import Codec, Example, Feedback, Source
from regard.data.records import Record
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers import train
from regard.models import image2seq, seq2seq, speech2seq
from regard.models.detections import Detections
from regard.tasks.classify.codec import LabelCodec
from regard.tasks.detect.codec import ObjectCodec
from regard.tasks.retrieve.codec import PairCodec
from regard.tasks.vqa.codec import QuestionCodec

from .toys import points, series

QUIET = {"embedding": 0.0, "residual": 0.0, "attention": 0.0}


class Modality(NamedTuple):
    codec: Any
    records: list[Any]
    model: Any


def text(folder):
    sources = ["Tom chases Jerry", "Tom", "the cat sleeps and sleeps and sleeps", "Jerry sleeps"]
    records = [Record(source, source.upper(), f"t.tsv:{number}") for number, source in enumerate(sources, 1)]
    codec = TextCodec.fit(records, Data())
    model = Model(hidden_size=8, encoder="transformer", decoder="transformer", heads=2)
    return codec, records, seq2seq.build(model, Dropout(**QUIET), codec.source.size, codec.target.size, joint=False)


def image(folder):
    sizes, records = [(16, 16), (24, 40), (8, 32), (40, 24)], []
    for number, (height, width) in enumerate(sizes, 1):
        (folder / f"{number}.png").write_bytes(png(torch.rand(3, height, width)))
        records.append(Record(f"{number}.png", f"picture {number}", f"{folder}/t.tsv:{number}"))
    data = ImageTextData(height=40, width=40)
    codec = ImageTextCodec.fit(records, data, 8)
    model = ImageToTextModel(hidden_size=8, depth=1, decoder="transformer", heads=2, attention=AttentionPart("transformer"))
    standard = codec.mean, codec.deviation
    return codec, records, image2seq.build(model, ImageDropout(**QUIET), codec.target.size, (40, 40), standard)


def toy(module, codec_class):
    records, _ = module.synthesise(8, seed=0)
    codec = codec_class.fit(records)
    return codec, records, module.build(module.Config(), codec)


def audio(folder):
    records = []
    for number, sound in enumerate(synthesise(4, 0, 8000), 1):
        soundfile.write(folder / f"{number}.png", sound().numpy(), 8000, format="WAV")  # what a file is, its content says
        records.append(Record(f"{number}.png", sound.text, f"{folder}/t.tsv:{number}"))
    codec = AudioTextCodec.fit(records, AudioTextData(rate=8000, bins=12), 4)
    model = AudioToTextModel(hidden_size=8, heads=2, encoder="conformer", decoder="transformer")
    dropout = AudioDropout(**QUIET, encoder=0.0)
    return codec, records, speech2seq.build(model, dropout, codec.channels, codec.target.size, ctc=True)


MODALITIES = {
    "text": text,
    "audio": audio,
    "image": image,
    "series": lambda folder: toy(series, series.SeriesCodec),
    "points": lambda folder: toy(points, points.PointsCodec),
}


@pytest.fixture(params=MODALITIES)
def modality(request, tmp_path):
    torch.manual_seed(0)
    codec, records, model = MODALITIES[request.param](tmp_path)
    return Modality(codec, records, model.eval())


def read(model, source) -> list[Tensor]:
    """The vectors of each source that are no padding."""
    with torch.no_grad():
        encoded = model.read(source)
    return [row[keep] for row, keep in zip(encoded.data, encoded.keep, strict=True)]


def test_a_codec_has_the_protocol(modality):
    codec = modality.codec
    assert isinstance(codec, Codec)
    assert isinstance(codec.feedback, Feedback)
    assert isinstance(codec.encode(modality.records[0]), Example)
    assert isinstance(codec.collate([codec.encode(modality.records[0])]), Source)
    known = Data(), ImageTextData(), AudioTextData()
    assert not [name for name in codec.settings if not any(hasattr(data, name) for data in known)]


def test_every_codec_of_the_package_has_the_protocol():
    usual = {"height": 8, "width": 8, "stride": 8}
    question = train("words", ["is it red?"], 100)
    codecs = [
        LabelCodec(("cat", "dog"), **usual),
        ObjectCodec(("cat", "dog"), **usual),
        PairCodec(question, **usual),
        QuestionCodec(question, ("no", "yes"), **usual),
    ]
    for codec in codecs:
        assert isinstance(codec, Codec), type(codec).__name__
    labels, objects, _, answers = codecs
    assert labels.decode(labels.encode_target(Record("a.png", "dog", "t.tsv:1"))) == ["dog"]
    assert answers.target_pieces([1, 0]) == answers.target_axis([1, 0]).labels == ["yes", "no"]
    boxes, file = torch.tensor([[0.5, 0.5, 0.5, 1.0]]), StringIO()
    detections = Detections(torch.tensor([1]), boxes, torch.tensor([0.75]))
    objects.write(objects.decode(detections), file)
    assert file.getvalue() == "dog 0.2500 0.0000 0.7500 1.0000 0.7500\n"
    assert objects.target_axis(detections).labels == ["dog 0.75"]
    picture = ImageExample(torch.zeros(3, 8, 8), labels=[1], boxes=boxes)
    assert objects.collate_target([picture, picture]).keep.tolist() == [[True], [True]]


def test_records_are_encoded_together_as_they_are_alone(modality):
    codec, records, _ = modality
    together = codec.encode_all(records, "truncate")
    alone = [codec.encode(record) for record in records]
    assert [example.record for example in together.examples] == records
    assert together.report.encoded == len(records)
    for encode in (codec.collate, codec.collate_target):
        for one, other in zip(
            tensors(Batch(encode(together.examples), None)), tensors(Batch(encode(alone), None)), strict=True
        ):
            assert_close(one, other, rtol=0, atol=0)


def test_an_input_is_read_as_the_record_of_its_text(modality):
    codec, records, _ = modality
    typed = records[0].source if not codec.reads_files else str(records[0].where.rpartition("/")[0]) + "/1.png"
    record = codec.read(typed, 3)
    assert (record.target, record.where) == (None, "input:3")
    assert codec.is_known(record)
    assert codec.fits(record)
    assert codec.encode_target(record) is codec.collate_target([codec.encode(record)]) is None
    assert codec.select_fitting([record]) == [0]


def test_every_example_is_in_one_batch_of_the_budget(modality):
    codec, records, _ = modality
    examples = codec.encode_all(records, "truncate").examples
    budget = codec.budget(examples, 2)
    parts = list(codec.loader(examples, budget).in_order())
    assert sorted(index for indices, _ in parts for index in indices) == list(range(len(examples)))
    assert len(parts) > 1
    for indices, batch in parts:
        assert len(indices) == batch.rows == len(batch.source.data)
        assert [record.where for record in batch.records] == [records[index].where for index in indices]
        assert len(indices) == 1 or len(indices) * max(codec.length(examples[index]) for index in indices) <= budget


def test_padding_changes_nothing(modality):
    codec, records, model = modality
    examples = codec.encode_all(records, "truncate").examples
    source = codec.collate(examples)
    together, rounded = read(model, source), read(model, source.round_shape())
    some = read(model, source.select_rows([2, 1]))
    for row, example in enumerate(examples):
        [alone] = read(model, codec.collate([example]))
        assert_close(together[row], alone, rtol=1e-4, atol=1e-5)
        assert_close(rounded[row], alone, rtol=1e-4, atol=1e-5)
    assert_close(some[0], together[2], rtol=1e-4, atol=1e-5)
    assert_close(some[1], together[1], rtol=1e-4, atol=1e-5)


def test_an_axis_has_a_label_for_each_vector_of_the_source(modality):
    codec, records, model = modality
    for record in records:
        example = codec.encode(record)
        [vectors] = read(model, codec.collate([example]))
        axis, grid = codec.axis(example), codec.grid(example)
        assert len(axis) == len(axis.labels) == len(vectors) == len(codec.pieces(example))
        assert grid is None or grid[0] * grid[1] == len(vectors)


def test_a_target_is_decoded_to_what_it_was(modality):
    codec, records, _ = modality
    for record in records:
        target, file = codec.encode_target(record), StringIO()
        prediction = codec.decode(target)
        codec.write(prediction, file)
        assert file.getvalue().count("\n") == 1
        assert codec.encode_target(record._replace(target=file.getvalue().strip()))[:1] == target[:1]
        assert len(codec.target_axis(target)) == len(codec.target_pieces(target)) == len(target)
    padded = codec.collate_target([codec.encode(record) for record in records])
    assert padded.lengths == [len(codec.encode_target(record)) for record in records]


def test_a_codec_is_saved_and_loaded(modality, tmp_path):
    codec, records, _ = modality
    files = codec.save(tmp_path / "run")
    assert files
    assert all(file.is_file() for file in files)
    again = type(codec).load(tmp_path / "run")
    for encode in ("collate", "collate_target"):
        before, after = (getattr(each, encode)(each.encode_all(records, "truncate").examples) for each in (codec, again))
        for one, other in zip(tensors(Batch(before, None)), tensors(Batch(after, None)), strict=True):
            assert_close(one, other, rtol=0, atol=0)


def test_example_inputs_are_accepted_by_the_model(modality):
    codec, records, model = modality
    source = codec.example_inputs([3, 2], torch.Generator().manual_seed(0))
    assert isinstance(source, Source)
    target = codec.collate_target([codec.encode(record) for record in records[:2]])
    with torch.no_grad():
        step = model(source, codec.feedback.decoder_input(source, target))
    assert step.output.shape[:2] == target.data.shape[:2]
    assert step.output.isfinite().all()
    for name, axes in codec.dynamic_axes.items():
        assert max(axes) < getattr(source, name).dim()


def test_steps_agree_with_teacher_forcing(modality):
    codec, records, model = modality
    examples = codec.encode_all(records, "truncate").examples
    source, target = codec.collate(examples), codec.collate_target(examples)
    fed = codec.feedback.decoder_input(source, target)
    assert_close(fed[:, 0], codec.feedback.first_input(source))
    with torch.no_grad():
        memory = model.encode(source)
        whole, state, outputs = model(source, fed).output, model.decoder.start(memory), []
        for place in range(fed.shape[1]):
            step = model.decoder.step(fed[:, place], memory, state)
            state = step.state
            outputs.append(step.output)
    assert_close(torch.stack(outputs, 1)[target.keep], whole[target.keep], rtol=1e-4, atol=1e-5)
    assert codec.feedback.is_end(outputs[0]).shape == (len(examples),)
    assert codec.feedback.feedback(outputs[0]).shape == fed[:, 0].shape
