"""The proxies in deploy/ lead to the ports of the settings, and let signed webhooks through."""

from __future__ import annotations

import asyncio
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from bullpen.channels.listener import LONG_BODY_BYTES
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.clock import SystemClock
from bullpen.core.registry import CHANNELS
from tests.channels.test_listener import Site, sign
from tests.channels.tls import all_closed, certificate
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
NGINX = ROOT / "deploy" / "nginx" / "bullpen-webhooks.conf"
CADDY = ROOT / "deploy" / "caddy" / "Caddyfile"
NAME = "bots.example.org"
LOCATION = {
    "nginx": re.compile(r"location \^~ (/\S+/) +\{ proxy_pass http://127\.0\.0\.1:(\d+); \}"),
    "caddy": re.compile(r"handle (/\S+/)\* \{\s+reverse_proxy 127\.0\.0\.1:(\d+)\s+\}"),
}
SECOND_ACCOUNTS = {"slack-sage": "3791"}


@pytest.mark.parametrize("path", [NGINX, CADDY])
def test_paths_and_ports_are_those_of_the_settings(path: Path) -> None:
    text = path.read_text()
    found = LOCATION["nginx" if path is NGINX else "caddy"].findall(text)
    expected = {
        each.name: next(setting.default for setting in each.settings if setting.name == "port")
        for each in CHANNELS.built_in.values()
        if any(setting.name == "port" for setting in each.settings)
    }
    assert expected, "no channel has a listener"
    assert {location.strip("/"): port for location, port in found} == {
        **expected,
        **SECOND_ACCOUNTS,
    }
    # A second account is on a port that no channel has by default.
    assert not set(SECOND_ACCOUNTS.values()) & set(expected.values())
    # Nothing else is reached: every address of a backend is one of these.
    assert len(re.findall(r"127\.0\.0\.1:\d+", text)) == len(found)
    for account in SECOND_ACCOUNTS:
        assert f"bullpen config get {account}.port" in text


def test_the_page_about_webhooks_has_the_ports_of_the_settings() -> None:
    page = (ROOT / "docs" / "how-to" / "channels" / "webhooks.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z]+)` \| (\d+) \|", page, re.MULTILINE))
    text = NGINX.read_text()
    found = dict(LOCATION["nginx"].findall(text))
    assert rows
    assert {f"/{account}/": port for account, port in rows.items()}.items() <= found.items()


