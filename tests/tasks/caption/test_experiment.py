import dataclasses
import re

import pytest
import torch

import regard
from regard import tasks
from regard.config import AttentionPart, ImageTextData, ImageToTextModel, Search, Train, VitPart
from regard.data.axis import Image
from regard.data.image.writing import png
from regard.data.table import DataError, Record
from regard.errors import ConfigError, RefusedError
from regard.losses.types import Progress
from regard.tasks._validate import buildable, heeded, searchable
from regard.tasks.caption import experiment as captioning
from regard.tasks.caption.task import Config
from regard.training.loop import train
from regard.training.run_directory import verify
from regard.viewer.io import load, save

DATA = ImageTextData(height=32, width=32, samples=60, batch_pixels=1 << 14)
RECURRENT = {"decoder": "recurrent", "layers": 1, "attention": AttentionPart("additive")}
MODEL = ImageToTextModel(hidden_size=16, depth=1, stride=8, **RECURRENT)
QUICK = Train(max_steps=6, evaluate_every=3, checkpoint_every=3, learning_rate=1e-2)


def config(data=DATA, model=MODEL, **train) -> Config:
    return Config(data=data, model=model, train=dataclasses.replace(QUICK, **train), search=Search(max_length=12))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("caption")
    experiment, _ = tasks.experiment("caption", config())
    train(experiment, directory, quiet=True)
    return directory, experiment


@pytest.fixture
def table(tmp_path):
    """Six pictures of two sizes, and what is on them."""
    (tmp_path / "pictures").mkdir()
    for number in range(6):
        picture = torch.rand(3, 16, 24) if number % 2 else torch.rand(3, 24, 16)
        (tmp_path / "pictures" / f"{number}.png").write_bytes(png(picture))
    path = tmp_path / "captions.tsv"
    path.write_text("".join(f"pictures/{number}.png\tpicture number {number}\n" for number in range(6)))
    return path


def test_a_run_is_whole_and_leaves_pictures_to_begin_with(run):
    directory, _ = run
    contents = verify(directory)
    assert not any(name.startswith("samples") for name in contents)
    lines = (directory / "samples" / "captions.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == [f"{number}.png" for number in range(1, 7)]  # a tenth is held out
    model = regard.load(directory)
    [answer] = model.predict([str(directory / "samples" / "1.png")], align=True)
    assert answer.grid == (4, 4)
    assert answer.weights.shape == (len(answer.target), 16)
    torch.testing.assert_close(answer.weights.sum(-1), torch.ones(len(answer.target)))
    assert answer.source[:5] == ["1,1", "1,2", "1,3", "1,4", "2,1"]


def test_a_drawn_picture_that_was_written_is_read_as_the_same(run):
    directory, experiment = run
    seen = experiment.codec.read_image(experiment.valid[0])
    record = experiment.codec.encode(regard.load(directory).task.prepare(record_of(directory / "samples" / "1.png")))
    assert torch.equal(experiment.codec.read_image(record), seen)


def record_of(path):
    return Record(str(path), None, "input:1")


def test_figures_are_those_of_texts_and_where_it_looks(run):
    directory, experiment = run
    figures = regard.load(directory).evaluate_examples(experiment.valid)
    assert figures.keys() == {"bleu", "chrf", "exact", "looks", "perplexity"}
    assert 0 <= figures["looks"].low <= figures["looks"].value <= figures["looks"].high <= 100
    again = regard.load(directory).evaluate(
        [record_of(directory / "samples" / "1.png")._replace(target=experiment.valid[0].record.target)]
    )
    assert "looks" not in again  # of a file nobody knows where its things are


def test_pictures_of_different_sizes_are_answered_together_as_alone(run, tmp_path):
    model = regard.load(run[0])
    paths = []
    for number, size in enumerate([(32, 32), (20, 9), (9, 30)]):
        paths.append(str(tmp_path / f"{number}.png"))
        (tmp_path / f"{number}.png").write_bytes(png(torch.rand(3, *size)))
    together = model.predict(paths, beam=2, best=2, align=True)
    for path, answers in zip(paths, together, strict=True):
        [alone] = model.predict([path], beam=2, best=2, align=True)
        assert [each.text for each in answers] == [each.text for each in alone]
        assert [each.grid for each in answers] == [each.grid for each in alone]
        torch.testing.assert_close(answers[0].weights, alone[0].weights, rtol=1e-4, atol=1e-5)


def test_its_trace_has_the_picture_for_an_axis(run, tmp_path):
    model, path = regard.load(run[0]), str(run[0] / "samples" / "2.png")
    trace = model.trace([path], beam=2)
    save(trace, tmp_path / "t.attn.safetensors")
    [example] = load(tmp_path / "t.attn.safetensors").examples
    axis = example.axes["source"]
    assert isinstance(axis, Image)
    assert (axis.grid, axis.size, axis.pixels.shape) == ((4, 4), (32, 32), (32, 32, 3))
    assert [look.key for look in example.attentions] == ["source"]
    assert example.attentions[0].weights.shape[2] == 16
    assert example.beams is not None


def test_a_stream_is_the_answer_in_pieces(run):
    model, path = regard.load(run[0]), str(run[0] / "samples" / "1.png")
    assert "".join(model.stream(path)) == model.predict([path])[0].text


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda model: model.predict(["no.png"]), r"1 of 1 pictures are missing: input:1 no\.png"),
        (lambda model: model.fits("no.png"), r"no\.png"),
        (
            lambda model: model.predict(["x.png"], unknown="copy"),
            r"unknown=copy, .*is for models that read text, and this one",
        ),
        (lambda model: model.listen(["x"]), r"to answer while the source still arrives is for models that read text"),
        (
            lambda model: model.text_codec("an export to ctranslate2"),
            r"an export to ctranslate2 is for models .* \(caption\) reads pictures",
        ),
    ],
)
def test_what_is_not_for_pictures_is_said_in_a_sentence(run, ask, text):
    with pytest.raises((DataError, RefusedError), match=text):
        ask(regard.load(run[0]))


