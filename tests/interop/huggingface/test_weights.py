import pytest
import torch
from torch import nn

from regard.errors import RefusedError
from regard.interop.huggingface.weights import fitting, room, weights

from ..transformers_ import T5, untrained


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"norm": "post"}, "marian"),
        ({"norm": "post", "embedding_norm": True}, "bart"),
        ({"norm": "pre"}, "pegasus"),
        ({"norm": "pre", "positions": "learned", "embedding_norm": True}, "mbart"),
    ],
)
def test_norms_decide_the_family(settings, kind):
    trained = untrained(**settings)
    assert fitting(trained) == kind
    found = weights(trained, kind)
    assert ("model.encoder.embed_positions.weight" in found) == (kind != "marian")
    assert room(trained) == (256 if kind == "mbart" else 1024)


@pytest.mark.parametrize("norm", ["pre", "rms"])
def test_an_ensemble_or_an_export_is_refused(norm):
    trained = untrained(**T5 if norm == "rms" else {"norm": norm})
    trained.model = nn.Identity()
    with pytest.raises(RefusedError, match="it is no single network of PyTorch but an ensemble or an export"):
        fitting(trained)


def test_the_features_of_a_marian_have_their_sines_first():
    trained = untrained(norm="post", hidden_size=4, layers=1)
    ours = trained.model.decoder.embedding.table.weight
    assert torch.equal(weights(trained, "marian")["model.shared.weight"], ours[:, [0, 2, 1, 3]])


def test_a_table_begins_behind_the_rows_that_a_family_keeps_free():
    trained = untrained(norm="post", positions="learned", embedding_norm=True)
    found = weights(trained, "bart")["model.decoder.embed_positions.weight"]
    assert found[:2].abs().sum() == 0
    assert torch.equal(found[2:], trained.model.decoder.embedding.positions.table.weight)
