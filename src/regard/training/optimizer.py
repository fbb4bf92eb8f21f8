"""Optimisers, and the one pass over the gradients that turns their sum into a clipped mean."""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from regard.config import Train
from regard.errors import ConfigError

LARGEST = 1e18
"""A gradient longer than this is not usable: its square, which Adam keeps, would leave float32."""


def build_optimizer(model: nn.Module, train: Train, loss: nn.Module | None = None) -> Optimizer:
    """The optimiser that a config names, for a model and a loss that may learn too. Vectors (biases, gains) do not decay.

    A module may have a `pace`, by which the rate of its own parameters is multiplied.

    Adam: Kingma and Ba 2015, https://arxiv.org/abs/1412.6980, with the numbers of Vaswani et al. 2017, section 5.3
    (0.9, 0.98, 1e-9), under the schedules made for them, noam and inverse_sqrt, and its own (0.9, 0.999, 1e-8) else.
    AdamW: Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101. SGD: plain.
    """
    learned = [parameter for parameter in named_parameters(model, loss).values() if parameter.requires_grad]
    if not learned:
        raise ValueError("the optimiser needs a model with parameters that learn, and this one has none")
    groups = group_parameters(learned, find_lr_scales(model), train)
    if train.optimizer == "sgd":
        return SGD(groups, lr=train.learning_rate)
    kind = Adam if train.optimizer == "adam" else AdamW
    transformer = train.schedule in ("noam", "inverse_sqrt")
    betas, eps = ((0.9, 0.98), 1e-9) if transformer else ((0.9, 0.999), 1e-8)
    fused = all(parameter.is_cuda for parameter in learned)
    return kind(groups, lr=train.learning_rate, betas=betas, eps=eps, fused=fused or None)


def is_fused(optimiser: Optimizer) -> bool:
    """Return True if a step may be launched before its check is known: a fused optimizer reads the check on the device."""
    return all(group.get("fused") for group in optimiser.param_groups)


def step_unless(optimiser: Any, bad: Bool[Tensor, ""]) -> None:
    """A step of an optimiser that goes `ahead`, which changes nothing where the device finds `bad` to be true."""
    optimiser.found_inf = bad.float()
    try:
        optimiser.step()
    finally:
        del optimiser.found_inf


def set_learning_rate(optimiser: Optimizer, rate: float) -> None:
    """Use this rate from now on, and what follows from it where a group has a pace of its own."""
    if not rate < LARGEST:
        raise ConfigError(
            f"train.learning_rate is too large: with train.schedule it gives a learning rate of {rate:g}, and weights that "
            f"move so far leave float32; it needs to stay below {LARGEST:g}, and is usually below 1"
        )
    for group in optimiser.param_groups:
        group["lr"] = rate * group.get("pace", 1.0)


def group_parameters(learned: Iterable[nn.Parameter], paces: dict[int, float], train: Train) -> list[dict[str, Any]]:
    """Groups of parameters that decay, then of those that do not, each of one pace."""
    groups: dict[tuple[bool, float], dict[str, Any]] = {}
    for parameter in learned:
        still, pace = parameter.ndim <= 1, paces.get(id(parameter), 1.0)
        decay = 0.0 if still else train.weight_decay
        fresh = {"params": [], "weight_decay": decay, "lr": train.learning_rate * pace, "pace": pace}
        groups.setdefault((still, pace), fresh)["params"].append(parameter)
    return [groups[kind] for kind in sorted(groups)]


def find_lr_scales(model: nn.Module) -> dict[int, float]:
    """The pace of each parameter whose module has one, by id."""
    own = [(module, getattr(module, "pace", None)) for module in model.modules()]
    return {
        id(parameter): pace for module, pace in own if pace is not None for parameter in module.parameters(recurse=False)
    }


@torch.no_grad()
def clip_gradient(parameters: Iterable[nn.Parameter], tokens: int | Shaped[Tensor, ""], most: float) -> Float[Tensor, ""]:
    """Turn gradients of a sum over tokens into those of the mean, cut to length `most` (0: never); the uncut length.

        g ← g / tokens,   g ← g min(1, most / |g|)          Pascanu et al. 2013, section 3.2

    https://arxiv.org/abs/1211.5063
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return torch.zeros(())
    tokens = torch.as_tensor(tokens, dtype=torch.float32, device=gradients[0].device).clamp_min(1)
    norm = torch.nn.utils.get_total_norm(gradients) / tokens
    factor = (most / norm).clamp(max=1.0) / tokens if most > 0 else 1 / tokens
    torch._foreach_mul_(gradients, factor)
    return norm


def named_parameters(model: nn.Module, loss: nn.Module | None = None) -> dict[str, nn.Parameter]:
    """The parameters of a model and, under "loss.", those of its loss."""
    beside = {} if loss is None else {f"loss.{name}": parameter for name, parameter in loss.named_parameters()}
    return {**dict(model.named_parameters()), **beside}


def list_names(model: nn.Module, optimiser: Optimizer, loss: nn.Module | None = None) -> list[str]:
    """The name of each parameter, in the order in which the optimiser counts them."""
    known = {id(parameter): name for name, parameter in named_parameters(model, loss).items()}
    return [known[id(parameter)] for group in optimiser.param_groups for parameter in group["params"]]


def state(model: nn.Module, optimiser: Optimizer, loss: nn.Module | None = None) -> dict[str, Tensor]:
    """State of the optimizer for each parameter, flat: "<parameter>.<name>"."""
    states = optimiser.state_dict()["state"]
    return {
        f"{name}.{what}": value.detach().cpu().contiguous()
        for number, name in enumerate(list_names(model, optimiser, loss))
        for what, value in states.get(number, {}).items()
        if isinstance(value, Tensor)
    }


def restore(model: nn.Module, optimiser: Optimizer, tensors: dict[str, Tensor], loss: nn.Module | None = None) -> None:
    """Give the optimiser its memory back."""
    numbers = {name: number for number, name in enumerate(list_names(model, optimiser, loss))}
    states: dict[int, dict[str, Tensor]] = {}
    for path, value in tensors.items():
        name, _, what = path.rpartition(".")
        states.setdefault(numbers[name], {})[what] = value.clone()
    optimiser.load_state_dict({"state": states, "param_groups": optimiser.state_dict()["param_groups"]})
