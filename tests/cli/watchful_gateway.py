"""`pactgate`, which looks at its files every twentieth of a second: for tests of what a running gateway takes over from them."""

from __future__ import annotations

from pactgate.cli import main, reload
from pactgate.inbound import key_watch

PAUSE_S = 0.05

if __name__ == "__main__":
    vars(reload)["POLL_S"] = vars(key_watch)["LOOK_S"] = PAUSE_S
    main.main()
