"""The JSON Schema of a trace's manifest, and the part of JSON Schema that it takes to hold a manifest to it.

`schema.json` beside this file is the one definition: any tool can use it, and the reader of traces does.
https://json-schema.org/draft/2020-12. Of that, `fault` knows: type, const, enum, minimum, maximum, minLength, minItems,
maxItems, items, prefixItems, properties, required, additionalProperties, $ref, and oneOf objects with a constant `kind`.
"""

import json
from functools import cache
from importlib import resources
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
KNOWN = {"type", "const", "enum", "minimum", "maximum", "minLength", "minItems", "maxItems", "items", "prefixItems"}
KNOWN |= {
    "properties",
    "required",
    "additionalProperties",
    "oneOf",
    "$ref",
    "$defs",
    "$schema",
    "$id",
    "title",
    "description",
}


@cache
def schema() -> dict[str, Any]:
    """JSON schema of a manifest."""
    rules: dict[str, Any] = json.loads(
        resources.files("regard.viewer.io").joinpath("schema.json").read_text(encoding="utf-8")
    )
    return rules


def fault(value: Any, rule: dict[str, Any] | bool | None = None, where: str = "") -> str | None:
    """The first thing in which a value breaks a rule (the manifest's, if none is given), or None."""
    rule = schema() if rule is None else rule
    if isinstance(rule, bool):
        return None if rule else f"{where or 'it'} must not be there"
    if "$ref" in rule:
        return fault(value, schema()["$defs"][rule["$ref"].rpartition("/")[2]], where)
    if "oneOf" in rule:
        return _choice(value, rule["oneOf"], where)
    place = where or "it"
    if "const" in rule and (value != rule["const"] or type(value) is not type(rule["const"])):
        return f"{place} must be {rule['const']!r}, got {_short(value)}"
    if "enum" in rule and value not in rule["enum"]:
        return f"{place} must be one of {', '.join(map(repr, rule['enum']))}, got {_short(value)}"
    if "type" in rule and not _is(value, rule["type"]):
        kinds = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        return f"{place} must be of type {' or '.join(kinds)}, got {_short(value)}"
    return _size(value, rule, place) or _inside(value, rule, where)


def _is(value: Any, kinds: str | list[str]) -> bool:
    names = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):  # which Python takes for a whole number
        return "boolean" in names
    return any(isinstance(value, TYPES[name]) for name in names)


def _size(value: Any, rule: dict[str, Any], place: str) -> str | None:
    if isinstance(value, int | float):
        if value < rule.get("minimum", value):
            return f"{place} must be at least {rule['minimum']}, got {_short(value)}"
        if value > rule.get("maximum", value):
            return f"{place} must be at most {rule['maximum']}, got {_short(value)}"
    if isinstance(value, str) and len(value) < rule.get("minLength", 0):
        return f"{place} must have at least {rule['minLength']} letters, got {value!r}"
    if isinstance(value, list) and not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)):
        wanted = sorted({rule.get("minItems", 0), rule.get("maxItems", "more")}, key=str)
        return f"{place} must have {' to '.join(map(str, wanted))} entries, got {len(value)}"
    return None


def _inside(value: Any, rule: dict[str, Any], where: str) -> str | None:
    if isinstance(value, list):
        first = rule.get("prefixItems", [])
        rules = [*first, *[rule.get("items", True)] * (len(value) - len(first))]
        entries = ((f"{where}[{place}]", entry, part) for place, (entry, part) in enumerate(zip(value, rules, strict=False)))
        return next((problem for place, entry, part in entries if (problem := fault(entry, part, place))), None)
    if isinstance(value, dict):
        dot = f"{where}." if where else ""
        for name in rule.get("required", ()):
            if name not in value:
                return f"{dot}{name} is missing"
        known, others = rule.get("properties", {}), rule.get("additionalProperties", True)
        return next(
            (problem for name, entry in value.items() if (problem := fault(entry, known.get(name, others), f"{dot}{name}"))),
            None,
        )
    return None


def _choice(value: Any, rules: list[dict[str, Any]], where: str) -> str | None:
    """One of several kinds of object, told apart by `kind`; null where that is among them."""
    if value is None and {"type": "null"} in rules:
        return None
    resolved = [schema()["$defs"][rule["$ref"].rpartition("/")[2]] for rule in rules if "$ref" in rule]
    if len(resolved) == 1:
        return fault(value, resolved[0], where)
    kinds = {rule["properties"]["kind"]["const"]: rule for rule in resolved}
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        return f"{where}.kind must be one of {', '.join(map(repr, kinds))}, got {_short(kind)}"
    return fault(value, kinds[kind], where)


def _short(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= 60 else f"{written[:57]}..."
