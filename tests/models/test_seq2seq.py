import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention import Attention
from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import Padded, pad
from regard.decoding.beam import beam
from regard.models.seq2seq import build
from regard.models.types import Decoder, Encoder
from regard.tree import repeat, select

from .small import ATTENTIONS, KINDS, ORDERS, batch, made


def pairs():
    """Every kind with every attention. Of the recurrent decoders a third is for every run, in which each attention meets each
    encoder with each cell and each order; the rest is for the soak."""
    for number, (name, kind) in enumerate(KINDS.items()):
        cell, order = divmod(number, len(ORDERS))
        for turn, attention in enumerate(ATTENTIONS):
            soaked = "order" in kind and (cell + order + turn) % len(ORDERS)
            yield pytest.param(kind, attention, id=f"{name}-{attention}", marks=[pytest.mark.soak] if soaked else [])


every_pair = pytest.mark.parametrize(("kind", "attention"), list(pairs()))
close = {"atol": 1e-5, "rtol": 1e-5}


@every_pair
def test_everything_learns_together_and_neither_padding_nor_neighbours_change_anything(kind, attention):
    model = made(attention, **kind)
    source, target = batch()
    longer = Padded(F.pad(source.data, (0, 3), value=5), F.pad(source.keep, (0, 3)))
    step = model(longer, F.pad(target, (0, 2), value=7))
    assert step.output.shape == (3, 5, 13)
    assert set(step.attended) <= set(model.attentions())
    F.cross_entropy(step.output[:, :2].flatten(0, 1), target[:, 1:].flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    alone = Padded(source.data[1:2, :2], source.keep[1:2, :2])
    assert_close(step.output[1:2, :3], model(alone, target[1:2]).output, **close)


@every_pair
def test_all_at_once_equals_step_by_step_with_one_memory_for_all_beams(kind, attention):
    model = made(attention, **kind).eval()
    source, target = batch()
    memory = model.encode(source)
    beams = torch.stack((target, target.flip(0)), dim=1).flatten(0, 1)
    taught = model.decoder(beams, repeat(memory, 2), weights=True)
    state = repeat(model.decoder.start(memory), 2)
    for place in range(3):
        step = model.decoder.step(beams[:, place], memory, state, weights=True)
        state = step.state
        assert_close(step.output, taught.output[:, place], **close)
        for name, attended in taught.attended.items():
            found = step.attended[name].weights
            assert_close(found, attended.weights[:, :, place : place + 1, : found.shape[3]], **close)


@pytest.mark.parametrize("kind", ["recurrent", "convolution", "transformer"])
def test_encoders_and_decoders_keep_their_promises(kind):
    model = made(encoder=kind, decoder=kind)
    assert isinstance(model.encoder, Encoder)
    assert isinstance(model.decoder, Decoder)


def names(model):
    return sorted(model.attentions())


def test_attentions_are_called_by_their_module_paths():
    assert names(made("additive")) == ["decoder.cross"]
    assert names(made("none")) == []
    model = made("transformer", encoder="transformer", decoder="transformer", layers=2)
    both = [f"{side}.{layer}.self" for side in ("decoder", "encoder") for layer in (0, 1)]
    assert names(model) == sorted([*both, "decoder.0.cross", "decoder.1.cross"])
    source, target = batch()
    assert sorted(model(source, target).attended) == [name for name in names(model) if name.startswith("decoder")]
    assert all(model.get_submodule(name) is found for name, found in model.attentions().items())
    assert isinstance(model.attentions()["decoder.0.cross"], Attention)


def test_options_of_the_decoder_pass_through():
    source, target = batch()
    step = made("additive")(source, target, weights=True, statistics=("entropy",))
    assert step.attended["decoder.cross"].weights.shape == (3, 1, 3, 4)
    assert step.attended["decoder.cross"].statistics["entropy"].shape == (3, 1, 3)


def test_a_tied_output_is_the_table_of_embeddings():
    tied, loose = made(tie_embeddings=True), made(tie_embeddings=False)
    assert tied.decoder.output.weight is None
    assert loose.decoder.output.weight.shape == (13, 8)
    data = torch.randn(2, 8)
    table = tied.decoder.embedding.table.weight
    assert_close(tied.decoder.output(data, table), data @ table.mT)


def test_a_convolutional_decoder_ends_in_the_width_of_its_embedding():
    model = made(decoder="convolution", embedding_size=6)
    assert model.decoder.narrow.weight.shape == (6, 8)
    assert isinstance(model.decoder.output.fit, nn.Identity)
    assert made(decoder="convolution", embedding_size=6, tie_embeddings=False).decoder.output.weight.shape == (13, 6)


@pytest.mark.parametrize("decoder", ["recurrent", "transformer"])
def test_tying_an_embedding_of_another_size_takes_a_projection(decoder):
    model = made(decoder=decoder, embedding_size=6)
    assert model.decoder.output.fit.weight.shape == (6, 8)
    assert isinstance(made(decoder=decoder, embedding_size=6, tie_embeddings=False).decoder.output.fit, nn.Identity)
    assert model(*batch()).output.shape == (3, 3, 13)


@pytest.mark.parametrize("encoder", ["recurrent", "convolution", "transformer"])
@pytest.mark.parametrize("decoder", ["recurrent", "convolution", "transformer"])
def test_with_a_joint_vocabulary_the_encoder_shares_the_table_too(encoder, decoder):
    model = made(encoder=encoder, decoder=decoder, target=11, joint=True)
    assert model.encoder.embedding.table is model.decoder.embedding.table
    apart = made(encoder=encoder, decoder=decoder, target=11)
    assert apart.encoder.embedding.table is not apart.decoder.embedding.table
    loose = made(encoder=encoder, decoder=decoder, target=11, joint=True, tie_embeddings=False)
    assert loose.encoder.embedding.table is not loose.decoder.embedding.table
    count = sum(each.numel() for each in apart.parameters()) - sum(each.numel() for each in model.parameters())
    assert count == 11 * 8


def test_a_joint_vocabulary_has_one_size():
    with pytest.raises(ValueError, match="a joint vocabulary has one size, got 11 and 13; build with joint=False"):
        made(joint=True)


@pytest.mark.parametrize("decoder", ["recurrent", "convolution", "transformer"])
def test_what_a_source_token_is_in_the_target_reaches_the_decoder_that_copies(decoder):
    part = AttentionPart("pointer")
    model = build(Model(hidden_size=8, heads=2, decoder=decoder, attention=part), Dropout(), 5, 4, False, [-1, -1, 2, 3, 1])
    assert model.decoder.outcome.copying.counterparts.tolist() == [-1, -1, 2, 3, 1]
    source = Padded(torch.tensor([[4, 4, 2]]), torch.tensor([[True, True, True]]))
    assert model.encode(source).tokens.tolist() == [[1, 1, 2]]


def test_counterparts_are_as_many_as_source_tokens():
    with pytest.raises(ValueError, match="counterparts need a target token, or -1, for each of 5 source tokens, got 4"):
        build(Model(), Dropout(), 5, 4, False, [-1, -1, 2, 3])


def test_only_a_recurrent_encoder_reads_backwards():
    assert made(reverse_source=True).encoder.reverse
    with pytest.raises(ValueError, match="reverse_source needs the recurrent encoder"):
        made(reverse_source=True, encoder="transformer")
    with pytest.raises(ValueError, match="got the convolution, which reads in no order; drop one"):
        made(reverse_source=True, encoder="convolution")


def test_the_config_reaches_every_part():
    dropout = Dropout(embedding=0.2, residual=0.3, attention=0.4, variational=True)
    part = AttentionPart("transformer", heads=4, size=16)
    model = made(part, dropout, embedding_size=6, layers=2, cell="gru", bidirectional=False, order="bahdanau")
    for side in (model.encoder, model.decoder):
        assert (len(side.layers), side.embedding.table.weight.shape[1]) == (2, 6)
        assert all(isinstance(each, nn.GRU) for each in side.layers)
        assert (side.embedding.drop.probability, side.drop.probability, side.drop.variational) == (0.2, 0.3, True)
    assert (model.decoder.cross.heads, model.decoder.cross.head, model.decoder.cross.dropout) == (4, 4, 0.4)
    assert model.decoder.before
    assert model.decoder.bridge is None
    options = {"norm": "post", "positions": "learned", "join": "concat", "feedforward_size": 20, "layers": 3}
    model = made("additive+sparsemax", dropout, encoder="transformer", decoder="transformer", **options)
    for side in (model.encoder, model.decoder):
        first = side.get_submodule("0")
        assert (first.feedforward[0].out_features, first.self.heads, first.self.dropout) == (20, 2, 0.4)
        assert (side.embedding.positions.join, type(side.embedding.positions).__name__) == ("concat", "Learned")
        assert isinstance(side.norm, nn.Identity)
        assert side.widen.weight.shape == (8, 16)
        assert not first.around_self.first
    assert str(model.attentions()["decoder.2.cross"].normalise) == "Sparsemax()"
    assert model(*batch()).output.shape == (3, 3, 13)


def test_the_config_reaches_a_convolution():
    dropout = Dropout(embedding=0.2, residual=0.3, attention=0.4)
    options = {"positions": "learned", "join": "concat", "layers": 3, "kernel_size": 5, "embedding_size": 6}
    model = made("additive+sparsemax", dropout, encoder="convolution", decoder="convolution", **options)
    for side in (model.encoder, model.decoder):
        assert (len(side.layers), side.embedding.table.weight.shape[1]) == (3, 6)
        assert (side.embedding.positions.join, type(side.embedding.positions).__name__) == ("concat", "Learned")
        assert (side.embedding.drop.probability, side.drop.p) == (0.2, 0.3)
    assert [each.kernel for each in model.encoder.layers] == [5, 5, 5]
    assert [each.gated.kernel for each in model.decoder.layers] == [5, 5, 5]
    cross = model.attentions()["decoder.2.cross"]
    assert (str(cross.normalise), cross.dropout, cross.score.key) == ("Sparsemax()", 0.4, 12)
    assert model(*batch()).output.shape == (3, 3, 13)


def taught(model, memory, row, tokens):
    """The log-probability of each of a row's tokens, as teacher forcing has it."""
    output = model.decoder(torch.tensor([[1, *tokens[:-1]]]), select(memory, torch.tensor([row]))).output
    return output[0].log_softmax(-1)[range(len(tokens)), tokens].tolist()


@pytest.mark.parametrize("encoder", ["recurrent", "convolution", "transformer"])
@pytest.mark.parametrize("decoder", ["recurrent", "convolution", "transformer"])
def test_every_encoder_with_every_decoder_takes_a_step_of_training_and_decodes(encoder, decoder):
    model = made("scaled_dot", encoder=encoder, decoder=decoder, layers=2)
    source, target = batch()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(3):
        losses.append(F.cross_entropy(model(source, target).output[:, :2].flatten(0, 1), target[:, 1:].flatten()))
        optimiser.zero_grad()
        losses[-1].backward()
        optimiser.step()
    assert losses[-1] < losses[0]
    memory = model.eval().encode(source)
    found = beam(model.decoder, memory, beams=2, length=4, weights=True)
    assert len(found) == 3
    for row, (best,) in enumerate(found):
        assert best.logprobs == pytest.approx(taught(model, memory, row, best.tokens), abs=1e-4)
        assert all(each.shape[-1] == source.keep[row].sum() for name, each in best.weights.items() if "cross" in name)


def test_finished_sentences_leave_the_memory_and_the_state():
    source, target = batch()
    for kind in ({"decoder": "recurrent"}, {"decoder": "convolution"}, {"decoder": "transformer"}, {"attention": "none"}):
        model = made(**kind).eval()
        memory = model.encode(source)
        state = model.decoder.step(target[:, 0], memory, model.decoder.start(memory)).state
        whole = model.decoder.step(target[:, 1], memory, state).output
        rows = torch.tensor([2, 0])
        fewer = model.decoder.step(target[rows, 1], select(memory, rows), select(state, rows)).output
        assert_close(fewer, whole[rows], **close)


@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"input_feeding": False},
        {"order": "bahdanau", "cell": "gru"},
        {"encoder": "convolution", "decoder": "convolution"},
        {"decoder": "transformer"},
    ],
)
def test_half_precision_trains_by_autocast(kind):
    model = made("additive", **kind)
    source, target = batch()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(source, target).output
        F.cross_entropy(output.flatten(0, 1).float(), target.flatten()).backward()
    assert_close(output.float(), model(source, target).output, atol=0.05, rtol=0.05)
    assert all(each.grad.isfinite().all() and each.grad.dtype == each.dtype for each in model.parameters())