def test_a_training_that_was_stopped_comes_to_the_same_weights(run, tmp_path):
    whole = regard.load(run[0]).model.state_dict()
    train(tasks.experiment("caption", config(max_steps=3))[0], tmp_path, quiet=True)
    train(tasks.experiment("caption", config())[0], tmp_path, quiet=True)
    gone_on = regard.load(tmp_path).model.state_dict()
    assert all(torch.equal(whole[name], gone_on[name]) for name in whole)


def test_a_training_may_begin_with_another_run(run):
    other = config(init_from=str(run[0]))
    experiment, _ = tasks.experiment("caption", other)
    assert experiment.codec.mean == run[1].codec.mean
    with pytest.raises(RefusedError, match=r"was trained with data\.height=32, and now it is 16"):
        tasks.experiment("caption", dataclasses.replace(other, data=dataclasses.replace(DATA, height=16)))
    translate = tasks.find("translate").Config()
    with pytest.raises(RefusedError, match="is a run of caption, which reads pictures"):
        tasks.experiment("translate", dataclasses.replace(translate, train=Train(init_from=str(run[0]))))


def test_a_table_is_read_from_its_own_folder_by_the_columns_that_are_named(table):
    named = table.with_name("named.tsv")
    named.write_text("what\twhere\n" + "".join(f"a {n}\tpictures/{n}.png\n" for n in range(6)))
    data = dataclasses.replace(DATA, train=str(named), valid=str(table), image="where", text="what")
    with pytest.raises(DataError, match="has no column 'where'"):
        tasks.experiment("caption", config(data))
    data = dataclasses.replace(data, valid=str(named), augment="affine+light", channels=1)
    experiment, report = tasks.experiment("caption", config(data))
    assert report.encoded == 6
    assert not experiment.extra_files
    loss = experiment.loss(experiment.model, experiment.train.batch(0), Progress(0, 2))
    loss.total.backward()
    assert all(parameter.grad is not None for parameter in experiment.model.parameters())
    experiment.train.close()


def test_pictures_that_are_missing_are_listed_before_anything_is_trained(table):
    table.write_text(table.read_text() + "gone.png\tnothing\n")
    data = dataclasses.replace(DATA, train=str(table), valid=str(table))
    with pytest.raises(DataError, match=rf"2 of 14 pictures are missing: {re.escape(str(table))}:7 gone\.png"):
        tasks.experiment("caption", config(data))


@pytest.mark.parametrize(("read", "drawn"), [(32, 32), (64, 48)])
def test_pictures_are_drawn_as_large_as_they_are_read_or_as_the_task_has_them(read, drawn):
    told = config(dataclasses.replace(DATA, height=read, width=read))
    first, _ = captioning.load_records(tasks.find("caption"), told)
    assert first.renderers[0]().shape == (3, drawn, drawn)


def test_data_to_validate_with_needs_data_to_train_on():
    with pytest.raises(DataError, match=r"data\.valid is given and data\.train is not"):
        tasks.experiment("caption", config(dataclasses.replace(DATA, valid="a.tsv")))


