import json

import numpy as np
import pytest
import soundfile
import torch

from regard.config import AudioTextData
from regard.data.audio.augment import parse_augmentation
from regard.data.audio.codec import AudioTextCodec
from regard.data.audio.synthetic.syllables import synthesise
from regard.data.audio.tables import read_records
from regard.data.records import Record
from regard.errors import DataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    for number, sound in enumerate(synthesise(4, 0), 1):
        soundfile.write(folder / f"{number}.wav", sound().numpy(), 16_000)
    np.save(folder / "f.npy", np.random.default_rng(0).standard_normal((30, 13)))
    (folder / "t.tsv").write_text("".join(f"{number}.wav\ttext {number}\n" for number in range(1, 5)))
    return folder


@pytest.fixture
def codec(folder):
    return AudioTextCodec.fit(read_records(AudioTextData(), str(folder / "t.tsv")), AudioTextData(), stride=4)


def test_recordings_become_features_and_texts_tokens(folder, codec):
    records = read_records(AudioTextData(), str(folder / "t.tsv"))
    examples, report = codec.encode_all(records)
    assert report.encoded == 4
    assert codec.decode(examples[0].target) == "text 1"
    features = codec.features(examples[0])
    assert features.shape == (examples[0].frames, 80)
    assert features.mean(0).abs().max() < 1e-4
    axis = codec.axis(examples[0])
    assert len(axis) == -(-examples[0].frames // 4) == len(codec.pieces(examples[0]))
    assert (axis.seconds_per_step, axis.rate) == (0.04, 16_000)
    assert len(axis.sound) == pytest.approx(160 * examples[0].frames, abs=160)


def test_long_recordings_are_left_out_of_a_training_and_read_in_an_evaluation(folder, codec):
    records = read_records(AudioTextData(), str(folder / "t.tsv"))
    short = codec.adapt(AudioTextData(max_seconds=0.5))
    assert short.encode_all(records).report.dropped == 4
    assert short.encode_all(records, "truncate").report.encoded == 4


def test_a_folder_of_kaldi_is_read(folder, tmp_path):
    (tmp_path / "wav.scp").write_text(f"b {folder}/2.wav\na {folder}/1.wav\n")
    (tmp_path / "text").write_text("a first words\nb second\n")
    records = read_records(AudioTextData(), str(tmp_path))
    assert [record.target for record in records] == ["second", "first words"]
    assert [record.source for record in records] == [f"{folder}/2.wav", f"{folder}/1.wav"]
    for name, content, message in (
        ("wav.scp", "a sph2pipe x |\n", "is a command, which is not run"),
        ("wav.scp", f"c {folder}/1.wav\n", "1 of 1 recordings of .*wav.scp have no line in text: c"),
        ("text", "a x\na y\n", "needs the name of an utterance that no other line has, got 'a'"),
        ("segments", "a", "has segments"),
    ):
        before = (tmp_path / name).read_text() if (tmp_path / name).exists() else None
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match=message):
            read_records(AudioTextData(), str(tmp_path))
        (tmp_path / name).unlink() if before is None else (tmp_path / name).write_text(before)
    (tmp_path / "text").write_text("a\nb second\n")
    with pytest.raises(DataError, match=r"has an empty text; fill it in, or leave the line out"):
        read_records(AudioTextData(), str(tmp_path))
    (tmp_path / "text").unlink()
    with pytest.raises(DataError, match=r"is a folder without text"):
        read_records(AudioTextData(), str(tmp_path))


def test_features_of_files_are_sources_too(folder, tmp_path):
    records = [Record("f.npy", "one", f"{folder}/t.tsv:1")]
    codec = AudioTextCodec.fit(records, AudioTextData(normalise="corpus", hop_ms=20.0), stride=2)
    [example] = codec.encode_all(records).examples
    assert (codec.channels, example.frames, codec.seconds_per_frame) == (13, 30, 0.02)
    codec = codec.standardise(codec.cache([example]))
    torch.testing.assert_close(codec.features(example).std(0, correction=0), torch.ones(13), atol=1e-3, rtol=0)
    codec.save(tmp_path)
    assert AudioTextCodec.load(tmp_path) == codec
    with pytest.raises(DataError, match=r"is no file of features .* this model reads features of 13 channels"):
        codec.is_known(Record("1.wav", None, f"{folder}/t.tsv:2"))


def test_wrong_inputs_are_named_together(folder, codec):
    records = [Record(name, "x", f"{folder}/t.tsv:{line}") for line, name in enumerate(("f.npy", "t.tsv"), 1)]
    with pytest.raises(
        DataError, match=r"2 of 2 recordings cannot be read: .*t\.tsv:1: .*13 channels.*; .*needs to be sound"
    ):
        codec.encode_all(records)
    with pytest.raises(DataError, match=r"1 of 1 recordings are missing: .*t\.tsv:9 gone\.wav; paths count"):
        codec.encode(Record("gone.wav", "x", f"{folder}/t.tsv:9"))
    with pytest.raises(DataError, match=r"tokens are learnt from recordings with texts, got 1 and 0"):
        AudioTextCodec.fit([Record("1.wav", None, "t.tsv:1")], AudioTextData(), stride=4)


def test_augmented_batches_depend_on_the_step_alone(codec):
    sounds = synthesise(6, 1)
    examples = codec.encode_all([sound.record for sound in sounds], sounds=sounds).examples
    loaders = [codec.train_loader(codec.cache(examples), 600, 3, parse_augmentation("speed+spec_augment")) for _ in range(2)]
    first, second = (loader.batch(1) for loader in loaders)
    assert torch.equal(first.source.data, second.source.data)
    assert sorted(index for batch in loaders[0].epoch(0) for index in batch) == list(range(6))
    plain = codec.loader(examples, 600)
    for indices, batch in plain.in_order():
        assert batch.source.lengths == [examples[index].frames for index in indices]
    widths = {loaders[0].batch(step).source.data.shape for step in range(8)}
    assert len(widths) > loaders[0].steps_per_epoch()
    for loader in loaders:
        loader.close()


def test_a_damaged_codec_is_an_error(codec, tmp_path):
    codec.save(tmp_path)
    settings = json.loads((tmp_path / "codec.json").read_text())
    for change in ({"format": 9}, {"stride": 0}, {"features": "x"}, {"over_long": "x"}, {"hop_ms": "a"}):
        (tmp_path / "codec.json").write_text(json.dumps(settings | change))
        with pytest.raises(ValueError, match=r"needs to be the settings of a codec of sound"):
            AudioTextCodec.load(tmp_path)
