"""Bodies of requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

Finite = Annotated[float, Field(allow_inf_nan=False)]
Penalty = Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)]
Bias = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]
Tokens = Annotated[list[StrictInt], Field(min_length=1)]
Texts = Annotated[list[StrictStr], Field(min_length=1)]
Prompts = StrictStr | Tokens | Texts | Annotated[list[Tokens], Field(min_length=1)]


class Body(BaseModel):
    """Body of a request. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StreamOptions(Body):
    """Options of a stream."""

    include_usage: StrictBool = False


class GenerationBody(Body):
    """Fields that completions and chat completions share."""

    model: StrictStr | None = None
    temperature: Annotated[Finite, Field(ge=0, le=2)] = 1.0
    top_p: Annotated[Finite, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[StrictInt, Field(ge=1)] | None = None
    min_p: Annotated[Finite, Field(ge=0, le=1)] | None = None
    n: Annotated[StrictInt, Field(ge=1, le=128)] = 1
    stream: StrictBool = False
    stream_options: StreamOptions | None = None
    stop: StrictStr | Annotated[list[StrictStr], Field(max_length=16)] | None = None
    presence_penalty: Penalty = 0.0
    frequency_penalty: Penalty = 0.0
    repetition_penalty: Annotated[Finite, Field(gt=0)] = 1.0
    logit_bias: dict[str, Bias] | None = None
    min_tokens: Annotated[StrictInt, Field(ge=0)] = 0
    ignore_eos: StrictBool = False
    """Whether to go on after the token for the end of a text."""
    seed: Annotated[StrictInt, Field(ge=0, lt=2**63)] | None = None
    user: StrictStr | None = None
    """Identifier of the end user, which is ignored."""
    return_token_ids: StrictBool = False
    """Whether choices have `token_ids`, the new tokens."""


class CompletionBody(GenerationBody):
    """Body of `/v1/completions`."""

    prompt: Prompts
    max_tokens: Annotated[StrictInt, Field(ge=1)] | None = 16
    logprobs: Annotated[StrictInt, Field(ge=0, le=20)] | None = None
    echo: StrictBool = False


class TextPart(Body):
    """Part of the content of a message."""

    type: Literal["text"]
    text: StrictStr


class Message(Body):
    """Message of a chat."""

    role: Literal["system", "developer", "user", "assistant"]
    content: StrictStr | list[TextPart]
    name: StrictStr | None = None

    @property
    def text(self) -> str:
        """The content as one text."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content)


class ChatBody(GenerationBody):
    """Body of `/v1/chat/completions`."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    logprobs: StrictBool = False
    top_logprobs: Annotated[StrictInt, Field(ge=0, le=20)] | None = None


class PredictBody(Body):
    """Body of `/predict`."""

    inputs: Annotated[list[Any], Field(min_length=1)]
    """Examples, as nested lists or texts."""
    model: StrictStr | None = None
