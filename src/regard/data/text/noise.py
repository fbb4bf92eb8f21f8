"""Noise: words left out, blanked or moved a little, so that a model does not lean on a text that is too even."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Noise:
    """A text with some of its words left out, some replaced by a filler, and the rest moved a few places at most.

        each word is left out with probability `drop`, else blanked with probability `blank`;
        then words are put in the order of  i + u_i,    u_i uniform in [0, reach + 1)

    so that no word moves further than `reach`. Edunov et al. 2018, https://arxiv.org/abs/1808.09381, for back-translation;
    the order is that of Lample et al. 2018, https://arxiv.org/abs/1711.00043
    Words are what stands between spaces; in a text without spaces they are its characters. One word always stays.
    """

    drop: float = 0.1
    blank: float = 0.1
    reach: int = 3
    filler: str = "<blank>"

    def __post_init__(self) -> None:
        for name in ("drop", "blank"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"noise needs a {name} from 0 up to but not including 1, got {getattr(self, name)}")
        if self.reach < 0:
            raise ValueError(f"noise needs a reach of 0 or more places, got {self.reach}")

    def __call__(self, text: str, chance: Random) -> str:
        between = " " if " " in text.strip() else ""
        words = text.split() if between else list(text.strip())
        staying = [word for word in words if chance.random() >= self.drop] or words[:1]
        filled = [self.filler if chance.random() < self.blank else word for word in staying]
        places = [place + chance.random() * (self.reach + 1) for place in range(len(filled))]
        return between.join(filled[place] for place in sorted(range(len(filled)), key=places.__getitem__))
