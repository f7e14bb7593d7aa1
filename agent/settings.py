"""What a deployment chooses, from the environment or a `.env` file; nothing else reads either."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, HttpUrl, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from agent.pricing import price
from agent.problems import Problem

MAY_BE_BLANK = (
    *("shop_url", "shop_token", "desk_url", "desk_token", "record_streams", "trace_key"),
    *("turn_budget", "log"),
    *("openai_api_key", "openai_base_url", "anthropic_api_key", "anthropic_base_url"),
)
IN_HEADERS = (
    *("shop_token", "desk_token", "openai_api_key", "openai_org_id", "anthropic_api_key"),
)


class Settings(BaseSettings):
    """Each field is `SUPPORT_<NAME>` in the environment, the vendors' keys keep their own names.

    model: "offline", or PROVIDER:NAME. database_url: `sqlite:///FILE` or `postgresql://…`.
    openai_api: which protocol. store_responses: whether the vendor keeps the conversation.
    answer_format: "prompt" puts the answer's schema in words.
    shop_url: the API of the shop; without it, the shop is in the database. shop_token: its token.
    desk_url: where tickets are posted to, with desk_token, when a person is to take over.
    customer: who is asking, on the command line; on a server only together with `local`.
    log: from which level on events are logged as lines of JSON.
    trace_content: whether traces hold what customers and shops wrote. trace_ids: whether ids of
        customers, orders and threads stand there; else their hashes under trace_key, by default a
        key of the folder. trace_folder: where traces wait to be sent.
    tool_timeout: seconds. stall_timeout: seconds that the model's server may be silent.
    record_streams: a folder for what the model's server streams, without values.
    turn_budget: US dollars that a turn may cost; behind it, the model is not asked again.
    max_rounds: model responses in a turn. max_calls: in one response.
    """

    model_config = SettingsConfigDict(
        env_prefix="SUPPORT_", env_file=".env", extra="ignore", populate_by_name=True
    )

    model: str = "offline"
    database_url: str = "sqlite:///support-agent.db"
    shop_url: HttpUrl | None = None
    shop_token: SecretStr | None = None
    desk_url: HttpUrl | None = None
    desk_token: SecretStr | None = None
    customer: str = "C-1001"
    local: bool = False
    openai_api: Literal["responses", "chat"] = "responses"
    store_responses: bool = False
    answer_format: Literal["strict", "prompt"] = "strict"
    log: Literal["debug", "info", "warning", "error"] | None = None
    trace_content: bool = False
    trace_ids: bool = False
    trace_key: SecretStr | None = None
    trace_folder: Path = Path("support-agent-traces")
    turn_budget: Decimal | None = Field(None, gt=0)
    tool_timeout: float = Field(10, gt=0)
    max_rounds: int = Field(12, ge=1)
    max_calls: int = Field(1000, ge=1)
    stall_timeout: float = Field(120, gt=0)
    record_streams: Path | None = None
    openai_api_key: SecretStr | None = Field(None, validation_alias="OPENAI_API_KEY")
    openai_base_url: HttpUrl | None = Field(None, validation_alias="OPENAI_BASE_URL")
    anthropic_api_key: SecretStr | None = Field(None, validation_alias="ANTHROPIC_API_KEY")
    anthropic_base_url: HttpUrl | None = Field(None, validation_alias="ANTHROPIC_BASE_URL")
    openai_org_id: str | None = Field(None, validation_alias="OPENAI_ORG_ID")

    @field_validator("model")
    @classmethod
    def _known_provider(cls, model: str) -> str:
        if model != "offline" and not re.fullmatch(r"[a-z][a-z0-9_]*:\s*\S.*", model):
            raise ValueError("it must be 'offline' or PROVIDER:NAME, such as openai:gpt-5")
        return model

    @field_validator(*IN_HEADERS, mode="after")
    @classmethod
    def _fits_a_header(cls, token: SecretStr | str | None) -> SecretStr | str | None:
        plain = token.get_secret_value() if isinstance(token, SecretStr) else token
        if plain and not re.fullmatch("[!-~]+", plain):
            raise ValueError("it must be one word of ASCII characters")
        return token

    @model_validator(mode="after")
    def _budget_can_be_kept(self) -> "Settings":
        nothing = {"input_tokens": 0, "output_tokens": 0}
        if self.turn_budget and price(self.model, nothing, datetime.now(UTC)) is None:
            raise ValueError(
                f"SUPPORT_TURN_BUDGET cannot be kept, since no price of {self.model} is known"
            )
        return self

    @model_validator(mode="after")
    def _one_conversation(self) -> "Settings":
        if self.store_responses and self.openai_api == "chat":
            raise ValueError(
                "SUPPORT_STORE_RESPONSES=true contradicts SUPPORT_OPENAI_API=chat, where the vendor"
                " keeps no conversation"
            )
        return self

    @field_validator(*MAY_BE_BLANK, mode="before")
    @classmethod
    def _blank_is_unset(cls, value: object) -> object:
        return None if isinstance(value, str) and not value.strip() else value

    @cached_property
    def provider(self) -> str:
        return self.model.partition(":")[0]


def load() -> Settings:
    """The settings of this process. Raises Problem with a sentence for each value that is wrong."""
    try:
        return Settings()
    except UnicodeDecodeError:
        raise Problem("Settings: the file .env is not UTF-8 text. Nothing was started.") from None
    except ValidationError as error:
        wrong = [
            "".join(f"{_variable(str(name))}: " for name in problem["loc"][:1])
            + problem["msg"].removeprefix("Value error, ")
            for problem in error.errors(include_url=False, include_input=False)
        ]
        raise Problem("Settings: " + "; ".join(wrong) + ". Nothing was started.") from None


def _variable(name: str) -> str:
    return name if name.isupper() else f"SUPPORT_{name.upper()}"
