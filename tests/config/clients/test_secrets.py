from __future__ import annotations

import pytest

from pactgate.config.clients.secrets import SecretFinder


def test_a_setting_that_is_no_credential_stays_in_the_file() -> None:
    finder = SecretFinder({})
    entry = {"command": "x", "env": {"MODE": "fast", "API_KEY": ""}, "args": ["--port", "80", "--keyboard=de", "-v"]}
    assert finder.replace_in("x", entry) == entry
    assert not finder.values


def test_credentials_in_addresses_and_headers_become_variables() -> None:
    finder = SecretFinder({})
    entry = {
        "url": "https://ann:hunter22@crm.example/mcp?api_key=abc123&page=1",
        "headers": {"Authorization": "Bearer tok-1", "Accept": "text/plain"},
    }
    assert finder.replace_in("crm", entry) == {
        "url": "https://ann:${CRM_PASSWORD}@crm.example/mcp?api_key=${CRM_API_KEY}&page=1",
        "headers": {"Authorization": "Bearer ${CRM_TOKEN}", "Accept": "text/plain"},
    }
    assert finder.values == {"CRM_PASSWORD": "hunter22", "CRM_API_KEY": "abc123", "CRM_TOKEN": "tok-1"}


def test_a_flag_of_a_credential_and_its_value_are_two_arguments_or_one() -> None:
    finder = SecretFinder({})
    args = ["--token", "s3cret", "--api-key=k3y", "DB_PASSWORD=pw", "xoxb-1234567890-abc"]
    assert finder.replace_in("s", {"command": "x", "args": args})["args"] == [
        "--token",
        "${S_TOKEN}",
        "--api-key=${S_API_KEY}",
        "DB_PASSWORD=${S_DB_PASSWORD}",
        "${S_S_TOKEN}",
    ]


def test_a_variable_is_not_taken_for_what_it_stands_for() -> None:
    finder = SecretFinder({})
    entry = {"command": "x", "env": {"API_KEY": "${MY_KEY}"}, "args": ["--token=${T}"]}
    assert finder.replace_in("x", entry) == entry


@pytest.mark.parametrize("tail", [":", "?", "a:", "&", "?a", "://:", "=?"])
def test_an_address_of_any_form_is_read_in_one_pass(tail: str) -> None:
    """If each character were the beginning of another attempt, this would take minutes."""
    address = f"http://{tail * 200_000}"
    assert SecretFinder({}).replace_in("x", {"url": address, "args": [address]})["url"]
