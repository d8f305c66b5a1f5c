"""Models over HTTP: the page of each, and questions as JSON. Needs `rspmn[serve]`."""

from rspmn.serve.answering import Served
from rspmn.serve.app import Limits, make_app
from rspmn.serve.protection import LOOPBACK

__all__ = ["LOOPBACK", "Limits", "Served", "make_app"]
