"""Synthetic dialogues: someone books a table, a taxi or a seat, and is asked for whatever is missing.

    I need a taxi to Benaville ⏎ where do you start? ⏎ from Rudoton ⏎ at what time? ⏎ at seven ⏎
    -> a taxi from Rudoton to Benaville at seven. what is your name?

The next question and the summary depend on all turns so far, and names are rare, so that they have to be copied.
"""

from random import Random

REQUESTS = {
    "table": (
        ("a table {people} {day} {time}", "I would like a table"),
        {"people": "for how many people?", "day": "on which day?", "time": "at what time?"},
    ),
    "taxi": (
        ("a taxi {start} {goal} {time}", "I need a taxi"),
        {"start": "where do you start?", "goal": "where do you want to go?", "time": "at what time?"},
    ),
    "seat": (
        ("a seat for {film} {day} {time}", "I want to see a film"),
        {"film": "which film?", "day": "on which day?", "time": "at what time?"},
    ),
}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
GREETINGS = ("hello. ", "good morning. ", "hi! ", "")


def write_dialogues(samples: int, seed: int = 0) -> list[list[str]]:
    """Different dialogues, each a list of turns, the first of which is a request."""
    chance, dialogues = Random(seed), dict[tuple[str, ...], None]()
    while len(dialogues) < samples:
        dialogues[tuple(write_dialogue(chance))] = None
    return [list(turns) for turns in dialogues]


def write_dialogue(chance: Random) -> list[str]:
    """Turns of one dialogue."""
    (summary, request), questions = REQUESTS[chance.choice(list(REQUESTS))]
    values = fill_values(chance)
    known = chance.sample(list(questions), chance.randint(0, len(questions) - 1))
    details = " ".join(values[name] for name in questions if name in known)
    turns = [f"{chance.choice(GREETINGS)}{request} {details}".strip()]
    for name, question in questions.items():
        if name not in known:
            turns += [question, values[name]]
    name = f"{spell_name(chance)} {spell_name(chance)}"
    turns += [f"{summary.format(**values)}. what is your name?", chance.choice(("", "I am ", "it is ")) + name]
    return [*turns, f"thank you, {name}. goodbye!"]


def fill_values(chance: Random) -> dict[str, str]:
    """Values of the details of a request, as both sides say them."""
    return {
        "people": f"for {chance.choice(NUMBERS)}",
        "day": f"on {chance.choice(DAYS)}",
        "time": f"at {chance.choice(NUMBERS)}",
        "start": f"from {spell_name(chance)}",
        "goal": f"to {spell_name(chance)}",
        "film": f"The {spell_name(chance)}",
    }


def spell_name(chance: Random) -> str:
    """Name of two syllables."""
    return "".join(chance.choice("bdfgklmnprstv") + chance.choice("aeiou") for _ in range(2)).capitalize()
