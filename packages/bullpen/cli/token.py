"""bullpen token and open: the owner's token, and a one-time link for a browser."""

from __future__ import annotations

import webbrowser

import click

from bullpen.cli.command import (
    Result,
    command,
    json_flag,
    json_requested,
    require_person,
    write_transaction,
)
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import yes
from bullpen.cli.output import confirm
from bullpen.core.access.keys import OWNER_ID, revoke_made_by
from bullpen.core.access.login import LINK_MINUTES, create_login_link
from bullpen.core.access.owner import (
    browser_name,
    check_listeners,
    ensure_token,
    read_token,
    rotate_token,
)
from bullpen.core.errors import StoreError, UnsafeSecret
from bullpen.core.network import browser_url
from bullpen.core.settings import Settings
from bullpen.core.text import MASK


@command(people_only="let a browser in")
@click.option("--print", "only_print", is_flag=True, help="Print the link and open nothing.")
def open_(settings: Settings, only_print: bool) -> Result | None:
    """Let a browser in: open the API's page by a link that works once.

    The API must run, and proves first that it is this home's. Unless `public_url` says otherwise,
    the link has a host name of its own below `localhost`, so that no other server on this machine
    gets the browser's cookie.

    \b
    Example:
      bullpen open --print
    """
    token = ensure_token(settings)
    if not settings.public_url.startswith("https:"):  # there TLS proves whose it is
        check_listeners(settings, token)
    with write_transaction(settings) as tx:
        code, _ = create_login_link(tx)
    url = f"{browser_url(settings, browser_name(token))}/login?code={code}"
    hint = f"It works once, within {LINK_MINUTES} minutes."
    result = Result({"url": url, "minutes": LINK_MINUTES}, url, hints=[hint])
    if only_print or json_requested():
        return result
    result.print(as_json=False)  # before the browser, which may take the terminal
    webbrowser.open(url)
    return None


ACTION = "see or change the owner's token"

reveal_option = click.option(
    "--reveal", is_flag=True, help="Print the token alone, as it is; one is made if there is none."
)


@click.group(cls=LazyGroup, invoke_without_command=True)
@reveal_option
@json_flag
@click.pass_context
def token(context: click.Context, reveal: bool, as_json: bool) -> None:
    """Look at the token with which the owner uses the API, or make a new one.

    For others make keys of their own, with `bullpen key add`: they may less, and end.

    \b
    Examples:
      bullpen token
      curl -H "Authorization: Bearer $(bullpen token --reveal)" http://127.0.0.1:3777/api/me
    """
    require_person(ACTION)
    if context.invoked_subcommand is None:
        assert isinstance(context.obj, Settings)
        _show(context.obj, reveal).print(as_json)


@command(token)
@reveal_option
def show(settings: Settings, reveal: bool) -> Result:
    """Show where it is and who may read it, or with --reveal the token alone.

    \b
    Example:
      bullpen token show --reveal
    """
    return _show(settings, reveal)


@command(token)
def path(settings: Settings) -> Result:
    """Print where its file is, whether it is there yet or not.

    \b
    Example:
      bullpen token path
    """
    document = {"path": str(settings.token_file), "exists": settings.token_file.exists()}
    return Result(document, str(settings.token_file))


@command(token)
@click.option("--keep-keys", is_flag=True, help="Keep the keys that were made with the old token.")
@yes
def rotate(settings: Settings, keep_keys: bool, yes: bool) -> Result:
    """Replace the token; the old one is invalid from the next request on.

    What was made over the API with the old token is revoked: keys, login links and browser logins.
    Keys made with `bullpen key add` and browsers let in by `bullpen open` stay.

    \b
    Example:
      bullpen token rotate
    """
    confirm("Replace the token, and revoke what was made with the old one over the API", yes)
    rotate_token(settings)
    notes: list[str] = []
    try:
        with write_transaction(settings) as tx:  # now that the old token can make nothing more
            revoked = revoke_made_by(tx, OWNER_ID, keep_keys=keep_keys)
    except StoreError as error:
        revoked = []
        notes = [f"What the old one made could not be revoked: {error}. {error.hint}"]
    lines = [f"There is a new token in {settings.token_file}."]
    if revoked:
        lines.append(f"Revoked what the old one made: {', '.join(each.id for each in revoked)}")
    return Result(
        {**_token_fields(settings, MASK), "revoked": [each.id for each in revoked]},
        [*lines, "Next: bullpen token --reveal"],
        notes=notes,
    )


def _show(settings: Settings, reveal: bool) -> Result:
    if reveal:
        secret = ensure_token(settings)
        return Result(_token_fields(settings, secret), secret)
    fields = _token_fields(settings, MASK)
    if not fields["exists"]:
        line = f"There is no token yet in {settings.token_file}; the API makes one when it starts."
        return Result(fields, line)
    lines = [f"{MASK}  {settings.token_file}  rights {fields['rights']}"]
    if fields["problem"]:
        lines.append(f"It opens nothing: {fields['problem']}. Next: bullpen token rotate")
    return Result(fields, lines)


def _token_fields(settings: Settings, secret: str) -> dict[str, object]:
    """Return what --json prints of the token; `secret` is the token or a mask."""
    exists = settings.token_file.exists()
    problem = None
    try:
        read_token(settings)
    except FileNotFoundError:
        secret = ""
    except UnsafeSecret as error:
        problem = str(error)
    return {
        "path": str(settings.token_file),
        "exists": exists,
        "rights": f"{settings.token_file.stat().st_mode & 0o777:o}" if exists else None,
        "problem": problem,
        "token": secret,
    }
