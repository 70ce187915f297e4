"""YAML files that are hostile or damaged: errors that are bounded and show no foreign content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ember_ml import configs
from ember_ml.configs import Config, ConfigError
from ember_ml.configs.files import MAX_BYTES, load

BASE = "type: layers/dense\nin_features: 4\nout_features: 2\n"

HOSTILE = {
    "alias bomb": "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
    "merge bomb": "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40)),
    "recursive alias": "a: &a [*a]\n",
    "recursive mapping": "a: &a {b: *a}\n",
    "deep flow": "a: " + "[" * 5000 + "]" * 5000,
    "deep mapping": "a: " + "{a: " * 5000,
    "deep blocks": "".join(" " * n + "a:\n" for n in range(900)),
    "long integer": f"in_features: {'9' * 5000}\n",
    "long hexadecimal": f"in_features: 0x{'f' * 5000}\n",
    "sixties": "in_features: " + ":".join(["59"] * 500),
    "date": "in_features: 2001-99-99\n",
    "binary": "in_features: !!binary abc\n",
    "object": "in_features: !!python/object/apply:os.system [ls]\n",
    "duplicate": BASE + "in_features: 5\n",
    "list as key": "[1, 2]: 3\n",
    "two documents": BASE + "---\n" + BASE,
    "control character": "a: \x00\n",
    "long": "# " + "x" * MAX_BYTES,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(HOSTILE[name])
    with pytest.raises(ConfigError, match=r"config\.yaml") as caught:
        load(tmp_path / "config.yaml")
    assert len(str(caught.value)) < 2000
    if "\n" in HOSTILE[name]:
        with pytest.raises(ConfigError):
            Config.from_yaml(HOSTILE[name])


def test_anchors_still_work(tmp_path: Path) -> None:
    text = f"base: &base {{in_features: 4}}\nrest:\n  <<: *base\n  in_features: 5\n{BASE}"
    assert configs.files.parse(text, "text")["rest"] == {"in_features": 5}


def test_extended_files_are_in_the_folder(tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("password: 12345\nhost: [")
    folder = tmp_path / "runs"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "base.yaml").write_text(BASE)
    os.symlink(secret, folder / "link.yaml")
    os.symlink(folder / "loop.yaml", folder / "loop.yaml")
    run = folder / "run.yaml"
    run.write_text("extends: below/base.yaml\nin_features: 8\n")
    assert load(run).create().in_features == 8
    outside = [str(secret), "../secret.yaml", "below/../../secret.yaml", "link.yaml", "/etc/passwd"]
    for name in [*outside, "loop.yaml", "missing.yaml", "below", "\\0", "x" * 5000]:
        run.write_text(f'extends: "{name}"\n')
        with pytest.raises(ConfigError) as caught:
            load(run)
        assert not any(word in str(caught.value) for word in ("password", "12345", "host", "root:"))
    for value in ("[a.yaml]", "3", "{a: 1}", "true"):
        run.write_text(f"extends: {value}\n")
        with pytest.raises(ConfigError, match="extends: must be the name of a file"):
            load(run)


def test_a_chain_of_files_that_extend_each_other_ends(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        (tmp_path / f"{name}.yaml").write_text(f"extends: {other}.yaml\n")
    with pytest.raises(ConfigError, match="extends itself"):
        load(tmp_path / "a.yaml")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", tmp_path, Path("/dev/zero")):
        with pytest.raises(ConfigError, match=r"regular file|cannot be read"):
            load(path)
