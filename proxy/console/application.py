"""Which pages does the console have, and who may see each?"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route

from proxy.console.ask import AskPages
from proxy.console.budget import BudgetPage
from proxy.console.charges import ChargesPage
from proxy.console.guard import Headers
from proxy.console.kept_questions import KeptPages
from proxy.console.policy_page import PolicyPage
from proxy.console.served import Serving
from proxy.console.tables import TablesPage
from proxy.console.tour import TourPage
from proxy.console.visits import Console


def build(serving: Serving) -> Starlette:
    """The application. Its lifetime is the caller's: `application.state.console.browsers.end_all()` ends sessions."""
    console = Console(serving)
    ask, tables, budget = AskPages(console), TablesPage(console), BudgetPage(console)
    policy, tour, kept = PolicyPage(console), TourPage(console), KeptPages(console)
    charges, guarded = ChargesPage(console), console.guarded
    routes: list[BaseRoute] = [
        Route("/", console.home),
        Route("/login", console.login_page, methods=["GET"]),
        Route("/login", console.login, methods=["POST"]),
        Route("/logout", guarded(console.logout), methods=["POST"]),
        Route("/ask", guarded(ask.page), methods=["GET", "POST"]),
        Route("/ask/forecast", guarded(ask.forecast), methods=["POST"]),
        Route("/ask/run", guarded(ask.run), methods=["POST"]),
        Route("/ask/cancel", guarded(ask.cancel), methods=["POST"]),
        Route("/ask/kept", guarded(kept.listed), methods=["GET"]),
        Route("/ask/keep", guarded(kept.keep), methods=["POST"]),
        Route("/ask/rename", guarded(kept.rename), methods=["POST"]),
        Route("/ask/delete", guarded(kept.delete), methods=["POST"]),
        Route("/tour", guarded(tour.page), methods=["GET"]),
        Route("/tables", guarded(tables.page), methods=["GET"]),
        Route("/budget", guarded(budget.page), methods=["GET"]),
        Route("/budget/top-up", guarded(budget.top_up, for_admins=True), methods=["POST"]),
        Route("/budget/charges", guarded(charges.page, for_admins=True), methods=["GET"]),
        Route("/policy", guarded(policy.page, for_admins=True), methods=["GET"]),
        Route("/policy/check", guarded(policy.check, for_admins=True), methods=["POST"]),
        Route("/policy/questions", guarded(policy.questions, for_admins=True), methods=["POST"]),
        Route("/policy/apply", guarded(policy.apply, for_admins=True), methods=["POST"]),
        Route("/policy/back", guarded(policy.back, for_admins=True), methods=["POST"]),
        Route("/static/{digest}/{name:path}", console.scripts.answer, methods=["GET"]),
    ]
    application = Starlette(routes=routes, exception_handlers={HTTPException: console.refused})
    application.state.console = console
    application.add_middleware(Headers, random_bytes=serving.random_bytes)
    return application