def test_nothing_left_to_train_on_is_an_error_that_says_what_to_do(table):
    data = dataclasses.replace(DATA, train=str(table), valid=str(table), max_target_length=2)
    with pytest.raises(DataError, match=r"too little is left: 0 of 6 records.*data\.over_long=truncate keeps more"):
        tasks.experiment("caption", config(data))


@pytest.mark.parametrize("attention", ["hard", "additive+sparsemax", "grid_coverage", "coverage"])
def test_every_price_is_paid(attention):
    model = dataclasses.replace(MODEL, attention=AttentionPart(attention))
    experiment, _ = tasks.experiment("caption", config(model=model, doubly_stochastic_weight=1.0, coverage_weight=0.5))
    loss = experiment.loss(experiment.model.train(), experiment.train.batch(0), Progress(0, 2))
    assert {"nll", "doubly_stochastic", "coverage"} <= loss.parts.keys()
    loss.total.backward()
    assert all(parameter.grad is not None for parameter in experiment.model.parameters())
    experiment.train.close()


def test_the_outputs_of_a_model_may_be_what_it_learns_from():
    experiment, _ = tasks.experiment("caption", config(sequence_loss="minimum_risk", sequence_samples=2, monitor="exact"))
    loss = experiment.loss(experiment.model.train(), experiment.train.batch(0), Progress(0, 2))
    assert loss.parts["risk"].isfinite()
    assert "exact" in experiment.evaluate(experiment.model.eval())
    experiment.train.close()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"data": dataclasses.replace(DATA, channels=2)}, r"data\.channels needs to be 3, in colour, or 1, grey, got 2"),
        ({"data": dataclasses.replace(DATA, augment="blur")}, r"data\.augment needs to be none, or one or more of"),
        ({"model": dataclasses.replace(MODEL, attention=AttentionPart("pointer"))}, "copies words of its source"),
        ({"model": dataclasses.replace(MODEL, visual_attention="squeeze")}, "is called 'squeeze'"),
    ],
)
def test_what_cannot_be_built_is_refused_before_it_is(changes, text):
    buildable(config())
    with pytest.raises(ConfigError, match=text):
        buildable(config(**changes))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"guided_attention": 1.0}, r"train\.guided_attention=1\.0 would change nothing: it needs an attention over a text"),
        (
            {"record_example": "x"},
            r"train\.record_example=x would change nothing: it needs an attention.* in a task that reads text",
        ),
        ({"guided_alignment": 1.0}, r"train\.guided_alignment=1\.0 would change nothing"),
        (
            {"model": dataclasses.replace(MODEL, encoder="vit", visual_attention="channel")},
            r"model\.visual_attention=channel would change",
        ),
        ({"model": dataclasses.replace(MODEL, bidirectional=False)}, r"model\.bidirectional=False would change nothing"),
    ],
)
def test_what_would_change_nothing_is_refused(changes, text):
    heeded([config()], Config())
    with pytest.raises(ConfigError, match=text):
        heeded([config(**changes)], Config())


def test_no_word_of_a_picture_is_copied():
    chosen = config()
    with pytest.raises(ConfigError, match=r"search\.unknown=copy copies words of a text, and this model reads pictures"):
        searchable(dataclasses.replace(chosen, search=dataclasses.replace(chosen.search, unknown="copy")))


def test_several_runs_answer_as_one(run):
    together = regard.ensemble([run[0], run[0]])
    path = str(run[0] / "samples" / "1.png")
    assert together.predict([path])[0].text == regard.load(run[0]).predict([path])[0].text


def test_a_model_may_look_at_the_whole_and_tells_where_it_looked(tmp_path):
    model = ImageToTextModel(hidden_size=16, depth=1, stride=8, heads=2, encoder="vit", decoder="transformer")
    model = dataclasses.replace(
        model, attention=AttentionPart("transformer", 2), vit=VitPart(learned_positions=True, cls_tokens=1)
    )
    experiment, _ = tasks.experiment("caption", config(dataclasses.replace(DATA, stretch=True), model))
    train(experiment, tmp_path / "run")
    trained, path = regard.load(tmp_path / "run"), str(tmp_path / "wide.png")
    (tmp_path / "wide.png").write_bytes(png(torch.rand(3, 20, 50)))
    [answer] = trained.predict([path], align=True)
    assert answer.source[:2] == ["whole", "1,1"]
    assert answer.grid == (4, 4)
    assert answer.weights.shape == (len(answer.target), 17)
    traced = trained.trace([path]).examples[0].axes["source"]
    assert (traced.prefix, traced.grid) == (("whole",), (4, 4))
