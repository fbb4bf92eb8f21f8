from dataclasses import replace

import pytest
import torch

from regard import tasks
from regard.alignment.heads import Head
from regard.alignment.pharaoh import attach_links
from regard.attention.types import Attended
from regard.config import AttentionPart, Data, Model, Train
from regard.data.batch import Batch, pad
from regard.data.loader import SequenceLoader
from regard.data.table import DataError, Record
from regard.data.text.codec import TextCodec
from regard.errors import ConfigError
from regard.losses.guided_alignment import Guide, build_guide, guided_alignment_loss
from regard.losses.teacher_forcing import TeacherForcing, teacher_forcing_loss
from regard.losses.types import Progress
from regard.models.seq2seq import build
from regard.tasks.translate import Config
from regard.training.gradient import _rows as rows_of

RECORDS = [Record("the dog sleeps", "der hund schläft", "a:1"), Record("a cat", "eine katze", "a:2")]
KEEP = torch.ones(1, 2, dtype=torch.bool)


def file(folder, text):
    path = folder / "train.links"
    path.write_text(text, encoding="utf-8")
    return str(path)


def attended(weights):
    return Attended(torch.zeros(1, 2, 4), weights, {}, (), None)


def test_links_stay_with_their_record_as_those_of_its_tokens(tmp_path):
    codec = TextCodec.fit(RECORDS, Data(tokenizer="bytes"))
    data = Data(alignments=file(tmp_path, "0-0 2p1\n1-1\n"))
    first, second = attach_links(RECORDS, data, codec)
    assert set(first.links) == {(s, t) for s in range(3) for t in range(3)}  # t h e and d e r
    assert set(second.links) == {(s, t) for s in range(2, 5) for t in range(5, 10)}  # c a t and k a t z e
    assert first._replace(links=()) == RECORDS[0]


def test_links_of_lines_that_are_held_out_are_passed_over(tmp_path):
    codec = TextCodec.fit(RECORDS)
    data = Data(alignments=file(tmp_path, "0-0\n9-9\n1-1\n"))
    first, second = attach_links(RECORDS, data, codec, [True, False, True])
    assert (first.links, second.links) == (((0, 0),), ((1, 1),))
    with pytest.raises(DataError, match=r"train\.links:3 .*"):
        attach_links(RECORDS[1:] * 2, Data(alignments=file(tmp_path, "0-0\n9-9\n5-1\n")), codec, [True, False, True])


def test_links_may_be_those_of_tokens(tmp_path):
    codec = TextCodec.fit([Record("it's", "x y", "a:1")])
    [record] = attach_links(
        [Record("it's", "x y", "a:1")], Data(alignments=file(tmp_path, "2-1\n"), alignment_unit="tokens"), codec
    )
    assert record.links == ((2, 1),)


def test_links_to_what_was_cut_away_are_gone(tmp_path):
    codec = TextCodec.fit(RECORDS, Data(max_source_length=3, over_long="truncate"))
    first, _ = attach_links(RECORDS, Data(alignments=file(tmp_path, "0-0 2-2 1-2\n\n")), codec)
    assert first.links == ((0, 0), (1, 2))


def test_dropping_and_sorting_leave_every_record_its_own_links(tmp_path):
    records = [Record("a " * length + "b", "c", f"a:{length}") for length in (3, 9, 1, 2)]
    codec = TextCodec.fit(records, Data(max_source_length=8))
    lines = "".join(f"{length}-0\n" for length in (3, 9, 1, 2))
    examples = codec.encode_all(attach_links(records, Data(alignments=file(tmp_path, lines)), codec)).examples
    found = [record for _, batch in SequenceLoader(examples, 8, shuffle=False).in_order() for record in batch.records]
    assert sorted((record.where, record.links) for record in found) == [
        ("a:1", ((1, 0),)),
        ("a:2", ((2, 0),)),
        ("a:3", ((3, 0),)),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0-0\n", r"train.links has 1 lines of links for 2 pairs"),
        (
            "0-0\n0-2\n",
            r"train.links:2 links 0-2, counted from 0, and the pair has 2 words in its source and 2 in its target",
        ),
        ("0-0\nx\n", r"train.links:2 has 'x' where a link is needed"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_its_place(tmp_path, text, told):
    with pytest.raises(DataError, match=told):
        attach_links(RECORDS, Data(alignments=file(tmp_path, text)), TextCodec.fit(RECORDS))


def test_guidance_worked_by_hand():
    weights = torch.tensor([[[[0.5, 0.25, 0.25], [0.2, 0.3, 0.5]]]])
    record = Record("", "", "a:1", links=((0, 0), (1, 1), (2, 1)))
    wanted = -torch.tensor(0.5).log() - 0.5 * (torch.tensor(0.3).log() + torch.tensor(0.5).log())
    torch.testing.assert_close(guided_alignment_loss({"cross": attended(weights)}, [record], KEEP, Head()), wanted)


def test_a_token_without_links_and_padding_cost_nothing():
    weights = torch.full((1, 1, 2, 3), 1 / 3)
    record = Record("", "", "a:1", links=((0, 1),))
    keep = torch.tensor([[True, False]])
    assert guided_alignment_loss({"cross": attended(weights)}, [record], keep, Head()) == 0
    assert guided_alignment_loss({"cross": attended(weights)}, [record._replace(links=())], KEEP, Head()) == 0


def test_the_mean_of_heads_is_guided_or_one_of_them():
    weights = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]])  # one head looks here, one there
    record = Record("", "", "a:1", links=((1, 0),))
    seen = {"self": attended(weights), "cross": attended(weights)}
    torch.testing.assert_close(guided_alignment_loss(seen, [record], KEEP, Head()), -torch.tensor(0.5).log())
    assert guided_alignment_loss(seen, [record], KEEP, Head("cross", 1)) == 0
    torch.testing.assert_close(guided_alignment_loss(seen, [record], KEEP, Head("cross", 0)), -torch.tensor(1e-6).log())