@pytest.mark.unhooked  # two hundred steps, of which the shape hook would take most
@pytest.mark.parametrize(
    "options",
    [
        {"attention": "additive", "input_feeding": True},
        {"attention": "scaled_dot", "encoder": "convolution", "decoder": "convolution"},
        {"attention": "transformer", "encoder": "transformer", "decoder": "transformer"},
    ],
    ids=["recurrent additive", "convolution", "transformer"],
)
def test_it_learns_to_reverse_strings_of_five_symbols(options):
    model = made(source=9, target=9, hidden_size=32, heads=4, feedforward_size=64, **options)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(200):
        data = torch.randint(4, 9, (32, 5))
        source = Padded(F.pad(data, (0, 1), value=2), torch.ones(32, 6, dtype=torch.bool))
        target = F.pad(data.flip(1), (0, 1), value=2)
        logits = model(source, F.pad(target[:, :-1], (1, 0), value=1)).output
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.2  # by chance: log 5 for five of six positions, 1.34


def test_a_transformer_starts_by_xavier_and_recurrent_cells_small():
    model = made("transformer", encoder="recurrent", decoder="transformer", hidden_size=64, heads=4, feedforward_size=128)
    first = model.decoder.get_submodule("0")
    for module, bound in ((first.self.query, (6 / 128) ** 0.5), (first.feedforward[0], (6 / 192) ** 0.5)):
        assert 0.9 * bound < module.weight.abs().max() <= bound
        assert module.bias.abs().sum() == 0
    assert model.encoder.layers[0].weight_hh_l0.abs().max() <= 32**-0.5


