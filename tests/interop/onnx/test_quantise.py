from itertools import zip_longest

import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import regard
from regard import tasks
from regard.interop.onnx.quantise import folded, quantised
from regard.interop.onnx.sessions import ENCODER
from regard.training.run_directory import STEP

pytestmark = [pytest.mark.unhooked, pytest.mark.timeout(600)]


def product(matrix):
    """x -> x Mᵀ + 1 as a graph that transposes its matrix at run time, and says of what shape it is before."""
    shapes = {"x": ["rows", matrix.shape[1]], "y": ["rows", matrix.shape[0]]}
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    nodes = [helper.make_node("Transpose", ["M"], ["T"], perm=[1, 0]), helper.make_node("Gemm", ["x", "T", "b"], ["y"])]
    held = [numpy_helper.from_array(matrix.numpy(), "M"), numpy_helper.from_array(torch.ones(len(matrix)).numpy(), "b")]
    inside = helper.make_tensor_value_info("M", TensorProto.FLOAT, list(matrix.shape))
    graph = helper.make_graph(nodes, "product", [given], [made], held, value_info=[inside])
    opset = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()


def answer(graph, x):
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(["y"], {"x": x.numpy()})[0])


def test_a_product_in_int8_is_off_by_what_rounding_costs():
    torch.manual_seed(0)
    matrix, x = torch.randn(24, 40), torch.randn(5, 40)
    small = quantised(product(matrix))
    assert TensorProto.INT8 in {each.data_type for each in onnx.load_from_string(small).graph.initializer}
    gap = (answer(small, x) - (x @ matrix.T + 1)).abs()
    assert 0 < gap.max() < 40 * (x.abs().max() * matrix.abs().max() / 100)  # 40 products, each off by a 100th of the largest
    assert gap.mean() < 0.2


def test_what_depends_on_weights_alone_is_computed_beforehand():
    matrix, x = torch.randn(3, 4), torch.randn(2, 4)
    made = folded(product(matrix))
    assert [each.op_type for each in onnx.load_from_string(made).graph.node] == ["Gemm"]
    torch.testing.assert_close(answer(made, x), x @ matrix.T + 1)


def test_int8_is_smaller_and_says_the_same(run, exported, small):
    records = tasks.find("translate").synthesise(200, seed=0)[1]
    before, after = (regard.load(each, "cpu") for each in (run, small))
    ours, theirs = (each.predict([record.source for record in records]) for each in (before, after))
    decisions = [  # those made after equal beginnings: once they part, two answers are two sentences
        (one, other)
        for right, found in zip(ours, theirs, strict=True)
        for place, (one, other) in enumerate(zip_longest(right.target, found.target))
        if right.target[:place] == found.target[:place]
    ]
    assert sum(one == other for one, other in decisions) >= 0.99 * len(decisions) > 100
    likely = [each.evaluate(records)["perplexity"].value for each in (before, after)]
    assert likely[1] == pytest.approx(likely[0], rel=0.01)
    for name in (ENCODER, STEP):
        assert (small / name).stat().st_size < 0.75 * (exported / name).stat().st_size, name


def test_int8_holds_no_matrix_of_floats(exported, small):
    def matrices(path):
        return [
            each.name
            for each in onnx.load(path).graph.initializer
            if each.data_type == TensorProto.FLOAT and len(each.dims) > 1 and min(each.dims[-2:]) >= 16
        ]

    for name in (ENCODER, STEP):
        assert matrices(exported / name)
        assert matrices(small / name) == [], name
