"""List and change the settings in settings.toml: checked, atomically, one change at a time.

Comments, the order of lines and unknown names in the file are kept. A setting of a channel's
account is called `slack.bot_token`: `bot_token` in the table [slack].
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from bullpen.core.errors import BadSetting, Overloaded, SettingFixed, StoreError
from bullpen.core.files import PRIVATE_DIRECTORY_MODE, file_lock, replace_file
from bullpen.core.registry import CHANNELS, PROVIDERS
from bullpen.core.settings import DEFAULTS, ENVIRONMENT_PREFIX, FIELDS, URL_SETTINGS
from bullpen.core.settings.accounts import (
    account_settings,
    account_variable,
    find_account_setting,
    is_table,
)
from bullpen.core.settings.parse import (
    BOM,
    SETTINGS_FILE,
    UNKNOWN_SETTING_HINT,
    SettingProblem,
    SettingsText,
    check_values,
    load_lenient,
    printable_name,
    read_settings,
)
from bullpen.core.settings.values import is_secret, parse_setting, setting_exists
from bullpen.core.text import check_text, describe_unknown, mask, mask_url

Value: TypeAlias = "str | int | float"

LOCK_FILE = "settings.lock"
BACKUP_FILE = "settings.toml.bak"
LOCK_WAIT_SECONDS = 30.0
MAX_VALUE_BYTES = 4096
UNCHANGED_HINT = "Nothing was changed. Check the disk and the permissions of the directory."

FIXED_SETTINGS: Mapping[str, str] = {
    name: each.metadata["fixed"] for name, each in FIELDS.items() if each.metadata["fixed"]
}
"""Settings that can only be changed on the machine itself, and why."""

CREDENTIAL_SETTINGS = frozenset(
    key.setting
    for each in PROVIDERS.built_in.values()
    if each.login
    for key in each.login.credentials
)
"""Settings that only the processor reads, in addition to those declared with `reader`."""


class SettingSource(StrEnum):
    """Where the value of a setting comes from."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class SettingView:
    """One setting, with secrets masked."""

    name: str
    value: Value
    default: Value
    doc: str
    source: SettingSource
    secret: bool
    fixed: str | None
    """Why it cannot be changed here; None if it can."""


