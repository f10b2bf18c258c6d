"""A home, or a directory of sockets, that is not ours alone is refused; what is made is ours."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.errors import UnsafeDirectory
from bullpen.core.network import socket_directory
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.ops.services.supervisor import Supervisor
from bullpen.processor.plugins import Plugins
from tests.cli.command import PROGRAM, Bullpen
from tests.services.running import of_home
from tests.stores import Stores

NOBODY = 65534


def test_a_home_that_others_can_write_to_starts_nothing_and_loads_no_plugin(
    empty: Bullpen, subtests: pytest.Subtests
) -> None:
    plugins = empty.home / "plugins"
    plugins.mkdir(mode=0o700)
    (plugins / "planted.py").write_text(f"open({str(empty.home / 'ran')!r}, 'w')\n")
    (plugins / "planted.py").chmod(0o600)
    for path, mode in ((empty.home, 0o777), (empty.home, 0o770), (plugins, 0o722)):
        with subtests.test(path=path, mode=mode):
            path.chmod(mode)
            for command in (("up",), ("run", "processor"), ("send", "hello", "--no-wait")):
                refused = empty(*command)
                assert refused.status == 1
                assert f"{path} is writable by other users" in refused.err
                assert f"chmod go-w {path}" in refused.err
            with pytest.raises(UnsafeDirectory):
                Plugins.load(empty.home)
            path.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(plugins / "planted.py", NOBODY, NOBODY)
        assert "belongs to another user" in empty("up").err
    assert not (empty.home / "ran").exists()
    assert of_home(empty.home) == []


def test_the_password_goes_to_no_socket_of_another_users(empty: Bullpen) -> None:
    """A home with a long path has its sockets in /tmp, where another may have been first."""
    deep: Path = empty.home / ("d" * 60) / ("e" * 60)
    (deep / "run").mkdir(parents=True)
    (deep / "run" / "supervisor.key").write_text("the password")
    settings = Settings(home=deep)
    assert not settings.sockets.is_relative_to(deep)
    theirs = Path(os.path.realpath(empty.home)) / "s"
    theirs.mkdir(mode=0o700)
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as fake:
        fake.bind(str(theirs / "supervisor.sock"))
        fake.listen()
        fake.settimeout(60)

        def answer() -> None:
            peer, _ = fake.accept()
            text = b""
            while b"</methodCall>" not in text:
                text += peer.recv(65536)
            heard.append(text)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n<garbage")
            peer.close()

        listening = threading.Thread(target=answer, daemon=True)
        listening.start()
        settings.sockets.symlink_to(theirs)
        try:
            there = replace(empty, home=deep)
            shown = there("status")
            assert (shown.status, "is a symbolic link" in shown.err) == (3, True), shown
            assert "is a symbolic link" in there("up").err
            for use in (Supervisor(settings).alive, lambda: socket_directory(settings)):
                with pytest.raises(UnsafeDirectory, match="is a symbolic link"):
                    use()
            assert heard == []
            settings.sockets.unlink()
            settings.sockets.mkdir(mode=0o700)
            (theirs / "supervisor.sock").rename(settings.sockets / "supervisor.sock")
            assert Supervisor(settings).alive() is False  # garbage is no supervisor's answer
            listening.join(60)
            assert b"Basic" in heard[0]
            if os.geteuid() == 0:
                os.chown(settings.sockets, NOBODY, NOBODY)
                assert "belongs to another user" in there("status").err
        finally:
            if settings.sockets.is_symlink():
                settings.sockets.unlink()
            else:
                shutil.rmtree(settings.sockets)


def test_a_wake_up_socket_is_not_put_behind_a_link(stores: Stores, tmp_path: Path) -> None:
    settings = stores.settings("sqlite")
    with stores.opened(settings):
        pass
    settings.sockets.parent.mkdir(exist_ok=True)
    settings.sockets.symlink_to(tmp_path)
    try:
        store = open_store(settings)
        with pytest.raises(UnsafeDirectory):
            store.listen()
        store.close()
    finally:
        settings.sockets.unlink()


@pytest.mark.slow
def test_what_is_made_is_the_owners_alone_whatever_the_umask(empty: Bullpen) -> None:
    workspace = empty.home / "work" / "deeper"
    before = os.umask(0)
    try:
        open_ = replace(empty, environ={**empty.environ, "BULLPEN_WORKSPACE": str(workspace)})
        for command in (("up",), ("send", "hello"), ("down",)):
            subprocess.run(
                [*PROGRAM, *command], env=open_.environment(), check=True, capture_output=True
            )
    finally:
        os.umask(before)
    assert workspace.is_dir()
    wide = [
        each
        for each in (empty.home, *empty.home.rglob("*"))
        if not each.is_symlink() and stat.S_IMODE(each.stat().st_mode) & 0o022
    ]
    assert wide == []
