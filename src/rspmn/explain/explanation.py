"""The contents of an explanation."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rspmn.display import text_html
from rspmn.errors import MissingExtraError
from rspmn.values import Value, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Decisions by name, those that are made together.
Decided = Mapping[str, Value]


@dataclass(frozen=True)
class NextState:
    """An interface node that may follow."""

    probability: float
    node: int
    state: Mapping[str, Value]  # the values of its variables; several are one text
    text: str


@dataclass(frozen=True)
class ActionReason:
    """An action with its value, support and next states."""

    value: Value
    utility: float  # what it is worth in the model; NaN if that is not known
    now: float  # what this step earns of that
    later: float  # what the steps after it earn
    low: float  # the 90 % interval; NaN where the model keeps no counts
    high: float
    best: float  # the probability that it is the best; NaN likewise
    steps: float  # logged steps behind it
    supported: float  # the share that is known to the end
    available: float  # the probability that it is available; 0 if it is not
    next: tuple[NextState, ...] = ()  # the likeliest first
    notes: tuple[str, ...] = ()  # why not to trust it


@dataclass(frozen=True)
class Place:
    """A possible interface node of the state."""

    probability: float
    node: int
    state: Mapping[str, Value]
    visits: float  # logged steps in it; 0 if the model was written by hand
    text: str


@dataclass(frozen=True)
class Influence:
    """The effect of a variable of the state on the decision."""

    variable: str
    value: Value
    moves: bool  # whether another value may lead to other interface nodes
    #: Other values, each with the decisions that the policy would make; None if it knows none.
    others: tuple[tuple[Value, Decided | None], ...] = field(repr=False)

    @property
    def decides(self) -> bool:
        """Whether another value would change the decision."""
        return bool(self.others)


@dataclass(frozen=True)
class Change:
    """The smallest change of one variable that changes the decision."""

    variable: str
    before: Value
    after: Value
    decided: Decided
    #: Of numbers, in shares of the range of the variable; 1 for a value of another kind.
    distance: float


@dataclass(frozen=True)
class SimilarStep:
    """A logged step in the same interface nodes."""

    state: Mapping[str, Value | None]
    decided: Mapping[str, Value | None]
    utility: float
    followed: str  # the next state in words, or that the episode ended, or that it is unknown
    count: int  # how often it was logged
    distance: float  # 0 if the state is the same


@dataclass(frozen=True)
class Explanation:
    """An explanation of a decision, returned by `Policy.explain`; `str` gives it as text."""

    state: Mapping[str, Value]
    t: int
    steps_left: int | None  # with this one; None is for ever
    decision: str  # the decision whose values are compared
    decided: Decided | None  # what the policy does; None if it knows nothing to do
    actions: tuple[ActionReason, ...]  # the best first
    margin: float  # how much more the chosen action is worth than the next best; NaN if none is
    ties: tuple[Value, ...]  # other actions that are as good in the model
    too_close: bool  # whether another action may well be better
    places: tuple[Place, ...]  # the likeliest first; none if the state was never seen
    influences: tuple[Influence, ...]  # of the variables that are known
    changes: tuple[Change, ...]  # one for each variable that can change the decision, nearest first
    averaged_over: tuple[str, ...] = ()  # variables that are not known
    similar: tuple[SimilarStep, ...] = ()  # the nearest first
    notes: tuple[str, ...] = ()  # what was never logged of the state

    @property
    def seen(self) -> bool:
        """Whether such a state was observed."""
        return bool(self.places)

    @property
    def smallest_change(self) -> Change | None:
        """The smallest change of one variable that changes the decision; None if none does."""
        return self.changes[0] if self.changes else None

    def __str__(self) -> str:
        from rspmn.explain.text import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        try:
            picture = self.picture("svg").decode()
        except MissingExtraError:
            return text_html(str(self))
        return text_html(str(self)) + picture[picture.index("<svg") :]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dictionary that can be written as JSON."""
        found = plain(asdict(self))
        for facts, influence in zip(found["influences"], self.influences, strict=True):
            facts["decides"] = influence.decides
        assert isinstance(found, dict)
        return found

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Plot the values of the actions; needs `rspmn[plot]`."""
        from rspmn.explain.picture import draw_actions

        return draw_actions(self, axes)

    def picture(self, form: str = "png") -> bytes:
        """Return the plot as the contents of a file: "png" or "svg"."""
        from rspmn.explain.picture import as_file

        return as_file(self.plot(), form)
