"""Settings of clusters: what is allowed, what the environment adds, and what the workflow knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from hdica.errors import HdicaError
from hdica.process.machine import in_bytes
from hdica.run import cluster
from hdica.run.cluster import Reached, ready
from hdica.run.settings import (
    ENVIRONMENT,
    ClusterSettings,
    Retry,
    SlurmSettings,
    cluster_settings,
    parse_address,
)
from hdica.run.slurm import lifetime

ROOT = Path(__file__).parents[2]
SCHEMA = YAML(typ="safe", pure=True).load(ROOT / "workflow/schemas/config.schema.yaml")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ENVIRONMENT.values():
        monkeypatch.delenv(variable, raising=False)


def refusal(given: dict[str, Any]) -> str:
    with pytest.raises(HdicaError) as caught:
        cluster_settings(given)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("text", "shown", "loopback"),
    [
        ("tcp://127.0.0.1:8786", "tcp://127.0.0.1:8786", True),
        ("127.0.0.1:8786", "tcp://127.0.0.1:8786", True),
        ("tls://localhost:1", "tls://localhost:1", True),
        ("tcp://[::1]:8786", "tcp://[::1]:8786", True),
        ("tls://node7.site.org:8786", "tls://node7.site.org:8786", False),
        ("tcp://127.0.0.1.site.org:8786", "tcp://127.0.0.1.site.org:8786", False),
        ("tcp://10.0.0.7:8786", "tcp://10.0.0.7:8786", False),
        ("tcp://0.0.0.0:8786", "tcp://0.0.0.0:8786", False),
    ],
)
def test_addresses_are_read_and_loopback_is_known(text: str, shown: str, loopback: bool) -> None:
    address = parse_address(text)
    assert (str(address), address.loopback) == (shown, loopback)
    assert address.exposed == (not loopback and text[:3] != "tls")


@pytest.mark.parametrize(
    "text",
    ["ws://h:1", "inproc://1/2", "h", "tcp://h", "tcp://:1", "tcp://h:0", "tcp://h:65536",
     "tcp://h:x", "tcp://h:1/path", "tcp://me@h:1", "tcp://h:1?x", "ucx://h:1", "tcp://[::1:5"],
)  # fmt: skip
def test_other_addresses_are_refused(text: str) -> None:
    said = refusal({"address": text})
    forms = "tcp://host:port or tls://host:port"
    assert said == f"cluster: address = {text!r} is not allowed ({forms})"


def test_plain_tcp_beyond_this_machine_needs_insecure() -> None:
    said = refusal({"address": "tcp://10.0.0.7:8786"})
    assert said.startswith("cluster: address = 'tcp://10.0.0.7:8786' is not allowed (over plain")
    assert "tls://" in said
    assert "insecure: true" in said
    settings = cluster_settings({"address": "tcp://10.0.0.7:8786", "insecure": True})
    assert settings.kind == "scheduler"
    assert cluster_settings({"address": "tcp://127.0.0.1:8786"}).kind == "scheduler"


def test_an_encrypted_address_needs_certificates() -> None:
    assert "needs tls (the folder with ca.pem" in refusal({"address": "tls://10.0.0.7:8786"})
    assert cluster_settings({"address": "tls://h:1", "tls": "certs"}).tls == "certs"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mode": "cloud"}, "cluster: mode = 'cloud' is not allowed"),
        ({"memory": "2"}, "cluster: memory = '2' is not allowed (a number and a unit, as 2GiB"),
        ({"memory": "1MB"}, "cluster: memory = '1MB' is not allowed"),
        ({"memory": 2}, "cluster: memory = 2 is not allowed"),
        ({"patience": 0}, "cluster: patience = 0 is not allowed"),
        ({"patience": float("nan")}, "cluster: patience = nan is not allowed"),
        ({"insecure": "perhaps"}, "cluster: insecure = 'perhaps' is not allowed"),
        ({"slurm": 3}, "cluster: slurm: it must be a mapping"),
        ("slrum", "cluster = 'slrum' is not allowed (did you mean 'slurm'? allowed: auto, "),
        ("scheduler", "mode = 'scheduler' needs an address or a scheduler_file"),
        ("tcp://far.example:8786", "is not allowed (over plain tcp anyone on the network"),
        ({"slurm": {"quue": "x"}}, "cluster: slurm.quue is not a known key (did you mean 'queue'"),
        ({"slurm": {"partition": "x"}}, "slurm.partition is not a known key (did you mean 'queue'"),
        ({"slurm": {"mem": "4G"}}, "cluster: slurm.mem is not a known key (did you mean 'memory'"),
        ({"slurm": {"queue": "a b"}}, "cluster: slurm.queue = 'a b' is not allowed"),
        ({"slurm": {"account": "x\n#SBATCH --uid=0"}}, "cluster: slurm.account = "),
        ({"slurm": {"cores": 0}}, "cluster: slurm.cores = 0 is not allowed"),
        ({"slurm": {"processes": 2}}, "processes = 2 is not allowed (at most cores = 1)"),
        ({"slurm": {"minimum": 3, "maximum": 2}}, "minimum = 3 is not allowed (at most maximum"),
        ({"slurm": {"walltime": 3600}}, "slurm.walltime = 3600 is not allowed (in quotes"),
        ({"slurm": {"walltime": "1h"}}, "slurm.walltime = '1h' is not allowed"),
        ({"slurm": {"walltime": "00:00:30"}}, "slurm.walltime = '00:00:30' is not allowed"),
        ({"slurm": {"cores": 64}}, "at least 256MiB for each of 64 workers)"),
        ({"slurm": {"memory": "lots"}}, "slurm.memory = 'lots' is not allowed"),
        ({"slurm": {"directives": ["--qos=x\nrm -rf ."]}}, "slurm.directives: "),
        ({"slurm": {"directives": ["qos=x"]}}, "'qos=x' is not allowed (one option a line"),
        ({"slurm": {"directives": ["--array=0-9"]}}, "'--array=0-9' is not allowed (hdica sets"),
        ({"slurm": {"directives": ["-t 99:00:00"]}}, "itself: walltime is its setting"),
        ({"slurm": {"directives": ["-t99:00:00"]}}, "itself: walltime is its setting"),
        ({"slurm": {"directives": ["--mem-per-cpu=1G"]}}, "itself: memory is its setting"),
        ({"slurm": {"directives": ["-o x.log"]}}, "'-o x.log' is not allowed (hdica sets"),
        ({"slurm": {"queue": "-x"}}, "cluster: slurm.queue = '-x' is not allowed"),
        ({"slurm": {"exclude": "node[1-3"}}, "cluster: slurm.exclude = 'node[1-3' is not allowed"),
        ({"slurm": {"exclude": "--foo"}}, "cluster: slurm.exclude = '--foo' is not allowed"),
        ({"slurm": {"retry": {"memory": 1, "walltime": 1}}}, "slurm.retry: memory = walltime = 1"),
        ({"slurm": {"directives": "--qos=x"}}, "slurm.directives = '--qos=x' is not allowed"),
        ({"slurm": {"exclude": "node1 --uid=0"}}, "slurm.exclude = 'node1 --uid=0' is not allowed"),
        ({"slurm": {"requeue": "perhaps"}}, "slurm.requeue = 'perhaps' is not allowed"),
        ({"slurm": {"at_once": 5}}, "at_once = 5 needs array: true"),
        ({"slurm": {"retry": {"most": 9}}}, "slurm.retry.most = 9 is not allowed"),
        ({"slurm": {"retry": {"memory": 0.5}}}, "slurm.retry.memory = 0.5 is not allowed"),
        ({"slurm": {"retry": 2}}, "cluster: slurm.retry: it must be a mapping"),
        ({"slurm": {"account": 1.5}}, "slurm.account = 1.5 is not allowed"),
        ({"slurm": {"startup": -1}}, "cluster: slurm.startup = -1 is not allowed"),
    ],
)  # fmt: skip
def test_wrong_settings_are_one_sentence(given: Any, said: str) -> None:
    assert said in refusal(given)


def test_the_environment_says_what_settings_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDICA_SCHEDULER", "tls://h:1")
    monkeypatch.setenv("HDICA_TLS", "certs")
    monkeypatch.setenv("HDICA_TLS_KEY", "/secret/key.pem")
    found = cluster_settings()
    assert (found.kind, found.address, found.tls) == ("scheduler", "tls://h:1", "certs")
    assert found.tls_key == "/secret/key.pem"
    # What is given wins, and a place that is given is the only one.
    assert cluster_settings({"address": "tls://other:2"}).address == "tls://other:2"
    assert cluster_settings({"scheduler_file": "s.json"}).address == ""
    assert cluster_settings({"tls": "mine"}).tls == "mine"
    assert cluster_settings({"mode": "local"}, workers=2).address == ""
    assert cluster_settings({"mode": "serial"}).kind == "serial"
    monkeypatch.setenv("HDICA_SCHEDULER_FILE", "s.json")
    assert cluster_settings().scheduler_file == ""
    monkeypatch.delenv("HDICA_SCHEDULER")
    assert cluster_settings().scheduler_file == "s.json"


def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDICA_SCHEDULER", "tcp://10.0.0.7:8786")
    said = refusal({})
    assert said.startswith("cluster (with HDICA_SCHEDULER of the environment): address = 'tcp://")


def test_settings_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(HdicaError, match="must be a mapping"):
        cluster_settings(["local"])


def test_one_word_says_where() -> None:
    assert cluster_settings("slurm") == cluster_settings({"mode": "slurm"})
    assert cluster_settings("local", workers=3).workers == 3
    address = "tcp://127.0.0.1:8786"
    assert cluster_settings(address) == cluster_settings({"mode": "scheduler", "address": address})
    assert cluster_settings("run/scheduler.json").scheduler_file == "run/scheduler.json"


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GiB", 2 * 2**30), ("500MB", 500 * 10**6), ("1.5 GB", 15 * 10**8), ("1TiB", 2**40),
     ("300000kB", 3 * 10**8), ("2", 0), ("GiB", 0), ("2gib", 0), ("-2GiB", 0), ("1e9GiB", 0)],
)  # fmt: skip
def test_sizes_are_those_of_dask(text: str, size: int) -> None:
    from dask.utils import parse_bytes

    assert in_bytes(text) == size
    if size:
        assert parse_bytes(text) == size


def test_insecure_warns_each_time_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(settings: ClusterSettings) -> Reached:
        return Reached(cluster.find(settings), None, 7)

    monkeypatch.setattr(cluster, "reach", reached)
    with pytest.warns(UserWarning, match="anyone on the network"):
        found = ready(cluster_settings({"address": "tcp://10.0.0.7:1", "insecure": True}))
    assert found.workers == 7


def test_loopback_does_not_warn(monkeypatch: pytest.MonkeyPatch, recwarn: Any) -> None:
    reached = Reached(parse_address("tcp://127.0.0.1:1"), None, 0)
    monkeypatch.setattr(cluster, "reach", lambda settings: reached)
    found = ready(cluster_settings({"address": "tcp://127.0.0.1:1", "insecure": True}))
    assert found.workers == 1
    assert not recwarn.list


def test_a_local_plan_counts_on_the_workers_that_are_asked_for() -> None:
    assert ready(cluster_settings({"mode": "local", "workers": 3})).workers == 3
    assert ready(cluster_settings()).workers == 1


def test_jobs_are_as_many_as_the_blocks_are_worth() -> None:
    slurm = SlurmSettings(cores=8, processes=4, minimum=2, maximum=10)
    assert slurm.workers == 40
    assert [slurm.jobs_for(blocks) for blocks in (10**9, 1, 9, 17, 1000)] == [10, 2, 3, 5, 10]
    assert SlurmSettings(cores=8).workers_each == 8


def test_larger_jobs_have_more_of_what_was_lacking_so_often() -> None:
    first = SlurmSettings(memory="3GB", walltime="23:00:30", retry={"memory": 1.5, "walltime": 2})
    assert first.larger(False, False) is None
    second = first.larger(memory=True, walltime=False)
    assert second is not None
    assert (second.memory, second.seconds) == ("4292MiB", first.seconds)
    third = second.larger(memory=False, walltime=True)
    assert third is not None
    assert (third.memory, third.walltime) == ("4292MiB", "1-22:01:00")
    assert third.seconds == 2 * first.seconds
    assert third.larger(True, True) is None
    assert SlurmSettings().larger(True, True) is None
    # More of one is no help where the other is lacking.
    assert SlurmSettings(retry={"walltime": 1}).larger(memory=False, walltime=True) is None


@pytest.mark.parametrize("walltime", [60, 600, 3600, 86400, 7 * 86400])
def test_workers_begin_to_end_before_the_walltime(walltime: int) -> None:
    begin, stagger = lifetime(walltime)
    left = walltime - (begin + stagger)
    assert begin - stagger > 0
    assert min(30, walltime / 4) <= left <= 900
    assert stagger < left


@pytest.mark.parametrize(
    ("model", "part"),
    [
        (ClusterSettings, ()),
        (SlurmSettings, ("properties", "slurm")),
        (Retry, ("properties", "slurm", "properties", "retry")),
    ],
)
def test_the_schema_of_the_workflow_has_the_same_keys_and_defaults(
    model: Any, part: tuple[str, ...]
) -> None:
    schema = SCHEMA["properties"]["cluster"]
    for key in part:
        schema = schema[key]
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(model.model_fields)
    for name, entry in schema["properties"].items():
        assert entry["description"], name
        if "default" in entry:
            assert entry["default"] == model.model_fields[name].default, name


def test_the_manual_lists_every_key_of_a_job() -> None:
    manual = (ROOT / "config/README.md").read_text()
    for name in SlurmSettings.model_fields:
        assert f"`{name}`" in manual, name


@pytest.mark.parametrize(
    "argument",
    [
        "cluster={mode: local, workers: 2, memory: 2GiB, patience: 60.5, insecure: true}",
        "cluster={mode: slurm, slurm: {cores: 4, walltime: '02:00:00', directives: [--qos=x], "
        "requeue: false, array: true, retry: {memory: 1.5, most: 1}, account: 1234}}",
    ],
)
def test_the_command_line_of_snakemake_makes_texts_and_that_is_enough(argument: str) -> None:
    from snakemake.cli import parse_config

    config = {"studies": "tiny", **parse_config([argument])}
    jsonschema.validate(config, SCHEMA)
    found = cluster_settings(config["cluster"])
    if found.kind == "local":
        assert (found.workers, found.patience, found.insecure) == (2, 60.5, True)
    else:
        slurm = found.slurm
        assert (slurm.cores, slurm.seconds, slurm.account) == (4, 7200, "1234")
        assert (slurm.requeue, slurm.array) == (False, True)
        assert slurm.retry == Retry(memory=1.5, walltime=2, most=1)


@pytest.mark.parametrize(
    "cluster",
    [{"mode": "cloud"}, {"workers": 0}, {"memory": "2"}, {"slurm": {"quue": "x"}}, {"patience": 0}],
)
def test_the_schema_refuses_too(cluster: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"studies": "tiny", "cluster": cluster}, SCHEMA)
