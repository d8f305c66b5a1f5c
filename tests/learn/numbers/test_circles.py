"""Numbers on a circle: places by hand, the same from the circuit, decisions all the way round."""

from pathlib import Path

import numpy as np
import pytest

import rspmn
from learn.numbers.test_grid import all_cells, codes, posterior
from number_worlds import compass
from rspmn import RSPMN
from rspmn.errors import DataError
from rspmn.infer.compiled.state_index import StateIndex
from rspmn.learn import LearnConfig, RSPMNInfo, learn_rspmn, refit
from rspmn.learn.numbers import learn_on_grid
from rspmn.learn.numbers.axes import Axis, Circle, NumberLine, grid_of, radius_of
from rspmn.learn.numbers.grid import Grid
from rspmn.learn.numbers.learn_on_grid import estimate_on_grid
from rspmn.learn.numbers.template import TAIL
from rspmn.types import Array

Learned = tuple[RSPMN, RSPMNInfo]


def at(*degrees: float, radius: float = 1.0) -> Array:  # [n, 2]
    angle = np.radians(degrees)
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_knots_are_counted_from_the_diagonal_below() -> None:
    """Eight knots, every 45 degrees from -45."""
    circle = Circle(2.0, 8)
    assert circle.points == pytest.approx(at(*range(-45, 315, 45), radius=2.0))
    interval, share = circle.place(circle.points * 3)  # not on the circle: moved to it
    assert (interval + share) % 8 == pytest.approx(np.arange(8))


def test_places_by_hand() -> None:
    """From 0 to 45 degrees the second number goes from 0 to √½: at 30 degrees it is ½.

    On the side above, from 90 to 135 degrees, the first one goes from 0 to -√½: at 120 it is -½.
    """
    interval, share = Circle(1.0, 8).place(at(30, 120, 210, 300, 44))
    assert interval.tolist() == [1, 3, 5, 7, 1]
    half = 0.5 / np.sqrt(0.5)
    assert share == pytest.approx([half] * 4 + [np.sin(np.radians(44)) / np.sqrt(0.5)])


def test_half_a_pair_is_unknown() -> None:
    interval, share = Circle(1.0, 4).place(np.array([[np.nan, 0.5], [0.5, np.nan]]))
    assert interval.tolist() == [-1, -1]
    assert np.isnan(share).all()


def test_circles_are_found() -> None:
    angle = np.linspace(0, 2 * np.pi, 100)
    one, other = at(*np.degrees(angle), radius=5.0).T
    assert radius_of(one, other) == pytest.approx(5)
    assert radius_of(one.round(1), other) == pytest.approx(5, rel=0.01)  # rounded to 2 % of it
    assert radius_of(one, np.where(angle > 3, np.nan, other)) is None  # no side below is known
    assert radius_of(one, other * 1.05) is None  # an ellipse
    assert radius_of(one + 0.1, other) is None  # not around 0
    assert radius_of(np.abs(one), other) is None  # half a circle
    assert radius_of(np.zeros(9), np.zeros(9)) is None
    assert radius_of(np.full(9, np.nan), np.zeros(9)) is None


def test_three_knots_are_refused() -> None:
    with pytest.raises(DataError, match="multiples of 4, found 6"):
        Circle(1.0, 6)


AXES: dict[tuple[str, ...], Axis] = {
    ("east", "north"): Circle(1.0, 12),
    ("speed",): NumberLine(np.array([0.1, 0.2, 0.5])),
}


@pytest.fixture(scope="module")
def given() -> RSPMN:
    """A model of given axes, one a circle."""
    log, schema = compass(40, seed=0, speed=True)
    windows = rspmn.windows(log, schema, terminated="over")
    return estimate_on_grid(windows, LearnConfig(), AXES, [])


def test_the_circuit_finds_nodes_by_interpolation(given: RSPMN) -> None:
    """Ramps with a tail are lower by the share TAIL: weights differ by at most that for each axis.

    What is across a side has next to no density on others.
    """
    axes = tuple(AXES.values())
    grid, index = Grid((), axes, *all_cells(axes)), StateIndex.of(given)
    rng = np.random.default_rng(0)
    degrees = [*rng.uniform(-180, 180, 40), *range(-180, 180, 45)]
    for (east, north), speed in zip(at(*degrees), rng.uniform(0.1, 0.5, 48), strict=True):
        state = np.array([[east, north, speed]])
        known = {"east": float(east), "north": float(north), "speed": float(speed)}
        expected = grid.locate(codes(1), state).matrix.toarray()[:, 0]
        assert posterior(index, known, grid.size) == pytest.approx(expected, abs=2 * TAIL)


