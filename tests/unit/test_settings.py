"""Settings: the environment wins over settings.toml, which wins over the defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from bullpen.core.errors import BadSetting
from bullpen.core.settings import FIELDS, Durability, LogFormat, Settings


def _load(home: Path, toml: str | None = None, **environ: str) -> Settings:
    if toml is not None:
        (home / "settings.toml").write_text(toml, encoding="utf-8")
    return Settings.load({"BULLPEN_HOME": str(home), **environ})


def test_without_a_file_and_an_environment_the_defaults_hold(tmp_path: Path) -> None:
    workspace = Path.home() / "bullpen-workspace"
    assert _load(tmp_path) == Settings(home=tmp_path, workspace=workspace)


def test_the_promised_defaults() -> None:
    settings = Settings()
    assert (settings.lease_seconds, settings.max_attempts, settings.max_crashes) == (60, 5, 5)
    assert (settings.api_host, settings.api_port) == ("127.0.0.1", 3777)
    assert settings.message_bytes == 1024 * 1024
    assert settings.durability is Durability.DURABLE
    assert (settings.retry_base_seconds, settings.retry_max_seconds) == (2, 300)
    assert settings.receipt_days >= 7
    assert settings.receipt_days * 24 > settings.retention_hours


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    toml = "lease_seconds = 30\nclaim_limit = 7\n"
    settings = _load(tmp_path, toml, BULLPEN_LEASE_SECONDS="45")
    assert (settings.lease_seconds, settings.claim_limit) == (45, 7)


def test_an_empty_value_in_the_environment_is_none(tmp_path: Path) -> None:
    assert _load(tmp_path, "lease_seconds = 30", BULLPEN_LEASE_SECONDS="").lease_seconds == 30


@pytest.mark.parametrize("name", [each.name for each in FIELDS.values()])
def test_every_setting_can_be_set_in_the_file_and_in_the_environment(
    tmp_path: Path, name: str
) -> None:
    default = getattr(Settings(), name)
    value, written = default, f'"{default}"'
    if isinstance(default, (int, float)):
        value = type(default)(default + 1)
        written = str(value)
    elif isinstance(default, Durability):
        value, written = Durability.FAST, '"fast"'
    elif isinstance(default, LogFormat):
        value, written = LogFormat.JSON, '"json"'
    elif isinstance(default, Path):
        value = tmp_path / "elsewhere"
        written = f'"{value}"'
    elif name == "public_url":
        value, written = "https://example.org", '"https://example.org"'
    elif name == "spark_master":
        value, written = "local[4]", '"local[4]"'
    elif name == "time_zone":
        value, written = "Europe/Berlin", '"Europe/Berlin"'
    elif isinstance(default, str):
        value, written = "something", '"something"'
    environ = {"BULLPEN_HOME": str(tmp_path), f"BULLPEN_{name.upper()}": f"{value}"}
    assert getattr(Settings.load(environ), name) == value
    if name != "home":  # it says where the file is
        assert getattr(_load(tmp_path, f"{name} = {written}"), name) == value


def test_every_setting_says_what_it_is_for(subtests: pytest.Subtests) -> None:
    for each in FIELDS.values():
        with subtests.test(each=each):
            assert getattr(each, "metadata", {}).get("doc")


def test_a_home_may_begin_with_a_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = Settings.load({"BULLPEN_HOME": "~/b", "BULLPEN_WORKSPACE": "~/w"})
    assert (settings.home, settings.workspace) == (tmp_path / "b", tmp_path / "w")


def test_the_database_is_a_file_in_the_home_unless_it_is_named(tmp_path: Path) -> None:
    assert _load(tmp_path).url == f"sqlite:///{tmp_path}/bullpen.db"
    named = "postgresql://u@h/d"
    assert _load(tmp_path, BULLPEN_DATABASE_URL=named).url == named


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASE_SECONDS", "soon"),
        ("LEASE_SECONDS", "-1"),
        ("LEASE_SECONDS", "1.5"),
        ("POLL_SECONDS", "-0.1"),
        ("POLL_SECONDS", "nan"),
        ("POLL_SECONDS", "inf"),
        ("DURABILITY", "forever"),
        ("RECEIPT_DAYS", "6"),
        ("LEASE_SECONDS", "0"),
        ("CLAIM_LIMIT", "0"),
        ("MAX_ATTEMPTS", "0"),
        ("API_PORT", "65536"),
        ("TIME_ZONE", "Mars/Base"),
        ("API_THREADS", "1000000"),
        ("GRACE_SECONDS", str(1 << 63)),
        ("MAX_COST", str(10**400)),
    ],
)
def test_a_value_that_cannot_work_is_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(BadSetting) as caught:
        _load(tmp_path, None, **{f"BULLPEN_{name}": value})
    assert name.lower() in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("toml", "line"),
    [
        ("lease_seconds = ", 1),
        ("max_hops = 3\nlease_seconds = true", 2),
        ("[lease]\nlease_seconds = 3", 2),
        ("# mine\r\n\r\nlease_seconds = 3\r\nlease_seconds = 4\r\n", 4),
        ("owner_id = 'U1'\n[lease_seconds]\n", 2),
        ("max_hops = 3\n\0", 2),
        ("max_cost = nan", 1),
        ("default_agent = ['coder']", 1),
        ("max_hops = " + "[" * 10_000, 1),
        ("max_hops = " + "9" * 5_000, 1),
    ],
)
def test_a_file_that_is_bad_is_refused_with_its_line(tmp_path: Path, toml: str, line: int) -> None:
    with pytest.raises(BadSetting) as caught:
        _load(tmp_path, toml)
    assert str(caught.value).startswith(f"settings.toml line {line}: ")
    assert caught.value.hint


def test_a_name_that_no_setting_has_stops_nothing(tmp_path: Path) -> None:
    toml = "lease_second = 30\nmax_hops = 3\n[not_ours]\nkept = true\n"
    assert _load(tmp_path, toml) == Settings(
        home=tmp_path, workspace=Path.home() / "bullpen-workspace", max_hops=3
    )


def test_what_the_environment_says_makes_the_file_right(tmp_path: Path) -> None:
    settings = _load(tmp_path, "lease_seconds = 'long'", BULLPEN_LEASE_SECONDS="9")
    assert settings.lease_seconds == 9


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_bytes(b"lease_seconds = \xff")
    with pytest.raises(BadSetting, match=r"line 1.*UTF-8"):
        _load(tmp_path)
