import dataclasses

import pytest
import torch

from regard import tasks
from regard.config import AttentionPart, Model, Train
from regard.data.batch import Batch, pad, tensors
from regard.training import cuda_graphs
from regard.training.cuda_graphs import GraphedLoss, covers
from regard.training.step import Update
from regard.training.throughput import Throughput

CUDA = torch.device("cuda")
TRANSFORMER = Model(
    encoder="transformer",
    decoder="transformer",
    attention=AttentionPart("transformer", heads=2),
    hidden_size=16,
    heads=2,
    layers=2,
)


def experiment(model=TRANSFORMER, **train):
    config = tasks.find("reverse").Config()
    data = dataclasses.replace(config.data, samples=60)
    return tasks.experiment("reverse", dataclasses.replace(config, data=data, model=model, train=Train(**train)))[0]


def test_a_rounded_batch_has_the_same_tokens_and_more_padding():
    batch = Batch(pad([[5, 6, 7], [5]]), pad([[8, 9, 8, 9, 8], [8, 9]]), ("a", "b"))
    wide = batch.round_shape()
    assert wide.source.data.shape == (2, 4)
    assert wide.target.data.shape == (2, 8)
    assert wide.records == batch.records
    assert wide.source.data[wide.source.keep].tolist() == [5, 6, 7, 5]
    assert wide.target.data[wide.target.keep].tolist() == [8, 9, 8, 9, 8, 8, 9]


def test_a_rounded_batch_costs_the_same():
    made = experiment(device="cpu")
    batch = made.train.batch(0)
    update = Update(made)
    made.model.eval()
    one, other = update.cost(batch), update.cost(batch.round_shape())
    torch.testing.assert_close(one.total, other.total)
    assert one.tokens == other.tokens


def test_a_batch_of_a_rounded_shape_is_not_copied():
    batch = Batch(pad([[5, 6, 7], [5]]), pad([[8, 9, 8, 9, 8], [8, 9]]), ("a", "b")).round_shape()
    again = batch.round_shape()
    assert again.source.data is batch.source.data
    assert again.target.keep is batch.target.keep


def test_a_plain_transformer_is_covered_on_a_gpu_alone():
    assert covers(experiment(), CUDA) is None
    assert covers(experiment(), torch.device("cpu")) == "needs a CUDA device"
    assert Update(experiment(device="cpu")).graphs is None
    assert Update(experiment(device="cpu")).cast_weights is None


@pytest.mark.parametrize("kind", ["convolution", "recurrent"])
@pytest.mark.parametrize("name", ["additive", "coverage", "additive+hard", "additive+marginal"])
def test_other_models_are_covered_too(kind, name):
    model = Model(encoder=kind, decoder=kind, attention=AttentionPart(name), hidden_size=16)
    assert covers(experiment(model), CUDA) is None


@pytest.mark.parametrize(
    ("model", "train", "reason"),
    [
        (TRANSFORMER, {"cuda_graphs": False}, "train.cuda_graphs is false"),
        (TRANSFORMER, {"scheduled_sampling": "constant"}, "needs a loss that a CUDA graph can capture"),
        (TRANSFORMER, {"sequence_loss": "self_critical"}, "needs a loss that a CUDA graph can capture"),
        (TRANSFORMER, {"guided_alignment": 1.0}, "needs a loss that a CUDA graph can capture"),
    ],
)
def test_what_depends_on_more_than_the_shape_of_a_batch_is_not_captured(model, train, reason):
    assert reason in covers(experiment(model, **train), CUDA)


def pictures(task, samples=80, **model):
    config = tasks.find(task).Config()
    data = dataclasses.replace(config.data, samples=samples, height=24, width=24)
    network = dataclasses.replace(config.model, hidden_size=32, **model)
    return tasks.experiment(task, dataclasses.replace(config, data=data, model=network, train=Train(device="cpu")))[0]


def test_labels_of_pictures_are_captured_and_sets_that_are_matched_are_not():
    assert covers(pictures("classify"), CUDA) is None
    assert covers(pictures("classify", glimpses=2), CUDA) is None
    assert "Hungarian assignment" in covers(pictures("detect"), CUDA)


@pytest.mark.parametrize("options", [{}, {"glimpses": 2}])
def test_a_rounded_batch_of_labelled_pictures_costs_the_same(options):
    made = pictures("classify", **options)
    made.model.eval()
    batch, update = made.train.batch(0), Update(made)
    made.model.eval()
    one, other = update.cost(batch), update.cost(batch.round_shape())
    torch.testing.assert_close(one.total, other.total)
    assert one.tokens == other.tokens == len(batch.source.data)


