"""What a deployment chooses, from the environment or a `.env` file; nothing else reads either."""

from functools import cached_property
from typing import Literal

from pydantic import Field, HttpUrl, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from agent.problems import Problem


class Settings(BaseSettings):
    """Each field is `SUPPORT_<NAME>` in the environment, the vendors' keys keep their own names.

    model: "offline", or PROVIDER:NAME. database_url: `sqlite:///FILE` or `postgresql://…`.
    openai_api: which protocol. store_responses: whether the vendor keeps the conversation.
    answer_format: "prompt" puts the answer's schema in words.
    customer: who is asking, on the command line; on a server only together with `local`.
    tool_timeout: seconds. max_rounds: model responses in a turn. max_calls: in one response.
    """

    model_config = SettingsConfigDict(
        env_prefix="SUPPORT_", env_file=".env", extra="ignore", populate_by_name=True
    )

    model: str = "offline"
    database_url: str = "sqlite:///support-agent.db"
    customer: str = "C-1001"
    local: bool = False
    openai_api: Literal["responses", "chat"] = "responses"
    store_responses: bool = False
    answer_format: Literal["strict", "prompt"] = "strict"
    tool_timeout: float = Field(10, gt=0)
    max_rounds: int = Field(12, ge=1)
    max_calls: int = Field(1000, ge=1)
    openai_api_key: SecretStr | None = Field(None, validation_alias="OPENAI_API_KEY")
    openai_base_url: HttpUrl | None = Field(None, validation_alias="OPENAI_BASE_URL")

    @field_validator("model")
    @classmethod
    def _known_provider(cls, model: str) -> str:
        provider, _, name = model.partition(":")
        if model != "offline" and (provider != "openai" or not name.strip()):
            raise ValueError("it must be 'offline' or 'openai:NAME'")
        return model

    @field_validator("openai_api_key", "openai_base_url", mode="before")
    @classmethod
    def _blank_is_unset(cls, value: object) -> object:
        return None if isinstance(value, str) and not value.strip() else value

    @cached_property
    def provider(self) -> Literal["offline", "openai"]:
        return "offline" if self.model == "offline" else "openai"


def load() -> Settings:
    """The settings of this process. Raises Problem with a sentence for each value that is wrong."""
    try:
        return Settings()
    except UnicodeDecodeError:
        raise Problem("Settings: the file .env is not UTF-8 text. Nothing was started.") from None
    except ValidationError as error:
        wrong = [
            f"{_variable(str(problem['loc'][0]))}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
        raise Problem("Settings: " + "; ".join(wrong) + ". Nothing was started.") from None


def _variable(name: str) -> str:
    return name if name.isupper() else f"SUPPORT_{name.upper()}"
