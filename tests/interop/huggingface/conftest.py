"""No test of this folder may reach the network: a model that is not here is an error, not a download."""

import socket

import pytest


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    def refuse(self, address):
        raise AssertionError(f"a test tried to connect to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
