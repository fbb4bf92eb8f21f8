import dataclasses

import pytest
from torch.testing import assert_close

import regard
from regard import tasks
from regard.alignment.heads import Head
from regard.data.table import Record
from regard.inference.ensemble.build import combine_models, find_difference, saved
from regard.inference.sequence_predictor import SequencePredictor

TEXTS = ["Tom chases Jerry", "the big dog in the park likes a small cat", "Tom"]


def answers(model, **options):
    return [(each.text, each.score) for each in model.predict(TEXTS, **options)]


@pytest.mark.parametrize("average", ["probabilities", "logits", "memories"])
def test_a_run_together_with_itself_answers_as_it_does_alone(runs, average):
    alone, both = regard.load(runs["first"]), regard.ensemble([runs["first"]] * 2, average=average)
    for (text, score), (other, its) in zip(answers(alone, beam=3), answers(both, beam=3), strict=True):
        assert (text, score) == (other, pytest.approx(its, abs=1e-5))


def test_answers_come_in_the_order_of_the_questions_whatever_their_length(runs):
    model = regard.ensemble([runs["first"], runs["transformer"]], weights=[1.0, 2.0])
    assert [text for text, _ in answers(model, beam=2)] == [model.predict([text], beam=2)[0].text for text in TEXTS]


def test_figures_are_those_of_the_task(runs):
    records = [Record("Tom chases Jerry", "汤姆追逐杰瑞", "a:1"), Record("Mary likes Tom", "玛丽喜欢汤姆", "a:2")]
    found = [regard.load(runs[name]).evaluate(records)["perplexity"].value for name in ("first", "second")]
    together = regard.ensemble([runs["first"], runs["second"]]).evaluate(records)["perplexity"].value
    assert 1 < together < max(found)  # by Jensen's inequality no worse than the geometric mean of the two


def test_an_alignment_is_the_mean_of_the_members(runs):
    members = [regard.load(runs[name]) for name in ("first", "second")]
    [answer] = regard.ensemble(members, weights=[0.0, 1.0]).predict(["Tom chases Jerry"], align=True)
    [alone] = members[1].predict(["Tom chases Jerry"], align=True)
    assert answer.text == alone.text
    assert_close(answer.weights, alone.weights)
    assert answer.links == alone.links


def test_a_trace_has_the_attentions_of_every_member_between_the_same_words(runs):
    trace = regard.ensemble([runs["first"], runs["transformer"]]).trace(["Tom chases Jerry"], beam=2)
    looks = {look.name: (look.query, look.key) for look in trace.example().attentions}
    assert looks["0.decoder.cross"] == ("target", "source")
    assert looks["1.encoder.0.self"] == ("source", "source")
    assert looks["1.decoder.0.self"] == ("target", "written")
    assert trace.example().beams.name == "1.decoder.0.cross"
    assert {node.id.partition(".")[0] for node in trace.graph.nodes if node.id[0].isdecimal()} == {"0", "1"}


def test_members_may_be_runs_or_what_was_loaded_of_them(runs):
    loaded = regard.load(runs["second"])
    model = regard.ensemble([runs["first"], loaded])
    assert isinstance(model, SequencePredictor)
    assert model.model.members[1] is loaded.model


def test_a_head_that_all_members_chose_is_that_of_all(runs):
    members = [regard.load(runs[name]) for name in ("first", "second")]
    for member in members:
        member.head = Head("decoder.cross", 0)
    assert regard.ensemble(members).head == Head("decoder.cross", 0)
    members[1].head = Head()
    assert regard.ensemble(members).head == Head()


def test_members_need_one_vocabulary_and_the_first_difference_is_named(runs):
    with pytest.raises(
        ValueError, match=r"member 1 differs from member 0 in the tokens of its source \(words and characters"
    ):
        regard.ensemble([runs["first"], runs["letters"]])
    codec = regard.load(runs["first"]).codec
    assert find_difference(codec, codec) is None
    shorter = dataclasses.replace(
        codec.target, vocabulary=type(codec.target.vocabulary)(codec.target.vocabulary.tokens[:-1])
    )
    said = find_difference(codec, dataclasses.replace(codec, target=shorter))
    assert said == f"its target vocabulary ({codec.target.size} and {shorter.size} tokens)"
    assert find_difference(codec, dataclasses.replace(codec, lowercase=True)) == "lowercase (False and True)"
    other = dataclasses.replace(codec, source=dataclasses.replace(codec.source, whole=not codec.source.whole))
    assert find_difference(codec, other) == "how its source is cut into tokens"
    assert saved(codec.source) != saved(other.source)


def test_a_token_that_is_not_the_same_is_named(runs):
    codec = regard.load(runs["first"]).codec
    first, second, *rest = codec.source.vocabulary.tokens
    swapped = dataclasses.replace(codec.source, vocabulary=type(codec.source.vocabulary)((second, first, *rest)))
    said = find_difference(codec, dataclasses.replace(codec, source=swapped))
    assert said == f"its source vocabulary ({codec.source.size} and {codec.source.size} tokens, and token 4 is not the same)"


def test_members_need_one_task_and_are_no_ensembles(runs):
    first, second = regard.load(runs["first"]), regard.load(runs["second"])
    second.task = tasks.bind("reverse")
    with pytest.raises(ValueError, match=r"an ensemble needs members of one task, got translate and reverse \(member 1\)"):
        combine_models([first, second])
    with pytest.raises(ValueError, match="member 1 is an ensemble itself; name its members in its place"):
        regard.ensemble([first, regard.ensemble([first, first])])
