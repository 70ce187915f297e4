"""Endpoints in the process of the test: chat templates, predictions, deadlines, health."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.data.text import Vocabulary
from ember_ml.nn.models.convert import export
from ember_ml.nn.pipeline import ClassLabels, InferencePipeline
from ember_ml.nn.tensor import array
from ember_ml.serving import Limits
from ember_ml.serving.app import ServerApp
from ember_ml.serving.chat import ChatTemplate, ChatTemplateError
from ember_ml.serving.language_service import LanguageService
from ember_ml.serving.predict_service import PredictService
from ember_ml.serving.text import TextStream
from tests.unit.cli.commands import ember
from tests.unit.serving.models import tiny


def requests(service, *calls, token=None, hosts=None):
    """Return the responses to (method, path, keyword arguments), sent at the same time."""
    app = ServerApp(service, token, hosts)

    async def work():
        transport = httpx.ASGITransport(app.asgi)
        async with (
            app._lifespan(None),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            parts = [client.request(method, path, **options) for method, path, options in calls]
            return await asyncio.gather(*parts)

    return asyncio.run(work())


def post(service, path, body):
    (response,) = requests(service, ("POST", path, {"json": body}))
    return response


def test_tokens_without_a_tokenizer(backend: str) -> None:
    model = tiny("hybrid")
    service = LanguageService(model, "tiny", Limits())
    body = {"prompt": [[1, 2], [3]], "max_tokens": 6, "seed": 9, "n": 2, "return_token_ids": True}
    made = post(service, "/v1/completions", body).json()
    expected = model.complete([[1, 2], [3]], 6, num_samples=2, seed=9, temperature=1.0).tokens
    assert [choice["token_ids"] for choice in made["choices"]] == expected
    assert [choice["text"] for choice in made["choices"]] == [
        " ".join(map(str, tokens)) for tokens in expected
    ]
    assert made["usage"] == {"prompt_tokens": 3, "completion_tokens": 24, "total_tokens": 27}
    echoed = post(service, "/v1/completions", {**body, "prompt": [1, 2], "n": 1, "echo": True})
    assert echoed.json()["choices"][0]["text"].startswith("1 2 ")
    refused = post(service, "/v1/completions", {"prompt": "text"})
    assert refused.status_code == 400
    assert "the model has no tokenizer; pass token ids" in refused.text
    assert post(service, "/v1/chat/completions", {}).status_code == 404
    assert post(service, "/predict", {}).status_code == 404


def test_characters(backend: str) -> None:
    model = tiny("gru")
    model.tokenizer = Vocabulary([chr(ord("a") + at) for at in range(32)])
    service = LanguageService(model, "tiny", Limits())
    made = post(service, "/v1/completions", {"prompt": "abc", "max_tokens": 9, "temperature": 0})
    text = model.generate_text("abc", 9)
    assert made.json()["choices"][0]["text"] == text
    refused = post(service, "/v1/completions", {"prompt": "ab!"})
    assert refused.status_code == 400
    assert "'!' (at 2) is not among the 32 characters" in refused.text


def test_a_request_that_takes_too_long_fails() -> None:
    service = LanguageService(tiny("gru"), "tiny", Limits(timeout=0.2, max_tokens=4000))
    body = {"prompt": [1], "max_tokens": 4000}
    response = post(service, "/v1/completions", body)
    assert response.status_code == 504
    assert response.json()["error"]["code"] == "timeout"
    events = post(service, "/v1/completions", {**body, "stream": True}).text.split("\n\n")
    assert json.loads(events[-3].removeprefix("data: "))["error"]["code"] == "timeout"
    assert events[-2:] == ["data: [DONE]", ""]


def test_a_failing_engine_is_not_healthy() -> None:
    service = LanguageService(tiny("gru"), "tiny", Limits())
    app = ServerApp(service)

    async def work():
        transport = httpx.ASGITransport(app.asgi)
        async with (
            app._lifespan(None),
            httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            assert (await client.get("/health")).status_code == 200
            await service.engine.aclose()
            assert (await client.get("/health")).json() == {"status": "failed"}
            response = await client.post("/v1/completions", json={"prompt": [1]})
            assert response.status_code == 500
            await app.drain(1.0)
            assert (await client.get("/health")).status_code == 503
            return await client.post("/v1/completions", json={"prompt": [1]})

    refused = asyncio.run(work())
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"


def test_seeds_of_a_server(backend: str) -> None:
    model = tiny()
    seeds = iter([5])
    service = LanguageService(model, "tiny", Limits(), new_seed=lambda: next(seeds))
    body = {"prompt": [1], "max_tokens": 6, "return_token_ids": True}
    made = post(service, "/v1/completions", body).json()
    expected = model.complete([[1]], 6, temperature=1.0, seed=5).tokens[0]
    assert made["choices"][0]["token_ids"] == expected


def test_hosts_and_tokens() -> None:
    service = LanguageService(tiny("gru"), "tiny", Limits())
    call = ("GET", "/v1/models", {"headers": {"Authorization": "bearer é".encode("latin-1")}})
    (wrong,) = requests(service, call, token="x")
    assert wrong.status_code == 401
    (page,) = requests(service, ("GET", "/", {}), token="x")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    (other,) = requests(service, ("GET", "/health", {}), hosts=("127.0.0.1",))
    assert other.status_code == 403


def test_predictions_of_a_pipeline(backend: str) -> None:
    ops.random.set_seed(0)
    pipeline = InferencePipeline(nn.layers.Dense(4, 3), decode=ClassLabels(["a", "b", "c"])).eval()
    service = PredictService(pipeline, "classes", Limits())
    rows = [[[float(at), 1.0, -at, 0.5], [0.0, at, 2.0, 1.0]] for at in range(12)]
    calls = [("POST", "/predict", {"json": {"inputs": each}}) for each in rows]
    responses = requests(service, *calls, ("GET", "/metrics", {}), ("GET", "/v1/models", {}))
    for each, response in zip(rows, responses, strict=False):
        expected = pipeline.predict([array(row) for row in each])
        assert response.json() == {"model": "classes", "predictions": expected}
    assert "ember_predict_in_flight" in responses[-2].text
    assert responses[-1].json()["data"][0]["id"] == "classes"


def test_wrong_inputs_fail_alone(backend: str) -> None:
    ops.random.set_seed(0)
    model = nn.layers.Dense(2, 1).eval()
    service = PredictService(model, "dense", Limits())
    inputs = ([[1.0, 2.0]], [[1.0, 2.0, 3.0]], [["a", "b"]], [[1.0], [1.0, 2.0]], [[None, 1.0]])
    calls = [("POST", "/predict", {"json": {"inputs": each}}) for each in inputs]
    good, *wrong = requests(service, *calls)
    expected = model(array([[1.0, 2.0]])).tolist()
    assert good.json()["predictions"][0] == pytest.approx(expected[0])
    for response in wrong:
        assert response.status_code == 400, response.text
        assert response.json()["error"]["param"] == "inputs"
    assert post(service, "/predict", {"inputs": []}).status_code == 400
    assert post(service, "/predict", {"inputs": [[1, 2]], "x": 1}).status_code == 400


def test_predictions_that_are_not_finite() -> None:
    model = nn.layers.Dense(2, 1).eval()
    model.weight.assign(model.weight * float("inf"))
    response = post(PredictService(model, "dense", Limits()), "/predict", {"inputs": [[1.0, 2.0]]})
    assert response.status_code == 500
    assert "NaN or infinite" in response.text


def test_chat_templates(tmp_path) -> None:
    assert ChatTemplate.find(tmp_path) is None
    config = {
        "chat_template": "{{ bos_token }}{% for m in messages %}{{ m['content'] }}|{% endfor %}",
        "bos_token": {"content": "<s>"},
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    template = ChatTemplate.find(tmp_path)
    assert template is not None
    assert template.render([{"role": "user", "content": "hi"}]) == "<s>hi|"
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content.__class__.__mro__ }}")
    template = ChatTemplate.find(tmp_path)
    assert template is not None
    with pytest.raises(ChatTemplateError):  # the sandbox
        template.render([{"role": "user", "content": "hi"}])
    with pytest.raises(ChatTemplateError, match="not valid"):
        ChatTemplate("{% for %}")


def test_converted_models_have_the_chat_template(tmp_path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    export(nn.models.MambaModel(64, 16), source)
    (source / "chat_template.jinja").write_text("{{ messages[0].content }}{{ eos_token }}")
    (source / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')
    ember("convert", str(source), str(target))
    template = ChatTemplate.find(target)
    assert template is not None
    assert template.render([{"role": "user", "content": "hi"}]) == "hi</s>"
    assert ember_ml.load(target).vocab_size == 64


@pytest.mark.parametrize("stops", [(), ("cde",), ("xyz", "fg"), ("h",), ("abcdefghij",)])
def test_text_streams_end_at_stop_strings(stops) -> None:
    tokenizer = Vocabulary("abcdefgh")
    stream = TextStream(tokenizer, [0], stops)
    text = "".join(stream.push(token) for token in range(8)) + stream.finish()
    whole = "abcdefgh"
    assert text == whole[: min((whole.index(stop) for stop in stops if stop in whole), default=8)]
