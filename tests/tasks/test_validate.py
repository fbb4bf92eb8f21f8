from dataclasses import replace

import pytest

from regard.config import AttentionPart, Dropout, Model, Search, Train, VitPart
from regard.errors import ConfigError
from regard.tasks import TextConfig
from regard.tasks._validate import RULES, buildable, heeded, searchable, trainable
from regard.tasks.anomaly.config import AnomalyModel
from regard.tasks.anomaly.task import Config as Anomaly
from regard.tasks.caption.task import Config as Caption
from regard.tasks.classify.task import Config as Classify
from regard.tasks.detect.task import Config as Detect
from regard.tasks.retrieve.task import Config as Retrieve

DEFAULT = TextConfig()
TRANSFORMER = {"encoder": "transformer", "decoder": "transformer"}


def config(attention="additive", heads=4, size=None, dropout=None, **model):
    made = Model(attention=AttentionPart(attention, heads, size), **model)
    return replace(DEFAULT, model=made, dropout=dropout or Dropout())


@pytest.mark.parametrize(
    ("chosen", "path"),
    [
        (config(cell="gru", **TRANSFORMER), "model.cell=gru would change nothing: it needs a recurrent encoder or decoder"),
        (config(bidirectional=False, encoder="transformer"), "model.bidirectional=False"),
        (config(order="bahdanau", **TRANSFORMER), "model.order=bahdanau"),
        (config("none", order="bahdanau"), "model.order=bahdanau"),
        (config(input_feeding=False, order="bahdanau"), "model.input_feeding=False"),
        (config(summary="initial"), "model.summary=initial"),
        (config("none", initial="zeros"), "model.initial=zeros"),
        (config(initial="zeros", decoder="transformer"), "model.initial=zeros"),
        (config(heads=4, norm="post"), "model.norm=post"),
        (config(feedforward_size=64), "model.feedforward_size=64"),
        (config(decoder_layers=2, encoder="transformer"), "model.decoder_layers=2 .* it needs the transformer decoder"),
        (config(activation="gelu"), "model.activation=gelu"),
        (config(scale_embedding=False), "model.scale_embedding=False"),
        (config(embedding_norm=True), "model.embedding_norm=True"),
        (config(gated=True), "model.gated=True"),
        (config(bias=False), "model.bias=False"),
        (config(self_attention_size=64), "model.self_attention_size=64"),
        (config(shared_bias=True), "model.shared_bias=True"),
        (config(encoder="transformer", shared_bias=True), "model.shared_bias=True"),
        (config(positions="learned"), "model.positions=learned"),
        (
            config("additive", heads=8),
            "model.attention.heads=8 would change nothing: it needs an attention that has several",
        ),
        (config("none", size=8), "model.attention.size=8"),
        (config("none", dropout=Dropout(attention=0.5)), "dropout.attention=0.5"),
        (config(dropout=Dropout(variational=True), **TRANSFORMER), "dropout.variational=True"),
    ],
)
def test_a_setting_that_would_change_nothing_is_refused(chosen, path):
    with pytest.raises(ConfigError, match=path):
        heeded([chosen], DEFAULT)


@pytest.mark.parametrize(
    "chosen",
    [
        config(),
        config(cell="gru", encoder="transformer"),
        config(order="bahdanau"),
        config(initial="zeros"),
        config("none", summary="initial"),
        config("transformer", heads=8),
        config("transformer+sparsemax", heads=8, norm="post", **TRANSFORMER),
        config("none", dropout=Dropout(attention=0.5), **TRANSFORMER),
    ],
)
def test_a_setting_that_counts_is_taken(chosen):
    heeded([chosen], DEFAULT)


def test_what_teaches_draws_needs_draws():
    learned = replace(DEFAULT.train, reinforce_baseline="learned")
    heeded([replace(config("additive+hard"), train=learned)], DEFAULT)
    with pytest.raises(
        ConfigError, match=r"train.reinforce_baseline=learned would change nothing: it needs an attention that samples"
    ):
        heeded([replace(config("additive"), train=learned)], DEFAULT)


def test_a_setting_that_is_varied_and_counts_nowhere_is_refused():
    with pytest.raises(ConfigError, match=r"model.norm=post would change nothing"):
        heeded([config(norm="pre"), config(norm="post")], DEFAULT)


