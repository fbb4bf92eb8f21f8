"""The code of the guide to pictures runs, and says what it should."""

import re
from pathlib import Path

import pytest

from regard.data.image.synthetic.shapes import SHAPES

GUIDE = (Path(__file__).parent.parent / "docs" / "pictures.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.parametrize(("block", "said"), [*zip(BLOCKS, ["torch.Size([", "torch.Size([3, 64, 64])"], strict=True)])
def test_the_code_runs(block, said, capsys):
    names = {}
    exec(compile(block, "docs/pictures.md", "exec"), names)
    assert said in capsys.readouterr().out
    if "loader" in names:
        names["loader"].close()


def test_the_counts_are_right():
    assert len(SHAPES) == 8
    assert "Eight shapes" in GUIDE
