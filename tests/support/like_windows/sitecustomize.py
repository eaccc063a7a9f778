"""Takes away what Windows lacks: modules such as termios, forking and niceness in `os`, and most signals.

Python imports it at its start where this folder is on the path: `pytest --like-windows` puts it there, for the tests
and for every process that they start. `os.geteuid`, `pwd` and `signal.SIGKILL` stay, since the standard library and
the servers of the tests use them here; `mypy --platform win32` finds where the package names them.
"""

import contextlib
import os
import signal
import sys

with contextlib.suppress(ImportError):
    import psutil  # noqa: F401 - only tests use it, and on Windows it needs none of what is taken away here

for module in ("curses", "fcntl", "pty", "readline", "resource", "syslog", "termios", "tty"):
    sys.modules[module] = None  # type: ignore[assignment]  # an import of it fails
AFFINITY = ("sched_getaffinity", "sched_setaffinity")
for name in ("fork", "forkpty", "nice", "getloadavg", "getpgid", "killpg", "mkfifo", "register_at_fork", *AFFINITY):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
    if hasattr(signal, name):
        delattr(signal, name)
