"""Config classes derived from signatures: fields, checks, module attributes, type stubs."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import pytest

from ember_ml.configs import Config, ConfigError, initializers
from ember_ml.configs.fields import AnyComponent, Below1, Size, Unconfigured
from ember_ml.registry import RegistrationError, Registry

if TYPE_CHECKING:
    from collections.abc import Collection


@pytest.fixture
def config_cls() -> type[Config]:
    own = Registry({"layers": []})

    @own.register("layers/probe")
    class Probe:
        """Probe.

        Args:
            size: Number of
                features.
            rate: Dropout probability.

        Shape: none.
        """

        def __init__(
            self,
            target: Unconfigured[list[int]],
            size: Size,
            *parts: AnyComponent,
            rate: Below1 = 0.5,
            mode: Literal["a", "b"] = "a",
            flag: bool = False,
            depth: int | None = None,
            **options: object,
        ) -> None:
            self.size = size

        @staticmethod
        def prepare_config(values: dict[str, object]) -> dict[str, object]:
            return {"size": values.pop("width"), **values} if "width" in values else values

        @staticmethod
        def check_config(config: Config) -> None:
            if config.flag and config.mode == "b":
                raise ValueError("flag needs the mode 'a'")

    return own.get("layers/probe").config


def test_fields_are_the_parameters(config_cls: type[Config]) -> None:
    assert config_cls.__name__ == "ProbeConfig"
    assert set(config_cls.model_fields) == {"size", "parts", "rate", "mode", "flag", "depth"}
    schema = config_cls.json_schema()
    assert schema["required"] == ["size"]
    assert schema["properties"]["size"]["minimum"] == 1
    assert schema["properties"]["size"]["description"] == "Number of features."
    assert schema["properties"]["rate"]["description"] == "Dropout probability."


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 0}, "size: should be greater than or equal to 1"),
        ({"size": 1, "rate": 1.0}, "rate: should be less than 1"),
        ({"size": 1, "mode": "c"}, "mode: should be 'a' or 'b'"),
        ({"size": 1, "flag": "yes"}, "flag: should be a valid boolean"),
        ({"size": 1, "depth": "3"}, "depth: .*should be a valid integer"),
        ({"size": 1, "depth": True}, "depth: .*should be a valid integer"),
        ({"size": 1, "flag": True, "mode": "b"}, "flag needs the mode 'a'"),
        ({"size": 1, "target": [1]}, "target: "),
    ],
)
def test_values_are_checked(
    config_cls: type[Config], values: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        config_cls(**values)


def test_values_are_prepared_before_the_check(config_cls: type[Config]) -> None:
    assert config_cls(width=3).size == 3


class Options(TypedDict, total=False):
    rate: Below1
    flag: bool


def test_unpacked_options_are_fields_with_the_defaults_of_the_base_class() -> None:
    own = Registry({"layers": []})

    class Base:
        """Base.

        Args:
            rate: Dropout probability.
        """

        def __init__(self, rate: float = 0.25, flag: bool = True) -> None:
            self.rate, self.flag = rate, flag

    @own.register("layers/derived")
    class Derived(Base):
        """Derived."""

        def __init__(self, size: Size = 3, **options: Unpack[Options]) -> None:
            super().__init__(**options)

    config_cls = own.get("layers/derived").config
    assert config_cls().to_dict() == {
        "type": "layers/derived",
        "size": 3,
        "rate": 0.25,
        "flag": True,
    }
    assert config_cls.json_schema()["properties"]["rate"]["description"] == "Dropout probability."
    assert Derived(rate=0.5).rate == Derived(1, 0.5).rate == 0.5
    assert Derived().flag is True

    @own.register("layers/child")
    class Child(Derived):
        """Child."""

    assert Child(2, 0.5).rate == Child(config=Child(rate=0.5).config).rate == 0.5
    with pytest.raises(TypeError, match="did you mean 'rate'"):
        Derived(ratee=0.5)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="rate: should be less than 1"):
        Derived(rate=1.5)


def test_starred_parameters_are_a_tuple(config_cls: type[Config]) -> None:
    config = config_cls(size=1, parts=["layers/dropout"])
    assert config.parts[0].component == "layers/dropout"


def test_modules_list_their_config_classes() -> None:
    assert "ConstantConfig" in dir(initializers)
    with pytest.raises(AttributeError, match="NoneSuchConfig"):
        _ = initializers.NoneSuchConfig


def test_the_modules_of_layer_configs_are_attributes() -> None:
    code = (
        "from ember_ml import configs\n"
        "assert configs.layers.sequence_mixing.MambaConfig is configs.layers.MambaConfig\n"
        "assert configs.layers.channel_mixing.DenseConfig is configs.layers.DenseConfig"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # a process without other imports


def test_stubs_are_up_to_date() -> None:
    code = (  # in a process without the components that other tests register
        "from ember_ml.configs import stubs\n"
        "rendered = stubs.render()\n"
        "assert rendered\n"
        "stale = [path.name for path, text in rendered.items() if path.read_text() != text]\n"
        "assert not stale, f'run `make stubs`: {stale}'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_first_parameter_may_have_any_name() -> None:
    own = Registry({"layers": []})

    @own.register("layers/probe")
    class Probe:
        def __init__(this, size: Size = 2) -> None:  # noqa: N805
            this.size = size

    @own.register("layers/child")
    class Child(Probe):
        """Child."""

    assert Probe(3).config == own.get("layers/probe").config(size=3)
    assert Child(3).size == Child(3).config.size == 3


def test_an_annotation_for_type_checkers_leaves_the_others_checked() -> None:
    own = Registry({"layers": []})

    @own.register("layers/probe")
    class Probe:
        def __init__(self, size: Size, parts: Collection[int] = ()) -> None:
            self.size = size

    assert Probe(3, {1}).config.parts == {1}
    with pytest.raises(ConfigError, match="Probe: size: should be a valid integer"):
        Probe("3")


def test_positional_only_parameters_are_not_fields() -> None:
    own = Registry({"layers": []})

    @own.register("layers/probe")
    class Probe:
        def __init__(self, data: list[int], /, size: Size = 1) -> None:
            self.data = data

    assert Probe([1], 2).data == [1]
    assert Probe([1], 2).config.to_dict() == {"type": "layers/probe", "size": 2}


def test_a_parameter_named_like_a_method_of_config_is_an_error() -> None:
    own = Registry({"layers": []})

    @own.register("layers/probe")
    class Probe:
        def __init__(self, create: bool = False) -> None:
            self.create = create

    with pytest.raises(RegistrationError, match="layers/probe: the parameter 'create'"):
        Probe()


def test_a_parameter_may_be_named_like_a_deprecated_method_of_pydantic() -> None:
    own = Registry({"layers": []})

    @own.register("layers/probe")
    class Probe:
        def __init__(self, copy: bool = False) -> None:
            self.copied = copy

    assert Probe(copy=True).config.to_dict() == {"type": "layers/probe", "copy": True}


def test_a_config_creates_what_a_function_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Registry({"layers": []})
    monkeypatch.setattr("ember_ml.registry.components.REGISTRY", own)

    @own.register("layers/probe")
    def probe(size: Size, rate: Below1 = 0.5) -> tuple[int, float]:
        return size, rate

    config = own.get("layers/probe").config(size=3)
    assert config.create() == (3, 0.5)
    assert config.create(rate=0.1) == (3, 0.1)
