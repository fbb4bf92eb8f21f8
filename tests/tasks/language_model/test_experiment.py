from dataclasses import replace

import pytest

from regard import tasks
from regard.config import AttentionPart, Dropout
from regard.data.batch import pad
from regard.data.records import Record
from regard.errors import ConfigError, RefusedError
from regard.tasks._validate import heeded
from regard.tasks.language_model.codec import LanguageCodec
from regard.tasks.language_model.config import LanguageData, LanguageNetwork
from regard.tasks.language_model.experiment import build_small, fit_codec, read
from regard.tasks.language_model.network import NoSource, build_network
from regard.tasks.language_model.rules import RULES
from regard.tasks.language_model.task import Config, synthesise

DEFAULT = Config()


def test_a_text_is_a_line_and_no_source(texts):
    records = read(LanguageData(), str(texts))
    assert records[0].source == records[0].target == "Tom sees a cat"
    codec = fit_codec(records, DEFAULT)
    assert isinstance(codec, LanguageCodec)
    assert [len(example.source) for example in codec.encode_all(records).examples] == [1] * 6
    assert codec.decode(codec.encode(records[1]).target) == "Jerry sees a dog"
    assert codec.fit_all([Record("", None, "a:1"), Record("Tom", None, "a:2"), Record("Spike", None, "a:3")]) == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("decoder", ["recurrent", "transformer", "convolution"])
def test_every_decoder_does_without_a_source(decoder):
    settings = LanguageNetwork(decoder=decoder, hidden_size=8, heads=2)
    model = build_network(settings, Dropout(), 10)
    assert isinstance(model.encoder, NoSource)
    assert model.attentions().keys() <= {"decoder.0.self"}
    build_small(replace(DEFAULT, model=settings))
    one, other = (model.eval()(pad([source]), pad([[1, 5, 6]]).data).output for source in ([2], [7]))
    assert one.equal(other)


def test_the_tokenizer_of_a_run_is_taken_over(reverser, joinable):
    codec = tasks.family(Config).load_codec(joinable)
    assert codec.target.table == reverser.codec.target.table
    config = replace(DEFAULT, train=replace(DEFAULT.train, init_from=str(joinable)), data=LanguageData(lowercase=True))
    with pytest.raises(RefusedError, match="trained with"):
        tasks.experiment("language_model", config)


WITHOUT_EFFECT = {
    "data.source": "3",
    "data.max_source_length": 9,
    "data.target_tokenizer": "characters",
    "data.joint_vocab": True,
    "data.bleu_tokenizer": "char",
    "data.tokenizer": "characters",
    "data.vocab_size": 9,
    "data.min_frequency": 2,
    "data.lowercase": True,
    "model.attention": AttentionPart("additive"),
    "model.summary": "every_step",
    "train.sequence_loss": "minimum_risk",
    "search.unknown": "copy",
    "search.max_length_ratio": 2.0,
}


@pytest.mark.parametrize("path", RULES)
def test_settings_without_effect_are_refused(path):
    section, name = path.removesuffix(".name").split(".")
    part = replace(getattr(DEFAULT, section), **{name: WITHOUT_EFFECT[f"{section}.{name}"]})
    if section == "data":
        part = replace(part, vocab_from="run/")
    with pytest.raises(ConfigError, match=f"{path}=.* would change nothing"):
        heeded([replace(DEFAULT, **{section: part})], DEFAULT)


def test_sentences_of_a_grammar_are_synthetic_texts():
    training, validation = synthesise(40, seed=1)
    assert all(record.source == record.target for record in (*training, *validation))
