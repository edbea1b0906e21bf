"""What says where Dask runs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hdica.errors import HdicaError
from hdica.sweep.study.size import check_size
from hdica.sweep.workers.address import Address, check_certificates, check_exposure, parse_address
from hdica.sweep.workers.care import BUDGET
from hdica.sweep.workers.slurm import SlurmSettings
from hdica.systems.axes import check_keys

Kind = Literal["serial", "local", "scheduler", "slurm"]
Mode = Literal["auto", "serial", "local", "scheduler", "slurm"]


class ClusterSettings(BaseModel):
    """Where Dask runs. It never changes a number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Mode = Field(
        default="auto",
        description="auto: scheduler if an address is given, else local where it is worth it",
    )
    workers: int = Field(default=1, ge=1, le=4096, description="processes of a local cluster")
    memory: str = Field(default="", description="beyond which a local worker is restarted: 2GiB")
    patience: float = Field(
        default=1800.0,
        gt=0,
        allow_inf_nan=False,
        description="seconds without any block that ends, after which a run gives up",
    )
    budget: float = Field(
        default=BUDGET,
        ge=0.1,
        allow_inf_nan=False,
        description="seconds of a processor that any point may take, or else it fails",
    )
    address: str = Field(default="", description="of a running scheduler: tls://host:port")
    scheduler_file: str = Field(default="", description="file that a running scheduler wrote")
    tls: str = Field(default="", description="folder with ca.pem, cert.pem and key.pem")
    tls_key: str = Field(default="", description="private key, where it is not in that folder")
    insecure: bool = Field(default=False, description="without certificates, everywhere")
    slurm: SlurmSettings = Field(default_factory=SlurmSettings, description="jobs of workers")

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        return given if isinstance(given, cls) else check_keys(given, list(cls.model_fields))

    @field_validator("memory")
    @classmethod
    def _memory(cls, given: str) -> str:
        return check_size(given, "memory") if given else given

    @model_validator(mode="after")
    def _reachable(self) -> ClusterSettings:
        if self.mode == "scheduler" and not self.external:
            raise HdicaError("mode = 'scheduler' needs an address or a scheduler_file")
        if self.kind == "scheduler" and self.address:
            self.allowed(parse_address(self.address))
        return self

    @property
    def external(self) -> bool:
        """Whether a running scheduler is named."""
        return bool(self.address or self.scheduler_file)

    @property
    def kind(self) -> Kind:
        """What ``mode`` comes to."""
        if self.mode != "auto":
            return self.mode
        if self.external:
            return "scheduler"
        return "local" if self.workers > 1 else "serial"

    def allowed(self, address: Address, field: str = "address") -> Address:
        """``address`` if these settings allow it."""
        check_exposure(address, self.insecure, field)
        check_certificates(address, self.tls, field)
        return address
