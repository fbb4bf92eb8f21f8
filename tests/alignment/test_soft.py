import pytest
import torch

from regard import tasks
from regard.alignment.heads import align_pairs
from regard.alignment.links import Gold
from regard.alignment.score import count_links, metrics_from_counts
from regard.alignment.soft import compute_soft_alignments
from regard.config import Data, Model, Train
from regard.data.batch import pad, shifted
from regard.data.table import Record
from regard.data.text import synthetic
from regard.inference.sequence_predictor import SequencePredictor
from regard.losses.types import Progress
from regard.tasks.translate import Config

from .conftest import PAIRS, made


def test_every_attention_over_the_source_has_its_weights_for_each_pair(trained):
    found = compute_soft_alignments(trained, PAIRS)
    for pair, record in zip(found, PAIRS, strict=True):
        example = trained.codec.encode(record)
        assert list(pair.weights) == ["decoder.0.cross", "decoder.1.cross"]
        step = trained.model(pad([example.source]), shifted(torch.tensor([example.target])), weights=True)
        for name, weights in pair.weights.items():
            assert weights.shape == (2, len(example.target), len(example.source))
            torch.testing.assert_close(weights, step.attended[name].weights[0])
        assert pair.source.texts == tuple(record.source.split())
        assert pair.target.texts == tuple(record.target.split())


def test_without_a_target_it_is_the_answer_that_is_aligned(trained):
    texts = [record.source for record in PAIRS]
    found = compute_soft_alignments(trained, [record._replace(target=None) for record in PAIRS])
    for pair, answer in zip(found, trained.predict(texts, align=True), strict=True):
        last = pair.weights["decoder.1.cross"].mean(0)
        torch.testing.assert_close(last[: len(answer.target)], answer.weights)
        assert pair.target.texts == tuple(answer.text.split())


def test_pairs_with_and_without_targets_go_together(trained):
    mixed = [PAIRS[0], PAIRS[1]._replace(target=None), PAIRS[2]]
    found = compute_soft_alignments(trained, mixed, beam=2)
    assert [pair.source.texts for pair in found] == [tuple(record.source.split()) for record in PAIRS]
    assert found[0].target.texts == tuple(PAIRS[0].target.split())


def test_nothing_to_align_is_no_mistake(trained):
    assert compute_soft_alignments(trained, []) == []


@pytest.mark.parametrize("tokens", ["words", "bpe", "characters"])
def test_links_are_between_units_that_are_there(tmp_path, tokens):
    model = made(tmp_path, tokenizer=tokens, vocab_size=300)
    pairs = compute_soft_alignments(model, PAIRS)
    for pair, links, record in zip(pairs, align_pairs(pairs), PAIRS, strict=True):
        cut = list if tokens == "characters" else str.split
        assert pair.target.texts == tuple(cut(record.target))
        assert sorted(target for _, target in links) == list(range(len(pair.target.texts)))
        assert all(0 <= source < len(pair.source.texts) for source, _ in links)


def test_what_is_too_long_is_cut_and_its_words_have_no_links(tmp_path):
    model = made(tmp_path, max_target_length=3, over_long="truncate")
    [pair] = compute_soft_alignments(model, [Record("the dog sleeps", "der hund schläft", "a:1")])
    assert pair.target.texts == ("der", "hund", "schläft")
    [links] = align_pairs([pair])
    assert {target for _, target in links} == {0, 1}


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_additive_attention_finds_the_links_of_the_grammar_by_itself():
    """81 % of its links were right when this was written, after 400 steps and about half a minute."""
    config = Config(
        data=Data(batch_tokens=1024, samples=2000), model=Model(hidden_size=64), train=Train(label_smoothing=0.1)
    )
    experiment, _ = tasks.experiment("translate", config)
    optimiser = torch.optim.Adam(experiment.model.parameters(), 3e-3)
    for number in range(400):
        loss = experiment.loss(experiment.model.train(), experiment.train.batch(number), Progress(number, 400))
        optimiser.zero_grad()
        (loss.total / loss.tokens).backward()
        torch.nn.utils.clip_grad_norm_(experiment.model.parameters(), 1.0)
        optimiser.step()
    held = synthetic.aligned(2200, 0)[2000:]
    gold = [Gold([(source, place) for source, span in each.links for place in range(*span)]) for each in held]
    model = SequencePredictor(tasks.bind("translate"), config, experiment.codec, experiment.model)
    found = align_pairs(compute_soft_alignments(model, [each.record for each in held], tokens=True))
    assert metrics_from_counts(count_links(found, gold).sum(0))["precision"] > 70
