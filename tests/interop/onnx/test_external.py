import re
import tomllib
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from regard.errors import DamagedError
from regard.interop.onnx.external import DATA_LOCATION, EXTERNAL_DATA, MESSAGES, check_graph

pytestmark = pytest.mark.unhooked


def tensor(external=True):
    made = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    if external:
        made.external_data.add(key="location", value="../../etc/passwd")
    return made


def model(nodes=(), initializers=(), sparse=(), functions=()):
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph(list(nodes), "g", [], [output], list(initializers), sparse_initializer=list(sparse))
    return helper.make_model(graph, functions=list(functions))


def sparse(external):
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [0])
    return helper.make_sparse_tensor(tensor(external), indices, [3])


def branch(external):
    inner = helper.make_graph([], "then", [], [], [tensor(external)])
    return helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)


def constant(external):
    return helper.make_node("Constant", [], ["y"], value=tensor(external))


def function(external):
    return helper.make_function("d", "F", [], ["y"], [constant(external)], [helper.make_opsetid("", 18)])


def several(external):
    node = helper.make_node("Custom", [], ["y"])
    attribute = node.attribute.add(name="each", type=onnx.AttributeProto.TENSORS)
    attribute.tensors.append(tensor(external))
    return node


def training(external):
    made = model()
    made.training_info.add().algorithm.initializer.append(tensor(external))
    return made


PLACES = {
    "initializer": lambda external: model(initializers=[tensor(external)]),
    "sparse initializer": lambda external: model(sparse=[sparse(external)]),
    "constant": lambda external: model([constant(external)]),
    "branch": lambda external: model([branch(external)]),
    "function": lambda external: model(functions=[function(external)]),
    "tensors": lambda external: model([several(external)]),
    "training": training,
}


@pytest.mark.parametrize("place", PLACES)
def test_a_tensor_in_another_file_is_refused_wherever_it_stands(place):
    check_graph(PLACES[place](False).SerializeToString(), "step.onnx")
    with pytest.raises(
        DamagedError, match=r"^step\.onnx keeps weights in another file \(external data\), which regard does not"
    ):
        check_graph(PLACES[place](True).SerializeToString(), "step.onnx")


def test_a_place_that_says_it_is_elsewhere_is_refused_without_a_file_too():
    made = tensor(external=False)
    made.data_location = TensorProto.DEFAULT
    check_graph(model(initializers=[made]).SerializeToString(), "x")
    made.data_location = TensorProto.EXTERNAL
    with pytest.raises(DamagedError, match="keeps weights in another file"):
        check_graph(model(initializers=[made]).SerializeToString(), "x")


def test_every_field_that_leads_to_a_tensor_is_followed():
    known = {name: {field.number for field in getattr(onnx, name).DESCRIPTOR.fields} for name in MESSAGES}
    for name, fields in MESSAGES.items():
        descriptor = getattr(onnx, name).DESCRIPTOR
        leading = {
            f.number: f.message_type.name for f in descriptor.fields if f.message_type and f.message_type.name in MESSAGES
        }
        assert fields == leading, name
        assert fields.keys() <= known[name]
    numbers = {field.name: field.number for field in TensorProto.DESCRIPTOR.fields}
    assert (numbers["external_data"], numbers["data_location"]) == (EXTERNAL_DATA, DATA_LOCATION)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x0b", "is no graph of ONNX: byte 1 begins a field of no known type"),
        (b"\x3a\xff\xff\xff\x7f", "is no whole graph of ONNX: a field ends at byte"),
        (b"\x3a\x02\x0a\x05", "is no whole graph of ONNX: a field ends at byte 9, behind its message"),
        (b"\x08" + b"\xff" * 20, "is no graph of ONNX: byte 11 ends in the middle of a number"),
        (b"\x08", "is no graph of ONNX: byte 1 ends in the middle of a number"),
    ],
)
def test_what_is_no_protobuf_is_damaged(data, text):
    with pytest.raises(DamagedError, match=f"^x {text}"):
        check_graph(data, "x")


def test_the_floors_are_those_whose_checks_of_paths_are_whole():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    [extra] = [project["project"]["optional-dependencies"]["onnx"]]
    floors = {name: tuple(map(int, version.split("."))) for name, version in (each.split(">=") for each in extra)}
    assert floors["onnx"] >= (1, 21)
    assert floors["onnxruntime"] >= (1, 25)
    assert all(re.fullmatch(r"[a-z]+>=[\d.]+", each) for each in extra)