def test_guidance_needs_what_it_compares():
    with pytest.raises(ValueError, match="guidance needs weights, and a record for each row, got 0 for 1 rows"):
        guided_alignment_loss({"cross": attended(torch.ones(1, 1, 2, 1))}, [], KEEP, Head())
    with pytest.raises(ValueError, match="guidance needs weights, and a record for each row, got 1 for 1 rows"):
        guided_alignment_loss({"cross": attended(None)}, [RECORDS[0]], KEEP, Head())


def network(attention="transformer", **options):
    part = AttentionPart(attention, 2)
    config = Config()
    return build(
        Model(hidden_size=8, heads=2, layers=2, decoder="transformer", attention=part, **options),
        config.dropout,
        9,
        9,
        False,
    )


def test_a_config_says_which_head_is_guided():
    model = network()
    assert build_guide(Train(), model) is None
    assert build_guide(Train(guided_alignment=0.5), model) == Guide(Head(), 0.5)
    found = build_guide(Train(guided_alignment=1.0, guided_alignment_head="decoder.0.cross:1"), model)
    assert found == Guide(Head("decoder.0.cross", 1), 1.0)


@pytest.mark.parametrize(
    ("attention", "named", "told"),
    [
        (
            "transformer",
            "decoder.2.cross",
            "no attention over the source is called 'decoder.2.cross'; there are decoder.0.cross",
        ),
        ("transformer", "decoder.1.cross:2", "decoder.1.cross has 2 heads, counted from 0, and 2 was asked for"),
        ("additive", "decoder.1.cross:1", "decoder.1.cross has 1 head, counted from 0, and 1 was asked for"),
        ("none", None, "an alignment needs an attention over the source, and this model has none"),
    ],
)
def test_a_head_that_the_model_does_not_have_is_refused(attention, named, told):
    with pytest.raises(ConfigError, match=told):
        build_guide(Train(guided_alignment=1.0, guided_alignment_head=named), network(attention))


def batch():
    records = (Record("", "", "a:1", links=((2, 0), (0, 1))), Record("", "", "a:2", links=((0, 0),)))
    return Batch(pad([[4, 5, 6, 2], [7, 2]]), pad([[4, 5, 2], [8, 2]]), records)


def test_the_loss_has_its_share_of_guidance_and_only_then_asks_for_weights():
    model = network().eval()
    plain = teacher_forcing_loss(model, batch())
    found = TeacherForcing(Train(guided_alignment=0.5), model)(model, batch(), Progress(0, 1))
    assert set(found.parts) - set(plain.parts) == {"guided_alignment"}
    torch.testing.assert_close(found.total, plain.total + 0.5 * found.parts["guided_alignment"])
    found.total.backward()
    assert model.decoder.get_submodule("1.cross").query.weight.grad.abs().sum() > 0


def test_the_parts_of_a_batch_have_the_guidance_of_the_whole():
    model, guide = network().eval(), Guide(Head(), 1.0)
    parts = [
        teacher_forcing_loss(model, rows_of(batch(), row, row + 1), guide=guide).parts["guided_alignment"] for row in (0, 1)
    ]
    torch.testing.assert_close(sum(parts), teacher_forcing_loss(model, batch(), guide=guide).parts["guided_alignment"])


def test_an_attention_learns_where_to_look(tmp_path):
    source, target = tmp_path / "pairs.tsv", file(tmp_path, "0-2 1-1 2-0\n" * 2)
    source.write_text("a b c\tz y x\nc a b\tx z y\n", encoding="utf-8")
    data = Data(train=str(source), valid=str(source), alignments=target)
    config = Config(data=data, model=Model(hidden_size=16), train=Train(guided_alignment=1.0, device="cpu"))
    experiment, _ = tasks.experiment("translate", config)
    step = torch.optim.Adam(experiment.model.parameters(), 0.1)
    costs = []
    for number in range(15):
        loss = experiment.loss(experiment.model, experiment.train.batch(number), Progress(number, 15))
        step.zero_grad()
        loss.total.backward()
        step.step()
        costs.append(float(loss.parts["guided_alignment"]))
    assert costs[-1] < 0.4 * costs[0]


def test_old_runs_know_nothing_of_it():
    assert replace(Config()).data.alignments is None
    assert Config().train.guided_alignment == 0
