"""The text of `regard show`: a page about one thing, or its three stages with numbers.

Drawings, kernels and numbers come from running what they are about, so a stage that is new in its folder needs nothing
here. Where nobody has written its formula out by hand, its steps say what the call gave.
"""

from regard.cli.show.page import page
from regard.cli.show.steps import steps

__all__ = ["page", "steps"]