def test_a_copy_holds_all_but_the_records():
    batch = pictures("classify").train.batch(0).round_shape()
    copy = cuda_graphs._plain(batch)
    assert copy.records == ()
    held = list(tensors(copy))
    assert len(held) == 4  # pictures, labels, and what is kept of each
    for one, other in zip(held, tensors(batch), strict=True):
        assert torch.equal(one, other)
        assert one.data_ptr() != other.data_ptr()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("options", [{}, {"glimpses": 3}])
def test_replayed_labels_cost_what_they_cost_kernel_by_kernel(monkeypatch, options):
    def losses(most):
        monkeypatch.setattr(cuda_graphs, "MOST", most)
        made = pictures("classify", samples=200, **options)
        made = dataclasses.replace(made, config=dataclasses.replace(made.config, train=Train(max_steps=30, device="cuda")))
        update, speed, found = Update(made), Throughput(), []
        for step in range(30):
            update([made.train.batch(step)], speed)
            update.settle(speed)
            found.append(speed.last)
        assert (len(update.graphs.captured) > 0) is (most > 0)
        return torch.tensor(found)

    torch.testing.assert_close(losses(256), losses(0), rtol=1e-3, atol=1e-3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize(
    ("kind", "name", "packed"),
    [
        ("transformer", "transformer", 0),
        ("transformer", "transformer", 64),
        ("convolution", "additive", 0),
        ("recurrent", "additive", 0),
        ("recurrent", "location_sensitive", 0),
        ("recurrent", "additive+hard", 0),
        ("recurrent", "additive+marginal", 0),
    ],
)
def test_replayed_updates_cost_what_they_cost_kernel_by_kernel(monkeypatch, kind, name, packed, precision, dropout):
    model = dataclasses.replace(TRANSFORMER, encoder=kind, decoder=kind, attention=AttentionPart(name, heads=2))

    def losses(most):
        monkeypatch.setattr(cuda_graphs, "MOST", most)
        config = tasks.find("reverse").Config()
        train = Train(max_steps=60, precision=precision, device="cuda", label_smoothing=0.1, packing_length=packed)
        data = dataclasses.replace(config.data, samples=300, batch_tokens=256)
        drop = dataclasses.replace(config.dropout, embedding=dropout, residual=dropout, attention=dropout)
        chosen = dataclasses.replace(config, data=data, model=model, dropout=drop, train=train)
        made, _ = tasks.experiment("reverse", chosen)
        update, speed = Update(made), Throughput()
        found = []
        for step in range(60):
            update([made.train.batch(step)], speed)
            update.settle(speed)
            found.append(speed.last)
        assert (len(update.graphs.captured) > 0) is (most > 0)
        return torch.tensor(found)

    torch.testing.assert_close(losses(256), losses(0), rtol=1e-3, atol=1e-3)


def test_where_memory_is_short_the_graphs_are_given_up_and_the_batch_is_computed(monkeypatch):
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 0))
    made = experiment()
    update = Update(made)
    graphs = GraphedLoss(update.cost, torch.device("cpu"), list(made.model.parameters()))

    def short(batch):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(graphs, "capture", short)
    batch = made.train.batch(0)
    first, second = graphs(batch), graphs(batch)
    assert graphs.most == 0
    assert not graphs.captured
    assert first.tokens == second.tokens == batch.target.keep.sum()


def test_any_other_fault_of_a_capture_is_told(monkeypatch):
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 0))
    made = experiment()
    graphs = GraphedLoss(Update(made).cost, torch.device("cpu"), list(made.model.parameters()))

    def broken(batch):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(graphs, "capture", broken)
    graphs(made.train.batch(0))
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
        graphs(made.train.batch(0))


def test_a_rounded_batch_of_pictures_has_more_filling_and_costs_the_same():
    config = tasks.find("caption").Config()
    data = dataclasses.replace(config.data, samples=40, height=36, width=36)
    made, _ = tasks.experiment("caption", dataclasses.replace(config, data=data))
    update = Update(made)
    batch = made.train.batch(0)
    wide = batch.round_shape()
    assert wide.source.data.shape[2:] == (40, 40)
    assert wide.source.keep.sum() == batch.source.keep.sum()
    made.model.eval()
    torch.testing.assert_close(update.cost(batch).total, update.cost(wide).total, rtol=1e-4, atol=1e-3)
    made.train.close()


def test_packed_rows_are_of_one_length_and_stay_so():
    made = experiment(device="cpu", packing_length=27)
    batch = made.train.batch(0)
    wide = batch.round_shape()
    assert wide.source.data.shape[1] == wide.target.data.shape[1] == 27
    assert wide.target.documents is batch.target.documents
    shapes = {cuda_graphs._shape(made.train.batch(step).round_shape()) for step in range(2 * made.train.steps_per_epoch())}
    assert len(shapes) == 1
    held = cuda_graphs._plain(batch)
    assert torch.equal(held.source.documents, batch.source.documents)
    assert held.source.documents is not batch.source.documents
