"""HOST:PORT as text: what is written reads back, and anything else is an error."""

from argparse import ArgumentTypeError

import pytest

from streamtok.jobs.argument_types import DEFAULT_HOST, format_host_port, parse_tcp_address


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "fe80::1%eth0"])
@pytest.mark.parametrize("port", [0, 80, 65535])
def test_an_address_reads_back(host, port):
    text = format_host_port(host, port)
    assert parse_tcp_address(text) == (host, port)


def test_an_empty_host_is_this_machine():
    assert parse_tcp_address(":80") == (DEFAULT_HOST, 80)


@pytest.mark.parametrize("text", ["", "nowhere", "host:", "host:65536", "host:-1", "host:٣", ":"])
def test_other_texts_are_errors(text):
    with pytest.raises(ArgumentTypeError, match="must be HOST:PORT"):
        parse_tcp_address(text)
