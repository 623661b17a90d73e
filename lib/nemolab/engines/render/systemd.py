"""A systemd unit: a container under Docker, or the engine's own program where there is no image."""

from __future__ import annotations

from nemolab.core.errors import UsageError
from nemolab.engines.command import Place, command, repository
from nemolab.engines.profile import Profile
from nemolab.engines.render import box as boxes
from nemolab.engines.render.quoting import comment, systemd, systemd_lines
from nemolab.engines.render.settings import Settings
from nemolab.engines.render.sizes import sizes

_ROOT = "/srv/nemolab"
_ETC = "/etc/nemolab"


def render(profile: Profile, settings: Settings) -> dict[str, str]:
    """`NAME.service`, and the options files, which belong into /etc/nemolab.

    Raises:
        UsageError: Dynamo, several machines, or a relative path.
    """
    boxes.one_node(profile, "systemd")
    boxes.not_dynamo(profile, "systemd")
    for key, value in (("model_dir", settings.model_dir), ("models", settings.models), ("bin", settings.bin)):
        if value and not value.startswith("/"):
            raise UsageError(f"{key}: a unit needs an absolute path, not {value!r}", where="--set")
    return _container(profile, settings) if profile.image else _program(profile, settings)


def _container(profile: Profile, settings: Settings) -> dict[str, str]:
    if not settings.model_dir and not repository(profile):
        settings = settings.model_copy(update={"model_dir": f"{_ROOT}/{profile.model}"})
    made = boxes.box(profile, settings, models=f"{_ROOT}/models", files=_ETC)
    run = boxes.docker_words(made, settings, detach=False)
    docker = systemd(settings.docker)
    service = (
        f"ExecStartPre=-{docker} rm --force {made.name}\n"
        f"ExecStart={systemd_lines([settings.docker, *run])}\n"
        f"ExecStop={docker} stop --time 60 {made.name}\n"
    )
    unit = "Requires=docker.service\nAfter=docker.service network-online.target\n"
    text = _unit(
        profile, made.name, unit, service, made.sizes.startup_s, made.sizes.assumption, settings, made.command.ready
    )
    return boxes.with_files(made, {f"{made.name}.service": text})


def _program(profile: Profile, settings: Settings) -> dict[str, str]:
    name = settings.name or profile.slug
    suffix = ".gguf" if profile.engine == "llamacpp" else ""
    folder = settings.model_dir or ("" if repository(profile) and not suffix else f"{_ROOT}/{profile.model}{suffix}")
    made = command(profile, Place(folder, settings.bind, _ETC))
    program = f"{settings.bin or '/usr/local/bin'}/{made.argv[0]}"
    env = {} if suffix else {"HF_HOME": settings.models or f"/var/lib/{name}"}
    lines = [f"Environment={systemd(f'{key}={value}')}\n" for key, value in {**env, **dict(made.env)}.items()]
    service = (
        "".join(lines)
        + f"ExecStart={systemd_lines([program, *made.argv[1:]])}\n"
        + (f"User={settings.user}\n" if settings.user else "DynamicUser=yes\n")
        + f"StateDirectory={name}\nLimitNOFILE=65536\nLimitMEMLOCK=infinity\nNoNewPrivileges=yes\n"
        + "ProtectSystem=strict\nProtectHome=yes\nPrivateTmp=yes\n"
    )
    need = sizes(profile, settings.disk_gb_s)
    unit = "After=network-online.target\n"
    text = _unit(profile, name, unit, service, need.startup_s, need.assumption, settings, made.ready)
    return {f"{name}.service": text, **made.files}


def _unit(profile: Profile, name: str, order: str, service: str, startup_s: int, assumption: str, settings: Settings,
          ready: str) -> str:  # fmt: skip
    secrets = ", ".join(profile.secrets) or "none"
    host = "127.0.0.1" if settings.bind == "0.0.0.0" else settings.bind
    wait = [
        *("/usr/bin/curl", "--silent", "--fail", "--output", "/dev/null", "--max-time", "20"),
        *("--retry", "100000", "--retry-delay", "5", "--retry-all-errors", f"http://{host}:{profile.port}{ready}"),
    ]
    return (
        comment(
            boxes.headed(
                profile,
                "systemd",
                *(() if profile.image else boxes.needs(profile)),
                assumption,
                f"Secret variables in {_ETC}/{name}.env, mode 600: {secrets}.",
            )
        )
        + f"[Unit]\nDescription={profile.title.replace('%', '%%')}\n{order}Wants=network-online.target\n"
        + "StartLimitIntervalSec=1h\nStartLimitBurst=3\n\n"
        + f"[Service]\nType=exec\nEnvironmentFile=-{_ETC}/{name}.env\n{service}"
        + f"# The unit counts as started once requests are answered.\nExecStartPost={systemd_lines(wait)}\n"
        + f"TimeoutStartSec={startup_s}\nTimeoutStopSec=90\nRestart=on-failure\nRestartSec=30\n\n"
        + "[Install]\nWantedBy=multi-user.target\n"
    )
