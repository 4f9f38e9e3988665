"""What may each account spend, and for how many questions is it meant?"""

from __future__ import annotations

from proxy.policy.document import AccountDocument, BudgetsDocument, PolicyDocument
from proxy.policy.figures import figure
from proxy.policy.model import AccountLimit, Budgets, EpsilonLimit, NoLimit, Refresh
from proxy.policy.problems import Path, ProblemReport, one_of
from proxy.policy.settings import read_epsilon

_LARGEST_ACCOUNT = 1e6  # epsilon


def read_budgets(document: BudgetsDocument, query_epsilon: float, report: ProblemReport) -> Budgets:
    """Every account's limit; one that could not pay for a single default query is a mistake."""
    least = 0.0 if any(a.questions for a in _accounts(document).values()) else query_epsilon
    return Budgets(
        dataset=_account(document.dataset, "dataset", least, report),
        user=_account(document.user, "user", least, report),
        session=_account(document.session, "session", least, report),
        role=_account(document.role, "role", least, report),
    )


def read_questions(document: PolicyDocument, report: ProblemReport) -> tuple[tuple[float, int], ...]:
    """The epsilon of each account, and how many questions it is to pay for: one, where it says nothing.

    Nothing where no account says it: then the policy's `query_epsilon` is the price of a question.
    """
    accounts = _accounts(document.budgets)
    said = [name for name, account in accounts.items() if account.questions is not None]
    if said and document.privacy.query_epsilon is not None:
        path = ("budgets", said[0], "questions")
        report.add(path, "says what a question costs, and so does privacy.query_epsilon; remove one of them")
    return tuple((a.epsilon, a.questions or 1) for a in accounts.values()) if said else ()


def _accounts(document: BudgetsDocument) -> dict[str, AccountDocument]:
    """The accounts with a limit, by name."""
    named = {"dataset": document.dataset, "role": document.role, "user": document.user, "session": document.session}
    return {name: account for name, account in named.items() if account is not None}


def _account(document: AccountDocument | None, name: str, least: float, report: ProblemReport) -> AccountLimit:
    if document is None:
        return NoLimit()
    limit = _limit(document, ("budgets", name), report)
    if limit.epsilon < least and not report.names(("budgets", name)):
        report.add(
            ("budgets", name, "epsilon"),
            f"{figure(limit.epsilon, 6)} does not pay for one query of privacy.query_epsilon ({figure(least, 6)})",
        )
    return limit


def read_account(document: AccountDocument, path: Path, report: ProblemReport) -> EpsilonLimit:
    """The limit of an account in a users file, which does not say what a question costs."""
    if document.questions is not None:
        report.add((*path, "questions"), "stands in the policy's budgets alone, where it decides what a question costs")
    return _limit(document, path, report)


def _limit(document: AccountDocument, path: Path, report: ProblemReport) -> EpsilonLimit:
    epsilon = read_epsilon(document.epsilon, (*path, "epsilon"), _LARGEST_ACCOUNT, report)
    return EpsilonLimit(epsilon, _refresh(document, path, report))


def _refresh(document: AccountDocument, path: Path, report: ProblemReport) -> Refresh:
    """How long the limit is for. One that refreshes has to be acknowledged, and nothing else may be."""
    words = [r.value for r in Refresh]
    if document.refresh is not None and document.refresh not in words:
        found = report.show((*path, "refresh"), document.refresh)
        report.add((*path, "refresh"), f"{found} is unknown; accepted: {one_of(words)}")
        return Refresh.LIFETIME
    refresh = Refresh(document.refresh or Refresh.LIFETIME)
    acknowledged = (*path, "acknowledge_lifetime_loss")
    if refresh is Refresh.LIFETIME and document.acknowledge_lifetime_loss is not None:
        report.add(acknowledged, "has no use beside 'refresh: lifetime', where what is spent stays spent; remove it")
    elif refresh is not Refresh.LIFETIME and document.acknowledge_lifetime_loss is not True:
        report.add(
            (*path, "refresh"),
            f"a budget that comes back every {refresh} has no bound over the life of the data;"
            " to have it all the same, add 'acknowledge_lifetime_loss: true'",
        )
    return refresh
