import pytest
import torch

from regard.models.attention_factory import build_self_attention
from regard.models.layers.shared_bias import share_bias


@pytest.mark.parametrize("causal", [True, False])
def test_all_layers_have_one_bias(causal):
    looks = [build_self_attention("t5", 8, 2) for _ in range(3)]
    share_bias(looks, causal)
    assert looks[0].score is looks[1].score is looks[2].score
    assert looks[0].score.b.shape == (2, 32)
    buckets = looks[0].score.bucket(torch.tensor([-20, -1, 0, 1]))
    assert buckets.tolist() == ([17, 1, 0, 0] if causal else [10, 1, 0, 17])


def test_another_score_has_none_to_share():
    with pytest.raises(ValueError, match="a shared bias needs self-attention by t5, got ScaledDot; name t5"):
        share_bias([build_self_attention("scaled_dot", 8, 2)], causal=False)
