"""Two solvers to compare routes with: 2-opt with restarts, and the nearest neighbour."""

import torch
from jaxtyping import Float
from torch import Tensor

RESTARTS = 20
"""Random tours that are improved for each instance, of which the shortest counts."""
MOST = 1 << 24
"""Most distances that are held at once."""


def solve_two_opt(
    points: Float[Tensor, "batch points 2"], restarts: int = RESTARTS, seed: int = 0
) -> Float[Tensor, " batch"]:
    """Length of the shortest of several tours, each improved by its best 2-opt move until there is none.

    A move replaces edges (i, i+1) and (j, j+1) by (i, j) and (i+1, j+1), which reverses what lies between. Croes 1958,
    https://doi.org/10.1287/opre.6.6.791
    """
    count = points.shape[1]
    generator = torch.Generator().manual_seed(seed)
    block = max(1, MOST // (restarts * count * count))
    lengths = []
    for part in torch.split(points.double().cpu(), block):
        order = torch.rand(len(part), restarts, count, generator=generator).argsort(-1)
        tours = part[:, None].expand(-1, restarts, -1, -1).gather(2, order[..., None].expand(-1, -1, -1, 2))
        lengths.append(improve(tours.flatten(0, 1)).view(len(part), restarts).amin(1))
    return torch.cat(lengths).float()


def improve(tours: Float[Tensor, "tours points 2"]) -> Float[Tensor, " tours"]:
    """Lengths of tours after their best moves; those that cannot be improved are left aside."""
    count = tours.shape[1]
    place = torch.arange(count)
    result = tours.new_zeros(len(tours))
    active = torch.arange(len(tours))
    while len(active):
        following = tours.roll(-1, dims=1)
        edges = (tours - following).norm(dim=-1)
        change = torch.cdist(tours, tours) + torch.cdist(following, following) - edges[:, :, None] - edges[:, None]
        change = change.masked_fill(place[:, None] >= place, 0.0)  # i < j
        best, where = change.flatten(1).min(1)
        done = best > -1e-9
        result[active[done]] = edges[done].sum(1)
        tours, where, active = tours[~done], where[~done], active[~done]
        first, last = where[:, None] // count, where[:, None] % count
        index = torch.where((place > first) & (place <= last), first + last + 1 - place, place)
        tours = tours.gather(1, index[..., None].expand(-1, -1, 2))
    return result


def solve_nearest(points: Float[Tensor, "batch points 2"]) -> Float[Tensor, " batch"]:
    """Length of the tour that goes on to the nearest point that is left, from the first point."""
    batch, count, _ = points.shape
    distances = torch.cdist(points.double(), points.double())
    rows, current = torch.arange(batch), torch.zeros(batch, dtype=torch.long)
    open_points, total = torch.ones(batch, count, dtype=torch.bool), torch.zeros(batch, dtype=torch.double)
    for _ in range(count - 1):
        open_points[rows, current] = False
        step, current = distances[rows, current].masked_fill(~open_points, torch.inf).min(1)
        total += step
    return (total + distances[rows, current, 0]).float()
