"""What the paper reports (Sec. 6, Tables 1 to 3); "" where it reports nothing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reported:
    """One domain's figures, as they are printed."""

    spmn_nodes: str
    top_and_template: str
    optimal: str
    rspmn_meu: str
    spmn_meu: str
    rspmn_reward: str
    bcq: str
    deviation: str  # Δ %
    log_likelihood: str
    initial: str  # time to learn the initial template
    final: str
    spmn_learning: str
    rspmn_evaluation: str
    spmn_evaluation: str


PAPER = {
    "GridUniverse": Reported(
        "138,492", "13, 210", "6", "6", "6", "5.9", "5.9", "0", "-0.87",
        "2m 26.33s", "1m 1.49s", "4h 25m 31.72s", "0.72s", "8.8s",
    ),
    "FrozenLake": Reported(
        "1,068,246", "18, 401", "0.8", "0.818", "0.13", "0.8", "0.3", "62.5", "-6.17",
        "1m 49.8s", "2m 02.78s", "12h 5m 40.77s", "23.21s", "1m 26.85s",
    ),
    "Maze": Reported(
        "352,312", "11, 184", "0.966", "0.966", "0.052", "0.96", "0.96", "0", "-0.86",
        "2m 51.19s", "54.84s", "2h 31m 49.51s", "0.62s", "24.87s",
    ),
    "Taxi": Reported(
        "", "80, 1815", "8.9", "9", "", "8.9", "-200", "60.25", "-2.45",
        "9m 21.79s", "2h 28m 15.75s", "", "18.45s", "",
    ),
    "SkillTeaching": Reported(
        "", "137, 4878", "-3.022", "-3.06", "", "", "-5.42", "83.3", "-2.09",
        "59m 5.87s", "29m 28.49s", "", "3.84s", "",
    ),
    "Elevators": Reported(
        "", "143, 5390", "-7.33", "-7.47", "", "", "-1.52", "80", "-4.8",
        "1h 19m 3.91s", "4h 19m 29.53s", "", "20s", "",
    ),
    "CrossingTraffic": Reported(
        "", "82, 2349", "-4.428", "-4.425", "", "", "27.98", "94.7", "-8.44",
        "8m 46.14s", "1h 37m 53.17s", "", "18.45s", "",
    ),
}  # fmt: skip
