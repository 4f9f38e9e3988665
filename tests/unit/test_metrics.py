"""Do the metrics count what happened and nothing that private data decided?"""

from __future__ import annotations

import json
import math
import re
import socket
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from proxy import errors
from proxy.metrics import (
    PARTS,
    AccountFigures,
    DatasetFigures,
    MeasuredStage,
    Metrics,
    ReleaseOrigin,
    StatementKind,
    WaitingQueue,
)
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


def test_time_is_told_by_what_it_went_on(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.took(MeasuredStage.ENGINE, 0.02)
    found = {s: registry.get_sample_value("hushql_stage_seconds_count", {"stage": s.value}) for s in MeasuredStage}
    assert found == {MeasuredStage.PLANNING: 0, MeasuredStage.WAITING: 0, MeasuredStage.ENGINE: 1}
    assert registry.get_sample_value("hushql_stage_seconds_bucket", {"stage": "engine", "le": "0.01"}) == 0
    assert registry.get_sample_value("hushql_stage_seconds_bucket", {"stage": "engine", "le": "0.025"}) == 1


def test_queues_are_read_when_they_are_asked_for(metrics: Metrics, registry: CollectorRegistry) -> None:
    lengths = {WaitingQueue.PLANNING: 3, WaitingQueue.LOCAL: 0}
    metrics.watch_queues(lambda: lengths)
    assert registry.get_sample_value("hushql_waiting", {"queue": "planning"}) == 3
    lengths[WaitingQueue.PLANNING] = 1
    assert registry.get_sample_value("hushql_waiting", {"queue": "planning"}) == 1
    assert registry.get_sample_value("hushql_waiting", {"queue": "private"}) is None


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


_DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana.json"


def _shop(*not_ready: str) -> DatasetFigures:
    accounts = (
        AccountFigures(dataset="shop", kind="dataset", name="shop", limit=20.0, spent=5.0, share=0.25),
        AccountFigures(dataset="shop", kind="role", name="shop/analyst", limit=math.inf, spent=5.0, share=0.0),
    )
    loaded = datetime(2026, 1, 1, tzinfo=UTC)
    return DatasetFigures(name="shop", loaded_at=loaded, accounts=accounts, not_ready=not_ready)


def test_accounts_and_parts_are_read_when_they_are_asked_for(metrics: Metrics, registry: CollectorRegistry) -> None:
    labels = {"dataset": "shop", "kind": "dataset", "account": "shop"}
    assert registry.get_sample_value("hushql_account_spent_ratio", labels) is None
    metrics.watch(lambda: [_shop("engine")])
    assert registry.get_sample_value("hushql_account_spent_ratio", labels) == 0.25
    assert registry.get_sample_value("hushql_account_limit_epsilon", labels) == 20.0
    of_role = {"dataset": "shop", "kind": "role", "account": "shop/analyst"}
    assert registry.get_sample_value("hushql_account_limit_epsilon", of_role) is None
    assert registry.get_sample_value("hushql_account_spent_epsilon", of_role) == 5.0
    ready = {part: registry.get_sample_value("hushql_ready", {"dataset": "shop", "part": part}) for part in PARTS}
    assert ready == {"front": 1.0, "ledger": 1.0, "engine": 0.0}
    assert registry.get_sample_value("hushql_loaded_timestamp_seconds", {"dataset": "shop"}) == 1767225600.0


def test_health_and_readiness_are_told_and_nothing_else_is_there(metrics: Metrics) -> None:
    with reserved_port() as port:
        stop = metrics.serve("127.0.0.1", port)
        try:
            assert _asked(port, "/healthz") == (200, "alive\n")
            assert _asked(port, "/readyz") == (503, "nothing is served yet\n")
            metrics.watch(lambda: [_shop("ledger", "engine")])
            assert _asked(port, "/readyz") == (503, "shop: ledger\nshop: engine\n")
            metrics.watch(lambda: [_shop()])
            assert _asked(port, "/readyz") == (200, "ready\n")
            for path in ("/", "/metrics/", "/healthz/x", "/favicon.ico"):
                assert _asked(port, path)[0] == 404
        finally:
            stop()


def test_an_address_of_the_sixth_version_is_served(metrics: Metrics) -> None:
    stop = metrics.serve("::1", 0)
    stop()


def _asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_every_query_of_the_dashboard_names_a_metric_and_labels_that_are_there(
    metrics: Metrics, registry: CollectorRegistry
) -> None:
    metrics.watch(lambda: [_shop()])
    metrics.refused(errors.BudgetSpent("none"))
    metrics.reserved(0.1)
    metrics.reloaded(is_accepted=True)
    samples = [sample for family in registry.collect() for sample in family.samples]
    labels = {sample.name: set(sample.labels) for sample in samples}
    panels = json.loads(_DASHBOARD.read_text())["panels"]
    queries = [(t["expr"], t["legendFormat"]) for panel in panels for t in panel["targets"]]
    assert len(queries) >= 10
    for query, legend in queries:
        (name,) = re.findall(r"hushql_\w+", query)
        assert name in labels, query
        by = re.findall(r"by \(([^)]*)\)", query)
        named = {label.strip() for group in by for label in group.split(",")}
        named |= set(re.findall(r"\{\{(\w+)\}\}", legend)) | set(re.findall(r"(\w+)=\"", query))
        assert named <= labels[name], query
