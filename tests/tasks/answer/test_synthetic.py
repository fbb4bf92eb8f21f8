from collections import Counter

from regard.tasks.answer.synthetic import QUESTIONS, write_stories


def test_every_kind_of_question_has_its_number_of_facts():
    train, valid = write_stories(200, seed=1)
    assert (len(train), len(valid)) == (180, 20)
    counts = Counter(record.task for record in train + valid)
    assert set(counts) == set(QUESTIONS)
    for record in train + valid:
        facts = {"where_agent": {1}, "is_there": {1}, "where_thing": {2}, "where_before": {3}}.get(
            record.task, set(range(5))
        )
        assert len(record.facts) in facts
        assert all(0 <= fact < len(record.story) for fact in record.facts)
    assert write_stories(200, seed=1)[0] == train


def test_answers_follow_from_the_facts():
    for record in write_stories(150, seed=2)[0]:
        said = " ".join(record.story[fact] for fact in record.facts)
        if record.task in ("where_agent", "where_thing", "where_before"):
            assert record.answer in said
        if record.task == "is_there":
            place = record.question.rstrip("?").split()[-1]
            assert record.answer == ("yes" if place in said else "no")
        if record.task == "count":
            assert record.answer == ("none", "one", "two", "three", "four")[len(record.facts)]
