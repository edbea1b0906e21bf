"""Another user who knocks at every port of a cluster of ours."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import psutil
import pytest

from hdica.run.cluster import connect
from hdica.run.settings import cluster_settings
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

async def page(port):
    try:
        asks, writes = await asyncio.open_connection("127.0.0.1", port)
        writes.write(b"GET /json/identity.json HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n")
        found = await asyncio.wait_for(asks.read(5), 2)
        return "page" if found == b"HTTP/" else "none"
    except Exception as exc:
        return "none"

async def main():
    for port in sys.argv[1:]:
        print(await answer("tcp://127.0.0.1:" + port))
        print(await answer("tls://127.0.0.1:" + port, **own))
        print(await page(port))

asyncio.run(main())
"""


def listening() -> set[str]:
    """Ports at which this process and its children listen."""
    me = psutil.Process()
    found = (one.net_connections() for one in (me, *me.children(recursive=True)))
    return {str(c.laddr.port) for each in found for c in each if c.status == psutil.CONN_LISTEN}


def answers(stranger: Stranger, cluster: dict[str, Any]) -> list[str]:
    """What scheduler, worker and nanny answer to the stranger: by plain tcp, TLS and HTTP.

    There is no other port.
    """
    before = listening()
    with connect(cluster_settings({"mode": "local", "workers": 1, **cluster})) as client:
        about = client.scheduler_info()
        ((address, worker),) = about["workers"].items()
        ports = [one.rpartition(":")[2] for one in (about["address"], address, worker["nanny"])]
        assert listening() - before == set(ports)
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
    assert answers(stranger, {}) == ["none"] * 9


@pytest.mark.deep
def test_it_would_answer_without_certificates(stranger: Stranger) -> None:
    assert answers(stranger, {"insecure": True}) == [
        *("Scheduler", "none", "none"),
        *("Worker", "none", "none"),
        *("Nanny", "none", "none"),
    ]
