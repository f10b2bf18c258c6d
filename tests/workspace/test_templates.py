"""An agent's directory: furnished once, kept up to date, and the user's own left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bullpen.core.workspace import templates
from bullpen.core.workspace.templates import (
    CREATED_MARKER,
    MANIFEST,
    PROTOCOL_BEGIN,
    PROTOCOL_END,
    protocol_template,
    split_protocol,
    write_templates,
)

OLD_PROTOCOL = (
    "<!-- bullpen: the protocol. Old -->\nold words\n<!-- bullpen: end of the protocol -->"
)
OLD = (
    ("AGENTS.md", f"{OLD_PROTOCOL}\n\n# About this agent\n\nold hint\n"),
    ("SOUL.md", "old soul\n"),
    ("skills/memory/SKILL.md", "old skill\n"),
)
NOW = templates.templates()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where an agent is to work."""
    return tmp_path / "workspace" / "coder"


@pytest.fixture
def old(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that an older Bullpen furnished."""
    with monkeypatch.context() as before:
        before.setattr(templates, "templates", lambda: OLD)
        assert write_templates(home) == ["AGENTS.md", "SOUL.md", "skills/memory/SKILL.md"]
    return home


def _snapshot(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def test_a_new_directory_has_everything_that_is_shipped(home: Path) -> None:
    assert write_templates(home) == [name for name, _ in NOW]
    for name, text in NOW:
        assert (home / name).read_text() == text
    names = [name for name, _ in NOW]
    assert {"AGENTS.md", "SOUL.md", "heartbeat.md"} <= set(names)
    skills = {name.split("/")[1] for name in names if name.startswith("skills/")}
    assert {"memory", "write-to-a-person", "search-the-history", "schedule"} <= skills
    assert (home / "memory").is_dir()
    assert (home / ".claude" / "skills" / "memory" / "SKILL.md").is_file()
    assert home.stat().st_mode & 0o077 == 0


def test_it_is_furnished_once(home: Path) -> None:
    write_templates(home)
    before = _snapshot(home)
    times = {name: (home / name).stat().st_mtime_ns for name in before}
    assert write_templates(home) == []
    assert _snapshot(home) == before
    assert {name: (home / name).stat().st_mtime_ns for name in before} == times


def test_a_file_that_nobody_changed_is_brought_up_to_date(old: Path) -> None:
    assert set(write_templates(old)) >= {"AGENTS.md", "SOUL.md", "skills/memory/SKILL.md"}
    for name, text in NOW:
        assert (old / name).read_text() == text
    assert write_templates(old) == []


def test_a_file_that_the_user_changed_is_left_alone(old: Path) -> None:
    (old / "SOUL.md").write_text("my soul")
    (old / "skills" / "memory" / "SKILL.md").write_text("my skill")
    write_templates(old)
    assert (old / "SOUL.md").read_text() == "my soul"
    assert (old / "skills" / "memory" / "SKILL.md").read_text() == "my skill"
    assert write_templates(old) == []


def test_a_deleted_file_stays_deleted(old: Path) -> None:
    (old / "SOUL.md").unlink()
    (old / "skills" / "memory" / "SKILL.md").unlink()
    (old / "skills" / "memory").rmdir()
    write_templates(old)
    write_templates(old)
    assert not (old / "SOUL.md").exists()
    assert not (old / "skills" / "memory").exists()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_protocol_is_replaced_and_the_users_text_around_it_kept(old: Path, end: str) -> None:
    text = f"mine before\n\n{OLD_PROTOCOL}\n\n# About this agent\n\nmine after ☃\n"
    (old / "AGENTS.md").write_bytes(text.replace("\n", end).encode() + b"\xff")
    assert "AGENTS.md" in write_templates(old)
    found = (old / "AGENTS.md").read_bytes()
    assert found.startswith(f"mine before{end}{end}<!-- bullpen: the protocol.".encode())
    assert found.endswith(
        f"{end}{end}# About this agent{end}{end}mine after ☃{end}".encode() + b"\xff"
    )
    assert b"old words" not in found
    assert protocol_template().encode() in found
    assert write_templates(old) == []


def test_a_protocol_that_was_copied_from_another_agent_is_replaced_as_well(home: Path) -> None:
    home.mkdir(parents=True)
    (home / "AGENTS.md").write_text(f"{OLD_PROTOCOL} mine")
    assert "AGENTS.md" in write_templates(home)
    assert (home / "AGENTS.md").read_text() == f"{protocol_template()} mine"


def test_agents_md_without_the_protocol_is_the_users(old: Path) -> None:
    (old / "AGENTS.md").write_text("only mine")
    write_templates(old)
    assert (old / "AGENTS.md").read_text() == "only mine"


def test_a_users_own_directory_is_furnished_around_what_is_there(home: Path) -> None:
    home.mkdir(parents=True)
    (home / "AGENTS.md").write_text("mine")
    (home / "SOUL.md").write_text("old soul\n")
    written = write_templates(home)
    assert "heartbeat.md" in written
    assert not {"AGENTS.md", "SOUL.md"} & set(written)
    assert (home / "AGENTS.md").read_text() == "mine"
    # It says what an older Bullpen would have put there, but nobody did.
    assert write_templates(home) == []
    assert (home / "SOUL.md").read_text() == "old soul\n"


def test_only_a_directory_that_bullpen_made_says_so(home: Path, tmp_path: Path) -> None:
    write_templates(home)
    write_templates(home)
    assert (home / CREATED_MARKER).is_file()
    (tmp_path / "own").mkdir()
    write_templates(tmp_path / "own")
    write_templates(tmp_path / "own")
    assert not (tmp_path / "own" / CREATED_MARKER).exists()


@pytest.mark.parametrize("kind", ["directory", "file", "link", "dangling"])
def test_what_is_in_the_place_of_the_link_to_the_skills_stays(home: Path, kind: str) -> None:
    link = home / ".claude" / "skills"
    link.parent.mkdir(parents=True)
    if kind == "directory":
        (link / "mine").mkdir(parents=True)
    elif kind == "file":
        link.write_text("mine")
    else:
        link.symlink_to(home.parent if kind == "link" else "nowhere")
    before = str(link.readlink()) if link.is_symlink() else kind
    write_templates(home)
    assert before == (str(link.readlink()) if link.is_symlink() else kind)
    assert kind != "directory" or (link / "mine").is_dir()
    assert kind != "file" or link.read_text() == "mine"


def test_links_and_directories_in_the_place_of_files_are_the_users(
    old: Path, tmp_path: Path
) -> None:
    (tmp_path / "shared.md").write_text("old soul\n")
    (old / "SOUL.md").unlink()
    (old / "SOUL.md").symlink_to(tmp_path / "shared.md")
    (old / "AGENTS.md").unlink()
    (old / "AGENTS.md").symlink_to("nowhere")
    (old / "heartbeat.md").mkdir()
    write_templates(old)
    assert (old / "SOUL.md").is_symlink()
    assert (tmp_path / "shared.md").read_text() == "old soul\n"
    assert (old / "AGENTS.md").is_symlink()
    assert (old / "heartbeat.md").is_dir()


def test_what_a_run_that_died_had_put_there_is_still_bullpens(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old / MANIFEST).unlink()
    with monkeypatch.context() as before:
        before.setattr(templates, "templates", lambda: OLD)
        assert write_templates(old) == []
    assert "SOUL.md" in write_templates(old)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"SOUL.md": 5}', "\ud800"])
def test_a_damaged_list_of_what_was_put_there_takes_nothing_from_the_user(
    old: Path, text: str
) -> None:
    (old / "SOUL.md").write_text("my soul")
    (old / MANIFEST).write_bytes(text.encode(errors="surrogatepass"))
    write_templates(old)
    assert (old / "SOUL.md").read_text() == "my soul"


def test_the_mode_of_a_file_is_kept(old: Path) -> None:
    (old / "SOUL.md").chmod(0o600)
    write_templates(old)
    assert (old / "SOUL.md").stat().st_mode & 0o777 == 0o600


def test_the_parts_of_agents_md() -> None:
    text = dict(NOW)["AGENTS.md"]
    before, own, after = split_protocol(text)
    assert (before, before + own + after) == ("", text)
    assert own.startswith(PROTOCOL_BEGIN)
    assert own.endswith(PROTOCOL_END)
    assert "About this agent" in after
    assert split_protocol("no marks") == ("no marks", "", "")
    assert split_protocol(f"a {PROTOCOL_END} b {own} c") == (f"a {PROTOCOL_END} b ", own, " c")
    assert split_protocol(f"a {PROTOCOL_BEGIN} never ended") == (
        f"a {PROTOCOL_BEGIN} never ended",
        "",
        "",
    )


@pytest.mark.parametrize("name", ["skills", ".bullpen", ".claude"])
def test_nothing_is_put_where_a_link_leads_out(home: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    home.mkdir(parents=True)
    (home / name).symlink_to(outside)
    write_templates(home)
    write_templates(home)
    assert list(outside.iterdir()) == []
    assert (home / "AGENTS.md").is_file()


def test_a_pipe_in_the_place_of_the_list_is_not_waited_for(home: Path) -> None:
    write_templates(home)
    (home / MANIFEST).unlink()
    os.mkfifo(home / MANIFEST)
    assert write_templates(home) == []
