"""Names of shapes and colours, in English and in Chinese."""

from typing import Literal

Language = Literal["english", "chinese"]

SHAPE_WORDS = {
    "circle": "圆", "square": "正方形", "triangle": "三角形", "star": "五角星", "diamond": "菱形", "cross": "十字",
    "ring": "圆环", "heart": "心形",
}  # fmt: skip
COLOUR_WORDS = {
    "red": "红色", "orange": "橙色", "yellow": "黄色", "green": "绿色", "blue": "蓝色", "purple": "紫色", "pink": "粉色",
    "black": "黑色",
}  # fmt: skip
SIZE_WORDS = {"small": "小", "medium": "", "big": "大"}
COUNT_WORDS = {1: ("a", "一个"), 2: ("two", "两个"), 3: ("three", "三个")}
RELATION_WORDS = {
    "left": ("left of", "左边"),
    "right": ("right of", "右边"),
    "above": ("above", "上面"),
    "below": ("below", "下面"),
}
OPPOSITE = {"left": "right", "right": "left", "above": "below", "below": "above"}


def plural(noun: str) -> str:
    """More than one of it."""
    return noun + ("es" if noun.endswith("s") else "s")


def article(following: str) -> str:
    """A, or an, before a word."""
    return "an" if following[0] in "aeiou" else "a"
