"""Synthetic questions with queries: what is asked, of which table, under one condition or two with rare constants.

how many rivers of Benaland are longer than 310 km
-> SELECT COUNT ( * ) FROM river WHERE country = "Benaland" AND length > 310 ;
"""

from random import Random

from regard.data.records import Record

TABLES = {
    "city": (
        "cities",
        {
            "population": "the population",
            "area": "the area",
            "mayor": "the mayor",
        },
        (
            ("in {country}", 'country = "{country}"'),
            ("with more than {number} people", "population > {number}"),
            ("with fewer than {number} people", "population < {number}"),
            ("whose mayor is {person}", 'mayor = "{person}"'),
            ("on the {river}", 'river = "{river}"'),
        ),
    ),
    "river": (
        "rivers",
        {"length": "the length", "source": "the source", "mouth": "the mouth"},
        (
            ("of {country}", 'country = "{country}"'),
            ("that are longer than {number} km", "length > {number}"),
            ("that flow through {city}", 'city = "{city}"'),
            ("that rise in {country}", 'source = "{country}"'),
        ),
    ),
}
ORDERS = {
    "largest": ("area", "DESC"),
    "smallest": ("area", "ASC"),
    "longest": ("length", "DESC"),
    "shortest": ("length", "ASC"),
}
SUPERLATIVES = {"city": ("largest", "smallest"), "river": ("longest", "shortest")}


def write_questions(samples: int, seed: int = 0) -> list[Record]:
    """Different questions with their queries."""
    chance, queries = Random(seed), dict[str, str]()
    while len(queries) < samples:
        question, query = write_question(chance)
        queries.setdefault(question, query)
    return [Record(question, query, f"question:{number}") for number, (question, query) in enumerate(queries.items(), 1)]


def write_question(chance: Random) -> tuple[str, str]:
    """One question and its query."""
    table = chance.choice(list(TABLES))
    plural, columns, conditions = TABLES[table]
    chosen = chance.sample(conditions, chance.choice((1, 1, 2)))
    values = fill_constants(chance)
    words = " and ".join(phrase for phrase, _ in chosen).format(**values)
    tests = " AND ".join(test for _, test in chosen).format(**values)
    kind = chance.random()
    if kind < 0.3:
        return f"how many {plural} are there {words}", f"SELECT COUNT ( * ) FROM {table} WHERE {tests} ;"
    if kind < 0.55:
        return f"list the {plural} {words}", f"SELECT name FROM {table} WHERE {tests} ;"
    if kind < 0.8:
        column = chance.choice(list(columns))
        return f"what is {columns[column]} of the {plural} {words}", f"SELECT {column} FROM {table} WHERE {tests} ;"
    order = chance.choice(SUPERLATIVES[table])
    by, direction = ORDERS[order]
    return (
        f"which is the {order} of the {plural} {words}",
        f"SELECT name FROM {table} WHERE {tests} ORDER BY {by} {direction} LIMIT 1 ;",
    )


def fill_constants(chance: Random) -> dict[str, str]:
    """Values of the constants of a question."""
    return {
        "country": f"{spell_name(chance)}land",
        "city": f"{spell_name(chance)}ton",
        "river": f"{spell_name(chance)} River" if chance.random() < 0.3 else spell_name(chance),
        "person": f"{spell_name(chance)} {spell_name(chance)}",
        "number": str(chance.randint(2, 99) * 10),
    }


def spell_name(chance: Random) -> str:
    """Name of two syllables."""
    return "".join(chance.choice("bdfgklmnprstv") + chance.choice("aeiou") for _ in range(2)).capitalize()
