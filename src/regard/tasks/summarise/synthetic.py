"""Synthetic reports with headlines: one sentence of each is the news, and the names in it are rare.

    Tamiko Rul was elected mayor of Benaville on Friday, after two rounds of voting. The weather in Sodoton stayed dry. ...
    -> Tamiko Rul elected mayor of Benaville

The sentence with the news is often the first, and not always; other sentences have names too. Most names stand in few
reports, so that a model has to copy them.
"""

from random import Random

from regard.data.records import Record

NEWS = (
    ("{person} elected mayor of {place}", "{person} was elected mayor of {place} on {day}, after {few} rounds of voting."),
    ("{firm} hires {many} workers in {place}", "{firm} said on {day} that it will hire {many} more workers in {place}."),
    ("{firm} buys {other} for {many} million", "{firm} has agreed to buy {other}, a smaller rival, for {many} million."),
    ("{person} to lead {firm}", "The board of {firm} named {person} as its new head on {day}."),
    ("Storm cuts power to {many} homes in {place}", "A storm left {many} homes in {place} without power on {day} night."),
    ("Fire damages school in {place}", "A fire that began on {day} in the kitchen of a school in {place} damaged its roof."),
    ("{place} beats {town} by {few} goals", "On {day} the team of {place} won against {town} with {few} more goals."),
    ("Bridge in {place} closed for {few} weeks", "The bridge in {place} has been closed for repairs that take {few} weeks."),
    ("{person} wins prize for book on {place}", "A book about the history of {place} won {person} a prize on {day}."),
    ("{firm} to open factory in {place}", "A new factory of {firm} in {place} is to open with {many} workers next year."),
)
OTHERS = (
    "The weather in {place} stayed dry.",
    "{person}, who lives nearby, said that nobody had expected it.",
    "Shares of {firm} did not move.",
    "More is to be made known on {day}.",
    "It was the first time in {few} years.",
    "A spokesman for {firm} had no comment.",
    "About {many} people were present.",
    "Last year {person} had said the same in {place}.",
    "Visitors from {place} asked many questions.",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FEW = ("two", "three", "four", "five", "six")
KINDS = ("Steel", "Foods", "Motors", "Bank", "Airlines")
TOWNS = ("ville", "ton", "burg", "ford")


def write_reports(samples: int, seed: int = 0) -> list[Record]:
    """Different reports with their headlines."""
    chance, reports = Random(seed), dict[str, str]()
    while len(reports) < samples:
        headline, news = chance.choice(NEWS)
        values = fill_names(chance)
        sentences = [other.format(**fill_names(chance)) for other in chance.sample(OTHERS, chance.randint(2, 5))]
        sentences.insert(0 if chance.random() < 0.6 else chance.randint(1, len(sentences)), news.format(**values))
        reports.setdefault(" ".join(sentences), headline.format(**values))
    return [Record(report, headline, f"report:{number}") for number, (report, headline) in enumerate(reports.items(), 1)]


def fill_names(chance: Random) -> dict[str, str]:
    """Values of the fields of a sentence."""
    return {
        "person": f"{name(chance)} {name(chance, 1)}",
        "place": name(chance) + chance.choice(TOWNS),
        "town": name(chance) + chance.choice(TOWNS),
        "firm": f"{name(chance)} {chance.choice(KINDS)}",
        "other": f"{name(chance)} {chance.choice(KINDS)}",
        "many": str(chance.randint(12, 980)),
        "few": chance.choice(FEW),
        "day": chance.choice(DAYS),
    }


def name(chance: Random, syllables: int = 2) -> str:
    """Name of so many syllables, and a consonant now and then."""
    parts = [chance.choice("bdfgklmnprstv") + chance.choice("aeiou") for _ in range(syllables)]
    return ("".join(parts) + chance.choice(("", "n", "l", "r", "k"))).capitalize()