def test_what_has_a_pace_keeps_its_start_in_a_transformer():
    first = made("memory_network", encoder="transformer", decoder="transformer", hidden_size=64).decoder.get_submodule("0")
    bound = 3**0.5 * 64**-0.25 / 8  # Xavier's would be 0.217
    assert 0.9 * bound < first.cross.query.weight.abs().max() <= bound


@pytest.mark.parametrize(
    "looks", ["rotary", "alibi", "relative", "shaw", "t5", "transformer_xl", "additive+sparsemax+local"]
)
def test_a_transformer_looks_at_itself_by_any_score_step_by_step_as_all_at_once(looks):
    options = {"encoder": "transformer", "decoder": "transformer", "self_attention": looks, "positions": "none"}
    model = build(Model(hidden_size=8, heads=2, layers=2, **options), Dropout(), 9, 9, joint=False).eval()
    assert model.encoder.embedding.positions is None
    source, target = pad([[4, 5, 6, 2], [7, 2]]), torch.tensor([[1, 4, 5], [1, 6, 7]])
    memory = model.encode(source)
    state, outputs = model.decoder.start(memory), []
    for place in range(3):
        step = model.decoder.step(target[:, place], memory, state)
        state = step.state
        outputs.append(step.output)
    torch.testing.assert_close(torch.stack(outputs, 1), model(source, target).output)


