"""The part of JSON Schema that a manifest takes, rule by rule, and that schema.json uses no other."""

import pytest

from regard.viewer.io.schema import KNOWN, fault, schema


@pytest.mark.parametrize(
    ("value", "rule", "said"),
    [
        (3, {"type": "integer"}, None),
        (3.5, {"type": "integer"}, "it must be of type integer, got 3.5"),
        (True, {"type": "integer"}, "it must be of type integer, got True"),
        (True, {"type": ["boolean", "null"]}, None),
        ("x", {"type": ["integer", "null"]}, "it must be of type integer or null, got 'x'"),
        (1, {"const": 1}, None),
        (True, {"const": 1}, "it must be 1, got True"),
        ("c", {"enum": ["a", "b"]}, "it must be one of 'a', 'b', got 'c'"),
        (0, {"minimum": 1}, "it must be at least 1, got 0"),
        (2, {"maximum": 1}, "it must be at most 1, got 2"),
        ("", {"minLength": 1}, "it must have at least 1 letters, got ''"),
        ([], {"minItems": 1}, "it must have 1 to more entries, got 0"),
        ([1, 2, 3], {"minItems": 2, "maxItems": 2}, "it must have 2 entries, got 3"),
        ([1, "x"], {"items": {"type": "integer"}}, "[1] must be of type integer, got 'x'"),
        (["x", 1], {"prefixItems": [{"type": "string"}, {"type": "number"}], "items": False}, None),
        ([1, 1], {"prefixItems": [{"type": "string"}]}, "[0] must be of type string, got 1"),
        (["x", 1], {"prefixItems": [{"type": "string"}], "items": False}, "[1] must not be there"),
        ({}, {"required": ["a"]}, "a is missing"),
        ({"a": {"b": 1}}, {"properties": {"a": {"properties": {"b": {"type": "string"}}}}}, "a.b must be of type string, got 1"),
        ({"a": 1}, {"additionalProperties": False}, "a must not be there"),
        ({"a": 1}, {"additionalProperties": {"type": "string"}}, "a must be of type string, got 1"),
        ("x" * 99, {"type": "integer"}, f"it must be of type integer, got '{'x' * 56}..."),
        ({"kind": "index", "length": 3}, {"$ref": "#/$defs/axis"}, None),
        ({"kind": "index", "length": 0}, {"$ref": "#/$defs/axis"}, "length must be at least 1, got 0"),
        (None, {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/beams"}]}, None),
        ({}, {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/beams"}]}, "parents is missing"),
        (False, True, None),
    ],
)  # fmt: skip
def test_every_rule_bites(value, rule, said):
    assert fault(value, rule) == said


def rules(part):
    """Every schema within a schema."""
    if isinstance(part, dict):
        yield part
        for name in ("properties", "$defs"):
            for each in part.get(name, {}).values():
                yield from rules(each)
        for name in ("items", "additionalProperties"):
            yield from rules(part.get(name))
        for name in ("prefixItems", "oneOf"):
            for each in part.get(name, ()):
                yield from rules(each)


def test_the_schema_uses_only_rules_that_are_known():
    used = {name for rule in rules(schema()) for name in rule}
    assert used <= KNOWN
    assert {"$ref", "oneOf", "prefixItems", "minItems"} <= used


def test_every_reference_leads_somewhere():
    for rule in rules(schema()):
        if "$ref" in rule:
            assert rule["$ref"].removeprefix("#/$defs/") in schema()["$defs"]
