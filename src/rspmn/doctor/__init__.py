"""The data doctor: what a log holds, and what may be wrong with it, before anything is learned."""

from rspmn.doctor.examine import Diagnosis, examine
from rspmn.doctor.examine_decisions import DecisionsDiagnosis, examine_decisions
from rspmn.doctor.findings import Finding
from rspmn.doctor.proposal import Proposal, propose, survey_log

__all__ = [
    "DecisionsDiagnosis", "Diagnosis", "Finding", "Proposal", "examine", "examine_decisions",
    "propose", "survey_log",
]  # fmt: skip
