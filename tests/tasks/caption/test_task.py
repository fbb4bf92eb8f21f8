import dataclasses

from regard import tasks
from regard.tasks.caption import task
from regard.tasks.caption.task import Config


def test_what_is_prepared_and_finished_again_is_the_target_as_it_was():
    training, validation = task.synthesise(40, seed=0)
    for language in ("english", "chinese"):
        for each in training:
            record = each.record(language)
            assert task.finish(task.prepare(record).target) == record.target
    assert not {each.english.text for each in training} & {each.english.text for each in validation}


def test_a_perfect_output_gets_the_best_figures():
    right = ["a red circle above two blue squares", "three small stars below a ring"]
    figures = task.measure(right, right, ["1.png", "2.png"], Config())
    assert {name: round(found.value) for name, found in figures.items()} == {"bleu": 100, "chrf": 100, "exact": 100}
    assert "tok:zh" in task.measure(["一个圆"], ["一个圆"], ["1.png"], Config())["bleu"].signature


def test_captions_may_be_chinese():
    usual = Config()
    data = dataclasses.replace(usual.data, samples=60, language="chinese")
    experiment, _ = tasks.experiment("caption", dataclasses.replace(usual, data=data))
    assert any("一个" in example.record.target for example in experiment.valid)
    experiment.train.close()
