"""Synthetic stories: agents who walk, take things and hand them on, and questions with their supporting facts.

Anna walked to the kitchen.                                     where_agent    one fact
Anna picked up the lamp. Anna went to the garden.               where_thing    two facts
... Where was the lamp before the garden?                       where_before   three facts
How many things does Anna carry?                                count
Is Anna in the kitchen?                                         is_there       yes or no
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from regard.tasks.answer.records import StoryQuestion

AGENTS = ("Anna", "Boris", "Chen", "Dora")
PLACES = ("kitchen", "garden", "library", "cellar", "attic", "market")
THINGS = ("lamp", "key", "book", "apple")
MOVES = ("walked to", "went to", "ran to", "hurried to")
TAKES = ("picked up", "took", "grabbed")
DROPS = ("put down", "dropped", "left")
COUNTS = ("none", "one", "two", "three", "four")
VALID_SHARE = 10
"""One story in so many validates."""


@dataclass
class World:
    """State of the places and things of a story, with the number of the sentence that each follows from."""

    chance: Random
    sentences: list[str] = field(default_factory=list)
    place: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Place of each agent, and the sentence that says so."""
    holder: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Agent that carries a thing, and the sentence that says so."""
    lying: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """Place of a thing that was put down, and the sentences that say so."""
    carried: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Places that a thing was carried to, with the sentences, since it was taken."""
    taken: dict[str, int] = field(default_factory=dict)
    """Sentence that says that a thing was taken."""

    def say(self, text: str) -> int:
        """Add a sentence; its place in the story."""
        self.sentences.append(text)
        return len(self.sentences) - 1

    def move(self, agent: str) -> None:
        """Let an agent go to another place."""
        here = self.place.get(agent, ("", 0))[0]
        place = self.chance.choice([name for name in PLACES if name != here])
        fact = self.say(f"{agent} {self.chance.choice(MOVES)} the {place}.")
        self.place[agent] = (place, fact)
        for thing in self.things_of(agent):
            self.carried[thing].append((place, fact))

    def things_of(self, agent: str) -> list[str]:
        """Things that an agent carries."""
        return [thing for thing, (holder, _) in self.holder.items() if holder == agent]

    def take(self, agent: str) -> bool:
        """Let an agent take a thing that nobody has and that is not known to lie elsewhere."""
        here = self.place[agent][0]
        free = [thing for thing in THINGS if thing not in self.holder and self.lying.get(thing, (here,))[0] == here]
        if not free:
            return False
        thing = self.chance.choice(free)
        fact = self.say(f"{agent} {self.chance.choice(TAKES)} the {thing}.")
        self.holder[thing], self.taken[thing] = (agent, fact), fact
        self.carried[thing] = [self.place[agent]]
        self.lying.pop(thing, None)
        return True

    def drop(self, agent: str) -> bool:
        """Let an agent put down a thing."""
        things = self.things_of(agent)
        if not things:
            return False
        thing = self.chance.choice(things)
        fact = self.say(f"{agent} {self.chance.choice(DROPS)} the {thing}.")
        place, moved = self.place[agent]
        del self.holder[thing]
        self.lying[thing] = (place, (moved, fact))
        return True

    def advance(self) -> None:
        """Add one sentence."""
        agent = self.chance.choice(AGENTS)
        if agent not in self.place:
            return self.move(agent)
        act = self.chance.choice((self.take, self.take, self.drop, None, None))
        if act is None or not act(agent):
            self.move(agent)
        return None


Question = tuple[str, str, tuple[int, ...]]
"""Question, answer and supporting facts."""


def ask_where_agent(world: World) -> Question | None:
    """One fact: the last move of an agent."""
    agent = world.chance.choice(sorted(world.place))
    place, fact = world.place[agent]
    return f"Where is {agent}?", place, (fact,)


def ask_where_thing(world: World) -> Question | None:
    """Two facts: the last move of the agent that carries or dropped a thing."""
    known = dict(world.lying)
    for thing, (agent, fact) in world.holder.items():
        place, moved = world.place[agent]
        known[thing] = place, (fact, moved)
    if not known:
        return None
    thing = world.chance.choice(sorted(known))
    place, facts = known[thing]
    return f"Where is the {thing}?", place, facts


def ask_where_before(world: World) -> Question | None:
    """Three facts: who carries a thing, and the last two places of that agent."""
    moved = {thing: places for thing, places in world.carried.items() if thing in world.holder and len(places) > 1}
    if not moved:
        return None
    thing = world.chance.choice(sorted(moved))
    (before, first), (place, second) = moved[thing][-2:]
    return f"Where was the {thing} before the {place}?", before, (world.taken[thing], first, second)


def ask_count(world: World) -> Question | None:
    """Things that an agent carries."""
    agent = world.chance.choice(sorted(world.place))
    things = world.things_of(agent)
    return f"How many things does {agent} carry?", COUNTS[len(things)], tuple(world.holder[thing][1] for thing in things)


def ask_is_there(world: World) -> Question | None:
    """Yes or no: an agent is at a place."""
    agent = world.chance.choice(sorted(world.place))
    place, fact = world.place[agent]
    asked_place = place if world.chance.random() < 0.5 else world.chance.choice([name for name in PLACES if name != place])
    return f"Is {agent} in the {asked_place}?", "yes" if asked_place == place else "no", (fact,)


QUESTIONS: dict[str, Callable[[World], Question | None]] = {
    "where_agent": ask_where_agent,
    "where_thing": ask_where_thing,
    "where_before": ask_where_before,
    "count": ask_count,
    "is_there": ask_is_there,
}
"""Kinds of questions by the name of their task."""
LENGTHS = (6, 10)
"""Shortest and longest story, in sentences."""


def write_stories(samples: int, seed: int) -> tuple[list[StoryQuestion], list[StoryQuestion]]:
    """Questions to train on and to validate with, each about a story of its own; kinds take turns."""
    chance = Random(seed)
    records, texts = list[StoryQuestion](), set[str]()
    while len(records) < samples:
        task = list(QUESTIONS)[len(records) % len(QUESTIONS)]
        record = write_story(chance, task, f"story:{len(records) + 1}")
        if record is not None and record.source not in texts:
            texts.add(record.source)
            records.append(record)
    count = max(1, samples // VALID_SHARE)
    return records[count:], records[:count]


def write_story(chance: Random, task: str, where: str) -> StoryQuestion | None:
    """A story with a question of one kind; None where the story has nothing to ask for."""
    world = World(chance)
    for _ in range(chance.randint(*LENGTHS)):
        world.advance()
    question = QUESTIONS[task](world)
    if question is None:
        return None
    text, answer, facts = question
    return StoryQuestion(tuple(world.sentences), text, answer, tuple(sorted(set(facts))), task, where)
