"""JSON within bounds that every store, reader and writer supports."""

from __future__ import annotations

import json
import math
from typing import NoReturn

from bullpen.core.errors import BadText

MAX_NESTING = 60
"""Levels of lists and objects. Strict readers accept 64, and responses add some around a value."""

MAX_INTEGER = (1 << 63) - 1
_MAX_DIGITS = len(str(MAX_INTEGER)) + 1

JsonScalar = str | int | float | bool | None
Json = JsonScalar | list["Json"] | dict[str, "Json"]


def read_json(text: str) -> Json:
    """The value of this JSON; raises a ValueError with the reason if it is not acceptable.

    Strings may have any character: their field decides which ones can be stored.
    """
    try:
        value: Json = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    # Nearly every text has fewer brackets than levels, and so cannot be nested too deep.
    if text.count("[") + text.count("{") > MAX_NESTING:
        _check_nesting(value)
    return value


def check_json_column(text: str, what: str) -> str:
    """The text, if a JSON column can store it; text that is not JSON is plain text."""
    try:
        value = read_json(text)
    except json.JSONDecodeError:
        return text
    except ValueError as error:
        raise BadText(f"{what} cannot be stored: {error}") from None
    if "\\u" in text and (problem := _find_bad_text(value)):
        raise BadText(f"{what} has {problem}")
    return text


def read_json_column(text: str) -> Json:
    """The value of a column; text that is not JSON stays text.

    Rows of earlier releases may have values that are refused today. Instead of such a value the
    result is an object with only `unreadable`, the reason.
    """
    try:
        value = read_json(text)
    except json.JSONDecodeError:
        return text
    except ValueError as error:
        return {"unreadable": str(error)}
    if "\\u" in text and (problem := _find_bad_text(value)):
        return {"unreadable": f"it has {problem}"}
    return value


_TOO_DEEP = f"it is nested more than {MAX_NESTING} levels deep"


def _parse_integer(digits: str) -> int:
    if len(digits) <= _MAX_DIGITS and -MAX_INTEGER - 1 <= (value := int(digits)) <= MAX_INTEGER:
        return value
    raise ValueError("an integer in it has more than 64 bits")


def _parse_float(digits: str) -> float:
    value = float(digits)
    if math.isfinite(value):
        return value
    raise ValueError("a number in it is out of range")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


_DECODER = json.JSONDecoder(
    parse_int=_parse_integer, parse_float=_parse_float, parse_constant=_refuse_constant
)


def _check_nesting(value: Json) -> None:
    level: list[Json] = [value]
    for _ in range(MAX_NESTING + 1):
        level = [each for each in level if isinstance(each, list | dict)]
        if not level:
            return
        level = [inner for each in level for inner in _elements(each)]
    raise ValueError(_TOO_DEEP)


def _find_bad_text(value: Json) -> str:
    """The kind of character in a string or name that cannot be stored; empty if there is none."""
    level: list[Json] = [value]
    while level:
        texts = [each for each in level if isinstance(each, str)]
        texts += [name for each in level if isinstance(each, dict) for name in each]
        joined = "".join(f"{each}\n" for each in texts)
        if "\0" in joined:
            return "a NUL character"
        try:
            joined.encode()
        except UnicodeEncodeError:
            return "an unpaired surrogate"
        level = [inner for each in level for inner in _elements(each)]
    return ""


def _elements(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
