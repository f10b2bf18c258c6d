"""A run as another Unix user: its account, its files, and its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bullpen.core.errors import InTheWay
from bullpen.core.roster.accounts import Account, UnusableAccount, find_account
from bullpen.core.settings import ENVIRONMENT_PREFIX, Settings
from bullpen.core.workspace.safe_files import (
    Root,
    copy_inside,
    give_inside,
    list_inside,
    open_inside,
    remove_inside,
    write_inside,
)
from bullpen.processor.children.child import ChildUser
from bullpen.processor.children.sandbox import SandboxError
from bullpen.processor.providers.base import CliCommand, RunRequest

OWN_DIRECTORY = ".bullpen"
RECEIVED = "received"
"""Copies of the files that were sent with the last run's messages."""
PROMPT_FILE = "prompt.md"


def account_of(request: RunRequest, settings: Settings) -> Account:
    """The account of this run; raises SandboxError if it cannot be used."""
    try:
        return find_account(settings, request.agent.id)
    except (UnusableAccount, OSError) as error:
        raise SandboxError(str(error)) from None


def hand_over(request: RunRequest, account: Account, settings: Settings) -> RunRequest:
    """Give the agent's own directory to its account, with copies of the files sent to it.

    Returns the request with the paths of the copies.
    """
    root, name = request.home.parent, request.home.name
    try:
        if os.lstat(request.home).st_uid != account.uid:
            give_inside(root, (name,), account.uid, account.gid)
        received = (name, OWN_DIRECTORY, RECEIVED)
        for each in list_inside(root, received, ""):
            remove_inside(root, (*received, *each.split("/")))
        copies = {}
        for path in sent_files(request, settings.files.resolve()):
            with open_inside(path.parent, (path.name,)) as source:
                copy_inside(root, (*received, path.name), source, template=True)
            copies[str(path)] = str(root.absolute().joinpath(*received, path.name))
    except (OSError, ValueError, InTheWay) as error:
        raise SandboxError(
            f"cannot change the owner of {request.home} to {account.name}: {error}"
        ) from None
    return replace(
        request,
        prompt=_renamed(request.prompt, copies),
        texts=tuple(_renamed(each, copies) for each in request.texts),
    )


def write_prompt(request: RunRequest, text: str) -> Path:
    """Write the system prompt where the account can read it."""
    parts = (request.home.name, OWN_DIRECTORY, PROMPT_FILE)
    try:
        write_inside(request.home.parent, parts, text, template=True)
    except InTheWay as error:
        raise SandboxError(str(error)) from None
    return request.home.parent.absolute().joinpath(*parts)


def sent_files(request: RunRequest, files: Path) -> list[Path]:
    """The stored files that were sent with the messages."""
    return [
        path for path in request.files if path.resolve().is_relative_to(files) and path.is_file()
    ]


def account_environment(
    command: CliCommand, environ: Mapping[str, str], account: Account
) -> dict[str, str]:
    """The environment of a run as this account, without paths of the processor's user."""
    elsewhere = {"TMPDIR", *(each.variable for each in command.directories)}
    passed = {
        name: value
        for name, value in environ.items()
        if name in command.environ
        or not (name in elsewhere or name.startswith((ENVIRONMENT_PREFIX, "XDG_")))
    }
    # `bullpen` would find no database.
    here = str(Path(sys.executable).parent)
    path = [each for each in environ["PATH"].split(os.pathsep) if each != here]
    return {
        **passed,
        "PATH": os.pathsep.join([*path, str(account.home / ".local/bin")]),
        "HOME": str(account.home),
        "USER": account.name,
        "LOGNAME": account.name,
    }


def files_place(command: CliCommand, account: Account) -> Root | None:
    """The directory of the command's files, below the account's home; links are not followed."""
    if not command.directories:
        return None
    below = command.directories[0].path({"HOME": "/"}).relative_to("/").parts
    return Root(account.home, below)


def child_user(account: Account, request: RunRequest, prompt: Path) -> ChildUser:
    """The user of the child, with the paths that it must be able to read."""
    needs = (request.home, request.directory, prompt)
    return ChildUser(
        uid=account.uid,
        gid=account.gid,
        groups=account.groups,
        needs=tuple(str(each.absolute()) for each in needs),
    )


def _renamed(text: str, copies: Mapping[str, str]) -> str:
    for path, copy in copies.items():
        text = text.replace(path, copy)
    return text
