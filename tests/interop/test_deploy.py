"""Other people's judges on deploy/: helm, the schemas of Kubernetes, hadolint, nginx."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.interop.processes import ROOT, TOOLS

pytestmark = pytest.mark.interop

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "pactgate"
HELM = next((str(one) for one in (TOOLS / "bin" / "helm", shutil.which("helm")) if one and Path(one).exists()), None)
JUDGES = TOOLS / "deploy" / "bin"
RESOURCES = TOOLS / "resources"
RESOURCE_KINDS = [
    ("httpRoute", "gateway.networking.k8s.io_httproutes.yaml", "HTTPRoute"),
    ("serviceMonitor", "monitoring.coreos.com_servicemonitors.yaml", "ServiceMonitor"),
]
NGINX = shutil.which("nginx")
VERSIONS = [f"1.{minor}" for minor in range(30, 38)]
needs_helm = pytest.mark.skipif(
    HELM is None, reason="NOT RUN: helm is not there: run `make interop` and read what it says"
)
needs_judges = pytest.mark.skipif(
    not (JUDGES / "hadolint").exists(),
    reason="NOT RUN: .tools/deploy is missing: run `make interop` and read what it says",
)


def run(*words: str | Path | None) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_helm
def test_the_chart_is_clean_and_the_rendered_manifests_are_its_own() -> None:
    assert "0 chart(s) failed" in run(HELM, "lint", "--strict", CHART)
    rendered = run(HELM, "template", "pactgate", CHART, "--kube-version", "1.30.0")
    assert rendered == (DEPLOY / "k8s" / "pactgate.yaml").read_text(), "run `make manifests`"


@needs_helm
@needs_judges
@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_fit_the_schemas_of_kubernetes(version: str, tmp_path: Path) -> None:
    judge = JUDGES / "kubernetes-validate"
    run(judge, "--strict", "-k", f"{version}.0", DEPLOY / "k8s" / "pactgate.yaml")
    other = tmp_path / "other.yaml"
    options = "autoscaling.enabled=false,networkPolicy.from[0].podSelector.matchLabels.app=x,podAnnotations.a=b"
    other.write_text(run(HELM, "template", "p", CHART, "--kube-version", "1.30.0", "--set", options))
    run(judge, "--strict", "-k", f"{version}.0", other)


@needs_helm
@pytest.mark.skipif(
    not RESOURCES.exists(), reason="NOT RUN: .tools/resources is missing: run `make interop` and read what it says"
)
@pytest.mark.parametrize(("option", "file", "kind"), RESOURCE_KINDS)
def test_custom_resources_fit_their_definitions(option: str, file: str, kind: str) -> None:
    parent = "httpRoute.parentRefs[0].name=edge,httpRoute.hostnames[0]=gateway.example"
    rendered = run(HELM, "template", "p", CHART, "--kube-version", "1.30.0", "--set", f"{option}.enabled=true,{parent}")
    (resource,) = [one for one in yaml.safe_load_all(rendered) if one and one["kind"] == kind]
    definition = yaml.safe_load((RESOURCES / file).read_text())["spec"]
    served = {one["name"]: one["schema"]["openAPIV3Schema"] for one in definition["versions"] if one["served"]}
    schema = _closed(served[resource["apiVersion"].rpartition("/")[2]])
    assert [error.message for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(resource)] == []


def _closed(schema: Any) -> Any:
    """The same, where a field that is not in it is an error: the API server would drop it."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(one) for name, one in schema.items()}
    if schema.get("type") == "object" and schema.get("properties"):
        closed.setdefault("additionalProperties", False)
    return closed


@needs_judges
def test_the_containerfile_is_clean() -> None:
    run(JUDGES / "hadolint", DEPLOY / "Containerfile")


@pytest.mark.skipif(NGINX is None, reason="NOT RUN: nginx is not installed: apt-get install nginx-light")
def test_nginx_takes_its_configuration(tmp_path: Path) -> None:
    server = (DEPLOY / "proxies" / "nginx.conf").read_text().replace("gateway:7411", "127.0.0.1:7411")
    conf = tmp_path / "nginx.conf"
    conf.write_text(f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {server} }}")
    run(NGINX, "-t", "-p", tmp_path, "-c", conf)
