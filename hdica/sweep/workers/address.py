"""Addresses of Dask schedulers: which are well formed, and which of them may be used."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from hdica.errors import HdicaError

FORMS = "tcp://host:port or tls://host:port"


@dataclass(frozen=True)
class Address:
    """Where a scheduler listens."""

    protocol: str  # tcp or tls
    host: str
    port: int

    def __str__(self) -> str:
        """As Dask takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}://{host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it; a name is looked up nowhere."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def encrypted(self) -> bool:
        """Whether both sides show certificates."""
        return self.protocol == "tls"

    @property
    def exposed(self) -> bool:
        """Whether others on the network could read it and send commands."""
        return not self.encrypted and not self.loopback


def parse_address(text: str, field: str = "address") -> Address:
    """Read an address as a user writes it; without a protocol it means tcp."""
    refused = HdicaError(f"{field} = {text!r} is not allowed ({FORMS})")
    try:
        parts = urlsplit(text if "://" in text else f"tcp://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise refused from None
    rest = parts.path or parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in ("tcp", "tls") or not host or not port or rest:
        raise refused
    return Address(parts.scheme, host, port)


def check_exposure(address: Address, insecure: bool, field: str = "address") -> None:
    """Refuse plain tcp beyond this machine unless it was asked for.

    A Dask scheduler runs whatever it is sent.
    """
    if address.exposed and not insecure:
        raise HdicaError(
            f"{field} = {str(address)!r} is not allowed (over plain tcp anyone on the network can "
            "run commands as you: use tls://, with certificates of hdica cluster certs, or set "
            "insecure: true)"
        )


def check_certificates(address: Address, tls: str, field: str = "address") -> None:
    """Refuse an encrypted address without certificates."""
    if address.encrypted and not tls:
        raise HdicaError(
            f"{field} = {str(address)!r} needs tls (the folder with ca.pem, cert.pem and key.pem "
            "that hdica cluster certs writes; or HDICA_TLS in the environment)"
        )