@pytest.mark.parametrize(("radius", "off"), [(0.3, 90), (0.99, 31), (1.01, 31), (4.0, 31)])
def test_numbers_off_the_circle_are_near_their_angle(
    given: RSPMN, radius: float, off: float
) -> None:
    """Their nodes are those around the angle, or the next ones; far within, those of two sides."""
    points, index = Circle(1.0, 12).points, StateIndex.of(given)
    for degrees in range(-180, 180, 15):
        east, north = at(degrees, radius=radius)[0].tolist()
        found = posterior(index, {"east": east, "north": north}, 36).reshape(12, 3).sum(axis=1)
        expected = found @ points / np.hypot(*(found @ points))
        assert expected @ at(degrees)[0] > np.cos(np.radians(off)), degrees


def test_far_from_the_circle_is_the_same_in_any_unit() -> None:
    """A heading that is logged in thousandths, up to 1000, and one four radii from the middle."""
    log, schema = compass(3, seed=0)
    indices = {}
    for unit in (1.0, 1000.0):
        scaled = {**log, **{n: (unit * np.array(log[n])).tolist() for n in ("east", "north")}}
        windows = rspmn.windows(scaled, schema, terminated="over")
        axes: dict[tuple[str, ...], Axis] = {("east", "north"): Circle(unit, 8)}
        indices[unit] = StateIndex.of(estimate_on_grid(windows, LearnConfig(), axes, []))
    for degrees in range(-170, 190, 40):
        near, far = (
            posterior(index, dict(zip(("east", "north"), numbers.tolist(), strict=True)), 8)
            for unit, index in indices.items()
            for numbers in at(degrees, radius=4 * unit)
        )
        assert far == pytest.approx(near, abs=1e-9), degrees


def test_one_number_of_two_leaves_two_places(given: RSPMN) -> None:
    """East is ½ at 60 and -60 degrees: the knots around these are at 45, 75, -45 and -75."""
    found = posterior(StateIndex.of(given), {"east": 0.5}, 36).reshape(12, 3).sum(axis=1)
    near = at(45, 75, -45, -75)
    is_near = (np.abs(Circle(1.0, 12).points[:, None] - near).sum(axis=2) < 1e-9).any(axis=1)
    assert found[is_near].sum() == pytest.approx(1, abs=2 * TAIL)
    assert (found[is_near] > 0.05).all()


def test_the_axes_are_read_from_the_model(given: RSPMN) -> None:
    found = grid_of(given)
    assert found is not None
    axes, categories = found
    assert [*axes] == [*AXES]
    assert categories == []
    circle, line = axes.values()
    assert isinstance(circle, Circle)
    assert (circle.radius, circle.size) == (1.0, 12)
    assert line.points.tolist() == [[0.1], [0.2], [0.5]]


@pytest.fixture(scope="module", params=[False, True])
def turned(request: pytest.FixtureRequest) -> Learned:
    """A compass, with and without a number beside its heading."""
    log, schema = compass(300, seed=1, speed=request.param, digits=3)
    return learn_rspmn(rspmn.windows(log, schema, terminated="over"))


def test_decisions_are_right_all_the_way_round(turned: Learned) -> None:
    """The way to north is the shorter one, left from the east and right from the west."""
    model, info = turned
    assert {frozenset(pair) for pair in info.numbers.circles} == {frozenset({"east", "north"})}
    policy, speed = (
        model.policy(discount=0.9),
        {"speed": 0.3} if "speed" in info.numbers.knots else {},
    )
    for degrees in [*range(-60, 75, 15), *range(105, 255, 15)]:
        east, north = at(degrees)[0].tolist()
        expected = "left" if degrees < 90 else "right"
        assert policy.act({"east": east, "north": north, **speed}) == expected, degrees


@pytest.mark.parametrize(("speed", "tried"), [(False, {4, 8}), (True, {3, 4, 5})])
def test_grids_are_compared_where_circles_are_finer(
    speed: bool, tried: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of 3 and 4 knots go with a circle of 4, those of 5 with one of 8.

    So values that do not change say that grids are fine enough only from 5 on.
    """
    monkeypatch.setattr(learn_on_grid, "change_between", lambda *_: 0.0)
    log, schema = compass(300, seed=1, speed=speed)
    _, info = learn_rspmn(rspmn.windows(log, schema, terminated="over"))
    assert {*info.numbers.losses} == tried


def test_refit_on_the_same_log_changes_nothing(turned: Learned, tmp_path: Path) -> None:
    """Also after the model was saved and loaded."""
    model, info = turned
    model.save(tmp_path / "model.rspmn")
    loaded = rspmn.load(tmp_path / "model.rspmn")
    assert isinstance(loaded, RSPMN)
    assert info.windows_used is not None
    again, check = refit(loaded, info.windows_used)
    assert again.template == model.template
    assert check.fits


def test_refit_reports_numbers_that_are_off_the_circle(turned: Learned) -> None:
    model, info = turned
    log, schema = compass(20, seed=2, speed="speed" in info.numbers.knots)
    log["east"] = [2 * east for east in log["east"]]
    _, check = refit(model, rspmn.windows(log, schema, terminated="over"))
    assert check.new_states > check.steps / 2
