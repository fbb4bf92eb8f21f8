import io
import json

import pytest

import regard
from regard.cli import _chat
from regard.config import Data
from regard.data.text.codec import TURN
from regard.errors import ConfigError, DataError
from regard.tasks.converse import experiment, task
from regard.tasks.converse.turns import LONGEST, join_turns, list_answers, split_turns


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "chat"
    options = {"max_steps": 2, "evaluate_every": 2}
    regard.train("converse", out=out, data={"samples": 20}, model={"hidden_size": 8}, train=options)
    return regard.load(out)


def test_every_second_turn_is_an_answer_to_all_before():
    records = list_answers(["a", "b", "c", "d"], "x:1")
    assert [(record.source, record.target) for record in records] == [("a", "b"), (f"a {TURN} b {TURN} c", "d")]


def test_the_oldest_turns_of_a_long_history_are_left_out():
    turns = [f"{word} " * 60 for word in "abcd"]
    assert split_turns(join_turns(turns)) == [" ".join(turn.split()) for turn in turns[2:]]
    assert len(join_turns(["a " * 1000]).split()) == LONGEST + 1
    assert split_turns("hello\tyes?") == ["hello", "yes?"]


def test_dialogues_are_read_from_json_lines(tmp_path):
    rows = {"lists": ["a", "b"], "objects": {"id": 3, "turns": ["a", "b", "c", "d"]}}
    counts = {}
    for name, row in rows.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps(row) + "\n")
        counts[name] = len(experiment.read(Data(), str(path)))
    assert counts == {"lists": 1, "objects": 2}
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"1": "a", "2": "b"}\n')
    assert [record.target for record in experiment.read(Data(), str(pairs))] == ["b"]
    for row in (["a"], {"turns": ["a", ""]}, {"turns": ["a", 3]}):
        (tmp_path / "bad.jsonl").write_text(json.dumps(row) + "\n")
        with pytest.raises(DataError, match=r"bad\.jsonl:1 needs two turns or more, each a text"):
            experiment.read(Data(), str(tmp_path / "bad.jsonl"))


def test_answers_of_one_dialogue_are_held_out_together():
    records = list_answers(["a", "b", "c", "d"], "x:1")
    assert experiment.list_sources(records) == ["a", "a"]


def test_no_synthetic_dialogue_is_on_both_sides():
    train, valid = task.synthesise(30, seed=0)
    assert not {record.where.partition(",")[0] + record.source for record in train} & {record.source for record in valid}
    assert all(record.target.endswith(("?", "!")) for record in train)


def test_a_conversation_keeps_its_turns_until_it_is_told_to_forget(model, monkeypatch, capsys):
    histories = []
    monkeypatch.setattr(model, "reply", lambda turns, beam: histories.append(list(turns)) or f"answer {len(histories)}")
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\n\nand then?\n/new\nwho?\n/quit\nnever\n"))
    _chat.converse(model, None)
    assert histories == [["hello"], ["hello", "answer 1", "and then?"], ["who?"]]
    assert capsys.readouterr().out == "answer 1\nanswer 2\nanswer 3\n"


def test_a_model_answers_a_history(model):
    assert (
        model.reply(["I need a taxi", "where do you start?", "from Rome"])
        == model.predict(f"I need a taxi {TURN} where do you start?\tfrom Rome").text
    )


def test_other_models_do_not_converse():
    class Translator:
        name = "translate"

    with pytest.raises(ConfigError, match=r"--chat is for models that converse .* this one is of translate"):
        _chat.converse(Translator(), None)
