"""Where the gateway listens: what belongs together, and certificates that can't be used are problems with their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.writing import TOKEN, loaded, paths, problems
from tests.support.certificates import Authority

SERVERS = {"mcpServers": {"files": {"command": "x"}}}


def listen(**settings: Any) -> dict[str, Any]:
    return {**SERVERS, "listen": settings}


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"port": "off"}, "port"),
        ({"port": "7411"}, "port"),
        ({"socketMode": "0660"}, "socketMode"),
        ({"socket": "s", "socketMode": "0644"}, "socketMode"),
        ({"socket": "s" * 120}, "socket"),
        ({"tls": {"certificate": "c.pem"}}, "tls.key"),
        ({"socket": "s", "port": "off", "tls": {"certificate": "c.pem", "key": "k.pem"}}, "tls"),
    ],
)
def test_what_has_no_effect_or_can_not_work_is_a_problem(settings: dict[str, Any], wrong: str, tmp_path: Path) -> None:
    assert paths(problems(tmp_path, listen(**settings))) == [f"listen.{wrong}"]


def test_a_socket_may_be_the_only_place(tmp_path: Path) -> None:
    config = loaded(tmp_path, listen(socket="s", port="off"))
    assert (config.listen.tcp_port, config.is_loopback, config.needs_token) == (None, True, False)
    assert config.listen.shown() == str(tmp_path / "s")
    assert str(tmp_path / "s") in config.private_paths


def test_a_certificate_that_can_be_used_is_no_problem(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("localhost")
    tls = {"certificate": certificate.name, "key": key.name, "clientCa": authority.file.name}
    config = loaded(tmp_path, listen(tls=tls))
    assert config.listen.tls is not None
    assert config.listen.tls.certificate == str(certificate)
    assert config.listen.shown() == "https://127.0.0.1:7411"
    assert str(key) in config.private_paths


@pytest.mark.parametrize(
    ("setting", "content"),
    [
        ("certificate", None),
        ("certificate", "no certificate"),
        ("key", None),
        ("key", "no key"),
        ("key", "of another"),
        ("key", "with a password"),
        ("clientCa", None),
        ("clientCa", "no certificate"),
    ],
)
def test_a_file_that_cant_be_used_is_named_with_the_line_of_its_setting(
    setting: str, content: str | None, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("localhost")
    wrong = tmp_path / "wrong.pem"
    if content == "of another":
        wrong = authority.issue("other")[1]
    elif content == "with a password":
        certificate, wrong = authority.issue("other", password="secret-of-the-key")
    elif content is not None:
        wrong.write_text(content)
    tls = {"certificate": str(certificate), "key": str(key), setting: str(wrong)}
    (problem,) = problems(tmp_path, listen(tls=tls))
    assert problem.path == f"listen.tls.{setting}"
    assert problem.line is not None
    assert wrong.name in problem.message


def test_a_private_key_that_others_may_write_is_refused(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).issue("localhost")
    key.chmod(0o666)
    (problem,) = problems(tmp_path, listen(tls={"certificate": str(certificate), "key": str(key)}))
    assert (problem.path, "chmod o-w" in problem.message + problem.hint) == ("listen.tls.key", True)


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"host": "0.0.0.0"}, True),
        ({"host": "127.0.0.1"}, False),
        ({"host": "0.0.0.0", "port": "off", "socket": "s"}, False),
    ],
)
def test_tokens_that_travel_without_tls_are_warned_of(settings: dict[str, Any], warned: bool, tmp_path: Path) -> None:
    config = loaded(tmp_path, {**listen(**settings), "auth": {"tokens": {"ops": {"token": TOKEN + TOKEN[::-1]}}}})
    assert [warning.path for warning in config.warnings] == ["listen.host"] * warned


def test_with_tls_or_without_tokens_there_is_nothing_to_warn_of(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).issue("localhost")
    tls = {"certificate": str(certificate), "key": str(key)}
    assert loaded(tmp_path, listen(host="0.0.0.0", tls=tls)).warnings == ()
    everybody = {**listen(host="0.0.0.0"), "auth": {"anonymous": True}}
    assert [warning.path for warning in loaded(tmp_path, everybody).warnings] == ["auth.anonymous"]


def test_keys_are_beside_the_configuration_unless_it_names_another_file(tmp_path: Path) -> None:
    config = loaded(tmp_path, SERVERS)
    assert (config.key_file, config.has_key_file, config.allows_anonymous) == (
        str(tmp_path / "pactgate.keys"),
        False,
        True,
    )
    (tmp_path / "pactgate.keys").write_text("{}")
    config = loaded(tmp_path, SERVERS)
    assert (config.has_key_file, config.allows_anonymous, config.has_several_principals) == (True, False, True)
    named = loaded(tmp_path, {**SERVERS, "auth": {"keys": "shared.keys"}})
    assert (named.key_file, named.has_key_file) == (str(tmp_path / "shared.keys"), True)
    assert named.key_file in named.private_paths