class SettingsFile:
    """settings.toml of one home, and the environment, which overrides it."""

    def __init__(self, home: Path, environ: Mapping[str, str], *, here: bool = False) -> None:
        """With `here`, on the machine itself, settings can be changed that are fixed elsewhere."""
        self._home = home
        self._here = here
        # If the file is a link, its target is replaced.
        self._path = Path(os.path.realpath(home / SETTINGS_FILE))
        self._environ = environ

    def list_settings(self) -> list[SettingView]:
        """List every setting as of the next start; an invalid value is replaced by its default.

        Of channels, the accounts for which something is set are listed.
        """
        found, _ = check_values(self._read())
        names = [*FIELDS, *(each for name in self._accounts() for each in _account_names(name))]
        return [self._view(name, found) for name in names]

    def list_account(self, account: str) -> list[SettingView]:
        """List the settings of an account, whether or not something is set."""
        found, _ = check_values(self._read())
        return [self._view(name, found) for name in _account_names(account)]

    def find_setting(self, name: str) -> SettingView | None:
        """One setting as of the next start; None if it does not exist."""
        if not setting_exists(name):
            return None
        return self._view(name, check_values(self._read())[0])

    def names(self) -> list[str]:
        """The names of all settings, with those of each channel and each account that is set up."""
        accounts = dict.fromkeys((*CHANNELS.built_in, *CHANNELS.plugin_names(), *self._accounts()))
        return [*FIELDS, *(each for name in accounts for each in _account_names(name))]

    def secrets(self) -> tuple[str, ...]:
        """The secrets in the current settings, which must not be shown."""
        environ = {**self._environ, f"{ENVIRONMENT_PREFIX}HOME": str(self._home)}
        return load_lenient(environ)[0].secrets()

    def _accounts(self) -> list[str]:
        """The accounts for which something is set."""
        environ = {**self._environ, f"{ENVIRONMENT_PREFIX}HOME": str(self._home)}
        return load_lenient(environ)[0].accounts.names()

    def _view(self, name: str, found: Mapping[str, object]) -> SettingView:
        return SettingView(
            name=name,
            value=_masked(name, self._value(name, found)),
            default=_masked(name, _default(name)),
            doc=_doc(name),
            source=self._source(name, found),
            secret=is_secret(name),
            fixed=self._fixed(name),
        )

    @property
    def path(self) -> Path:
        """The path of the file, which may be missing."""
        return self._home / SETTINGS_FILE

    @property
    def backup(self) -> Path:
        """The path of the file as it was before the last change."""
        return self._home / BACKUP_FILE

    def problems(self) -> tuple[SettingProblem, ...]:
        """What is wrong in the file."""
        return check_values(self._read())[1]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Prevent other processes from changing the file during the block."""
        with ExitStack() as stack:
            with self._writing():
                self._home.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
                lock = file_lock(self._home / LOCK_FILE, LOCK_WAIT_SECONDS)
                held = stack.enter_context(lock)
            if held is None:
                raise Overloaded("another process is changing the settings")
            yield

    def check(self, changes: Mapping[str, Value | None]) -> dict[str, Value | None]:
        """The changes that have an effect; None resets a setting to its default.

        The current value, or the mask of a secret, changes nothing.
        """
        text = self._read()
        if not text.whole:
            raise BadSetting(str(text.problems[0]), hint="Fix the file in an editor first.")
        found, _ = check_values(text)
        wanted: dict[str, Value | None] = {}
        for name, value in changes.items():
            there = text.has(name)
            if not setting_exists(name) and not (self._here and there and value is None):
                unknown = describe_unknown("setting", printable_name(name), self.names())
                raise BadSetting(unknown, hint=UNKNOWN_SETTING_HINT)
            # An invalid value is listed as its default. A client that sends the list back must
            # change nothing; a person on the machine who sets the default wants it set.
            meant = self._here and there and name not in found
            if value is None:
                if not there:
                    continue
            elif not meant and self._is_unchanged(name, value, found):
                continue
            if (reason := self._fixed(name)) is not None:
                hint = f"Set {ENVIRONMENT_PREFIX}HOME in the environment." if self._here else None
                raise SettingFixed(f"cannot change {name} here: {reason}", hint=hint)
            wanted[name] = value if value is None else _toml_value(_parse_value(name, value))
        return wanted

    def write(self, wanted: Mapping[str, Value | None]) -> None:
        """Write changes that `check` gave, while locked; the old file is kept as the backup."""
        if not wanted:
            return
        with self._writing():
            old = self._path.read_bytes() if self._path.exists() else None
            new = _edit_toml((old or b"").removeprefix(BOM).decode(), wanted).encode()
            if old is not None:
                replace_file(self.backup, old)
            replace_file(self._path, new)

    def restore(self) -> None:
        """Exchange the file and its backup, while locked."""
        with self._writing():
            old = self._path.read_bytes() if self._path.exists() else b""
            new = self.backup.read_bytes()
            replace_file(self._path, new)
            replace_file(self.backup, old)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot write {self._path}: {error.strerror}", hint=UNCHANGED_HINT
            ) from error

    def _read(self) -> SettingsText:
        return read_settings(self.path)

    def _is_unchanged(self, name: str, value: Value, found: Mapping[str, object]) -> bool:
        now = self._value(name, found)
        return value == _masked(name, now) or _parse_value(name, value) == now

    def _value(self, name: str, found: Mapping[str, object]) -> object:
        if name == "home":
            return self._home
        raw = self._environ.get(setting_variable(name))
        return parse_setting(name, raw or found.get(name, _default(name)))

    def _source(self, name: str, found: Mapping[str, object]) -> SettingSource:
        if self._environ.get(setting_variable(name)):
            return SettingSource.ENVIRONMENT
        return SettingSource.FILE if name in found and name != "home" else SettingSource.DEFAULT

    def _fixed(self, name: str) -> str | None:
        if self._here:
            return FIXED_SETTINGS[name] if name == "home" else None
        if self._environ.get(setting_variable(name)):
            return f"the environment variable {setting_variable(name)} takes precedence"
        if "." in name:
            setting = find_account_setting(name)
            return (setting.fixed or None) if setting else None
        return FIXED_SETTINGS.get(name)


def setting_variable(name: str) -> str:
    """The environment variable of a setting: `BULLPEN_MAX_HOPS`, `BULLPEN_SLACK_BOT_TOKEN`."""
    return account_variable(name) if "." in name else ENVIRONMENT_PREFIX + name.upper()


def _account_names(account: str) -> list[str]:
    return [f"{account}.{each.name}" for each in account_settings(account)]


def _default(name: str) -> object:
    if "." not in name:
        return DEFAULTS[name]
    setting = find_account_setting(name)
    return setting.default if setting else ""


def _doc(name: str) -> str:
    if "." not in name:
        return str(FIELDS[name].metadata["doc"])
    setting = find_account_setting(name)
    return setting.doc if setting else ""


def services_reading(names: Iterable[str], services: Iterable[str]) -> list[str]:
    """The services among these that read one of these settings when they start."""
    readers = {_only_reader(name) for name in names}
    return sorted(service for service in services if readers & {"", service})


def _only_reader(name: str) -> str:
    """Return the only service that reads a setting; empty if several do."""
    if name in CREDENTIAL_SETTINGS:
        return "processor"
    if "." in name:
        return name.partition(".")[0]  # the account's service
    return str(FIELDS[name].metadata["reader"]) if name in FIELDS else ""


def _masked(name: str, value: object) -> Value:
    """The value with secrets masked."""
    if is_secret(name):
        return mask(str(value))
    return mask_url(str(value)) if name in URL_SETTINGS else _toml_value(value)


def _toml_value(value: object) -> Value:
    """Return the value in TOML's types: paths and choices become text."""
    return value if isinstance(value, (int, float)) else str(value)


