"""The examples of running it say what the gateway takes."""

import re
from pathlib import Path

import pytest
import yaml

from lockstitch.gateway.access.keys import hash_of, new_key
from lockstitch.gateway.config import Options, load

FOLDER = Path(__file__).parents[2] / "examples" / "gateway"
KEY = f'\n[[keys]]\nname = "me"\nhash = "{hash_of(new_key())}"\n'
ENVIRONMENT = {"OPENAI_API_KEY": "sk-example"}


def compose():
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())


def kubernetes():
    documents = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    return {document["kind"]: document for document in documents}


def configured(tmp_path, text):
    file = tmp_path / "gateway.toml"
    file.write_text(text)
    return load(Options(config=str(file)), ENVIRONMENT)


def files():
    return {
        "compose": (FOLDER / "gateway.toml").read_text() + KEY,
        "kubernetes": kubernetes()["ConfigMap"]["data"]["gateway.toml"],
    }


@pytest.mark.parametrize("name", ["compose", "kubernetes"])
def test_the_file_of_an_example_is_one_that_the_gateway_takes(tmp_path, name):
    config = configured(tmp_path, files()[name])
    assert config.store.startswith("postgresql://")
    assert config.keys


def test_the_page_shows_a_file_that_the_gateway_takes(tmp_path):
    page = (FOLDER.parents[1] / "docs" / "gateway.md").read_text()
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    config = configured(tmp_path, text)
    assert [upstream.name for upstream in config.upstreams] == ["openai", "local"]


def test_nobody_is_killed_before_it_has_drained(tmp_path):
    drain = configured(tmp_path, files()["kubernetes"]).server.drain_seconds
    assert (
        kubernetes()["Deployment"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        > drain
    )
    assert int(compose()["x-gateway"]["stop_grace_period"].removesuffix("s")) > drain


def test_probes_ask_what_the_gateway_answers():
    (container,) = kubernetes()["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health/live"
    assert "/health/ready" in compose()["x-gateway"]["healthcheck"]["test"][-1]


def test_the_balancer_knows_the_replicas_of_the_example():
    replicas = re.findall(r"server (\w+):8770;", (FOLDER / "nginx.conf").read_text())
    assert replicas == ["one", "two"]
    assert set(replicas) < set(compose()["services"])
