"""Settings in a config.json of transformers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from ember_ml.configs.patterns import MAX_LAYERS
from ember_ml.nn.models.convert.errors import ConversionError

WITHOUT_EFFECT = {
    *("_attn_implementation", "_commit_hash", "_name_or_path"),
    *("_sliding_window_pattern", "architectures", "attn_implementation", "auto_map"),
    *("bad_words_ids", "begin_suppress_tokens", "bos_token_id", "cache_implementation"),
    *("calc_logits_for_entire_prompt", "chunk_size_feed_forward", "classifier_dropout"),
    *("decoder_start_token_id", "diversity_penalty", "do_sample", "dtype", "early_stopping"),
    *("encoder_no_repeat_ngram_size", "eos_token_id", "exponential_decay_length_penalty"),
    *("final_w_init_variance_scale", "finetuning_task", "forced_bos_token_id"),
    *("forced_eos_token_id", "fused_add_norm", "id2label", "initializer_factor"),
    *("initializer_range", "keys_to_ignore_at_inference", "label2id", "length_penalty"),
    *("max_length", "max_new_tokens", "min_length", "model_type", "no_repeat_ngram_size"),
    *("num_beam_groups", "num_beams", "num_logits_to_keep", "num_return_sequences"),
    *("output_attentions", "output_hidden_states", "output_router_logits", "output_scores"),
    *("pad_token_id", "pad_vocab_size_multiple", "pretraining_tp", "problem_type"),
    *("remove_invalid_values", "repetition_penalty", "rescale_prenorm_residual"),
    *("residual_in_fp32", "return_dict", "return_dict_in_generate", "router_aux_loss_coef"),
    *("sep_token_id", "summary_activation", "summary_first_dropout", "summary_proj_to_labels"),
    *("summary_type", "summary_use_proj", "suppress_tokens", "task_specific_params", "temperature"),
    *("tf_legacy_loss", "tie_encoder_decoder", "time_step_floor", "time_step_init_scheme"),
    *("time_step_max", "time_step_min", "time_step_scale", "tokenizer_class", "top_k", "top_p"),
    *("torch_dtype", "torchscript", "transformers_version", "typical_p", "unk_token_id"),
    *("use_associative_scan", "use_bfloat16", "use_cache", "use_falcon_mambapy"),
    *("use_mamba_kernels", "use_mambapy", "w_init_variance_scale"),
}
"""Fields that do not change the logits: tokens, initial values, generation, other heads."""


class Settings:
    """Values of a config.json, and the problems found in them.

    A missing value and null mean the default of transformers, which the caller passes. A field that
    no caller asks for is a problem, unless it has no effect on the logits.

    Args:
        where: Path of the file, for error messages.
        values: Content of the file.
        ignore: Further fields that are not read and not a problem.
    """

    def __init__(self, where: str, values: Mapping[str, Any], ignore: Collection[str] = ()) -> None:
        self.where = where
        self.values = values
        self.problems: list[str] = []
        self._known = {*WITHOUT_EFFECT, *ignore}

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value of any type."""
        value = self.nullable(name)
        return default if value is None else value

    def nullable(self, name: str, default: Any = None) -> Any:
        """Return a value of any type, or None for null; the default only if it is missing."""
        self._known.add(name)
        return _plain(self.values.get(name, default))

    def size(self, name: str, default: int | None = None) -> int:
        """Return an integer of at least 1."""
        value = self.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        problem = "is missing" if value is None else f"must be an integer above 0, not {value!r}"
        self.problems.append(f"{name} {problem}")
        return 1

    def layers(self, name: str = "num_hidden_layers") -> int:
        """Return a number of layers."""
        value = self.size(name)
        if value <= MAX_LAYERS:
            return value
        self.problems.append(f"{name}={value} is not supported, only up to {MAX_LAYERS}")
        return 1

    def number(self, name: str, default: float) -> float:
        """Return a number of at least 0."""
        return self._number(name, self.get(name, default), default)

    def limit(self, name: str, default: float | None = None) -> float | None:
        """Return a number of at least 0, or None for null."""
        value = self.nullable(name, default)
        return None if value is None else self._number(name, value, 1.0)

    def _number(self, name: str, value: Any, default: float) -> float:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
            return float(value)
        self.problems.append(f"{name} must be a number of at least 0, not {value!r}")
        return default

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean."""
        value = self.get(name, default)
        if isinstance(value, bool):
            return value
        self.problems.append(f"{name} must be true or false, not {value!r}")
        return default

    def items(self, name: str, count: int, default: list[Any]) -> list[Any]:
        """Return a list with one value for each of `count` layers."""
        value = self.get(name, default)
        if isinstance(value, list) and len(value) == count:
            return value
        self.problems.append(f"{name} must be a list of {count} values, not {value!r:.80}")
        return default

    def expect(self, name: str, wanted: object, default: object = None) -> None:
        """Note a problem if a value is not the only supported one."""
        value = self.get(name, default)
        if value != wanted:
            self.problems.append(f"{name}={value!r} is not supported, only {wanted!r}")

    def repeats(self, name: str, value: object) -> None:
        """Note a problem if a field is there and does not repeat a value of another field."""
        self.expect(name, value, value)

    def check(self) -> None:
        """Raise a ConversionError if there are problems, or fields that no caller asked for."""
        self.check_unread()
        if self.problems:
            problems = list(dict.fromkeys(self.problems))
            raise ConversionError(f"{self.where} cannot be converted", problems)

    def check_unread(self) -> None:
        """Note a problem for each field that no caller asked for, unless it is empty or false."""
        for name, value in self.values.items():
            if name not in self._known and value not in (None, False, [], {}):
                self._known.add(name)
                self.problems.append(
                    f"{name}={value!r:.80} is not a known field; if it does not change the logits, "
                    f"pass ignore=[{name!r}]"
                )


def _plain(value: Any) -> Any:
    """Return a value with infinities, which transformers writes as {"__float__": "Infinity"}."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return math.inf if value == {"__float__": "Infinity"} else value