def _parse_value(name: str, value: Value) -> object:
    """Parse a new value; raises BadSetting if it is invalid."""
    default = _default(name)
    number = "." in name or isinstance(default, (int, float))
    if isinstance(value, bool) or (not number and not isinstance(value, str)):
        raise BadSetting(f"invalid value {value!r} for {name}: must be text")
    if isinstance(value, str):
        check_text(value, MAX_VALUE_BYTES, f"the setting {name}")
    parsed: object = parse_setting(name, value)
    if isinstance(parsed, Path) and not parsed.is_absolute():
        raise BadSetting(f"invalid value {value!r} for {name}: must be an absolute path")
    return parsed


def _edit_toml(text: str, wanted: Mapping[str, Value | None]) -> str:
    """Return the text of the file with these values, and check it by parsing it again."""
    import tomlkit  # loaded for changes only
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        for name, value in wanted.items():
            _set_value(document, name, value)
        new = tomlkit.dumps(document)
        found = tomllib.loads(new)
    except (TOMLKitError, ValueError) as error:
        raise BadSetting(
            f"cannot read {SETTINGS_FILE}: {error}", hint="Fix the file in an editor."
        ) from error
    if any(_written(found, name) != value for name, value in wanted.items()):
        raise BadSetting(
            f"cannot change {SETTINGS_FILE} automatically", hint="Change it in an editor."
        )
    return new


def _set_value(document: MutableMapping[str, Any], name: str, value: Value | None) -> None:
    """Set or remove a value; the table of an account is added and removed with its values."""
    account, dot, below = name.partition(".")
    place = document
    if dot:
        if not isinstance(document.get(account), MutableMapping):
            if value is None:
                return
            document[account] = {}
        place = document[account]
    key = below if dot else name
    if value is not None:
        place[key] = value
        return
    place.pop(key, None)
    if dot and not place:
        document.pop(account)


def _written(found: Mapping[str, object], name: str) -> object:
    account, dot, below = name.partition(".")
    if not dot:
        return found.get(name)
    table = found.get(account)
    return table.get(below) if is_table(table) else None
