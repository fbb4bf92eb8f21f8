"""Hard attention trained by REINFORCE, with baselines.

No gradient passes through a sample, so a look (a sampled key) is credited with the reward that followed. Its advantage over
the expected reward, the baseline, decides how much more likely it becomes; the better the baseline, the lower the variance
of the gradient.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.module import Attention
from regard.attention.types import Attended
from regard.config import Train

Tokens = Float[Tensor, "batch time"]
Mask = Bool[Tensor, "batch time"]
Contexts = Float[Tensor, "batch time size"]


class MovingAverage(nn.Module):
    """Baseline for REINFORCE: a moving average of the tokens' log-likelihood.

        b ← 0.9 b + 0.1 log p(y | a)

    Xu et al. 2015, section 4.1, https://arxiv.org/abs/1502.03044
    There log p is that of a whole sentence; here it is that of a token, so that sentences of every length are served.
    """

    mean: Tensor
    begun: Tensor

    def __init__(self, decay: float = 0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("begun", torch.zeros(()))

    def forward(self, name: str, context: Contexts, entropy: Tokens, count: Tokens) -> Tokens:
        """Baseline of each token, the same for all."""
        return self.mean.expand_as(entropy)

    def see(self, value: Float[Tensor, ""]) -> None:
        """Update the average with the log-likelihood per token of the last update; the first value initialises it."""
        decay = self.decay * self.begun
        self.mean.copy_(decay * self.mean + (1 - decay) * value)
        self.begun.fill_(1.0)


class LearnedBaseline(nn.Module):
    """Learned baseline for REINFORCE: a small network of what is known before the sample, plus the moving average.

        b_t = b + vᵀ tanh(W [c_{t-1}; H_t; 1 / n_t])

    with c_{t-1} the previous context, H_t the entropy of the distribution that this look is sampled from, and n_t the number
    of tokens it is credited with. None of this depends on the sample, so the gradient stays unbiased. The network learns by
    its squared error, and passes no gradient to the model.
    Mnih and Gregor 2014, https://arxiv.org/abs/1402.0030
    """

    def __init__(self, drawing: Mapping[str, int], hidden: int = 64):
        super().__init__()
        self.average = MovingAverage()
        self.names = list(drawing)
        self.W = nn.ModuleList(nn.Linear(size + 2, hidden) for size in drawing.values())
        self.v = nn.ParameterList(torch.zeros(hidden) for _ in drawing)

    def forward(self, name: str, context: Contexts, entropy: Tokens, count: Tokens) -> Tokens:
        """Baseline of each token for the attention called `name`."""
        place = self.names.index(name)
        W, v = self.W[place], self.v[place]
        before = functional.pad(context.detach()[:, :-1], (0, 0, 1, 0))
        beside = torch.stack((entropy.detach(), 1 / count), dim=-1)
        found = torch.tanh(W(torch.cat((before, beside), dim=-1).to(v.dtype))) @ v
        return self.average(name, context, entropy, count) + found.to(entropy.dtype)

    def see(self, value: Float[Tensor, ""]) -> None:
        """Update the moving average with the log-likelihood per token of the last update."""
        self.average.see(value)


class Reinforce(nn.Module):
    """REINFORCE for hard attentions: raises the probability of looks with a better reward than expected.

        Σ_t  -(R_t - b_t) log p(a_t) - β H(a_t)

    with R_t the log-likelihood that a look is credited with, b_t the baseline, and H the entropy of the distribution it was
    sampled from; one such term for each head of each attention.
    REINFORCE: Williams 1992, https://doi.org/10.1007/BF00992696
    For attention: Xu et al. 2015, section 4.1, eq. 11 and 12, https://arxiv.org/abs/1502.03044
    There R is that of the whole sentence, reward="sentence". What came before a look does not depend on it, so that "rest",
    the target from t on, gives a gradient of the same mean with less variance; "token", y_t alone, has less still, and is
    blind to what a look changes later.
    `baseline` is where b_t / (the number of tokens in R_t) comes from; None: 0.
    """

    baseline: MovingAverage | LearnedBaseline | None

    def __init__(self, settings: Train, drawing: Mapping[str, int]):
        super().__init__()
        self.reward, self.bonus, self.baseline = settings.reinforce_reward, settings.entropy_bonus, None
        if settings.reinforce_baseline != "none":
            self.baseline = LearnedBaseline(drawing) if settings.reinforce_baseline == "learned" else MovingAverage()

    def forward(
        self, attended: Mapping[str, Attended], keep: Mask, likelihood: Tokens
    ) -> tuple[Float[Tensor, ""], dict[str, Float[Tensor, ""]]]:
        """REINFORCE loss, and for the log the entropy of the looks and the squared error of the baseline.

        The policy gradient term and the baseline's error add to the gradient and 0 to the value, so that losses with and
        without sampling can be compared.
        """
        reward, count = self.credit(likelihood), self.credit(keep.to(likelihood.dtype)).clamp_min(1)
        steering, entropies, errors = [], [], []
        for name, each in attended.items():
            if each.sampled is None:
                continue
            log, entropy = each.sampled.log_probability.sum(1), each.sampled.entropy
            expected = torch.zeros_like(reward)
            if self.baseline is not None:
                first = entropy[:, 0]  # those of later heads may depend on its draw: a memory network's hops do
                expected = count * self.baseline(name, each.context, first, count)
            errors.append((reward - expected).square() / count)
            steering.append(errors[-1] - (reward - expected).detach() * log)
            entropies.append(entropy)
        undecided, wrong, steer = torch.cat(entropies, dim=1), torch.stack(errors, dim=1), torch.stack(steering, dim=1)
        undecided, wrong, steer = (each.masked_fill(~keep[:, None], 0.0) for each in (undecided, wrong, steer))
        total = steer.sum() - steer.detach().sum() - self.bonus * undecided.sum()
        return total, {"look_entropy": undecided.mean(1).sum(), "look_error": wrong.mean(1).sum()}

    def credit(self, values: Tokens) -> Tokens:
        """Sum over the tokens that each look is credited with."""
        if self.reward == "token":
            return values
        if self.reward == "rest":
            return values.flip(1).cumsum(1).flip(1)
        return values.sum(1, keepdim=True).expand_as(values)


def set_soft_share(model: nn.Module, share: float) -> None:
    """Mix a share of soft attention into the outputs of hard attentions, in training."""
    for each in model.modules():
        if isinstance(each, Attention) and getattr(each.normalise, "rewarded", False):
            each.normalise.soft = share


def find_hard_attentions(model: nn.Module) -> dict[str, int]:
    """Hard attentions (REINFORCE) of a model by name, with the size of their context."""
    attentions = ((name, each) for name, each in model.named_modules() if isinstance(each, Attention))
    return {name: each.size for name, each in attentions if getattr(each.normalise, "rewarded", False)}
