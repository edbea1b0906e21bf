"""Another user who knocks at the ports of a cluster of ours."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from hdica.sweep.workers.cluster import cluster_settings, connect
from tests.hostile_users.conftest import NOBODY, Stranger

pytestmark = [pytest.mark.faults]

# All is loaded before it becomes that user, who may not be able to read it.
KNOCK = """
import asyncio, os, sys
import cryptography.x509, distributed
from distributed.comm import connect
from distributed.security import Security

own = Security.temporary().get_connection_args("client")
os.setgroups([])
os.setgid({user})
os.setuid({user})

async def answer(address, **given):
    try:
        comm = await connect(address, timeout=2, **given)
        await comm.write({{"op": "identity", "reply": True}})
        found = await asyncio.wait_for(comm.read(), 2)
        return found["type"]
    except Exception as exc:
        return "none"

async def main():
    for port in sys.argv[1:]:
        print(await answer("tcp://127.0.0.1:" + port))
        print(await answer("tls://127.0.0.1:" + port, **own))

asyncio.run(main())
"""


def answers(stranger: Stranger, cluster: dict[str, Any]) -> list[str]:
    """What scheduler, worker and nanny answer to the stranger, by plain tcp and behind TLS."""
    with connect(cluster_settings({"mode": "local", "workers": 1, **cluster})) as client:
        about = client.scheduler_info()
        ((address, worker),) = about["workers"].items()
        ports = [one.rpartition(":")[2] for one in (about["address"], address, worker["nanny"])]
        done = subprocess.run(
            [sys.executable, "-c", KNOCK.format(user=NOBODY), *ports],
            cwd=stranger.common,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert client.submit(sum, [1, 2]).result(timeout=60) == 3
    return done.stdout.split()


def test_nothing_of_a_local_cluster_answers_another_user(stranger: Stranger) -> None:
    assert answers(stranger, {}) == ["none"] * 6


def test_it_would_answer_without_certificates(stranger: Stranger) -> None:
    assert answers(stranger, {"insecure": True}) == [
        *("Scheduler", "none"),
        *("Worker", "none"),
        *("Nanny", "none"),
    ]
