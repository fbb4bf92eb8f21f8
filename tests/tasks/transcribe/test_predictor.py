"""A recogniser that was not trained: what its search is made of, and what its options do."""

from dataclasses import replace

import pytest
import soundfile
import torch

from regard import tasks
from regard.alignment.stretches import Stretches
from regard.config import AudioTextData, AudioToTextModel, SpeechSearch, SpeechTrain
from regard.data.audio.batch import AudioExample
from regard.data.special_tokens import EOS
from regard.decoding.fusion.ctc import CtcPrefix
from regard.decoding.fusion.hotwords import Hotwords
from regard.decoding.fusion.language_model import LanguageModel
from regard.errors import ConfigError, DataError
from regard.errors import ConfigError, DataError, DataWarning
from regard.tasks.transcribe.predictor import SpeechMemory, SpeechPredictor
from regard.tasks.transcribe.task import Config
from regard.tree import select


@pytest.fixture(scope="module")
def experiment():
    config = Config(
        data=AudioTextData(samples=12, bins=20, batch_seconds=12.0, rate=8000),
        model=AudioToTextModel(hidden_size=16, heads=2, encoder="conformer", encoder_layers=1, layers=1),
        train=SpeechTrain(max_steps=1, ctc_weight=0.3, device="cpu"),
        search=SpeechSearch(max_length=8),
    )
    return tasks.experiment("transcribe", config)[0]


@pytest.fixture
def make(experiment):
    def predictor(**search):
        config = replace(experiment.config, search=replace(experiment.config.search, **search))
        return SpeechPredictor(tasks.bind("transcribe"), config, experiment.codec, experiment.model.eval())

    return predictor


def test_ctc_takes_part_unless_its_weight_is_zero_or_the_precision_is_lower(make):
    assert make().ctc_weight == 0.3
    assert make(ctc_weight=0.6).ctc_weight == 0.6
    assert make(ctc_weight=0.0).ctc_weight == make(precision="bf16").ctc_weight == 0.0
    with pytest.raises(ConfigError, match=r"search\.ctc_weight is for search\.precision=float32"):
        _ = make(ctc_weight=0.6, precision="bf16").ctc_weight


def test_scores_of_the_search_are_those_of_ctc_and_of_hotwords(make, experiment, tmp_path):
    source = experiment.train.batch(0).source
    with torch.no_grad():
        memory, alone = make(ctc_weight=0.4).encode(source), make(ctc_weight=0.0).encode(source)
    assert isinstance(memory, SpeechMemory)
    assert torch.allclose(memory.ctc.exp().sum(-1), torch.ones(memory.ctc.shape[:2]), atol=1e-4)
    _, fusion = make(ctc_weight=0.4).fuse(memory)
    assert [type(scorer) for scorer in fusion.scorers] == [CtcPrefix]
    assert fusion.decoder_weight == pytest.approx(0.6)
    plain = make(ctc_weight=0.0)
    assert plain.fuse(alone)[1] is None
    (tmp_path / "words.txt").write_text("mino\n\n")
    plain.set_hotwords(str(tmp_path / "words.txt"))
    assert [type(scorer) for scorer in plain.fuse(alone)[1].scorers] == [Hotwords]


def test_a_language_model_joins_the_search_beside_ctc(make, experiment):
    source, decoder = experiment.train.batch(0).source, experiment.model.decoder
    predictor = make(ctc_weight=0.4, lm="lm/", lm_weight=0.2)
    with torch.no_grad():
        memory = predictor.encode(source)
        predictor.language_model = LanguageModel(decoder, select(memory.decoder, torch.tensor([0])), 0.2)
    _, fusion = predictor.fuse(memory)
    assert [(type(scorer), scorer.weight) for scorer in fusion.scorers] == [(LanguageModel, 0.2), (CtcPrefix, 0.4)]
    assert fusion.decoder_weight == pytest.approx(0.6)
    assert make(lm="lm/", lm_weight=0.0, ctc_weight=0.0).fuse(memory.decoder)[1] is None


def test_an_excerpt_is_as_long_as_is_set_but_not_too_short_to_encode(make):
    assert make(excerpt_seconds=2.0).longest_excerpt == 200
    assert make().longest_excerpt == 3000
    assert make(excerpt_seconds=0.01).longest_excerpt == 8 * 4


def test_tokens_without_a_word_have_no_times(make, experiment):
    example = experiment.valid[0]
    transcript = make().time_words(example, [EOS])
    assert (transcript.words, transcript.stretches) == ((), Stretches((), ()))
    assert transcript.seconds == pytest.approx(example.frames / 100)


def test_words_are_timed_in_their_order_and_inside_the_recording(make, experiment):
    example = experiment.valid[0]
    for times in ("ctc", "attention"):
        words = make(times=times).time_words(example, example.target).words
        assert [word.text for word in words] == example.record.target.split()
        assert all(0 <= word.start <= word.end <= example.frames / 100 + 0.04 for word in words)
        assert [word.start for word in words] == sorted(word.start for word in words)


def test_sound_is_active_where_there_is_energy(make, experiment):
    class Half:
        rate, length = 8000, 8000

        def __call__(self):
            return torch.cat((torch.zeros(4000), torch.sin(torch.arange(4000) * 0.8)))

    activity = make().find_activity(AudioExample(Half(), experiment.codec.front.count(8000)))
    assert not activity[:45].any()
    assert activity[55:95].all()
    predictor = make()
    predictor.codec = replace(predictor.codec, arrays=20)
    assert predictor.find_activity(AudioExample(Half(), 101)) is None


def test_a_known_text_that_fits_neither_its_recording_nor_the_model_is_refused(make, experiment, tmp_path):
    predictor, path = make(), str(tmp_path / "short.wav")
    word = experiment.valid[0].record.target.split()[0]
    soundfile.write(path, torch.zeros(80).numpy(), 8000)
    with pytest.raises(DataError, match=r"has 0\.0\d s of sound, too little for the \d+ tokens of the text"):
        predictor.align_pair(path, f"{word} {word}")
    with pytest.raises(DataError, match="has a text that the model cannot write at all"):
        predictor.align_pair(path, "12 34")
    with pytest.raises(DataError, match=r"more than the \d+ tokens that the model writes"):
        predictor.align_pair(path, f"{word} " * 300)
    soundfile.write(path, torch.zeros(16000).numpy(), 8000)
    with pytest.warns(DataWarning, match=r"1 of \d+ tokens that the model cannot write"):
        predictor.align_pair(path, f"{word} 1")


def test_options_that_are_none_are_named(make, tmp_path):
    predictor = make()
    with pytest.raises(ConfigError, match=r"--times is one of .*, got 'doc'"):
        predictor.set_times("doc")
    predictor.set_times("vtt")
    assert predictor.times == "vtt"
    (tmp_path / "words.txt").write_text("mino\n\x01\n")
    with pytest.raises(DataError, match=r"words\.txt:2: the model cannot write"):
        predictor.set_hotwords(str(tmp_path / "words.txt"))
    (tmp_path / "words.txt").write_text("\n \n")
    with pytest.raises(DataError, match="has no phrases; --hotwords needs one on each line"):
        predictor.set_hotwords(str(tmp_path / "words.txt"))