def test_tensorboard_that_is_not_there_is_told_before_anything_is_written(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"train.tensorboard needs the tensorboard package, which is not installed"):
        trainable(replace(DEFAULT, train=replace(DEFAULT.train, tensorboard=True)))


def test_the_length_is_in_steps_or_in_epochs():
    trainable(replace(DEFAULT, train=replace(DEFAULT.train, max_epochs=3.0)))
    both = replace(DEFAULT.train, max_epochs=3.0, max_steps=77)
    with pytest.raises(
        ConfigError, match=r"max_epochs=3 and train.max_steps=77 are both the length of the training: use one"
    ):
        trainable(replace(DEFAULT, train=both))


def test_a_default_of_the_task_itself_is_no_mistake():
    heeded([config(cell="gru", **TRANSFORMER)], config(cell="gru"))


def test_among_several_configs_it_is_enough_that_one_pays_heed():
    heeded([config("none", order="bahdanau"), config("additive", order="bahdanau")], DEFAULT)


def test_every_rule_is_about_a_setting_that_exists_in_some_config():
    for path in RULES:
        part, _, name = path.partition(".")
        every = DEFAULT, Caption(), Classify(), Detect(), Retrieve()
        assert any(hasattr(getattr(each, part), name.partition(".")[0]) for each in every), path


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (config("additve"), "no stage or mechanism is called 'additve'; did you mean 'additive'"),
        (config("transformer", heads=3), "needs a size that its heads divide"),
        (config("additive+padding"), "which needs keep and so cannot be a word alone"),
    ],
)
def test_what_cannot_be_built_is_refused_before_it_is(chosen, text):
    buildable(config())
    with pytest.raises(ConfigError, match=text):
        buildable(chosen)


def test_training_on_a_metric_needs_settings_that_go_together():
    risk = replace(
        DEFAULT.train,
        sequence_loss="minimum_risk",
        monitor="chrf",
        sequence_samples=4,
        minimum_risk_alpha=1.0,
        minimum_risk_reference=False,
    )
    trainable(replace(DEFAULT, train=risk))
    heeded([replace(DEFAULT, train=risk)], DEFAULT)
    for changes, told in [
        (
            {"monitor": "loss"},
            r"train.sequence_loss=minimum_risk needs train.monitor to name a measure of the task.*, got loss: .* kept",
        ),
        ({"sequence_weight": 1.5}, r"train.sequence_weight needs to be from 0 to 1, got 1.5"),
        ({"sequence_weight": 0.0}, r"train.sequence_weight=0 leaves train.sequence_loss=minimum_risk without weight"),
        (
            {"sequence_samples": 1},
            r"compares several outputs, and train.sequence_samples=1 without the reference leaves one",
        ),
        ({"minimum_risk_alpha": 0.0}, r"train.minimum_risk_alpha needs to be above 0: at 0 every output counts alike"),
    ]:
        with pytest.raises(ConfigError, match=told):
            trainable(replace(DEFAULT, train=replace(risk, **changes)))


def test_one_sample_teaches_beside_the_reference_and_beside_what_greedy_search_gives():
    risk = replace(DEFAULT.train, monitor="chrf", sequence_samples=1)
    trainable(replace(DEFAULT, train=replace(risk, sequence_loss="minimum_risk")))
    trainable(replace(DEFAULT, train=replace(risk, sequence_loss="self_critical", minimum_risk_reference=False)))


@pytest.mark.parametrize("name", ["sequence_metric", "sequence_samples", "sequence_weight", "sequence_start"])
def test_how_a_metric_is_trained_on_counts_only_where_it_is(name):
    value = {"sequence_metric": "bleu", "sequence_samples": 3, "sequence_weight": 0.5, "sequence_start": 7}[name]
    with pytest.raises(
        ConfigError, match=rf"train.{name}={value} would change nothing: it needs train.sequence_loss=minimum_risk or"
    ):
        heeded([replace(DEFAULT, train=replace(DEFAULT.train, **{name: value}))], DEFAULT)


@pytest.mark.parametrize(("name", "value"), [("minimum_risk_alpha", 0.5), ("minimum_risk_reference", False)])
def test_minimum_risk_has_settings_of_its_own(name, value):
    train = replace(DEFAULT.train, sequence_loss="self_critical", **{name: value})
    with pytest.raises(
        ConfigError, match=rf"train.{name}={value} would change nothing: it needs train.sequence_loss=minimum_risk, and"
    ):
        heeded([replace(DEFAULT, train=train)], DEFAULT)


