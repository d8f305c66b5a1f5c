"""The data doctor: what a log holds, and what may be wrong with it, before anything is learned."""

from rspmn.doctor.examine import Diagnosis, examine
from rspmn.doctor.findings import Finding
from rspmn.doctor.proposal import Proposal, propose, survey_log

__all__ = ["Diagnosis", "Finding", "Proposal", "examine", "propose", "survey_log"]
