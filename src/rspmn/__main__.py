"""The program `rspmn`, and `python -m rspmn`."""

import signal
import sys
from types import FrameType


def run() -> None:
    """Load the command line and run the command of the shell's arguments.

    Once Ctrl-C was pressed, any error is the interruption: it may come while the command line
    loads, and queries that run have errors of their own for it.
    """
    pressed: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        if _loads_extension(frame):
            signal.setitimer(signal.ITIMER_REAL, 0.01)  # and again
        else:
            raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as it is in the background
        for name in {"SIGINT", "SIGALRM"} & set(dir(signal)):
            signal.signal(getattr(signal, name), interrupt)
    try:
        from rspmn import cli

        cli.run()
    except (KeyboardInterrupt, Exception) as error:
        if not pressed and not isinstance(error, KeyboardInterrupt):
            raise
        sys.stderr.write("rspmn: interrupted; no file was left incomplete\n")
        sys.exit(130)


def _loads_extension(frame: FrameType | None) -> bool:
    """Return whether a compiled module is being loaded; some abort if that is interrupted."""
    while frame is not None and hasattr(signal, "setitimer"):
        if frame.f_code.co_qualname.startswith("ExtensionFileLoader."):
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    run()
