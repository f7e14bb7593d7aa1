"""The one place that says who is asking (promise P7). It fails closed: no proof, no customer.

Nothing that a client can write counts: not the chat, not the model's arguments, not `configurable`
values of the client's own. A LangGraph server overwrites `langgraph_auth_user` in every run with
what its auth handler found, so this key is proof; the command line and local development state the
customer in the environment, which the client of a server cannot reach.
"""

from collections.abc import Callable

from langchain_core.runnables import RunnableConfig

from agent.settings import Settings

Identity = Callable[[RunnableConfig], str | None]


def authenticated(settings: Settings) -> Identity:
    """On a server: whom authentication found; else, with SUPPORT_LOCAL, SUPPORT_CUSTOMER."""

    def who(config: RunnableConfig) -> str | None:
        user = config.get("configurable", {}).get("langgraph_auth_user")
        if user is not None:
            return _identity_of(user)
        return settings.customer if settings.local else None

    return who


def stated(customer: str) -> Identity:
    """On the command line: whoever holds the machine says for whom they ask."""
    return lambda config: customer


def _identity_of(user: object) -> str | None:
    identity = user.get("identity") if isinstance(user, dict) else getattr(user, "identity", None)
    return identity if isinstance(identity, str) and identity else None
