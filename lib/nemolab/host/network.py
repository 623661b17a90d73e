"""Ports, interfaces, firewall and proxies. Addresses are never read."""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Iterable

from nemolab.host.facts import Interface, Network, Port
from nemolab.host.probe import Probe

_LISTEN = "0A"
_SERVICES = ("nftables", "firewalld", "ufw", "iptables", "netfilter-persistent")


def network(probe: Probe, ports: Iterable[int] = ()) -> Network:
    """Everything about the network that a server on this host meets."""
    variables = {name.lower(): value for name, value in os.environ.items()} if probe.live else {}
    proxied = any(variables.get(name) for name in ("http_proxy", "all_proxy"))
    exempt = re.split(r"[,\s]+", variables.get("no_proxy", ""))
    return Network(
        ports=tuple(port(probe, number) for number in ports),
        interfaces=_interfaces(probe),
        rdma_devices=_rdma(probe),
        firewall=_firewall(probe),
        proxy=proxied if probe.live else None,
        loopback_unproxied=("*" in exempt or {"127.0.0.1", "localhost"} <= set(exempt)) if proxied else None,
    )


def port(probe: Probe, number: int) -> Port:
    """Whether a server could listen on loopback, found by trying it."""
    if not probe.live:
        return Port(number, None)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is no obstacle
        try:
            listener.bind(("127.0.0.1", number))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            return Port(number, False if taken else None, _holder(probe, number) if taken else None)
    return Port(number, True)


def _holder(probe: Probe, number: int) -> str | None:
    """Name of the program that listens on a port, when its /proc entry may be read."""
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (probe.read(table) or "").splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rsplit(":", 1)[1], 16) == number:
                sockets.add(f"socket:[{fields[9]}]")
    for pid in filter(str.isdigit, probe.names("/proc") or ()):
        for handle in probe.names(f"/proc/{pid}/fd") or ():
            try:
                target = os.readlink(probe.at(f"/proc/{pid}/fd/{handle}"))
            except OSError:
                continue
            if target in sockets:
                return probe.read(f"/proc/{pid}/comm")
    return None


def _interfaces(probe: Probe) -> tuple[Interface, ...] | None:
    """Physical interfaces: those with a device behind them."""
    names = probe.names("/sys/class/net")
    if names is None:
        return None
    found = []
    for name in names:
        base = f"/sys/class/net/{name}"
        if not probe.at(f"{base}/device").exists():
            continue
        state = probe.read(f"{base}/operstate")
        speed = probe.number(f"{base}/speed")
        kind = "infiniband" if probe.number(f"{base}/type") == 32 else "ethernet"
        found.append(
            Interface(name, {"up": True, "down": False}.get(state or ""), speed if (speed or 0) > 0 else None, kind)
        )
    return tuple(found)


def _rdma(probe: Probe) -> tuple[str, ...] | None:
    names = probe.names("/sys/class/infiniband")
    if names is None:
        return () if probe.names("/sys/class/net") is not None else None
    return names


def _firewall(probe: Probe) -> str | None:
    """Active packet filter service. Listing the rules needs root, so "none seen" is not "none"."""
    if not probe.live or not probe.which("systemctl"):
        return None
    active = [name for name in _SERVICES if probe.output("systemctl", "is-active", name) == "active"]
    return ", ".join(active) or "none seen"
