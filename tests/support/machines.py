"""Machines for workers: network namespaces with an interface each, on a bridge that has the addresses of the servers.

Nothing leaves this machine. Without the right to make namespaces, all are this machine, with addresses of loopback.

    python -m support.machines NAMESPACE MODULE ARGUMENTS...     run a module in a namespace
"""

from __future__ import annotations

import ctypes
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Self

_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of <linux/sched.h>."""

NETWORK = "10.0.0.0/8"
"""All networks that machines may have. Each test process uses one of 100: 10.100.0.0/16 to 10.199.0.0/16."""


class Machines:
    """`number` machines, which reach servers at `hosts` addresses: see `address`."""

    def __init__(self, number: int, hosts: int) -> None:
        self._hosts = hosts
        mark = f"mh{os.getpid()}"
        self._network = f"10.{100 + os.getpid() % 100}"
        self._bridge = mark
        self._names = [f"{mark}-{each}" for each in range(number)]
        self.is_real = self._made()

    def address(self, host: int) -> str:
        """The address of this server host."""
        return f"{self._network}.1.{host + 1}" if self.is_real else f"127.0.0.{host + 2}"

    def module(self, machine: int, name: str) -> list[str]:
        """The beginning of a command that runs this module on this machine."""
        command = [sys.executable, "-m"]
        return [*command, "support.machines", self._names[machine], name] if self.is_real else [*command, name]

    def cut(self, machine: int) -> None:
        """Cut the network of this machine; its connections hang."""
        self._set_link(machine, "down")

    def join(self, machine: int) -> None:
        """Give the machine its network back."""
        self._set_link(machine, "up")

    def close(self) -> None:
        """Remove the machines, whose processes have ended."""
        for each in self._names:
            _ip("netns", "del", each)
        _ip("link", "del", self._bridge)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _set_link(self, machine: int, state: str) -> None:
        if self.is_real:
            assert _ip("link", "set", self._names[machine], state)

    def _made(self) -> bool:
        if (
            not self._names
            or os.geteuid()
            or shutil.which("ip") is None
            or not _ip("link", "add", self._bridge, "type", "bridge")
        ):
            return False
        for host in range(self._hosts):
            _ip("addr", "add", f"{self._network}.1.{host + 1}/16", "dev", self._bridge)
        made = [_ip("link", "set", self._bridge, "up")]
        for number, name in enumerate(self._names):
            made += [
                _ip("netns", "add", name),
                _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name),
                _ip("link", "set", name, "master", self._bridge),
                _ip("link", "set", name, "up"),
                _ip("-n", name, "addr", "add", f"{self._network}.2.{number + 1}/16", "dev", "eth0"),
                _ip("-n", name, "link", "set", "eth0", "up"),
                _ip("-n", name, "link", "set", "lo", "up"),
            ]
        if not all(made):
            self.close()
        return all(made)


def _ip(*arguments: str) -> bool:
    return subprocess.run(["ip", *arguments], capture_output=True, check=False).returncode == 0


def _enter(namespace: str) -> None:
    with Path("/run/netns", namespace).open("rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _NEW_NETWORK):
            raise OSError(ctypes.get_errno(), f"The namespace {namespace} cannot be entered")


if __name__ == "__main__":
    _, _its_namespace, _its_module, *_its_arguments = sys.argv
    _enter(_its_namespace)
    sys.argv = [_its_module, *_its_arguments]
    runpy.run_module(_its_module, run_name="__main__", alter_sys=True)
