import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

from regard.models.encoders.recurrent import run_layer
from regard.models.layers.cells import build_cells
from regard.models.layers.onnx_cells import reorder_parameters


def operator(rnn, kind):
    """One recurrent operator of ONNX as a session, with the parameters of a layer as its inputs."""
    direction = "bidirectional" if rnn.bidirectional else "forward"
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    states = ["h", "c"][: 1 + (kind == "LSTM")]
    node = helper.make_node(
        kind, ["x", "W", "R", "B", "lengths"], ["y", *states], hidden_size=rnn.hidden_size, direction=direction, **more
    )
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "W", "R", "B")]
    inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, None))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", *states)]
    made = helper.make_model(
        helper.make_graph([node], "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 14)], ir_version=8
    )
    return onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize(("cell", "kind"), [("lstm", "LSTM"), ("gru", "GRU"), ("tanh", "RNN")])
@torch.no_grad()
def test_an_operator_of_onnx_with_our_parameters_reads_what_the_layer_reads(cell, kind, ways):
    rnn = build_cells(cell, 3, 4, bidirectional=ways == 2)
    data, lengths = torch.randn(3, 5, 3), torch.tensor([5, 1, 3])
    expected, finals = run_layer(rnn, data, lengths)
    W, R, B = (each.numpy() for each in reorder_parameters(rnn, kind))
    x = data.transpose(0, 1).contiguous().numpy()
    y, *states = operator(rnn, kind).run(None, {"x": x, "W": W, "R": R, "B": B, "lengths": lengths.int().numpy()})
    torch.testing.assert_close(torch.from_numpy(y).permute(2, 0, 1, 3).flatten(2), expected)
    for found, final in zip(states, finals, strict=True):
        torch.testing.assert_close(torch.from_numpy(found).transpose(0, 1).flatten(1), final)


def test_gates_stand_in_the_order_of_onnx():
    rnn = build_cells("lstm", 1, 1)
    with torch.no_grad():
        for number, name in enumerate(("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")):
            each = rnn.get_parameter(name)
            each.copy_(torch.arange(4.0).view_as(each) + 10 * number)  # input, forget, cell, output
    W, R, B = reorder_parameters(rnn, "LSTM")
    assert W.tolist() == [[[0], [3], [1], [2]]]
    assert R.tolist() == [[[10], [13], [11], [12]]]
    assert B.tolist() == [[20, 23, 21, 22, 30, 33, 31, 32]]
