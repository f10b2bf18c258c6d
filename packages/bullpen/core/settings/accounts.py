"""AccountValues: the settings of channels' accounts, such as `bot_token` in the table [slack].

`BULLPEN_SLACK_BOT_TOKEN` in the environment takes precedence; an account's variables have its name
in capital letters, such as `BULLPEN_SLACK_SAGE_BOT_TOKEN` for `slack-sage`. A setting of an account
is called `slack.bot_token` on the command line and in the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bullpen.core.errors import BadSetting

if TYPE_CHECKING:
    from typing import TypeGuard

    from bullpen.core.registry.channel_settings import ChannelSetting
    from bullpen.core.registry.channels import ChannelRegistry

VARIABLE_PREFIX = "BULLPEN_"
MAX_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True, repr=False)
class AccountValues:
    """What is set for accounts; a channel's defaults are added when it is read."""

    named: Mapping[str, str] = field(default_factory=dict)
    """Checked values by name, such as `slack.bot_token`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that may be settings of packages' channels, which are loaded when one is used."""

    def __repr__(self) -> str:
        return f"AccountValues({', '.join(sorted(self.named))})"  # no values: some are secret

    def of(self, account: str) -> dict[str, str]:
        """The settings of an account and their defaults; empty if its channel does not exist."""
        return {each.name: self._value(account, each) for each in account_settings(account)}

    def names(self) -> list[str]:
        """The accounts for which something is set, except with a variable of a package's channel.

        Packages are not loaded.
        """
        return sorted({each.partition(".")[0] for each in self.named})

    def secrets(self) -> Iterator[str]:
        """The values that must never be shown."""
        for name, value in self.named.items():
            if is_account_secret(name):
                yield value
        if self.variables:
            for platform in _channels().plugin_names():
                prefix = account_variable(f"{platform}.")
                for setting in account_settings(platform):
                    end = f"_{setting.name.upper()}"
                    for name, value in self.variables.items():
                        if setting.secret and name.startswith(prefix) and name.endswith(end):
                            yield value

    def _value(self, account: str, setting: ChannelSetting) -> str:
        name = f"{account}.{setting.name}"
        given = self.variables.get(account_variable(name))
        return (
            parse_account_setting(name, given) if given else self.named.get(name, setting.default)
        )


def account_variable(name: str) -> str:
    """The variable of an account's setting: `BULLPEN_SLACK_BOT_TOKEN` of `slack.bot_token`."""
    return VARIABLE_PREFIX + name.replace(".", "_").replace("-", "_").upper()


def account_settings(account: str) -> tuple[ChannelSetting, ...]:
    """Every setting of an account; none if its channel does not exist or cannot be loaded."""
    from bullpen.core.registry.channel_info import ChannelInfo

    info = _channels().find(account)
    return info.all_settings if isinstance(info, ChannelInfo) else ()


def find_account_setting(name: str) -> ChannelSetting | None:
    """The setting with a name such as `slack.bot_token`; None if there is none."""
    account, _, setting = name.partition(".")
    return next((each for each in account_settings(account) if each.name == setting), None)


def is_account_secret(name: str) -> bool:
    """Whether the value of an account's setting must not be shown; true if it is unknown."""
    setting = find_account_setting(name)
    return setting is None or setting.secret


def parse_account_setting(name: str, value: object) -> str:
    """The checked value of a setting such as `slack.port`; raises BadSetting if it is invalid."""
    setting = find_account_setting(name)
    if setting is None:
        raise BadSetting(f"unknown setting {name[:MAX_SHOWN_CHARS]!r}")
    try:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise ValueError("must be text")
        return setting.check(str(value))
    except ValueError as error:
        what = "value" if setting.secret else f"value {repr(value)[:MAX_SHOWN_CHARS]}"
        raise BadSetting(f"invalid {what} for {name}: {error}", hint=default_hint(name)) from error


def default_hint(name: str) -> str:
    """What an account's setting is without a value, as a sentence."""
    setting = find_account_setting(name)
    if setting is None or not setting.default:
        return f"{name} is empty by default."
    return f"Its default is {setting.default}."


def is_table(value: object) -> TypeGuard[dict[str, object]]:
    """Whether a value of settings.toml is a table."""
    return isinstance(value, dict)


def read_variables(environ: Mapping[str, str], others: Iterable[str]) -> AccountValues:
    """The settings of accounts in an environment; `others` are the variables of Bullpen itself."""
    known = set(others)
    named: dict[str, str] = {}
    rest: dict[str, str] = {}
    for variable, value in environ.items():
        if not variable.startswith(VARIABLE_PREFIX) or variable in known or not value:
            continue
        words = variable.removeprefix(VARIABLE_PREFIX).lower()
        if "_" not in words:
            continue
        if (name := _setting_of_variable(words)) is not None:
            named[name] = parse_account_setting(name, value)
        else:
            rest[variable] = value
    return AccountValues(named, rest)


def _setting_of_variable(words: str) -> str | None:
    """`slack-sage.bot_token` of `slack_sage_bot_token`, if its platform is a built-in one."""
    for channel in _channels().built_in.values():
        rest = words.removeprefix(f"{channel.name}_")
        if rest == words or channel.pull:
            continue
        settings = sorted((each.name for each in channel.all_settings), key=len, reverse=True)
        if rest in settings:
            return f"{channel.name}.{rest}"
        for each in settings:
            suffix = rest.removesuffix(f"_{each}").replace("_", "-")
            if len(suffix) < len(rest) and find_account_setting(f"{channel.name}-{suffix}.{each}"):
                return f"{channel.name}-{suffix}.{each}"
    return None


def _channels() -> ChannelRegistry:
    from bullpen.core.registry.channels import CHANNELS  # commands that use no channel start faster

    return CHANNELS