def test_the_price_of_statistics_needs_contexts_that_are_drawn_from_the_source_alone():
    train = replace(DEFAULT.train, moment_matching=0.1)
    trainable(replace(config("luong"), train=train))
    with pytest.raises(ConfigError, match=r"train.moment_matching compares .* memory_network adds its query to the context"):
        trainable(replace(config("memory_network"), train=train))


def test_the_price_of_statistics_needs_an_attention():
    train = replace(DEFAULT.train, moment_matching=0.1)
    heeded([replace(config(), train=train)], DEFAULT)
    with pytest.raises(ConfigError, match=r"train.moment_matching=0.1 would change nothing: it needs an attention"):
        heeded([replace(config("none"), train=train)], DEFAULT)


def test_guidance_needs_links_an_attention_and_pairs_and_links_need_guidance():
    linked = replace(DEFAULT.data, train="pairs.tsv", alignments="links.txt")
    weight = replace(DEFAULT.train, guided_alignment=0.5)
    heeded([replace(config(), data=linked, train=weight)], DEFAULT)
    for chosen, told in [
        (
            replace(config(), train=weight),
            r"train.guided_alignment=0.5 would change nothing: it needs an attention, and links to guide it",
        ),
        (replace(config("none"), data=linked, train=weight), r"train.guided_alignment=0.5 would change nothing"),
        (
            replace(config(), train=replace(DEFAULT.train, guided_alignment_head="decoder.cross")),
            r"train.guided_alignment_head=decoder",
        ),
        (replace(config(), data=linked), r"data.alignments=links.txt would change nothing: it needs guidance by links"),
        (
            replace(config(), data=replace(linked, train=None), train=weight),
            r"data.alignments=links.txt would change nothing",
        ),
        (
            replace(config(), data=replace(DEFAULT.data, alignment_unit="tokens")),
            r"data.alignment_unit=tokens would change nothing",
        ),
    ]:
        with pytest.raises(ConfigError, match=told):
            heeded([chosen], DEFAULT)


@pytest.mark.parametrize("search", [Search(diversity_penalty=1.0), Search(mbr_candidates=4), Search(mbr_from="sample")])
def test_what_a_search_does_not_do_needs_no_settings(search):
    with pytest.raises(ConfigError, match=r"search\.\w+=\S+ would change nothing"):
        heeded([replace(DEFAULT, search=search)], DEFAULT)


def test_settings_of_a_search_go_together():
    searchable(replace(DEFAULT, search=Search(beam=6, beam_groups=3, mbr="chrf")))
    with pytest.raises(
        ConfigError, match=r"search.beam_groups=4 needs search.beam to be a multiple of it, got 6; search.beam=8 is"
    ):
        searchable(replace(DEFAULT, search=Search(beam=6, beam_groups=4)))
    with pytest.raises(ConfigError, match=r"search.beam_groups=2 would change nothing: with search.mbr_from=sample"):
        searchable(replace(DEFAULT, search=Search(beam=2, beam_groups=2, mbr="chrf", mbr_from="sample")))


def test_copying_unknown_words_needs_an_attention():
    chosen = replace(config("none"), search=Search(unknown="copy"))
    with pytest.raises(
        ConfigError, match=r"search\.unknown=copy copies the source token with the largest weight, and this model has none"
    ):
        searchable(chosen)
    searchable(replace(config(), search=Search(unknown="copy")))


def test_what_patches_have_of_their_own_needs_patches():
    chosen = Caption()
    chosen = replace(chosen, model=replace(chosen.model, vit=VitPart(cls_tokens=1)))
    with pytest.raises(ConfigError, match=r"model\.vit\.cls_tokens=1 would change nothing: it needs the vit encoder"):
        heeded([chosen], Caption())
    heeded([replace(chosen, model=replace(chosen.model, encoder="vit"))], Caption())


def test_a_model_without_an_encoder_by_name_has_settings_of_its_own():
    heeded([Anomaly(model=AnomalyModel(heads=2, feedforward_size=16))], Anomaly())
    with pytest.raises(ConfigError, match=r"train.label_smoothing=0.1 would change nothing: it needs a task that chooses"):
        heeded([Anomaly(train=Train(label_smoothing=0.1))], Anomaly())