def test_what_learns_something_for_each_position_has_room_for_the_longest():
    options = {"encoder": "transformer", "decoder": "transformer", "positions": "learned"}
    config = Model(hidden_size=8, heads=2, attention=AttentionPart("location"), **options)
    model = build(config, Dropout(), 9, 9, joint=False, longest=(5, 7))
    assert (model.encoder.embedding.positions.limit, model.decoder.embedding.positions.limit) == (5, 7)
    assert model.get_submodule("decoder.0.cross").score.limit == 5


def test_a_transformer_has_the_layers_activation_scale_and_norm_of_its_embeddings_that_it_is_told():
    options = {"encoder": "transformer", "decoder": "transformer", "layers": 3, "decoder_layers": 1, "activation": "gelu"}
    config = Model(hidden_size=8, heads=2, scale_embedding=False, embedding_norm=True, **options)
    model = build(config, Dropout(), 9, 9, joint=False)
    assert (len(model.encoder.names), len(model.decoder.names)) == (3, 1)
    for half in (model.encoder, model.decoder):
        assert isinstance(half.get_submodule("0").feedforward[1], torch.nn.GELU)
        assert isinstance(half.embedding.norm, torch.nn.LayerNorm)
        assert half.embedding.scale == 1.0


def test_a_transformer_may_be_all_that_t5_is():
    options = {
        "encoder": "transformer",
        "decoder": "transformer",
        "layers": 2,
        "positions": "none",
        "scale_embedding": False,
    }
    special = {
        "norm": "rms",
        "bias": False,
        "gated": True,
        "self_attention": "t5",
        "shared_bias": True,
        "self_attention_size": 6,
    }
    config = Model(hidden_size=8, heads=2, attention=AttentionPart("transformer+dot", heads=2, size=6), **options, **special)
    model = build(config, Dropout(), 9, 9, joint=True)
    assert not any(name.endswith("bias") for name, each in model.named_parameters() if each.requires_grad)
    assert [name for name, _ in model.named_parameters() if "score" in name] == [
        "encoder.0.self.score.b",
        "decoder.0.self.score.b",
    ]
    looks = [half.get_submodule(name).self for half in (model.encoder, model.decoder) for name in half.names]
    assert [(look.score.causal, look.head) for look in looks] == [(False, 3), (False, 3), (True, 3), (True, 3)]
    assert all(isinstance(half.norm, torch.nn.RMSNorm) for half in (model.encoder, model.decoder))


