"""Where things are on the target: `--set name=value`, the same names for every target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from nemolab.core.errors import UsageError
from nemolab.core.located import nearest


def _plain(text: str) -> str:
    """Paths and names may have blanks and quotes, but nothing that ends a line, and no colon that Docker splits at."""
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("text on one line")
    return text


def _path(text: str) -> str:
    if text and (":" in text or "," in text or not re.match(r"\.{0,2}/|[\w.-]", text)):
        raise ValueError("a path without colons and commas")
    return _plain(text)


def _label(text: str) -> str:
    if text and not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?", text):
        raise ValueError("small letters, digits and dashes, at most 52")
    return text


def _token(text: str) -> str:
    if text and not re.fullmatch(r"[\w.:@/+-]+", text):
        raise ValueError("letters, digits and . : @ / + - _")
    return text


Path_ = Annotated[str, AfterValidator(_path)]
Label = Annotated[str, AfterValidator(_label)]
Token = Annotated[str, AfterValidator(_token)]


class Settings(BaseModel):
    """Settings of a target; an empty text means the target's own default."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    name: Label = Field("", description="name of container, unit, job and Kubernetes objects")
    model_dir: Path_ = Field("", description="folder of the checkpoint, if it is there already")
    models: Path_ = Field("", description="folder for downloaded checkpoints and compiled kernels")
    bind: Token = Field("127.0.0.1", description="address on which the port is published")
    shm_gib: int = Field(16, ge=1, le=1024, description="shared memory of a container, GiB")
    disk_gb_s: float = Field(1.0, gt=0, le=1000, description="rate at which weights are read, GB/s")
    docker: Path_ = Field("/usr/bin/docker", description="Docker's client, for a unit")
    bin: Path_ = Field("", description="folder of the engine's programs, without a container")
    user: Label = Field("", description="user of a unit without a container; a dynamic one if empty")
    namespace: Label = Field("", description="Kubernetes namespace")
    storage_class: Token = Field("", description="Kubernetes storage class of the model volume")
    secret: Label = Field("", description="Kubernetes Secret that holds the secret variables; NAME-secrets if empty")
    pull_secret: Label = Field("", description="Kubernetes Secret for pulling the image")
    partition: Token = Field("", description="Slurm partition")
    account: Token = Field("", description="Slurm account")
    time: Token = Field("24:00:00", description="Slurm time limit")
    interface: Token = Field("", description="network interface between the nodes, such as eth0")

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Settings:
        """Settings from `name=value` texts.

        Raises:
            UsageError: an unknown name, or a value outside its limits.
        """
        for name in values:
            if name not in cls.model_fields:
                raise UsageError(f"no setting {name!r}", where="--set", fix=nearest(name, cls.model_fields))
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            first = error.errors()[0]
            message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
            raise UsageError(f"{first['loc'][0]}: {first['input']!r} is not {message}", where="--set") from None
