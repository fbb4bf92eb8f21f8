from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention import Attention, Encoded
from regard.attention.positions.learned import Learned
from regard.attention.stateful import Stateful
from regard.models.attention_factory import build_attention
from regard.models.decoders.transformer import Transformer
from regard.tree import repeat, select

KEEP = torch.tensor([[True, True, True, True], [True, True, False, False]])
TARGET = torch.tensor([[1, 4, 5], [1, 6, 2]])


def decoder(name="transformer", **options):
    make = partial(build_attention, name, heads=2)
    return Transformer(9, 6, 8, layers=2, heads=2, inner=12, attention=make, **options).eval()


def encoded():
    return Encoded(torch.randn(2, 4, 6), KEEP, (torch.randn(2, 1, 6),))


def stepped(made, memory, tokens):
    state = repeat(made.start(memory), len(tokens) // 2)
    found = []
    for token in tokens.unbind(1):
        step = made.step(token, memory, state)
        state = step.state
        found.append(step.output)
    return torch.stack(found, dim=1), state


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_it_equals_pytorchs_decoder(norm):
    made, source = decoder(norm=norm), encoded()
    data = made.embedding(TARGET)
    for layer in made.layers:
        theirs = nn.TransformerDecoderLayer(8, 2, 12, 0.0, batch_first=True, norm_first=norm == "pre")
        theirs.multihead_attn = nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True)
        theirs.linear1, theirs.linear2 = layer.feedforward[0], layer.feedforward[2]
        theirs.norm1, theirs.norm2, theirs.norm3 = (
            each.norm for each in (layer.around_self, layer.around_cross, layer.around_feedforward)
        )
        with torch.no_grad():
            for mine, other in ((layer.self, theirs.self_attn), (layer.cross, theirs.multihead_attn)):
                weights = [mine.query.weight, mine.key.weight, mine.value.weight]
                if other.in_proj_weight is None:
                    for one, two in zip(
                        (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight), weights, strict=True
                    ):
                        one.copy_(two)
                else:
                    other.in_proj_weight.copy_(torch.cat(weights))
                other.in_proj_bias.copy_(torch.cat([mine.query.bias, mine.key.bias, mine.value.bias]))
                other.out_proj.load_state_dict(mine.output.state_dict())
        later = torch.ones(3, 3, dtype=torch.bool).triu(1)
        data = theirs(data, source.data, tgt_mask=later, memory_key_padding_mask=~KEEP)
    expected = made.norm(data) @ made.embedding.table.weight.mT
    assert_close(made(TARGET, made.remember(source)).output, expected)


@pytest.mark.parametrize("name", ["transformer", "additive+local", "scaled_dot+causal", "none"])
def test_beams_grow_their_own_caches_and_share_the_source(name):
    made, source = decoder(name), encoded()
    memory = made.remember(source)
    expected = made(TARGET, memory)
    found, state = stepped(made, memory, repeat(TARGET, 3))
    assert_close(found, expected.output.repeat_interleave(3, dim=0))
    for cache, whole in zip(state.caches, expected.state.caches, strict=True):
        assert cache.keys.shape == (6, 2, 3, 4)
        assert_close(cache.keys, repeat(whole.keys, 3))


def test_search_may_change_the_order_of_rows():
    made, source = decoder(), encoded()
    memory = made.remember(source)
    _, state = stepped(made, memory, TARGET[:, :2])
    expected = made.step(TARGET[:, 2], memory, state).output
    rows = torch.tensor([1, 0])
    found = made.step(TARGET[rows, 2], select(memory, rows), select(state, rows)).output
    assert_close(found, expected[rows])


def test_it_goes_on_from_where_it_stopped_by_any_number_of_tokens():
    made, source = decoder("additive"), encoded()
    memory = made.remember(source)
    begun = made(TARGET[:, :1], memory)
    assert_close(made.write(TARGET[:, 1:], memory, begun.state).output, made(TARGET, memory).output[:, 1:])


def test_a_token_sees_nothing_that_comes_after_it():
    made, source = decoder(), encoded()
    memory = made.remember(source)
    other = TARGET.clone()
    other[:, 2] = 8
    assert torch.equal(made(TARGET, memory).output[:, :2], made(other, memory).output[:, :2])


def test_without_attention_the_source_is_added_to_every_input():
    made, source = decoder("none"), encoded()
    memory = made.remember(source)
    assert memory.memories == {}
    assert_close(memory.summary, made.summary(source.final[0][:, -1]))
    step = made(TARGET, memory)
    assert sorted(step.attended) == ["decoder.0.self", "decoder.1.self"]
    other = made(TARGET, memory._replace(summary=memory.summary + 1)).output
    assert ((other - step.output).abs().amax(-1) > 0).all()


def test_an_attention_without_a_projection_gets_one():
    assert isinstance(decoder().layers[0].fit, nn.Identity)
    assert decoder("additive").layers[0].fit.weight.shape == (8, 6)


def test_weights_and_statistics_come_by_name():
    made, source = decoder(), encoded()
    step = made(TARGET, made.remember(source), weights=True, statistics=("entropy",))
    assert sorted(step.attended) == [f"decoder.{layer}.{kind}" for layer in (0, 1) for kind in ("cross", "self")]
    assert step.attended["decoder.1.cross"].weights.shape == (2, 2, 3, 4)
    assert step.attended["decoder.1.self"].weights.shape == (2, 2, 3, 3)
    assert step.attended["decoder.0.cross"].statistics["entropy"].shape == (2, 2, 3)


def test_an_embedding_of_another_width_is_fitted():
    made = decoder(embedding=4, positions=Learned(2, "concat"))
    assert made.widen.weight.shape == (8, 6)
    memory = made.remember(encoded())
    assert_close(stepped(made, memory, TARGET)[0], made(TARGET, memory).output)


class Counting(Stateful):
    """Its context grows with every step, for each row apart."""

    def start(self, memory):
        return (torch.zeros(len(memory.values), 1, 1),)

    def step(self, query, memory, state, *, offset, weights):
        found = Attention.forward(self, query, memory, offset=offset, weights=weights)
        return found._replace(context=found.context * (state[0] + 1), state=(state[0] + 1,))


def test_an_attention_that_carries_a_state_looks_step_by_step():
    made = Transformer(9, 6, 8, layers=2, heads=2, attention=partial(Counting, score="additive")).eval()
    memory = made.remember(encoded())
    step = made(TARGET, memory)
    assert [each[0].flatten().tolist() for each in step.state.attentions] == [[3, 3], [3, 3]]
    found, _ = stepped(made, memory, repeat(TARGET, 2))
    assert_close(found, step.output.repeat_interleave(2, dim=0))


@pytest.mark.parametrize("gated", [True, False])
def test_a_decoder_like_that_of_t5_writes_step_by_step_what_it_writes_at_once(gated):
    options = {
        "self_attention": "t5",
        "shared_bias": True,
        "norm": "rms",
        "bias": False,
        "self_attention_size": 6,
        "positions": None,
    }
    made, source = decoder("transformer+dot", gated=gated, **options), encoded()
    memory = made.remember(source)
    assert_close(stepped(made, memory, TARGET)[0], made(TARGET, memory).output)
    assert made.layers[0].self.score is made.layers[1].self.score
