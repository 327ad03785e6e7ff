"""The examples of running it say what the gateway takes."""

import re
import tomllib
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
    fences = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (text,) = [one for one in fences if "[server]" in one]
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


ROOT = FOLDER.parents[1]


def copied():
    """What the image is made of: paths in the checkout, and where they are put."""
    lines = re.findall(r"^COPY (.+)$", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)
    return {
        name: f"{to}{name}" if to.endswith("/") else to
        for *names, to in map(str.split, lines)
        for name in names
    }


def test_the_image_is_built_from_a_checkout_that_has_all_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    wanted = {"pyproject.toml", "README.md", *project["project"]["license-files"]}
    wanted |= {
        *wheel["packages"],
        *wheel["force-include"],
        project["tool"]["hatch"]["version"]["path"],
        project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"],
    }
    for name in wanted:
        assert any(Path(name).is_relative_to(one) for one in copied()), name
    for name, to in copied().items():
        assert (ROOT / name).exists()
        assert to == f"/checkout/{name}"  # where it is in the checkout, it is there
    assert (
        "pip install --no-cache-dir '/checkout[gateway,postgres]'"
        in (FOLDER / "Dockerfile").read_text()
    )


def test_compose_builds_the_image_from_the_checkout_that_it_is_in():
    described = compose()
    builds = [one["build"] for one in described["services"].values() if "build" in one]
    assert len(builds) == 3  # two replicas, and what migrates
    for build in builds:
        context = (FOLDER / build["context"]).resolve()
        assert context == ROOT
        assert context / build["dockerfile"] == FOLDER / "Dockerfile"


@pytest.mark.parametrize(
    "page", [*ROOT.glob("docs/*.md"), *FOLDER.iterdir()], ids=lambda page: page.name
)
def test_nothing_is_installed_from_an_index_in_which_it_may_not_be(page):
    assert not re.findall(r"pip install[^\n]* '?lockstitch\b.*", page.read_text())
