"""bullpen db backup, verify, restore and release, as a person at the keyboard has them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from bullpen.core.settings import Settings
from bullpen.ops.backup.create import last_backup
from tests.cli.command import Bullpen
from tests.cli.open_store import direct
from tests.outbox.outgoing import lease
from tests.stores import Stores

AS_AGENT = {"BULLPEN_RUN": "coder.0"}


@pytest.fixture
def lived(on_both: Bullpen) -> Bullpen:
    """A home with an agent, a message that waits, and two answers on their way."""
    with direct(on_both) as store, store.write() as tx:
        add_agent(tx, Agent(id="coder"))
    on_both.ok("send", "@coder hello", "--no-wait")
    for text in ("the first", "the second"):
        on_both.ok("response", "send", text, "--channel", "slack", "--to", "U1")
    (on_both.home / "settings.toml").write_text('openai_api_key = "sk-hidden"\n')
    return on_both


def back_up(bullpen: Bullpen, *more: str) -> Path:
    """Take a backup; gives where it is."""
    return Path(bullpen.ok("db", "backup", *more, "--json").json["path"])


def restored(bullpen: Bullpen, name: str = "new") -> Bullpen:
    """A home made of a backup of this one, in a file of its own."""
    home = bullpen.home / name
    bullpen.ok("db", "restore", str(back_up(bullpen)), "--to", str(home))
    return Bullpen(home)


def test_from_a_backup_comes_a_home_that_holds_all_until_it_is_released(lived: Bullpen) -> None:
    taken = lived.ok("db", "backup").out
    path = taken.splitlines()[0].removeprefix("Created ").partition(": ")[0]
    assert "verified" in taken
    assert "--workspace" in taken
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o700
    assert "is intact" in lived.ok("db", "verify", path).out
    told = lived.ok("db", "restore", path, "--to", str(lived.home / "new")).out
    assert "bullpen db release" in told
    new = Bullpen(lived.home / "new")
    assert "hello" in new.ok("queue", "list").out
    with direct(new) as store:
        assert lease(store) == []
    look = new.ok("db", "release", "--dry-run")
    assert "slack" in look.out
    assert "Nothing was changed" in look.err
    assert "Released 2 responses" in new.ok("db", "release", "--yes").out
    with direct(new) as store:
        assert [each.message for each in lease(store)] == ["the first", "the second"]
    assert "not on hold" in new.ok("db", "release").out
    with direct(lived) as store:
        assert len(lease(store)) == 2, "the old home goes on as it did"


def test_every_command_has_one_document(lived: Bullpen) -> None:
    made = lived.ok("db", "backup", "--json").json
    assert made["rows"]["messages"] == 1
    assert made["size"] > 0
    assert made["removed"] == []
    found = lived.ok("db", "verify", made["path"], "--json").json
    assert (found["good"], found["damages"], found["rows"]) == (True, [], made["rows"])
    home = str(lived.home / "new")
    new = lived.ok("db", "restore", made["path"], "--to", home, "--json").json
    assert (new["home"], new["held"], new["rows"]) == (home, True, made["rows"])
    there = Bullpen(lived.home / "new")
    held = there.ok("db", "release", "--dry-run", "--json").json
    assert (held["held"], held["responses"], held["channels"]) == (True, 2, {"slack": 2})
    gone = there.ok("db", "release", "--yes", "--json").json
    assert (gone["held"], gone["let_go"]) == (False, True)
    assert there.ok("db", "release", "--json").json == {"held": False, "let_go": False}


def test_the_home_knows_its_last_backup(lived: Bullpen) -> None:
    settings = Settings.load(lived.environment())
    assert last_backup(settings) is None
    path = back_up(lived)
    found = last_backup(settings)
    assert found is not None
    assert found.path == path
    (lived.home / "last-backup.json").write_text("{")
    assert last_backup(settings) is None


def test_of_several_the_oldest_make_room(lived: Bullpen) -> None:
    for _ in range(4):
        back_up(lived, "--keep", "2")
    assert len(list((lived.home / "backups").glob("bullpen-*"))) == 2
    refused = lived("db", "backup", str(lived.home / "b.tar.gz"), "--keep", "2")
    assert refused.status == 2
    assert lived("db", "backup", "--keep", "0").status == 2


def test_each_damage_is_named_and_the_exit_status_is_1(lived: Bullpen) -> None:
    path = back_up(lived)
    (path / "settings.toml").unlink()
    (path / "extra").write_text("x")
    found = lived("db", "verify", str(path))
    assert found.status == 1
    assert "settings.toml is missing" in found.err
    assert "extra does not belong to this backup" in found.err
    assert found.out == ""
    as_json = lived("db", "verify", str(path), "--json")
    assert as_json.status == 1
    assert len(as_json.json["damages"]) == 2
    refused = lived("db", "restore", str(path), "--to", str(lived.home / "new"))
    assert refused.status == 1
    assert "bullpen db verify" in refused.err
    assert not (lived.home / "new").exists()


def test_what_is_no_backup_is_said_to_be_none(bullpen: Bullpen) -> None:
    for given in (str(bullpen.home), str(bullpen.home / "bullpen.db"), "/tmp/there/is/none"):
        for command in (("verify", given), ("restore", given, "--to", str(bullpen.home / "new"))):
            result = bullpen("db", *command)
            assert result.status == 1
            assert "backup" in result.err
    assert not (bullpen.home / "new").exists()


def test_nothing_is_restored_in_place(bullpen: Bullpen) -> None:
    result = bullpen("db", "restore", str(back_up(bullpen)), "--to", str(bullpen.home))
    assert result.status == 1
    assert "never restored over existing data" in result.err


def test_it_is_said_what_in_the_environment_would_win(bullpen: Bullpen) -> None:
    home = bullpen.home / "new"
    url = f"sqlite:///{bullpen.home / 'bullpen.db'}"
    told = bullpen.ok(
        "db", "restore", str(back_up(bullpen)), "--to", str(home), BULLPEN_DATABASE_URL=url
    )
    assert "BULLPEN_DATABASE_URL is set" in told.err


@pytest.mark.postgres
def test_a_home_is_restored_to_a_server_as_well(lived: Bullpen, stores: Stores) -> None:
    stores.server.create_database(f"cli_{lived.home.name[3:]}".lower())
    url = stores.server.url(f"cli_{lived.home.name[3:]}".lower())
    home = lived.home / "new"
    lived.ok("db", "restore", str(back_up(lived)), "--to", str(home), "--database-url", url)
    environ = Bullpen(home).environment()
    assert Settings.load(environ).database_url == url
    assert stat.S_IMODE((home / "settings.toml").stat().st_mode) == 0o600
    assert "hello" in Bullpen(home).ok("queue", "list").out


def test_what_is_too_old_is_set_aside_before_the_rest_goes(lived: Bullpen) -> None:
    new = restored(lived)
    old = new.ok("db", "release", "--older-than", "1h", "--dry-run", "--json").json
    assert (old["responses"], old["set_aside"]) == (2, 0)
    gone = new.ok("db", "release", "--older-than", "0s", "--yes", "--json").json
    assert (gone["responses"], gone["set_aside"]) == (0, 2)
    dead = new.ok("response", "list", "--state", "dead", "--json").json
    assert len(dead if isinstance(dead, list) else dead["responses"]) == 2
    assert lived("db", "release", "--older-than", "soon").status == 2


def test_without_a_terminal_it_is_released_only_with_yes(lived: Bullpen) -> None:
    new = restored(lived)
    refused = new("db", "release")
    assert refused.status == 2
    assert "Release 2 responses" in refused.err
    assert "--yes" in refused.err
    with direct(new) as store:
        assert lease(store) == []


@pytest.mark.parametrize(
    "args",
    [
        ("backup",),
        ("restore", "x", "--to", "y"),
        ("release", "--yes"),
        ("upgrade",),
    ],
    ids=lambda args: args[0],
)
def test_an_agent_may_do_nothing_of_it(bullpen: Bullpen, args: tuple[str, ...]) -> None:
    result = bullpen("db", *args, **AS_AGENT)
    assert result.status == 1
    assert "@coder may not" in result.err
    assert not (bullpen.home / "backups").exists()


def test_a_place_that_cannot_be_written_is_named(bullpen: Bullpen) -> None:
    (bullpen.home / "file").write_text("mine")
    result = bullpen("db", "backup", str(bullpen.home / "file" / "below"), "--json")
    assert result.status == 1
    assert result.json["code"] == "backup_failed"
    assert str(bullpen.home / "file") in result.json["error"]
    assert (bullpen.home / "file").read_text() == "mine"
