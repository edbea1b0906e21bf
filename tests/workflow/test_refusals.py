"""What a mistake in a configuration looks like: one sentence that names the key; nothing runs."""

import pytest

from tests.workflow.conftest import ROOT, Checkout


def refusal(checkout: Checkout, *arguments: str) -> str:
    done = checkout.snakemake("-n", *arguments)
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    assert not (checkout.folder / "results").exists()
    return done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("studies: [first]\nsedes: 4\n", "'sedes' was unexpected"),
        ("studies: [first]\nshards: 0\n", "0 is less than the minimum of 1"),
        ("studies: [first]\ncluster: {mode: cloud}\n", "'cloud' is not one of"),
        ("studies: [first]\ncluster: {slurm: {walltime: 1h}}\n", "walltime = '1h' is not allowed"),
        ("shards: 1\n", "'studies' is a required property"),
        ("studies: [missing]\n", "config/studies/missing.yaml"),
    ],
)
def test_wrong_configuration_is_named(checkout: Checkout, text: str, said: str) -> None:
    checkout.config(text)
    assert said in refusal(checkout)


def test_wrong_study_is_one_sentence(checkout: Checkout) -> None:
    path = checkout.study("first")
    path.write_text(path.read_text().replace("times:", "tmies:"))
    lines = refusal(checkout).splitlines()
    (sentence,) = [line for line in lines if "tmies" in line]
    assert "did you mean 'times'" in sentence


def test_studies_can_be_chosen_on_the_command_line(checkout: Checkout) -> None:
    checkout.study("other")
    assert checkout.jobs("-n", "--config", "studies=[other]")["report"] == {"other"}


def test_lint_is_clean(checkout: Checkout) -> None:
    done = checkout.snakemake("--lint")
    assert done.returncode == 0, done.stdout


def test_schema_describes_every_key_and_the_manual_lists_it() -> None:
    from ruamel.yaml import YAML

    schema = YAML(typ="safe", pure=True).load(ROOT / "workflow/schemas/config.schema.yaml")
    manual = (ROOT / "config/README.md").read_text()
    assert schema["additionalProperties"] is False
    for key, entry in schema["properties"].items():
        assert entry["description"]
        assert f"`{key}" in manual
    for key in schema["properties"]["cluster"]["properties"]:
        assert f"`cluster.{key}`" in manual
