"""SkillTeaching: the first MDP instance of IPPC 2011."""

from functools import lru_cache

from rspmn.envs.explore import Bits, factored
from rspmn.envs.mdp import MDP

SKILLS = ["s0", "s1"]
WEIGHT = {"s0": 1.1778302, "s1": 1.2346091}
#: How likely a question is answered right by a student of high, medium or no proficiency.
RIGHT_HIGH = {"s0": 0.9066789, "s1": 0.9543038}
RIGHT_MED = {"s0": 0.71801746, "s1": 0.7900833}
RIGHT_LOW = {"s0": 0.56987906, "s1": 0.7414986}
FORGET = {"s0": 0.04352919459342957, "s1": 0.018769168853759767}

FLUENTS = [
    "proficiency_med", "proficiency_high", "update_turn", "answered_right", "hinted_right",
    "hint_delay_var",
]  # fmt: skip


@lru_cache(maxsize=1)
def skill_teaching() -> MDP:
    """Return the teacher: ask a question or give a hint about one of two skills, in turns.

    When no skill has its update turn the teacher acts, and the skill acted on has its turn next.
    A question is answered right with a probability that grows with proficiency; a hint is always
    understood, as neither skill needs the other. In the turn that follows, a right answer or a
    hint gives medium proficiency, a right answer on top of medium gives high, and a wrong answer
    takes one level; high proficiency in the skill that is not updated may be forgotten down to
    medium. A step earns a skill's weight where its proficiency is high and costs it where it is
    not even medium.

    >>> round(skill_teaching().optimum(10), 6)
    -3.022175
    """
    return factored(
        "SkillTeaching",
        [f"{fluent}_{skill}" for fluent in FLUENTS for skill in SKILLS],
        [f"{action}_{skill}" for action in ("ask_prob", "give_hint") for skill in SKILLS],
        [],
        _chances,
        _reward,
        episodes=100_000,
        horizon=10,
    )


def _chances(state: Bits, action: str) -> dict[str, float]:
    teaching = not any(state[f"update_turn_{skill}"] for skill in SKILLS)
    after: dict[str, float] = {}
    for skill in SKILLS:
        asked = teaching and action == f"ask_prob_{skill}"
        hinted = teaching and action == f"give_hint_{skill}"
        med, high, turn, right, understood, hint = (state[f"{f}_{skill}"] for f in FLUENTS)
        after[f"update_turn_{skill}"] = asked or hinted
        after[f"answered_right_{skill}"] = _right(skill, med, high) if asked else 0.0
        after[f"hinted_right_{skill}"] = after[f"hint_delay_var_{skill}"] = hinted
        gained = turn and (understood or right or (med and hint))
        after[f"proficiency_med_{skill}"] = (med and not turn) or gained or high
        if teaching:
            stays_high: float = high
        elif turn:
            stays_high = (med and right) or (high and (hint or right))
        else:
            stays_high = high * (1 - FORGET[skill])
        after[f"proficiency_high_{skill}"] = stays_high
    return after


def _right(skill: str, med: bool, high: bool) -> float:
    if high:
        return RIGHT_HIGH[skill]
    return RIGHT_MED[skill] if med else RIGHT_LOW[skill]


def _reward(state: Bits) -> float:
    return sum(
        WEIGHT[skill]
        * (state[f"proficiency_high_{skill}"] - (not state[f"proficiency_med_{skill}"]))
        for skill in SKILLS
    )