def nginx(directory: Path, port: int, backend: int) -> list[str]:
    """The command of a real nginx with the file of deploy/, in a directory of its own."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("needs nginx")
    text = NGINX.read_text().replace("listen [::]:443 ssl;", "")
    text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;")
    text = text.replace("127.0.0.1:3783", f"127.0.0.1:{backend}")
    text = re.sub(r"/etc/ssl/\S+\.pem", str(directory / "certificate.pem"), text)
    text = re.sub(r"/etc/ssl/private/\S+\.key", str(directory / "key.pem"), text)
    paths = "".join(
        f"{each}_temp_path {directory}/{each};\n"
        for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = directory / "nginx.conf"
    main.write_text(
        f"daemon off; master_process off; pid {directory}/pid; error_log {directory}/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{paths}{text}}}\n"
    )
    command = [program, "-p", str(directory), "-e", str(directory / "error.log"), "-c", str(main)]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    return command


def caddy(directory: Path, port: int, backend: int) -> list[str]:
    """The command of a real Caddy with the file of deploy/, in a directory of its own."""
    program = shutil.which("caddy")
    if program is None:
        pytest.skip("needs caddy")
    tls = f"tls {directory}/certificate.pem {directory}/key.pem\n"
    text = CADDY.read_text().replace(f"{NAME} {{", f"https://{NAME}:{port} {{\n{tls}", 1)
    text = text.replace("127.0.0.1:3783", f"127.0.0.1:{backend}")
    settings = f"{{\nadmin off\nauto_https disable_redirects\nstorage file_system {directory}\n}}\n"
    path = directory / "Caddyfile"
    path.write_text(settings + text)
    return [program, "run", "--config", str(path), "--adapter", "caddyfile"]


@contextmanager
def proxied(command: list[str], directory: Path) -> Iterator[None]:
    log = directory / "log"
    with log.open("wb") as output:
        environment = {"HOME": str(directory), "PATH": "/usr/bin:/bin"}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


async def answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/nothing") as answer:
            return answer.status == 404
    except aiohttp.ClientConnectionError:
        return False


@pytest.mark.parametrize("make", [nginx, caddy])
def test_a_signed_webhook_passes_a_real_proxy_and_nothing_else_does(
    make: object, tmp_path: Path
) -> None:
    _, trusting = certificate(tmp_path, NAME)
    port, site = free_port(), Site(clock=SystemClock())  # type: ignore[arg-type]
    site.public_url = f"https://{NAME}/sms"
    command = (nginx if make is nginx else caddy)(tmp_path, port, site.port)

    async def check() -> None:
        async with site.running() as listener, client(trusting) as session:
            base = f"https://{NAME}:{port}"
            async with asyncio.timeout(20):
                while not await answers(session, base):
                    await asyncio.sleep(0.02)
            body = b"Body=hello%20there"
            url = URL(f"{base}/sms/status/17/0?a=b%2Fc", encoded=True)
            signature = sign(f"{site.public_url}/status/17/0?a=b%2Fc", body)
            headers = {
                "X-Signature": signature,
                "Content-Type": "application/x-www-form-urlencoded",
            }
            async with session.post(url, data=body, headers=headers) as answer:
                assert (answer.status, await answer.read()) == (200, b"<Response/>")
            # Only the public URL of the settings counts, whatever the headers say.
            foreign = {"X-Forwarded-Host": "evil.example.org", "X-Forwarded-Proto": "http"}
            async with session.post(url, data=body, headers=headers | foreign) as answer:
                assert answer.status == 200
            forged = sign("http://evil.example.org/sms/status/17/0?a=b%2Fc", body)
            both = headers | foreign | {"X-Signature": forged}
            async with session.post(url, data=body, headers=both) as answer:
                assert answer.status == 403
            headers["X-Signature"] = "wrong"
            async with session.post(url, data=body, headers=headers) as answer:
                assert answer.status == 403
            big = b"a" * (LONG_BODY_BYTES + 1)
            async with session.post(url, data=big, headers=headers) as answer:
                assert answer.status == 413
            for path in ("/", "/healthz", "/api/me", "/sms/healthz", "/sms/../healthz", "/smsx/in"):
                async with session.get(f"{base}{path}") as answer:
                    assert answer.status in (400, 404), path
            (tmp_path / "photo.png").write_bytes(b"data" * 100_000)
            with (tmp_path / "photo.png").open("rb") as file:
                offered = listener.capabilities.offer(OpenFile("photo.png", 400_000, file))
            async with session.get(offered.replace(NAME, f"{NAME}:{port}")) as answer:
                assert await answer.read() == b"data" * 100_000
        stored = f"{site.public_url}/status/17/0?a=b%2Fc"
        assert [each.url for each in site.stored] == [stored, stored]

    async def main() -> None:
        await check()
        await all_closed()

    with proxied(command, tmp_path):
        asyncio.run(main())


def client(trusting: ssl.SSLContext) -> aiohttp.ClientSession:
    """A client for which the proxy's name is on loopback."""

    class Loopback(aiohttp.abc.AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: int = 0
        ) -> list[aiohttp.abc.ResolveResult]:
            return [
                aiohttp.abc.ResolveResult(
                    hostname=host, host="127.0.0.1", port=port, family=2, proto=6, flags=0
                )
            ]

        async def close(self) -> None:
            pass

    connector = aiohttp.TCPConnector(resolver=Loopback(), ssl=trusting)
    return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=20))
