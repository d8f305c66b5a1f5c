"""What our Gymnasium environments have in common: codes for named values, in both directions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rspmn.errors import EvidenceError, MissingExtraError, did_you_mean
from rspmn.values import Value, show

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise MissingExtraError("environments need gymnasium: pip install 'rspmn[gym]'") from None


@dataclass(frozen=True)
class CategoryCode:
    """The index of a value."""

    values: tuple[Value, ...]

    @property
    def space(self) -> spaces.Space[Any]:
        """The space of the codes."""
        return spaces.Discrete(len(self.values))

    def code(self, value: Value) -> np.int64:
        """Return the code of a value."""
        return np.int64(self.values.index(value))

    def value(self, code: Any) -> Value:
        """Return the value of a code."""
        return self.values[int(code)]


@dataclass(frozen=True)
class NumberCode:
    """The number itself, in an array of one; in single precision it could miss narrow leaves."""

    low: float
    high: float
    dtype: type[np.int64] | type[np.float64]

    @property
    def space(self) -> spaces.Space[Any]:
        """The space of the codes."""
        return spaces.Box(self.low, self.high, (1,), self.dtype)

    def code(self, value: Value) -> Any:
        """Return the code of a value; rounding may have drawn it just outside the bounds."""
        return np.clip(np.array([value], self.dtype), self.low, self.high)

    def value(self, code: Any) -> Value:
        """Return the value of a code."""
        number: Value = np.asarray(code, self.dtype).item()
        return number


#: How the values of a variable are coded as elements of a space.
Coding = CategoryCode | NumberCode


def in_order(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return distinct values: numbers in order, then texts in order."""
    return tuple(sorted(set(values), key=lambda value: (isinstance(value, str), value)))


#: Decisions that are made together, and the values that they can have.
Part = tuple[tuple[str, ...], Sequence[tuple[Value, ...]]]


class CodedEnv(gymnasium.Env[Any, Any]):
    """An environment whose observations and actions are codes of named values.

    Parameters
    ----------
    observed
        How each state variable is coded.
    parts
        The parts of an action, each with a code: `Discrete` if there is one, `MultiDiscrete` if
        there are several.
    as_dict
        Whether an observation is a `Dict` of the variables' codes. If not, all variables are
        categories, and an observation is the index of one or an array of the indices of several.
    render_mode
        None, or "ansi": `render` returns the last step as text.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        observed: Mapping[str, Coding],
        parts: Sequence[Part],
        as_dict: bool,
        render_mode: str | None,
    ) -> None:
        modes = self.metadata["render_modes"]
        if render_mode not in (None, *modes):
            raise self.refusal(f"render_mode is None or one of {modes}, found {render_mode!r}")
        self.render_mode = render_mode
        self._observed, self._parts, self._as_dict = observed, parts, as_dict
        self.action_space = _indices([len(rows) for _, rows in parts])
        each = {name: coding.space for name, coding in observed.items()}
        self.observation_space = (
            spaces.Dict(each) if as_dict else _indices([int(s.n) for s in each.values()])  # type: ignore[attr-defined]
        )
        self._shown = ""  # the last step as text

    def state(self, observation: Any) -> dict[str, Value]:
        """Return the values that an observation stands for, as `Policy.act` takes them."""
        if self._as_dict:
            return {name: code.value(observation[name]) for name, code in self._observed.items()}
        pairs = zip(self._observed.items(), np.atleast_1d(observation).tolist(), strict=True)
        return {name: coding.value(code) for (name, coding), code in pairs}

    def observation(self, state: Mapping[str, Value]) -> Any:
        """Return the observation of a state."""
        codes = {name: coding.code(state[name]) for name, coding in self._observed.items()}
        if self._as_dict:
            return codes
        return next(iter(codes.values())) if len(codes) == 1 else np.array([*codes.values()])

    def decisions(self, action: Any) -> dict[str, Value]:
        """Return the decisions that an action stands for."""
        if not self.action_space.contains(action):
            raise self.refusal(f"expected a {self.action_space}, found {action!r}")
        pairs = zip(self._parts, np.atleast_1d(action).tolist(), strict=True)
        return {
            name: value
            for (names, rows), code in pairs
            for name, value in zip(names, rows[code], strict=True)
        }

    def action(self, decisions: Mapping[str, Value] | Value) -> Any:
        """Return the action for some decisions; if there is only one, its value will do."""
        valid = [name for names, _ in self._parts for name in names]
        if not isinstance(decisions, Mapping):
            if len(valid) > 1:
                raise self.refusal(f"expected values of {valid}, found {decisions!r}")
            decisions = {valid[0]: decisions}
        for name in decisions:
            if name not in valid:
                raise self.refusal(f"unknown decision {name!r}: {did_you_mean(name, valid)}")
        for name in valid:
            if name not in decisions:
                raise self.refusal(f"no value of the decision {name!r}")
        codes = [self._code(names, rows, decisions) for names, rows in self._parts]
        return codes[0] if len(codes) == 1 else np.array(codes, dtype=np.int64)

    def _code(
        self,
        names: tuple[str, ...],
        rows: Sequence[tuple[Value, ...]],
        decisions: Mapping[str, Value],
    ) -> int:
        made = tuple(decisions[name] for name in names)
        if made in rows:
            return list(rows).index(made)
        one = len(names) == 1
        hint = did_you_mean(made[0] if one else made, [row[0] if one else row for row in rows])
        chosen = written(dict(zip(names, made, strict=True)))
        raise self.refusal(f"{chosen} is not an action: {hint}")

    def render(self) -> Any:
        """Return the last step as text, in mode "ansi"."""
        return f"{self._shown}\n" if self.render_mode == "ansi" else None

    def refusal(self, text: str) -> EvidenceError:
        """Return an error that names the environment."""
        return EvidenceError(f"{type(self).__name__}: {text}")

    def reset_needed(self) -> Exception:
        """Return the error of a step outside an episode."""
        name = type(self).__name__
        return gymnasium.error.ResetNeeded(f"{name}: no episode is under way: call reset first")


def _indices(sizes: list[int]) -> spaces.Space[Any]:
    return spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(sizes)


def written(values: Mapping[str, Value]) -> str:
    """Return values by name as text."""
    return ", ".join(f"{name}={show(value)}" for name, value in values.items())


def register(name: str, entry_point: str, steps: int) -> None:
    """Register the environment rspmn/NAME-v0 with Gymnasium, unless it is known already."""
    if (key := f"rspmn/{name}-v0") not in gymnasium.registry:
        options = {"name": name}
        gymnasium.register(key, entry_point, max_episode_steps=steps, kwargs=options)
