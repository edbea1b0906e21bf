"""Dask's processes that hdica starts: one thread each, private files, certificates.

By default Dask loads modules from a folder that anybody may have made, and every scheduler and
worker has an HTTP server that shows any user of the machine what runs and where. Workers on this
machine are forked from a process that has loaded their code.
"""

from __future__ import annotations

import datetime
import logging
import os
import signal
import ssl
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdica.errors import HdicaError
from hdica.process.compile_cache import set_cache_folder
from hdica.process.private import HOST, scratch, writable

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

    from hdica.run.settings import ClusterSettings

NODE = "hdica.run.node"  # module that Dask's servers load, and that starts them
CA, CERTIFICATE, KEY = "ca.pem", "cert.pem", "key.pem"
SKEW = datetime.timedelta(hours=1)  # how far behind the clock of another machine may be
VALID = datetime.timedelta(days=3650)  # longer than any process has a certificate
MADE = "docs/where-it-runs.md says how to make ca.pem, cert.pem and key.pem"
THREAD_VARIABLES = tuple(
    f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
)
DASK = {
    # Observe less often: by default that takes four per cent of two cores.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    # Restart a worker above its memory. Dask would first pause it, and then it waits for ever,
    # since what a block takes is no data that could be moved.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 1.0,
    # A process that is stopped while it has the lock of the folder would let no other one start.
    "distributed.worker.use-file-locking": False,
}
"""Settings of Dask in every process of a cluster."""


@contextmanager
def for_children() -> Iterator[None]:
    """Let child processes use one thread each and load nothing from the current folder.

    Their temporary files, and meanwhile those of this process, go to its private folder.
    """
    # In the parent's environment: a worker's own settings come after its libraries are loaded.
    folder = str(scratch())
    ours = {**dict.fromkeys(THREAD_VARIABLES, "1"), "PYTHONSAFEPATH": "1", "TMPDIR": folder}
    before, place = {name: os.environ.get(name) for name in ours}, tempfile.tempdir
    os.environ.update(ours)
    tempfile.tempdir = folder
    try:
        yield
    finally:
        tempfile.tempdir = place
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def own_dask(pages: bool = False) -> Iterator[None]:
    """Let Dask's servers that are started here have our settings, and web ``pages`` if wanted."""
    import dask
    import distributed  # noqa: F401  (its defaults must be there before ours come and go)

    ours: dict[str, Any] = {**DASK, "temporary-directory": str(scratch())}
    for kind in ("worker", "scheduler"):
        loaded = dask.config.get(f"distributed.{kind}.preload", None) or []
        loaded = [loaded] if isinstance(loaded, str) else loaded
        ours[f"distributed.{kind}.preload"] = [*loaded, NODE]
        if kind == "worker" or not pages:
            # The server listens for the moment until it is stopped.
            ours[f"distributed.{kind}.http.routes"] = []
    try:
        with dask.config.set(ours):
            yield
    finally:
        unload(scratch())


def unload(folder: Path) -> None:
    """Load no module from a folder, or from what lies in it."""
    sys.path[:] = [path for path in sys.path if not Path(path).is_relative_to(folder)]


def certificates(settings: ClusterSettings) -> Security | None:
    """Certificates of a cluster that a run starts: those of the settings, none, or our own."""
    if settings.tls:
        return read_certificates(settings.tls, settings.tls_key)
    return None if settings.insecure else own_certificates()


@cache
def own_certificates() -> Security:
    """A certificate of this process for its clusters, signed by itself, with its key in memory.

    Dask's own ``Security.temporary`` makes one that a node refuses whose clock is behind.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as exc:
        text = "making certificates needs the library cryptography (pip install cryptography)"
        raise HdicaError(text) from exc

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hdica")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + VALID)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain).decode()
    certificate = signed.public_bytes(pem).decode()
    return _security(certificate, certificate, secret)


def _security(ca: str, certificate: str, key: str) -> Security:
    """Dask's description of certificates, by their paths or in full, for every role."""
    from distributed.security import Security

    roles = ("client", "scheduler", "worker")
    return Security(
        require_encryption=True,
        tls_ca_file=ca,
        **{f"tls_{role}_cert": certificate for role in roles},
        **{f"tls_{role}_key": key for role in roles},
    )


