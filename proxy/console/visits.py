"""Who visits, and may they? Logins, and what all pages share.

What a page shows is in the module of its name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from proxy.console.browsers import LONGEST_S, Browser, Browsers
from proxy.console.guard import MOST_LOGIN_BYTES, check_origin, read_form
from proxy.console.scripts import Scripts
from proxy.console.served import ServedPolicy, Serving
from proxy.console.trouble import trouble_of
from proxy.console.wire import Credential, LoginPlace, credential, log_in
from proxy.errors import AuthenticationFailed, HushError, Unsupported
from proxy.policy.outside.logins import LdapLogins, TokenLogins, login_name
from proxy.wire.scram import parse_verifier

_log = logging.getLogger("hushql")
_HERE = Path(__file__).resolve().parent
_MOST_GUESSES = 8  # passwords that are looked at together; the listener's own limits hold as well
_COOKIE, _LOGIN_COOKIE = "hushql", "hushql-login"

SentForm = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request of a browser that is logged in. form: empty unless it changes something."""

    request: Request
    browser: Browser
    form: SentForm
    is_admin: bool

    @property
    def place(self) -> LoginPlace:
        """As whom, and to which database."""
        return self.browser.credential.place


class Console:
    """What pages share: the proxy that is served, who is logged in, and how a page is written."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.scripts = Scripts()
        self.browsers = Browsers(serving.clock, serving.random_bytes, self._take_back)
        self._guesses = asyncio.Semaphore(_MOST_GUESSES)
        self._templates = templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"), autoescape=select_autoescape(default=True),
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        templates.filters["number"] = written

    def page(self, name: str, asked: Visit | Request, *, status: int = 200, **values: object) -> HTMLResponse:
        """A whole page or a part of one, as a template says."""
        request, visit = (asked.request, asked) if isinstance(asked, Visit) else (asked, None)
        shared = {
            "static": self.scripts.base, "nonce": request.scope["nonce"], "path": request.url.path,
            "is_admin": visit is not None and visit.is_admin, "place": visit.place if visit else None,
            "csrf": visit.browser.csrf if visit else "", "pages": self._pages(visit),
        }  # fmt: skip
        return HTMLResponse(self._templates.get_template(name).render(shared | values), status)

    def served(self, visit: Visit) -> ServedPolicy:
        """The dataset that a browser has logged in to."""
        return self.serving.datasets[visit.place.database]

    def _pages(self, visit: Visit | None) -> list[tuple[str, str]]:
        """What the navigation of a browser leads to."""
        own = [("/ask", "Ask"), ("/tables", "Tables"), ("/budget", "Budget")]
        if visit is not None and visit.place.database == self.serving.tour:
            own.insert(0, ("/tour", "Tour"))
        return [*own, ("/policy", "Policy")] if visit is not None and visit.is_admin else own

    # --- logins -------------------------------------------------------------------------------------------

    async def login_page(self, request: Request) -> Response:
        """The only page that strangers see."""
        return self._login_form(request, "")

    async def login(self, request: Request) -> Response:
        """Show a password to the listener; a browser that may come in gets its cookie."""
        check_origin(request)
        cookie = request.cookies.get(self._name(_LOGIN_COOKIE), "")
        form = await read_form(request, MOST_LOGIN_BYTES)
        if not cookie or self.browsers.form_token(cookie) != form.get("token", ""):
            return self._login_form(request, "The form was too old. Please try again.", status=403)
        place = LoginPlace(form.get("login", ""), form.get("database", "") or self._only_database())
        try:
            async with self._guesses:
                kept = await self._credential_of(place, form.get("password", ""))
        except HushError as error:
            _log.info("a login at the console ended: %s", error.sqlstate)
            words = error.message[:1].upper() + error.message[1:]
            return self._login_form(request, f"{words}. {error.hint}".rstrip(), status=401)
        answer = RedirectResponse("/tour" if self.serving.tour == place.database else "/ask", 303)
        self.browsers.end(request.cookies.get(self._name(_COOKIE), ""))
        self._set_cookie(answer, _COOKIE, self.browsers.begin(kept), LONGEST_S)
        answer.delete_cookie(self._name(_LOGIN_COOKIE), path="/", secure=self.serving.is_encrypted, httponly=True)
        return answer

    async def _credential_of(self, place: LoginPlace, password: str) -> Credential:
        # libpq would put its own account's name in the place of none, and end a name at a zero
        if not place.login or not place.database or "\0" in place.login + place.database + password:
            raise AuthenticationFailed(f'password authentication failed for user "{place.login}"')
        if place.database in self.serving.datasets:
            users = self.serving.datasets[place.database].users()
            if isinstance(users.outside, LdapLogins) and place.login not in users.logins:
                return await self._credential_of_guest(place, password)
            if isinstance(users.outside, TokenLogins) and place.login not in users.logins:
                raise Unsupported(
                    "the console takes passwords, and other logins of this database show tokens",
                    hint="Ask for a login of the users file.",
                )
        await log_in(self.serving.address, place, password)
        users = self.serving.datasets[place.database].users()
        if place.login not in users.logins:
            raise AuthenticationFailed("the login was removed meanwhile")
        verifier = parse_verifier(users.logins[place.login].scram)
        return await asyncio.to_thread(credential, self.serving.address, place, place.login, password, verifier)

    async def _credential_of_guest(self, place: LoginPlace, password: str) -> Credential:
        """A pass in the place of a password that the directory has found right, so that none is kept."""
        await log_in(self.serving.address, place, password, to_directory=True)
        dataset, name = self.serving.datasets[place.database], login_name(place.login)
        if name not in dataset.users().guests:
            raise AuthenticationFailed("the login was removed meanwhile")
        words = dataset.passes.give(name)
        verifier, known = dataset.passes[words.user].verifier, LoginPlace(name, place.database)
        return await asyncio.to_thread(credential, self.serving.address, known, words.user, words.secret, verifier)

    def _take_back(self, kept: Credential) -> None:
        """End the pass of a browser that is forgotten, if it had one."""
        self.serving.datasets[kept.place.database].passes.take_back(kept.user)

    def _only_database(self) -> str:
        """What a login means that names no database, where only one is served."""
        names = tuple(self.serving.datasets)
        return names[0] if len(names) == 1 else ""

    def _login_form(self, request: Request, trouble: str, *, status: int = 200) -> Response:
        cookie = self.browsers.token()
        answer = self.page(
            "login.html", request, status=status, trouble=trouble, token=self.browsers.form_token(cookie)
        )
        self._set_cookie(answer, _LOGIN_COOKIE, cookie, LONGEST_S)
        return answer

    def _name(self, cookie: str) -> str:
        """Browsers take a cookie of this prefix from an encrypted answer of this very host only."""
        return f"__Host-{cookie}" if self.serving.is_encrypted else cookie

    def _set_cookie(self, answer: Response, name: str, value: str, age_s: float) -> None:
        answer.set_cookie(
            self._name(name), value, max_age=int(age_s), path="/", secure=self.serving.is_encrypted, httponly=True,
            samesite="strict",
        )  # fmt: skip

    async def logout(self, visit: Visit) -> Response:
        """Forget the browser."""
        self.browsers.end(visit.request.cookies.get(self._name(_COOKIE), ""))
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(self._name(_COOKIE), path="/", secure=self.serving.is_encrypted, httponly=True)
        return answer

    # --- who may see a page -------------------------------------------------------------------------------

    def guarded(
        self, page: Callable[[Visit], Awaitable[Response]], *, for_admins: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """A page for browsers that are logged in; a changing request must carry the browser's token."""

        async def answer(request: Request) -> Response:
            browser = self.browsers.find(request.cookies.get(self._name(_COOKIE), ""))
            if browser is None:
                return self._to_login(request)
            if not self._is_known(browser.credential):
                return self._ended(request)
            form: SentForm = {}
            if request.method != "GET":
                check_origin(request)
                form = await read_form(request)
                if not browser.may(request.headers.get("x-csrf-token", "") or form.get("csrf", "")):
                    raise HTTPException(403, "this request does not come from the console's own page")
            place = browser.credential.place
            visit = Visit(
                request=request, browser=browser, form=form,
                is_admin=self.serving.is_admin(place.login, place.database),
            )  # fmt: skip
            if for_admins and not visit.is_admin:
                raise HTTPException(403, "this page is for administrators")
            try:
                return await page(visit)
            except (psycopg.Error, HushError) as error:  # the listener does not answer, or has no place left
                if not self._is_known(browser.credential):  # the login is gone meanwhile, or has another password
                    return self._ended(request)
                return self.page("failed.html", visit, status=503, trouble=trouble_of(error, ""))

        return answer

    def _to_login(self, request: Request) -> Response:
        if request.headers.get("hx-request"):  # a part of a page: the whole page goes there
            return Response(status_code=401, headers={"hx-redirect": "/login"})
        if request.method != "GET":
            raise HTTPException(401, "log in first")
        return RedirectResponse("/login", 303)

    def _is_known(self, kept: Credential) -> bool:
        """Whether the login is there, with the password that was shown: pages of files ask no listener."""
        dataset = self.serving.datasets[kept.place.database]
        if kept.user in dataset.passes:
            return kept.is_of(dataset.passes[kept.user].verifier)
        login = dataset.users().logins.get(kept.user)
        return login is not None and kept.is_of(parse_verifier(login.scram))

    def _ended(self, request: Request) -> Response:
        self.browsers.end(request.cookies.get(self._name(_COOKIE), ""))
        return self._to_login(request)

    async def refused(self, request: Request, error: Exception) -> Response:
        """A page that says why there is none."""
        assert isinstance(error, HTTPException), "registered for this class"
        return self.page("refused.html", request, status=error.status_code, words=error.detail)

    async def home(self, request: Request) -> Response:
        """Where people start."""
        return RedirectResponse("/ask", 303)


def written(value: object) -> str:
    """A figure for people: four digits, and thousands apart; whatever is no number as it is."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "" if value is None else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
