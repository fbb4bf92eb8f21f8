import torch

from regard.interop.huggingface.vision_encoder_decoder.parameters import (
    Piece,
    convert_to_ours,
    convert_to_theirs,
    linear,
    norm,
)


def test_several_matrices_lie_side_by_side_and_turned():
    pieces = [*linear("x", ("a", "b"), 3, 4, transposed=True), *norm("n", "m", 2)]
    assert pieces[0] == Piece("x.weight", (3, 4), ("a.weight", "b.weight"), True)
    theirs = {piece.theirs: torch.randn(piece.shape) for piece in pieces}
    ours = convert_to_ours(pieces, theirs)
    assert torch.equal(ours["b.weight"], theirs["x.weight"][:, 2:].mT)
    assert torch.equal(ours["a.bias"], theirs["x.bias"][:2])
    assert ours.keys() == {"a.weight", "b.weight", "a.bias", "b.bias", "m.weight", "m.bias"}
    back = convert_to_theirs(pieces, ours)
    assert all(torch.equal(back[name], theirs[name]) for name in theirs)