@pytest.mark.parametrize("decoder", ["transformer", "convolution"])
def test_only_the_named_layers_attend_and_steps_equal_teacher_forcing(decoder):
    settings = {"hidden_size": 8, "encoder": "recurrent", "heads": 2, "layers": 3, "cross_attention_layers": "1, 3"}
    model = build(Model(decoder=decoder, **settings), Dropout(embedding=0.0, residual=0.0), 11, 13, joint=False).eval()
    source, target = batch()
    memory = model.encode(source)
    taught = model.decoder(target, memory, weights=True)
    assert {name for name in taught.attended if name.endswith("cross")} == {"decoder.0.cross", "decoder.2.cross"}
    state = model.decoder.start(memory)
    for place in range(target.shape[1]):
        step = model.decoder.step(target[:, place], memory, state)
        state = step.state
        assert_close(step.output, taught.output[:, place], **close)
    assert len(beam(model.decoder, memory, beams=2, length=4)) == len(source.data)


@pytest.mark.parametrize("layers", ["0", "4", "a", "1,,2"])
def test_layers_that_a_decoder_has_not_are_refused(layers):
    with pytest.raises(ValueError, match=r"model\.cross_attention_layers needs numbers of decoder layers from 1 to 3"):
        build(Model(decoder="transformer", layers=3, cross_attention_layers=layers), Dropout(), 11, 13, joint=False)


@pytest.mark.parametrize("decoder", ["recurrent", "transformer"])
def test_values_may_be_bare_word_embeddings(decoder):
    torch.manual_seed(0)
    options = {"decoder": decoder, "values": "embeddings", "hidden_size": 8, "heads": 2}
    model = build(Model(**options), Dropout(embedding=0.0, residual=0.0), 11, 13, joint=False).eval()
    source, target = batch()
    output = model(source, target).output
    output.sum().backward()
    assert model.encoder.values.weight.grad.abs().sum() > 0
    with torch.no_grad():
        model.encoder.values.weight.zero_()
    assert not torch.allclose(model(source, target).output, output)
