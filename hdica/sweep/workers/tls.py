"""Certificates of a Dask cluster: making them, and reading them for Dask."""

from __future__ import annotations

import datetime
import ipaddress
import re
import socket
import ssl
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdica.errors import HdicaError
from hdica.process.private import private_folder
from hdica.process.trust import make_folders, writable
from hdica.sweep.files.paths import refuse_own, write_whole

if TYPE_CHECKING:
    from hdica.sweep.workers.settings import ClusterSettings

CA, CERTIFICATE, KEY = "ca.pem", "cert.pem", "key.pem"
DAYS, MOST_DAYS = 365, 3650
AUTHORITY = "hdica cluster authority"
HOST = re.compile(r"(?!-)[A-Za-z0-9_*-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")
SKEW = datetime.timedelta(hours=1)
"""How far behind the clock of another machine may be."""


def certificate_names(given: Iterable[str] = ()) -> tuple[str, ...]:
    """Names that a certificate carries: the given ones, or this machine's."""
    names = tuple(dict.fromkeys(given)) or (socket.gethostname(), "localhost", "127.0.0.1")
    for name in names:
        if not (_number(name) or HOST.fullmatch(name)):
            raise HdicaError(f"name {name!r} is not allowed (a host name or an address)")
    return names


def _number(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def make_certificates(
    folder: Path, names: Iterable[str] = (), days: int = DAYS, replace: bool = False
) -> datetime.datetime:
    """Write a private authority and a certificate with its key, for all of a cluster; when it ends.

    ``folder`` gets ca.pem, cert.pem and key.pem; the key for its owner alone. The authority's own
    key is written nowhere, so nothing else can ever be signed with it. ``names`` are hosts that the
    certificate names; Dask does not compare them. ``replace`` allows for files that are there.
    """
    refuse_own(folder)
    if not 1 <= days <= MOST_DAYS:
        raise HdicaError(f"days = {days} is not allowed (1 to {MOST_DAYS})")
    listed = certificate_names(names)
    there = [folder / name for name in (CA, CERTIFICATE, KEY) if (folder / name).exists()]
    if there and not replace:
        raise HdicaError(f"{there[0]} exists (choose another folder, or --replace it)")
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    ca, certificate, key = _signed(listed, ends)
    make_folders(folder, 0o700)
    if writable(folder.stat()):
        raise HdicaError(
            f"others can write to {folder}, and exchange the certificates in it (chmod go-w "
            f"{folder}, or choose another folder)"
        )
    write_whole(folder / KEY, key, 0o600)
    write_whole(folder / CERTIFICATE, certificate, 0o644)
    write_whole(folder / CA, ca, 0o644)
    return ends


def _begun(name: str, key: Any, ends: datetime.datetime) -> Any:
    """What an authority and a certificate have in common."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject, issuer = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (name, AUTHORITY)
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime.now(datetime.UTC) - SKEW)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    )


def _usage(signs: bool) -> Any:
    """What a key may do: sign certificates, or show who it is."""
    from cryptography import x509

    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
        **dict.fromkeys(unused, False),
    )


def _certificate(authority: Any, key: Any, names: tuple[str, ...], ends: datetime.datetime) -> Any:
    """The certificate of a key, for both ends of a connection, unsigned."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    listed = [x509.IPAddress(n) if (n := _number(name)) else x509.DNSName(name) for name in names]
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    return (
        _begun("hdica cluster", key, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .add_extension(_usage(signs=False), True)
        .add_extension(x509.ExtendedKeyUsage(purposes), False)
        .add_extension(x509.SubjectAlternativeName(listed), False)
        .add_extension(issuer, False)
    )


def _signed(names: tuple[str, ...], ends: datetime.datetime) -> tuple[bytes, bytes, bytes]:
    """An authority, a certificate signed by it, and the certificate's key, all as PEM."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as exc:
        raise HdicaError(
            "making certificates needs the library cryptography (pip install cryptography)"
        ) from exc

    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = (
        _begun(AUTHORITY, authority, ends)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .add_extension(_usage(signs=True), True)
        .sign(authority, hashes.SHA256())
    )
    certificate = _certificate(authority, key, names, ends).sign(authority, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    return ca.public_bytes(pem), certificate.public_bytes(pem), secret


def security(folder: str, key: str = "") -> Any:
    """Dask's description of the certificates in a folder, for clients, workers and schedulers.

    ``key`` is the path of the private key, where it does not lie there.
    """
    from distributed.security import Security

    base = Path(folder).expanduser().absolute()
    secret = Path(key).expanduser().absolute() if key else base / KEY
    paths = base / CA, base / CERTIFICATE, secret
    texts = [_read(path, folder) for path in paths]
    # OpenSSL would ask for the pass phrase on the terminal, and wait.
    if b"ENCRYPTED" in texts[-1]:
        raise HdicaError(f"tls: {secret} is encrypted (a key without a pass phrase is needed)")
    if secret.stat().st_mode & 0o077:
        warnings.warn(f"{secret} can be read by others (chmod 600 {secret})", stacklevel=2)
    for path in {base, *paths}:
        if writable(path.stat()):
            text = f"others can write to {path}, and whoever does runs commands as you"
            warnings.warn(f"{text} (chmod go-w {path})", stacklevel=2)
    ca, certificate, secret_text = (str(path) for path in paths)
    roles = ("client", "scheduler", "worker")
    found = Security(
        require_encryption=True,
        tls_ca_file=ca,
        **{f"tls_{role}_cert": certificate for role in roles},
        **{f"tls_{role}_key": secret_text for role in roles},
    )
    try:
        found.get_connection_args("client")
    except (ssl.SSLError, ValueError) as exc:
        reason = getattr(exc, "reason", None) or str(exc)
        raise HdicaError(
            f"tls = {folder!r}: {CA}, {CERTIFICATE} and {secret.name} do not belong together "
            f"({reason}; hdica cluster certs makes new ones)"
        ) from exc
    return found


@contextmanager
def certificates(
    settings: ClusterSettings, folder: Path, names: Iterable[str] = ()
) -> Iterator[Any]:
    """Certificates of a cluster that a run starts, as :func:`security` describes them.

    They are those that the settings name, or new ones for the time of the body; None if the
    settings want none. New ones lie below ``folder``, in one for this user alone that is gone with
    the body or at the start of the next.
    """
    if settings.tls:
        yield security(settings.tls, settings.tls_key)
    elif settings.insecure:
        yield None
    else:
        with private_folder(folder, "tls-") as made:
            make_certificates(made, names)
            yield security(str(made))


def _read(path: Path, folder: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise HdicaError(
            f"tls = {folder!r}: {path} cannot be read ({exc.strerror}; hdica cluster certs makes "
            "ca.pem, cert.pem and key.pem)"
        ) from exc
