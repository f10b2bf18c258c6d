"""Whether the API may listen where it is to: known before it tries."""

from __future__ import annotations

import socket

import pytest

from bullpen.core.errors import AddressTaken
from bullpen.core.network import api_url, check_api_address
from bullpen.core.settings import Settings


@pytest.mark.parametrize("option", [socket.SO_REUSEADDR, socket.SO_REUSEPORT])
def test_a_port_that_somebody_listens_on_is_taken_however_willing_he_is(option: int) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, option, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(AddressTaken, match=f"port {port} on 127.0.0.1 is in use") as caught:
            check_api_address(Settings(api_port=port))
    assert "api_port" in caught.value.hint
    check_api_address(Settings(api_port=port))


def test_a_port_whose_last_connection_has_just_ended_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()  # it is closed from here, and lingers
    check_api_address(Settings(api_port=port))


@pytest.mark.parametrize("host", ["192.0.2.1", "a..b"])
def test_an_address_that_is_not_of_this_machine_is_said_so(host: str) -> None:
    with pytest.raises(AddressTaken) as caught:
        check_api_address(Settings(api_host=host, api_port=0))
    assert "api_host" in caught.value.hint


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:3777"),
        ("0.0.0.0", "http://127.0.0.1:3777"),
        ("::", "http://127.0.0.1:3777"),
        ("::1", "http://[::1]:3777"),
        ("office.example", "http://office.example:3777"),
    ],
)
def test_the_address_is_one_that_can_be_opened_here(host: str, url: str) -> None:
    assert api_url(Settings(api_host=host)) == url
