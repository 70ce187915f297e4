"""`ember serve` in a process of its own, with real clients."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import openai
import pytest

import ember_ml
from ember_ml import nn
from ember_ml.backend import use_backend
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.models.sampling import row_seed
from ember_ml.nn.pipeline import ClassLabels, InferencePipeline
from ember_ml.nn.tensor import array
from tests.integration.chromium import Browser, find
from tests.integration.serve_models import BAD, language_model
from tests.integration.servers import ROOT, ServerProcess, serving

FOREVER = {"prompt": "to be", "max_tokens": 1500, "ignore_eos": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny"
    with use_backend("numpy"):
        language_model(path)
    return path


@pytest.fixture(scope="module")
def model(folder) -> LanguageModel:
    loaded = ember_ml.load(folder, backend="numpy")
    assert isinstance(loaded, LanguageModel)
    return loaded.eval()


@pytest.fixture(scope="module")
def server(folder) -> Iterator[ServerProcess]:
    options = ("--backend", "numpy", "--max-tokens", "1600", "--body-bytes", "100000")
    with serving(folder, *options, "--max-batch", "8", "--prefill-chunk", "16") as running:
        yield running
        assert running.client.get("/health").json() == {"status": "ok"}
        assert running.stop() == 0
        assert "Traceback" not in running.output


@pytest.fixture(scope="module")
def client(server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def wait_for(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def text_alone(model: LanguageModel, prompt: str, count: int, **options) -> str:
    with use_backend("numpy"):
        return model.generate_text(prompt, count, **options)


def test_the_first_line_has_the_address_and_the_limits(server) -> None:
    (line,) = server.lines
    assert line.startswith(f"serving tiny on http://127.0.0.1:{urlsplit(server.url).port} (")
    assert "8 at once; 64 waiting; 1600 new tokens; 2048 tokens in all; 120 s each; chat" in line


def test_openai_client(client, model) -> None:
    assert [each.id for each in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt")
    made = client.completions.create(
        model="tiny", prompt="to be", max_tokens=12, temperature=0.9, seed=3, n=2, logprobs=2
    )
    for at, choice in enumerate(made.choices):
        seed = row_seed(3, at)
        assert choice.text == text_alone(model, "to be", 12, temperature=0.9, seed=seed)
        assert choice.logprobs is not None
        assert len(choice.logprobs.token_logprobs) == 12
        assert all(len(top) <= 2 for top in choice.logprobs.top_logprobs)
    assert made.usage is not None
    assert made.usage.completion_tokens == 24
    assert made.usage.prompt_tokens == len(model.tokenizer.encode("to be"))


def test_openai_client_streams(client, model) -> None:
    chunks = list(
        client.completions.create(
            model="tiny",
            prompt="or not",
            max_tokens=250,
            temperature=0.7,
            seed=4,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert len(chunks) > 5
    text = "".join(choice.text for chunk in chunks for choice in chunk.choices)
    assert text == text_alone(model, "or not", 250, temperature=0.7, seed=4)
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert reasons[-1] == "length"
    assert set(reasons[:-1]) == {None}
    assert chunks[-1].usage.completion_tokens == 250


def test_openai_client_chats(client, model) -> None:
    messages = [{"role": "system", "content": "be"}, {"role": "user", "content": "to be"}]
    prompt = "[system] be\n[user] to be\n[assistant] "
    expected = text_alone(model, prompt, 10, temperature=1.0, seed=5)
    made = client.chat.completions.create(
        model="tiny", messages=messages, max_tokens=10, seed=5, logprobs=True, top_logprobs=1
    )
    assert made.choices[0].message.content == expected
    assert len(made.choices[0].logprobs.content) == 10
    stream = client.chat.completions.create(
        model="tiny", messages=messages, max_completion_tokens=10, seed=5, stream=True
    )
    deltas = [chunk.choices[0].delta for chunk in stream]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content for delta in deltas) == expected
    with pytest.raises(openai.BadRequestError, match="no developers"):
        client.chat.completions.create(
            model="tiny", messages=[{"role": "developer", "content": "be"}]
        )


def test_stop_strings_end_a_text(client, model) -> None:
    whole = text_alone(model, "to", 40, temperature=0.8, seed=6)
    stop = whole[10:13]
    expected = whole[: whole.index(stop)]
    made = client.completions.create(
        model="tiny", prompt="to", max_tokens=40, temperature=0.8, seed=6, stop=[stop, "zzz"]
    )
    assert made.choices[0].text == expected
    assert made.choices[0].finish_reason == "stop"


OPTIONS = (
    {"temperature": 0.0},
    {"temperature": 1.0},
    {"temperature": 0.8, "top_k": 7},
    {"temperature": 1.2, "top_p": 0.7},
    {"temperature": 1.0, "presence_penalty": 0.5, "frequency_penalty": 0.3},
    {"temperature": 1.0, "logit_bias": {40: 5.0}},
)


def test_many_clients_at_once_receive_what_each_would_receive_alone(server, model) -> None:
    def stream(at: int) -> str:
        options = dict(OPTIONS[at % len(OPTIONS)])
        if "logit_bias" in options:
            options["logit_bias"] = {"40": 5.0}
        body = {"prompt": "to be " * (1 + at % 5), "max_tokens": 8 + at, "seed": at, **options}
        with server.client.stream("POST", "/v1/completions", json={**body, "stream": True}) as part:
            lines = [line.removeprefix("data: ") for line in part.iter_lines() if line]
        assert lines.pop() == "[DONE]"
        return "".join(json.loads(line)["choices"][0]["text"] for line in lines)

    steps, tokens = (server.metric(f"ember_serve_{name}_total") for name in ("steps", "new_tokens"))
    with ThreadPoolExecutor(24) as pool:
        texts = list(pool.map(stream, range(24)))
    for at, text in enumerate(texts):
        prompt = "to be " * (1 + at % 5)
        options = OPTIONS[at % len(OPTIONS)]
        assert text == text_alone(model, prompt, 8 + at, seed=at, **options), at
    steps = server.metric("ember_serve_steps_total") - steps
    tokens = server.metric("ember_serve_new_tokens_total") - tokens
    assert tokens > 1.5 * steps  # they shared steps


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_client_that_leaves_frees_its_place(server, is_stream: bool) -> None:
    name = 'ember_serve_sequences_total{outcome="cancelled"}'
    before = server.metric(name)
    body = json.dumps({**FOREVER, "stream": is_stream, "n": 8}).encode()
    connection = send(server, body)
    wait_for(lambda: server.metric("ember_serve_running") == 8)
    connection.close()
    wait_for(lambda: server.metric("ember_serve_running") == 0)
    assert server.metric(name) == before + 8


def send(server: ServerProcess, body: bytes, *options: tuple[int, int, int]) -> socket.socket:
    """Send a request for completions on a connection of its own."""
    address = urlsplit(server.url)
    connection = socket.socket()
    for option in options:
        connection.setsockopt(*option)
    connection.settimeout(60)
    connection.connect((address.hostname, address.port))
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def test_a_client_that_reads_slowly_stops_nobody(server) -> None:
    """It reads nothing until another client is served, and then everything."""
    options = {"max_tokens": 600, "n": 8, "logprobs": 20}  # more than the buffers of a socket
    body = json.dumps({**FOREVER, **options, "stream": True}).encode()
    slow = send(server, body, (socket.SOL_SOCKET, socket.SO_RCVBUF, 4096))
    quick = server.client.post("/v1/completions", json={"prompt": "to", "max_tokens": 3})
    assert quick.status_code == 200
    wait_for(lambda: server.metric("ember_serve_running") == 0)  # the tokens wait for the reader
    content = b""
    while part := slow.recv(1 << 16):
        content += part
    slow.close()
    assert b"data: [DONE]" in content
    assert len(content) > 2_000_000
    assert content.count(b'"finish_reason":"length"') == 8


WRONG = {
    "unknown_field": ({"prompt": "a", "max_tokns": 3}, "unknown field 'max_tokns'"),
    "nested_unknown_field": (
        {"prompt": "a", "stream_options": {"usage": True}},
        "unknown field 'stream_options.usage'",
    ),
    "no_prompt": ({"max_tokens": 3}, "prompt: must be"),
    "empty_prompt": ({"prompt": ""}, "prompt: the text has no tokens"),
    "no_tokens": ({"prompt": []}, "prompt: must be a text, a list of token ids"),
    "large_token": ({"prompt": [1, 2, 280]}, "there is no token 280; the vocabulary has those"),
    "negative_token": ({"prompt": [[1], [-1]]}, "prompt 1: there is no token -1"),
    "float_token": ({"prompt": [1.5]}, "prompt: must be"),
    "long_prompt": ({"prompt": [1] * 2040}, "the limit of this model is 2048 tokens"),
    "many_tokens": ({"prompt": "a", "max_tokens": 1601}, "exceeds the limit of this server, 1600"),
    "temperature": ({"prompt": "a", "temperature": -1}, "temperature: Input should be greater"),
    "stop": ({"prompt": "a", "stop": 3}, "stop: must be a text"),
    "empty_stop": ({"prompt": "a", "stop": [""]}, "stop="),
    "bias": ({"prompt": "a", "logit_bias": {"280": 1}}, "logit_bias has the token 280"),
    "bias_name": ({"prompt": "a", "logit_bias": {"a": 1}}, "logit_bias: keys must be token ids"),
    "many": ({"prompt": ["a"] * 2, "n": 60}, "exceeds the limit of this server, 72 sequences"),
    "echo": ({"prompt": "a", "echo": True, "logprobs": 1}, "echo: "),
    "min_tokens": ({"prompt": "a", "min_tokens": 17}, "min_tokens=17 exceeds max_tokens=16"),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_requests_are_refused_with_the_field(server, name: str) -> None:
    body, message = WRONG[name]
    response = server.client.post("/v1/completions", json=body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert message in error["message"]
    assert error["type"] == "invalid_request_error"
    if name in ("stop", "empty_stop", "temperature", "no_prompt"):
        assert error["param"] == name.removeprefix("empty_").removeprefix("no_")


RAW = {
    "half": (b'{"prompt": "a', 400, "not valid JSON"),
    "list": (b"[1]", 400, "should be an object"),
    "empty": (b"", 400, "not valid JSON"),
    "bytes": (b"\xff\xfe", 400, "not valid JSON"),
    "surrogate": (b'{"prompt": "\\ud800"}', 400, ""),
    "nested": (b'{"prompt": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400, ""),
    "nan": (b'{"prompt": "a", "temperature": NaN}', 400, "temperature"),
    "large": (b'{"prompt": "' + b"a" * 200_000 + b'"}', 413, "limit of 100000 bytes"),
}


@pytest.mark.parametrize("name", list(RAW))
def test_malformed_bodies(server, name: str) -> None:
    content, status, message = RAW[name]
    headers = {"Content-Type": "application/json"}
    response = server.client.post("/v1/completions", content=content, headers=headers)
    assert response.status_code == status, response.text
    assert message in response.json()["error"]["message"]


def test_a_large_body_without_a_length(server) -> None:
    parts = (b"a" * 50_000 for _ in range(10))
    headers = {"Content-Type": "application/json"}
    response = server.client.post("/v1/completions", content=parts, headers=headers)
    assert response.status_code == 413


def test_other_refusals(server) -> None:
    client = server.client
    assert client.post("/v1/completions", content=b"prompt=a").status_code == 415
    assert client.get("/v1/completions").status_code == 405
    assert client.get("/missing").json()["error"]["type"] == "invalid_request_error"
    response = client.post("/v1/completions", json={"prompt": "a", "model": "gpt"})
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"
    assert client.get("/health", headers={"Host": "example.com"}).status_code == 403


def test_nan_logits_fail_one_request(server, model) -> None:
    body = {"prompt": [BAD], "max_tokens": 4}
    for stream in (False, True):
        response = server.client.post("/v1/completions", json={**body, "stream": stream})
        assert response.status_code == 500
        assert "NaN or infinite" in response.json()["error"]["message"]
    body = {"prompt": "to be", "max_tokens": 4, "temperature": 0}
    made = server.client.post("/v1/completions", json=body).json()
    assert made["choices"][0]["text"] == text_alone(model, "to be", 4)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    program = find()
    if program is None:
        why = "Chromium is not installed (on Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    found = Browser(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def test_the_page_shows_tokens_as_they_arrive(browser, server, model) -> None:
    browser.open(f"{server.url}/", 380)
    fields = {"prompt": "to be", "max_tokens": 30, "seed": 8, "temperature": 0.8}
    for name, value in fields.items():
        browser.run(f"document.getElementById('{name}').value = {json.dumps(value)}")
    browser.click("#run")
    wait_for(lambda: "tokens" in browser.run("document.getElementById('status').textContent"))
    expected = text_alone(model, "to be", 30, temperature=0.8, seed=8)
    assert browser.run("document.getElementById('out').textContent") == "to be" + expected
    assert "30 tokens" in browser.run("document.getElementById('status').textContent")
    assert browser.run("document.getElementById('model').textContent") == "· tiny"
    assert browser.run("document.scrollingElement.scrollWidth") <= 380
    assert browser.complaints() == []
    assert all(url.startswith((server.url, "data:")) for url in browser.requests())


def test_the_page_stops_and_shows_errors(browser, server) -> None:
    browser.open(f"{server.url}/", 1000)
    browser.run("document.getElementById('prompt').value = 'to be'")
    browser.run("document.getElementById('max_tokens').value = 1500")
    browser.run("document.getElementById('temperature').value = 0")  # no chance of an early end
    browser.click("#run")
    wait_for(lambda: browser.run("document.getElementById('out').textContent.length") > 20)
    browser.click("#stop")
    wait_for(lambda: browser.run("document.getElementById('status').textContent") == "stopped")
    wait_for(lambda: server.metric("ember_serve_running") == 0)
    browser.run("document.getElementById('prompt').value = '[1, 999]'")
    browser.click("#run")
    wait_for(lambda: "no token 999" in browser.run("document.body.textContent"))


def test_refusals_before_the_start(folder, tmp_path) -> None:
    def fails(*options: str) -> str:
        command = [sys.executable, "-m", "ember_ml", "serve", *options, "--backend", "numpy"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
        assert done.returncode == 2
        return done.stderr

    assert "pass --token" in fails(str(folder), "--host", "0.0.0.0")
    assert "is not a checkpoint" in fails(str(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"cannot bind to 127.0.0.1, port {port}" in fails(str(folder), "--port", port)


def test_the_hint_names_missing_packages(folder) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from ember_ml.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 2
    assert "ember serve needs uvicorn; install what is missing with: pip install 'uv" in done.stderr


def test_predictions_in_a_process(tmp_path) -> None:
    with use_backend("numpy"):
        pipeline = InferencePipeline(nn.layers.Dense(2, 3), decode=ClassLabels(["a", "b", "c"]))
        ember_ml.save(pipeline, tmp_path / "classes")
        expected = pipeline.predict([array([1.0, 2.0]), array([-3.0, 0.5])])
    with serving(tmp_path / "classes", "--backend", "numpy") as server:
        inputs = [[1.0, 2.0], [-3.0, 0.5]]
        made = server.client.post("/predict", json={"inputs": inputs}).json()
        assert made == {"model": "classes", "predictions": expected}
        assert server.stop() == 0


def test_token_overload_and_shutdown(folder) -> None:
    options = ("--backend", "numpy", "--max-batch", "1", "--queue", "2", "--grace", "30")
    token = "a secret"
    with serving(folder, *options, "--max-tokens", "1600", token=token) as server:
        check_token(server)
        check_overload(server)
        check_shutdown(server)


def test_the_grace_period_ends(folder) -> None:
    """Sequences that run longer fail, and the exit code is 0."""
    options = ("--backend", "numpy", "--max-tokens", "1600", "--grace", "1")
    with serving(folder, *options) as server, ThreadPoolExecutor(1) as pool:
        body = {**FOREVER, "n": 16, "stream": True}
        running = pool.submit(lambda: server.client.post("/v1/completions", json=body).text)
        wait_for(lambda: server.metric("ember_serve_running") == 16)
        assert server.stop() == 0
        *_, error, done, rest = running.result().split("\n\n")
        assert "the server was stopped" in error
        assert (done, rest) == ("data: [DONE]", "")


def check_token(server: ServerProcess) -> None:
    for header in ("Bearer wrong", "Bearer", "Basic a secret", "a secret", ""):
        response = httpx.get(f"{server.url}/v1/models", headers={"Authorization": header})
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.json()["error"]["code"] == "invalid_api_key"
    assert httpx.post(f"{server.url}/v1/completions", json={"prompt": "a"}).status_code == 401
    assert httpx.get(f"{server.url}/metrics").status_code == 401
    assert httpx.get(f"{server.url}/health").status_code == 200
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="a secret") as client:
        assert client.completions.create(model="tiny", prompt="a", max_tokens=1).choices
    with (
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="other") as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.models.list()


def check_overload(server: ServerProcess) -> None:
    def post(at: int) -> httpx.Response:
        return server.client.post(
            "/v1/completions", json={**FOREVER, "max_tokens": 150, "seed": at}
        )

    with ThreadPoolExecutor(12) as pool:
        responses = list(pool.map(post, range(12)))
    refused = [each for each in responses if each.status_code == 503]
    assert all(each.headers["retry-after"] == "1" for each in refused)
    assert all("1 sequences run and 2 wait" in each.text for each in refused)
    served = [each.json() for each in responses if each.status_code == 200]
    assert len(served) + len(refused) == 12
    assert 3 <= len(served) < 12
    assert all(each["usage"]["completion_tokens"] == 150 for each in served)
    assert server.metric("ember_serve_waiting") == 0


def check_shutdown(server: ServerProcess) -> None:
    """What runs is finished, the rest is refused, and the exit code is 0."""

    def post(body: dict) -> httpx.Response:
        return server.client.post("/v1/completions", json=body)

    with ThreadPoolExecutor(4) as pool:
        running = pool.submit(post, {**FOREVER, "max_tokens": 500, "stream": True})
        wait_for(lambda: server.metric("ember_serve_running") == 1)
        waiting = pool.submit(post, FOREVER)
        wait_for(lambda: server.metric("ember_serve_waiting") == 1)
        server.process.terminate()
        refused = waiting.result()
        assert refused.status_code == 503
        assert "shutting down" in refused.text
        assert httpx.get(f"{server.url}/health").status_code == 503
        assert post(FOREVER).status_code == 503
        assert not running.done()
        content = running.result().text
    assert content.endswith("data: [DONE]\n\n")
    assert "error" not in content
    assert '"finish_reason":"length"' in content
    assert server.wait() == 0
