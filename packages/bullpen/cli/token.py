"""bullpen token and open: the owner's token, and login links for browsers."""

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


@command(people_only="log a browser in")
@click.option("--print", "only_print", is_flag=True, help="Print the link without opening it.")
def open_(settings: Settings, only_print: bool) -> Result | None:
    """Open the reports in a browser that is logged in.

    The link works once. The API must be running, and the command first checks that it belongs to
    this home. Unless the setting `public_url` is set, the link has its own host name below
    `localhost`, so that no other server on this machine receives the browser's cookie.

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
    hint = f"The link works once, within {LINK_MINUTES} minutes."
    result = Result({"url": url, "minutes": LINK_MINUTES}, url, hints=[hint])
    if only_print or json_requested():
        return result
    result.print(as_json=False)  # before the browser, which may take the terminal
    webbrowser.open(url)
    return None


ACTION = "read or change the owner's token"

reveal_option = click.option(
    "--reveal", is_flag=True, help="Print the token alone. It is created if missing."
)


@click.group(cls=LazyGroup, invoke_without_command=True)
@reveal_option
@json_flag
@click.pass_context
def token(context: click.Context, reveal: bool, as_json: bool) -> None:
    """Show or replace the owner's API token.

    For other people and programs create keys with `bullpen key add`: a key has scopes and can
    expire.

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
    """Show the token's file and its permissions.

    \b
    Example:
      bullpen token show --reveal
    """
    return _show(settings, reveal)


@command(token)
def path(settings: Settings) -> Result:
    """Print the path of the token's file.

    \b
    Example:
      bullpen token path
    """
    document = {"path": str(settings.token_file), "exists": settings.token_file.exists()}
    return Result(document, str(settings.token_file))


@command(token)
@click.option("--keep-keys", is_flag=True, help="Keep keys that were created with the old token.")
@yes
def rotate(settings: Settings, keep_keys: bool, yes: bool) -> Result:
    """Replace the owner's token.

    The old token is invalid from the next request on. Everything that it created over the API is
    revoked: keys, login links and browser logins. Keys from `bullpen key add` and browsers that
    were opened with `bullpen open` stay valid.

    \b
    Example:
      bullpen token rotate
    """
    confirm("Replace the token and revoke what the old one created over the API", yes)
    rotate_token(settings)
    notes: list[str] = []
    try:
        with write_transaction(settings) as tx:  # now that the old token is invalid
            revoked = revoke_made_by(tx, OWNER_ID, keep_keys=keep_keys)
    except StoreError as error:
        revoked = []
        notes = [
            f"Warning: keys that the old token created could not be revoked: {error}. {error.hint}"
        ]
    lines = [f"Replaced the token in {settings.token_file}."]
    if revoked:
        lines.append(f"Revoked {', '.join(each.id for each in revoked)}.")
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
        line = f"No token yet. The API creates {settings.token_file} when it starts."
        return Result(fields, line)
    lines = [f"{MASK}  {settings.token_file}  mode {fields['rights']}"]
    if fields["problem"]:
        lines.append(f"The token is not accepted: {fields['problem']}. Next: bullpen token rotate")
    return Result(fields, lines)


def _token_fields(settings: Settings, secret: str) -> dict[str, object]:
    """Return the JSON document; `secret` is the token or a mask."""
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
