"""A modality and its task from one file each: trained, resumed, loaded, asked and evaluated as any other."""

import json
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

import regard
from regard import tasks
from regard.config import AttentionPart
from regard.data.loader import ModalityLoader
from regard.errors import DataError
from regard.inference.rollout_predictor import RolloutPredictor
from regard.inference.sequence_predictor import SequencePredictor
from regard.losses.types import Progress
from regard.training import cuda_graphs
from regard.training.loop import train
from regard.training.step import Update
from regard.training.throughput import Throughput

from .toys import points, series

MODULES = {"toy_series": series, "toy_points": points}


def run(name, folder, **settings):
    module = MODULES[name]
    config = module.Config()
    experiment, _ = tasks.experiment(name, replace(config, train=replace(config.train, device="cpu", **settings)))
    metrics = train(experiment, folder, quiet=True)
    return experiment, metrics


@pytest.fixture(scope="module", params=MODULES)
def name(request):
    return request.param


def losses(folder):
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line["valid"]["loss"] for line in lines if "valid" in line]


def test_it_is_trained_loaded_asked_and_evaluated(name, tmp_path):
    module = MODULES[name]
    experiment, _ = run(name, tmp_path / "run")
    first, *_, last = losses(tmp_path / "run")
    assert last < first
    model = regard.load(tmp_path / "run", device="cpu")
    assert type(model) is {"toy_series": RolloutPredictor, "toy_points": SequencePredictor}[name]
    _, valid = module.synthesise(experiment.config.data.samples, seed=0)
    answers = model.predict([record.source for record in valid])
    assert len(answers) == len(valid)
    assert model.predict(valid[0].source).text == answers[0].text
    metrics = model.evaluate(valid)
    if name == "toy_series":
        assert [len(answer.text.split()) for answer in answers] == [series.HORIZON] * len(valid)
        assert metrics["mae"].value < 0.5  # the mean as a forecast has 0.64
        forecast = [float(value) for value in answers[0].text.split()]
        assert forecast == pytest.approx([float(value) for value in valid[0].target.split()], abs=1.5)
    else:
        assert metrics["exact"].value > 90
        assert {answer.text for answer in answers} == set(points.NAMES.values())


def test_attention_is_aligned_and_traced(name, tmp_path):
    experiment, _ = run(name, tmp_path / "run", max_steps=2)
    model = regard.load(tmp_path / "run", device="cpu")
    source = experiment.valid[0].record.source
    answer = model.predict(source, align=True)
    assert answer.weights.shape == (len(answer.target), len(answer.source))
    [example] = model.trace([source]).examples
    assert len(example.axes["source"]) == len(answer.source)
    assert len(example.axes["target"]) == len(answer.target)
    cross = next(each for each in example.attentions if each.key == "source")
    assert cross.weights.shape[-1] == len(answer.source)


def test_a_resumed_training_arrives_at_the_same_weights(name, tmp_path):
    whole, _ = run(name, tmp_path / "whole", max_steps=12, evaluate_every=6, checkpoint_every=6)
    run(name, tmp_path / "parts", max_steps=6, evaluate_every=6, checkpoint_every=6)
    parts, _ = run(name, tmp_path / "parts", max_steps=12, evaluate_every=6, checkpoint_every=6)
    for key, tensor in whole.model.state_dict().items():
        assert_close(parts.model.state_dict()[key], tensor, rtol=0, atol=0)


def test_batches_may_be_cut_and_padded(name):
    experiment, _ = tasks.experiment(name, MODULES[name].Config())
    batch, model = experiment.train.batch(0), experiment.model.eval()
    with torch.no_grad():
        whole = experiment.loss(model, batch, Progress(0, 1))
        rounded = experiment.loss(model, batch.round_shape(), Progress(0, 1))
        parts = [experiment.loss(model, batch.select_rows(range(first, batch.rows, 2)), Progress(0, 1)) for first in (0, 1)]
    assert_close(rounded.total, whole.total, rtol=1e-4, atol=1e-4)
    assert_close(sum(part.total for part in parts), whole.total, rtol=1e-4, atol=1e-4)
    assert sum(int(part.tokens) for part in parts) == int(whole.tokens) == int(rounded.tokens)


def test_a_damaged_input_is_an_error_that_names_it(name, tmp_path):
    run(name, tmp_path / "run", max_steps=1)
    model = regard.load(tmp_path / "run", device="cpu")
    with pytest.raises(DataError, match="input:1 needs"):
        model.predict(["1,2,x y"])


def test_numbers_have_one_answer_and_no_sampled_attention():
    experiment, _ = tasks.experiment("toy_series", series.Config())
    model = RolloutPredictor(tasks.bind("toy_series"), experiment.config, experiment.codec, experiment.model)
    with pytest.raises(ValueError, match="one answer to each input, got best=2"):
        model.predict("1 2 3", best=2)
    hard = replace(series.Config().model, attention=AttentionPart("additive+hard"))
    with pytest.raises(ValueError, match="a hard attention is rewarded by the likelihood of tokens"):
        tasks.experiment("toy_series", replace(series.Config(), model=hard))


def test_a_loader_says_what_it_needs():
    codec = series.SeriesCodec(0.0, 1.0)
    example = codec.encode(series.synthesise(4, seed=0)[0][0])
    with pytest.raises(ValueError, match="a loader needs at least one example, got none"):
        ModalityLoader(codec, [], 8)
    with pytest.raises(ValueError, match="a budget of at least 1 and a seed of at least 0, got 0 and 0"):
        ModalityLoader(codec, [example], 0)
    loader = ModalityLoader(codec, [example] * 5, 2 * len(example.source), seed=3)
    assert sorted(index for batch in loader.epoch(0) for index in batch) == [0, 1, 2, 3, 4]
    assert max(len(batch) for batch in loader.epoch(1)) == 2
    assert loader.epoch(0) == ModalityLoader(codec, [example] * 5, 2 * len(example.source), seed=3).epoch(0)


@pytest.mark.parametrize("decoder", ["recurrent", "convolution", "transformer"])
def test_numbers_are_trained_with_every_decoder_and_with_scheduled_sampling(decoder, tmp_path):
    config = series.Config()
    config = replace(
        config,
        model=replace(config.model, decoder=decoder, heads=2),
        train=replace(config.train, device="cpu", max_steps=3, scheduled_sampling="constant", guided_attention=0.1),
    )
    experiment, _ = tasks.experiment("toy_series", config)
    metrics = train(experiment, tmp_path / decoder, quiet=True)
    assert metrics
    assert all(parameter.isfinite().all() for parameter in experiment.model.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_updates_are_replayed_as_cuda_graphs(name, monkeypatch):
    def losses(most):
        monkeypatch.setattr(cuda_graphs, "MOST", most)
        config = MODULES[name].Config()
        config = replace(config, train=replace(config.train, device="cuda", max_steps=30))
        experiment, _ = tasks.experiment(name, config)
        update, speed, values = Update(experiment), Throughput(), []
        for step in range(30):
            update([update.ready(experiment.train.batch(step))], speed)
            update.settle(speed)
            values.append(speed.last)
        assert (len(update.graphs.captured) > 0) is (most > 0)
        return torch.tensor(values)

    assert_close(losses(256), losses(0), rtol=1e-2, atol=1e-3)