def write_certificates(security: Security, folder: Path) -> Security:
    """Write certificates that are in memory to a private folder, and read them from there."""
    contents = (security.tls_ca_file, security.tls_worker_cert, security.tls_worker_key)
    for name, content in zip((CA, CERTIFICATE, KEY), contents, strict=True):
        with open(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(content)
    return read_certificates(str(folder))


def certificates_in(folder: str, key: str = "") -> Security:
    """The paths of certificates in a folder; ``key`` is that of the key, if it lies elsewhere."""
    base = Path(folder).expanduser().absolute()
    secret = Path(key).expanduser().absolute() if key else base / KEY
    return _security(str(base / CA), str(base / CERTIFICATE), str(secret))


def read_certificates(folder: str, key: str = "") -> Security:
    """The certificates in a folder, read and checked; ``key`` is as for `certificates_in`."""
    security = certificates_in(folder, key)
    paths = [
        Path(f) for f in (security.tls_ca_file, security.tls_worker_cert, security.tls_worker_key)
    ]
    base, secret = Path(folder).expanduser().absolute(), paths[-1]
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as exc:
            text = f"tls = {folder!r}: {path} cannot be read ({exc.strerror}; {MADE})"
            raise HdicaError(text) from exc
        # OpenSSL would ask for the pass phrase on the terminal, and wait.
        if b"ENCRYPTED" in content:
            raise HdicaError(f"tls: {path} is encrypted (a key without a pass phrase is needed)")
    if secret.stat().st_mode & 0o077:
        warnings.warn(f"{secret} can be read by others (chmod 600 {secret})", stacklevel=2)
    for path in {base, *paths}:
        if writable(path.stat()):
            text = f"others can write to {path}, and could run commands as you"
            warnings.warn(f"{text} (chmod go-w {path})", stacklevel=2)
    try:
        security.get_connection_args("client")
    except (ssl.SSLError, ValueError) as exc:
        reason = getattr(exc, "reason", None) or str(exc)
        raise HdicaError(
            f"tls = {folder!r}: {CA}, {CERTIFICATE} and {secret.name} do not belong together "
            f"({reason}; {MADE})"
        ) from exc
    return security


FORKS = sys.platform == "linux"  # whether processes with numerical libraries may be forked
PRELOADED = (
    "distributed",
    "scipy.special",
    "hdica.run.worker",
    "hdica.finite.projected.chain_kernels",
    "hdica.finite.projected.vector_kernels",
)
"""What a worker loads before its first block, and what most methods load in it."""
COLD_START, WARM_START = 1.8, 0.25  # seconds before a local cluster computes


def unguarded() -> str:
    """What to change in a script that would start workers anew in every worker; empty if none."""
    script = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    with suppress(OSError, ValueError):
        if script.endswith(".py") and "__main__" not in Path(script).read_text():
            return f" ({script} has to begin its work below: if __name__ == '__main__')"
    return ""


@cache
def start_loading() -> float:
    """Start a process that loads the workers' libraries, to fork them from; when that was."""
    if FORKS:
        from multiprocessing import forkserver, resource_tracker

        set_cache_folder()  # or each process would do it anew
        forkserver.set_forkserver_preload(list(PRELOADED))
        with for_children():
            # Ctrl-C goes to every process of a terminal. This one and its forks would each print a
            # traceback, although the process that has started them ends them.
            resource_tracker.ensure_running()  # which lets SIGINT through again
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                forkserver.ensure_running()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return time.monotonic()


def start_seconds() -> float:
    """How long a local cluster would take to start now."""
    begun = FORKS and start_loading.cache_info().currsize
    return WARM_START if begun and time.monotonic() - start_loading() > COLD_START else COLD_START


@contextmanager
def _startable() -> Iterator[None]:
    """Let processes be started from a program of standard input and from a daemonic process."""
    # A new process imports the file of the program first, and ``<stdin>`` is none. A daemonic one
    # may have no children in multiprocessing, which would outlive it; these end with it.
    from multiprocessing import process

    ours: dict[str, Any] = process.current_process()._config  # type: ignore[attr-defined]
    before, main = ours.get("daemon"), vars(sys.modules["__main__"])
    path = main.get("__file__")
    if path is not None and not Path(process.ORIGINAL_DIR or "", path).exists():  # type: ignore[attr-defined]
        del main["__file__"]
    ours["daemon"] = False
    try:
        yield
    finally:
        ours["daemon"] = before
        if path is not None:
            main["__file__"] = path


@contextmanager
def local_client(
    workers: int, memory: int = 0, security: Security | None = None
) -> Iterator[Client]:
    """A client of a cluster of processes that nothing beyond this machine can reach.

    A worker is restarted beyond ``memory`` bytes; 0 is no limit.
    """
    import dask
    from distributed import Client, LocalCluster

    # Workers are spawned where forking is not safe.
    method = {"distributed.worker.multiprocessing-method": "forkserver"} if FORKS else {}
    with (
        for_children(),
        _startable(),
        own_dask(),
        dask.config.set(method),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host=HOST,
            # The HTTP server that is stopped at once: on a fixed port it warns where two runs meet.
            scheduler_kwargs={"dashboard": False, "dashboard_address": f"{HOST}:0"},
            memory_limit=memory,
            security=security,
            # A server that has been running for long knows an old environment.
            env=dict(os.environ),
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
