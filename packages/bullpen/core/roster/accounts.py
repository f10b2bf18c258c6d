"""The Unix accounts of runs with the sandbox `user`."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.settings import Settings

AGENT_FIELD = "{agent}"
"""Replaced by the agent's id in the setting, so that each agent can have its own account."""
CAPABILITIES = {0: "CHOWN", 1: "DAC_OVERRIDE", 3: "FOWNER", 5: "KILL", 6: "SETGID", 7: "SETUID"}
"""The capabilities that root needs to start, read and end runs of another user."""


class UnusableAccount(Exception):
    """An account that cannot be used for runs here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One Unix account."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: Path


def find_account(settings: Settings, agent: str) -> Account:
    """The account of this agent; raises UnusableAccount if its runs cannot use one."""
    name = settings.sandbox_user.strip().replace(AGENT_FIELD, agent)
    if not name:
        raise UnusableAccount("the setting sandbox_user is empty")
    if os.geteuid() != 0:
        raise UnusableAccount("the processor must run as root to start programs of another user")
    if missing := _missing_capabilities():
        raise UnusableAccount(f"root lacks {', '.join(missing)} here")
    try:
        found = pwd.getpwnam(name)
    except (KeyError, ValueError):
        raise UnusableAccount(f"the account {name} does not exist") from None
    groups = tuple(os.getgrouplist(name, found.pw_gid))
    if found.pw_uid == 0 or 0 in groups:
        raise UnusableAccount(f"the account {name} has the rights of root")
    _check_home(settings.home, name, found.pw_uid)
    return Account(
        name=name, uid=found.pw_uid, gid=found.pw_gid, groups=groups, home=Path(found.pw_dir)
    )


def closed_directory(path: Path, account: Account) -> Path | None:
    """The first directory of a path that the account cannot enter; None if it can enter all."""
    for each in (*reversed(path.parents), path):
        found = each.stat()
        ours = 0o100 if found.st_uid == account.uid else 0
        group = 0o010 if found.st_gid in account.groups else 0
        if not found.st_mode & (ours or group or 0o001):
            return each
    return None


def _check_home(home: Path, name: str, uid: int) -> None:
    """Raise UnusableAccount if the account can enter Bullpen's home."""
    found = home.stat()
    if found.st_uid == uid or stat.S_IMODE(found.st_mode) & 0o077:
        raise UnusableAccount(f"the account {name} can enter {home}; run: chmod 700 {home}")


def _missing_capabilities() -> list[str]:
    """The capabilities that this process of root lacks, for example in a container."""
    status = Path("/proc/self/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("CapEff:"))
    effective = int(line.split()[1], 16)
    return [f"CAP_{name}" for bit, name in CAPABILITIES.items() if not effective >> bit & 1]
