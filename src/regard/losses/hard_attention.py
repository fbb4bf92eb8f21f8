"""Hard attention trained by REINFORCE, with baselines.

No gradient passes through a sampled key, so a sample is credited with the reward that follows it. Its advantage over the
expected reward, the baseline, decides how much more likely it becomes; the better the baseline, the lower the variance of
the gradient.
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

    def update(self, value: Float[Tensor, ""]) -> None:
        """Update the average with the log-likelihood per token of the last update; the first value initialises it."""
        decay = self.decay * self.begun
        self.mean.copy_(decay * self.mean + (1 - decay) * value)
        self.begun.fill_(1.0)


class LearnedBaseline(nn.Module):
    """Learned baseline for REINFORCE: a small network over features known before the sample, plus the moving average.

        b_t = b + vᵀ tanh(W [c_{t-1}; H_t; 1 / n_t])

    with c_{t-1} the previous context, H_t the entropy of the distribution that the key is sampled from, and n_t the number
    of tokens that the sample is credited with. None of this depends on the sample, so the gradient stays unbiased. The
    network learns by its squared error, and passes no gradient to the model.
    Mnih and Gregor 2014, https://arxiv.org/abs/1402.0030
    """

    def __init__(self, sizes: Mapping[str, int], hidden: int = 64):
        super().__init__()
        self.average = MovingAverage()
        self.names = list(sizes)
        self.W = nn.ModuleList(nn.Linear(size + 2, hidden) for size in sizes.values())
        self.v = nn.ParameterList(torch.zeros(hidden) for _ in sizes)

    def forward(self, name: str, context: Contexts, entropy: Tokens, count: Tokens) -> Tokens:
        """Baseline of each token for the attention called `name`."""
        index = self.names.index(name)
        W, v = self.W[index], self.v[index]
        previous = functional.pad(context.detach()[:, :-1], (0, 0, 1, 0))
        features = torch.stack((entropy.detach(), 1 / count), dim=-1)
        correction = torch.tanh(W(torch.cat((previous, features), dim=-1).to(v.dtype))) @ v
        return self.average(name, context, entropy, count) + correction.to(entropy.dtype)

    def update(self, value: Float[Tensor, ""]) -> None:
        """Update the moving average with the log-likelihood per token of the last update."""
        self.average.update(value)


class Reinforce(nn.Module):
    """REINFORCE for hard attentions: raises the probability of sampled keys with a better reward than expected.

        Σ_t  -(R_t - b_t) log p(a_t) - β H(a_t)

    with R_t the log-likelihood that a sample is credited with, b_t the baseline, and H the entropy of the distribution it
    was sampled from; one such term for each head of each attention.
    REINFORCE: Williams 1992, https://doi.org/10.1007/BF00992696
    For attention: Xu et al. 2015, section 4.1, eq. 11 and 12, https://arxiv.org/abs/1502.03044
    There R is that of the whole sentence, reward="sentence". Tokens before a sample do not depend on it, so that "rest",
    the target from t on, gives a gradient of the same mean with less variance; "token", y_t alone, has less still, and is
    blind to the effect of a sample on later tokens.
    `baseline` estimates b_t / (the number of tokens in R_t); None: 0.
    """

    baseline: MovingAverage | LearnedBaseline | None

    def __init__(self, settings: Train, sizes: Mapping[str, int]):
        super().__init__()
        self.reward, self.bonus, self.baseline = settings.reinforce_reward, settings.entropy_bonus, None
        if settings.reinforce_baseline != "none":
            self.baseline = LearnedBaseline(sizes) if settings.reinforce_baseline == "learned" else MovingAverage()

    def forward(
        self, attended: Mapping[str, Attended], keep: Mask, likelihood: Tokens
    ) -> tuple[Float[Tensor, ""], dict[str, Float[Tensor, ""]]]:
        """REINFORCE loss, and for the log the entropy of the sampling distributions and the squared error of the baseline.

        The policy gradient term and the baseline's error add to the gradient and 0 to the value, so that losses with and
        without sampling can be compared.
        """
        reward, count = self.credit(likelihood), self.credit(keep.to(likelihood.dtype)).clamp_min(1)
        policy_terms, entropies, errors = [], [], []
        for name, attention in attended.items():
            if attention.sampled is None:
                continue
            log_probability, entropy = attention.sampled.log_probability.sum(1), attention.sampled.entropy
            expected = torch.zeros_like(reward)
            if self.baseline is not None:
                first_head = entropy[:, 0]  # entropies of later heads may depend on its sample: a memory network's hops do
                expected = count * self.baseline(name, attention.context, first_head, count)
            errors.append((reward - expected).square() / count)
            policy_terms.append(errors[-1] - (reward - expected).detach() * log_probability)
            entropies.append(entropy)
        padding = ~keep[:, None]
        all_entropies = torch.cat(entropies, dim=1).masked_fill(padding, 0.0)
        squared_errors = torch.stack(errors, dim=1).masked_fill(padding, 0.0)
        policy = torch.stack(policy_terms, dim=1).masked_fill(padding, 0.0)
        total = policy.sum() - policy.detach().sum() - self.bonus * all_entropies.sum()
        return total, {"attention_entropy": all_entropies.mean(1).sum(), "baseline_error": squared_errors.mean(1).sum()}

    def credit(self, values: Tokens) -> Tokens:
        """Sum over the tokens that each sample is credited with."""
        if self.reward == "token":
            return values
        if self.reward == "rest":
            return values.flip(1).cumsum(1).flip(1)
        return values.sum(1, keepdim=True).expand_as(values)


def set_soft_share(model: nn.Module, share: float) -> None:
    """Mix a share of soft attention into the outputs of hard attentions, in training."""
    for attention in model.modules():
        if isinstance(attention, Attention) and getattr(attention.normalise, "rewarded", False):
            attention.normalise.soft = share


def find_hard_attentions(model: nn.Module) -> dict[str, int]:
    """Hard attentions (REINFORCE) of a model by name, with the size of their context."""
    attentions = ((name, module) for name, module in model.named_modules() if isinstance(module, Attention))
    return {name: attention.size for name, attention in attentions if getattr(attention.normalise, "rewarded", False)}
