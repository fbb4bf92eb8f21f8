import json

import pytest

from regard.tasks.answer.codec import StoryCodec
from regard.tasks.answer.config import StoryData
from regard.tasks.answer.synthetic import write_stories

BABI = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Daniel took the milk there.
5 Where is the milk? \thallway\t4 2
1 Sandra got the apple.
2 What does Sandra carry? \tapple\t1
"""


@pytest.fixture
def babi(tmp_path):
    """A folder in the form of the bAbI tasks."""
    for name in ("qa2_two_train", "qa2_two_test", "qa10_one_train", "qa10_one_test"):
        (tmp_path / f"{name}.txt").write_text(BABI)
    return tmp_path


@pytest.fixture(scope="module")
def stories():
    return write_stories(60, seed=0)[0]


@pytest.fixture(scope="module")
def codec(stories):
    return StoryCodec.fit(stories, StoryData())


@pytest.fixture
def jsonl(tmp_path):
    """Writes rows as JSON lines."""

    def write(*rows):
        path = tmp_path / "stories.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write
