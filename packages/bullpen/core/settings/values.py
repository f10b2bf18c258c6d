"""The values of settings: parsed in the type of the setting, and checked against its limits."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bullpen.core.errors import BadSchedule, BadSetting
from bullpen.core.settings import DEFAULTS, FIELDS, URL_SETTINGS
from bullpen.core.settings.accounts import (
    find_account_setting,
    is_account_secret,
    parse_account_setting,
)

MAX_SHOWN_CHARS = 80
SPARK_MASTER = re.compile(
    r"local\[(?:\*|[1-9]\d*)\]|spark://[^\s/,]+(?:,[^\s/,]+)*|sc://[^\s/;]+/?(?:;[^\s;]+)*"
)


def parse_setting(name: str, value: object) -> Any:  # noqa: ANN401 - of the setting's own type
    """Parse a value in the setting's type; raises BadSetting if it is invalid."""
    if "." in name:
        return parse_account_setting(name, value)
    default = DEFAULTS[name]
    try:
        return _converted(name, default, value)
    except (ValueError, RuntimeError, BadSchedule) as error:
        hint = error.hint if isinstance(error, BadSchedule) else _default_hint(name, default)
        what = "value" if _may_hold_secret(name) else f"value {repr(value)[:MAX_SHOWN_CHARS]}"
        raise BadSetting(f"invalid {what} for {name}: {error}", hint=hint) from error


def _default_hint(name: str, default: object) -> str:
    return f"Its default is {default}." if str(default) else f"{name} is empty by default."


def _converted(name: str, default: object, value: object) -> object:
    """The value in the type of the default."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Path)):
        raise ValueError(f"must be {_describe_type(default)}")
    if isinstance(default, Path):
        return Path(str(value)).expanduser()
    if isinstance(default, (int, float)):
        return _check_range(name, _number(default, value))
    if isinstance(default, StrEnum):
        return _choice(type(default), str(value))
    if name == "time_zone" and value:
        from bullpen.core.clock import get_zone  # loaded here so that commands start fast

        return get_zone(str(value)).key
    if name == "public_url" and value:
        return _origin(str(value))
    if name == "spark_master":
        return _spark_master(str(value))
    return str(value)


def _spark_master(value: str) -> str:
    """Return the address of Spark; refuse what is none."""
    if not SPARK_MASTER.fullmatch(value):
        raise ValueError("must be local[*], local[4], spark://HOST:PORT or sc://HOST:PORT")
    return value


def _origin(value: str) -> str:
    """Return the scheme, host and port of a URL; refuse a URL with more than these."""
    url = urlsplit(value.strip().lower().rstrip("/"))
    origin = f"{url.scheme}://{url.netloc}"
    if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc:
        raise ValueError("must be a URL such as https://bullpen.example.org")
    if url.geturl() != origin:
        raise ValueError("must be a scheme and a host without a path")
    return origin


def _number(default: float, value: object) -> float:
    try:
        return type(default)(str(value))
    except ValueError:
        raise ValueError(f"must be {_describe_type(default)}") from None


def _choice(kind: type[StrEnum], value: str) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"must be {' or '.join(kind)}") from None


def _describe_type(default: object) -> str:
    """Describe the type of a setting."""
    if isinstance(default, StrEnum):
        return " or ".join(type(default))
    if isinstance(default, int):
        return "a whole number"
    if isinstance(default, float):
        return "a number"
    return "a path" if isinstance(default, Path) else "text"


def _may_hold_secret(name: str) -> bool:
    """Whether a value of the setting may contain a secret."""
    return name in URL_SETTINGS or is_secret(name)


def is_secret(name: str) -> bool:
    """Whether the value of a setting must not be shown."""
    if "." in name:
        return is_account_secret(name)
    return name in FIELDS and "secret" in FIELDS[name].metadata


def setting_exists(name: str) -> bool:
    """Whether there is a setting of this name, such as `max_hops` or `slack.bot_token`."""
    return name in FIELDS or ("." in name and find_account_setting(name) is not None)


def _check_range(name: str, number: float) -> float:
    """Check a number against the limits of its setting."""
    limits = FIELDS[name].metadata
    least, most = limits["least"], limits["most"]
    if not number >= least:  # written so that NaN fails as well
        raise ValueError(f"must be at least {least}")
    if number > most:
        raise ValueError(f"must be at most {most}")
    return number
