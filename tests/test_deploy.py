"""What deploy/ holds is what the gateway takes: configurations that load, ports and variables that agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from pactgate.config.load import load

DEPLOY = Path(__file__).parents[1] / "deploy"
ENVIRON = {
    "PACTGATE_KEY": "5e" * 32,
    "PACTGATE_TOKEN": "a1" * 32,
    "REDIS_URL": "redis://:longpassword@redis:6379/0",
    "POD_IP": "10.1.2.3",
    "HOSTNAME": "gateway-1",
}


def rendered() -> dict[str, dict[str, Any]]:
    """The manifests that were rendered from the chart, by kind."""
    documents = yaml.safe_load_all((DEPLOY / "k8s" / "pactgate.yaml").read_text())
    return {document["kind"]: document for document in documents if document}


def test_the_configuration_of_compose_is_valid() -> None:
    config = load(DEPLOY / "pactgate.jsonc", environ=ENVIRON)
    assert not config.unresolved
    assert not config.needs_token
    assert config.state.is_shared
    assert config.state.hop.advertise == "gateway-1"


def test_compose_gives_the_gateway_every_variable_its_configuration_names() -> None:
    compose = yaml.safe_load((DEPLOY / "replicas.compose.yaml").read_text())
    gateway = compose["services"]["gateway"]
    named = set(re.findall(r"\$\{(\w+)\}", (DEPLOY / "pactgate.jsonc").read_text())) | {"PACTGATE_KEY"}
    assert named - {"HOSTNAME"} == set(gateway["environment"])
    assert gateway["read_only"] is True
    assert gateway["cap_drop"] == ["ALL"]


def test_the_configuration_in_the_manifests_is_valid_and_names_its_ports(tmp_path: Path) -> None:
    file = tmp_path / "pactgate.json"
    file.write_text(rendered()["ConfigMap"]["data"]["pactgate.json"])
    file.chmod(0o600)
    config = load(file, environ=ENVIRON)
    (container,) = rendered()["Deployment"]["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": config.listen.port, "hop": config.state.hop.port}
    assert config.state.hop.advertise == "10.1.2.3"
    assert config.listen.drain_ms / 1000 + 20 <= _pod()["terminationGracePeriodSeconds"]


def test_pods_run_as_nobody_in_particular_and_write_nowhere() -> None:
    pod = _pod()
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_only_gateways_reach_the_port_for_hops() -> None:
    policy = rendered()["NetworkPolicy"]["spec"]
    by_port = {rule["ports"][0]["port"]: rule.get("from") for rule in policy["ingress"]}
    assert by_port[7411] is None
    assert by_port[7412] == [{"podSelector": policy["podSelector"]}]


def test_a_changed_configuration_starts_new_pods() -> None:
    annotations = rendered()["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert re.fullmatch("[0-9a-f]{64}", annotations["checksum/config"])
    assert json.dumps(annotations)


def _pod() -> dict[str, Any]:
    spec: dict[str, Any] = rendered()["Deployment"]["spec"]["template"]["spec"]
    return spec
