"""Attention in three visible stages: score -> normalise -> combine.

The stages are here by class name too: `from regard.attention import attend, Additive, Sparsemax, Causal`.
"""

from typing import TYPE_CHECKING, Any

from regard import registry
from regard.attention import dispatch, mechanisms, normalise, positions, scope, score, visual
from regard.attention.attend import attend
from regard.attention.module import Attention
from regard.attention.multihead import MultiHead
from regard.attention.positions import Positions as Positions
from regard.attention.scope import Scope as Scope
from regard.attention.types import Attended, Encoded, Memory, Normaliser, Sampled, Score
from regard.attention.visual import Visual as Visual

if TYPE_CHECKING:  # names that are imported when they are first used
    from regard.attention.mechanisms import *  # noqa: F403
    from regard.attention.normalise import *  # noqa: F403
    from regard.attention.positions import *  # noqa: F403
    from regard.attention.scope import *  # noqa: F403
    from regard.attention.score import *  # noqa: F403
    from regard.attention.visual import *  # noqa: F403

__all__ = ["Attended", "Attention", "Encoded", "Memory", "MultiHead", "Normaliser", "Sampled", "Score", "attend"]
__all__ += mechanisms.__all__
__all__ += normalise.__all__
__all__ += positions.__all__
__all__ += scope.__all__
__all__ += score.__all__
__all__ += visual.__all__

dispatch.load_kernels()

if not TYPE_CHECKING:  # to a type checker an unknown name is an error

    def __getattr__(name: str) -> Any:
        for kind in registry.FINDABLE:
            for stem in registry.names(kind):
                if registry.class_name(stem) == name:
                    return registry.find(stem, kind)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
