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
from bullpen.cli.options import yes
from bullpen.cli.output import confirm
from bullpen.core.access.keys import LINK_MINUTES, create_login_link
from bullpen.core.access.owner import ensure_token, read_token, rotate_token
from bullpen.core.errors import UnsafeSecret
from bullpen.core.network import api_url
from bullpen.core.settings import Settings
from bullpen.core.text import MASK


@command(people_only="let a browser in")
@click.option("--print", "only_print", is_flag=True, help="Print the link and open nothing.")
def open_(settings: Settings, only_print: bool) -> Result | None:
    """Let a browser in: open the API's page by a link that works once.

    \b
    Example:
      bullpen open --print
    """
    with write_transaction(settings) as tx:
        code = create_login_link(tx)
    url = f"{api_url(settings)}/login?code={code}"
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


@click.group(invoke_without_command=True)
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
@yes
def rotate(settings: Settings, yes: bool) -> Result:
    """Make a new token: the old one opens nothing from the next request on.

    Keys and browsers that came in stay; `bullpen key revoke` closes them.

    \b
    Example:
      bullpen token rotate
    """
    confirm("Make a new token, and shut out whatever uses the old one", yes)
    rotate_token(settings)
    return Result(
        _token_fields(settings, MASK),
        [f"There is a new token in {settings.token_file}.", "Next: bullpen token --reveal"],
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
