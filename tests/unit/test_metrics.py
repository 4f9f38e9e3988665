"""Do the metrics count what happened and nothing that private data decided?"""

from __future__ import annotations

import socket
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from proxy import errors
from proxy.metrics import Metrics, ReleaseOrigin, StatementKind
from tests.ports import reserved_port


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> Metrics:
    return Metrics(registry)


def test_sessions_go_up_and_down_and_connections_only_up(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.session_opened()
    metrics.session_opened()
    metrics.session_closed()
    assert registry.get_sample_value("hushql_sessions") == 1
    assert registry.get_sample_value("hushql_connections_total") == 2


@pytest.mark.parametrize("kind", StatementKind)
def test_a_statement_is_counted_by_its_kind(metrics: Metrics, registry: CollectorRegistry, kind: StatementKind) -> None:
    metrics.statement(kind)
    counts = {k: registry.get_sample_value("hushql_statements_total", {"kind": k.value}) for k in StatementKind}
    assert counts == {k: float(k is kind) for k in StatementKind}


@pytest.mark.parametrize("origin", ReleaseOrigin)
def test_a_release_is_counted_by_its_origin(
    metrics: Metrics, registry: CollectorRegistry, origin: ReleaseOrigin
) -> None:
    metrics.released(origin)
    assert registry.get_sample_value("hushql_releases_total", {"origin": origin.value}) == 1


def test_no_label_value_is_derived_from_private_data(metrics: Metrics, registry: CollectorRegistry) -> None:
    private = "alice earns 52000"

    class Leaky(errors.HushError):
        sqlstate = private

    metrics.refused(errors.BudgetSpent(private, detail=private))
    metrics.refused(Leaky(private))
    assert private not in generate_latest(registry).decode()
    assert registry.get_sample_value("hushql_refusals_total", {"sqlstate": "DP001"}) == 1
    assert registry.get_sample_value("hushql_refusals_total", {"sqlstate": "XX000"}) == 1


def test_a_durable_charge_is_timed(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.reserved(0.002)
    assert registry.get_sample_value("hushql_reserve_seconds_count") == 1
    assert registry.get_sample_value("hushql_reserve_seconds_bucket", {"le": "0.001"}) == 0
    assert registry.get_sample_value("hushql_reserve_seconds_bucket", {"le": "0.0025"}) == 1


@pytest.mark.parametrize("seconds", [-0.1, float("nan")])
def test_an_impossible_time_is_refused(metrics: Metrics, seconds: float) -> None:
    with pytest.raises(ValueError, match="cannot take"):
        metrics.reserved(seconds)


def test_reloads_are_counted_by_outcome(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.reloaded(is_accepted=True)
    metrics.reloaded(is_accepted=False)
    metrics.reloaded(is_accepted=False)
    assert registry.get_sample_value("hushql_policy_reloads_total", {"accepted": "no"}) == 2
    assert registry.get_sample_value("hushql_policy_reloads_total", {"accepted": "yes"}) == 1


def test_two_registries_share_nothing() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    Metrics(first).session_opened()
    Metrics(second)
    assert second.get_sample_value("hushql_sessions") == 0


def test_figures_are_served_until_stopped_and_a_taken_port_is_refused(metrics: Metrics) -> None:
    with reserved_port() as port:
        with (
            socket.create_server(("127.0.0.1", port)),
            pytest.raises(errors.ConfigError, match=f"cannot serve metrics on 127.0.0.1 port {port}"),
        ):
            metrics.serve("127.0.0.1", port)
        stop = metrics.serve("127.0.0.1", port)
        try:
            metrics.session_opened()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                assert b"hushql_sessions 1.0" in answer.read()
        finally:
            stop()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
