"""What tools do is seen, and put down to the tool that did it: from threads, pools, tasks, timers and children, many calls at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pactgate.core.contract import MAX_OPERATIONS, Effect, Operation
from pactgate.runner.observe import MAX_LATE, MAX_UNDECLARED, EffectWatch, UndeclaredEffectError
from tests.runner.driving import Driven, error, operations, write_tools

KIT = """
import _thread, concurrent.futures, gc, signal, socket, sqlite3, tempfile, time

pool = concurrent.futures.ThreadPoolExecutor(2)

def write(path):
    with open(path, "w") as file:
        file.write("x")

def by_thread(path):
    worker = threading.Thread(target=write, args=(path,))
    worker.start()
    worker.join()

class Worker(threading.Thread):
    def __init__(self, path):
        super().__init__()
        self.path = path
    def run(self):
        write(self.path)

def by_subclass(path):
    worker = Worker(path)
    worker.start()
    worker.join()

def by_timer(path):
    timer = threading.Timer(0.001, write, (path,))
    timer.start()
    timer.join()

def by_raw_thread(path):
    done = threading.Event()
    _thread.start_new_thread(lambda: (write(path), done.set()), ())
    done.wait(5)

def by_pool(path):
    pool.submit(write, path).result(5)

def by_own_pool(path):
    with concurrent.futures.ThreadPoolExecutor(1) as own:
        own.submit(write, path).result(5)

WAYS = {way.__name__: way for way in (write, by_thread, by_subclass, by_timer, by_raw_thread, by_pool, by_own_pool)}

@tool(**query)
def write_somehow(how: str, path: str) -> None:
    "Write a file in one of many ways."
    WAYS[how](path)

@tool(**query)
async def write_async(how: str, path: str) -> None:
    "Write a file in one of many ways."
    loop = asyncio.get_running_loop()
    if how == "to_thread":
        await asyncio.to_thread(write, path)
    elif how == "executor":
        await loop.run_in_executor(None, write, path)
    elif how == "task":
        async def later():
            write(path)
        await loop.create_task(later())
    elif how == "call_later":
        done = loop.create_future()
        loop.call_later(0.001, lambda: (write(path), done.set_result(None)))
        await done
    else:
        write(path)

@tool(**query)
async def honest(rounds: int = 50) -> int:
    "Does nothing, for a while."
    for _ in range(rounds):
        await asyncio.sleep(0)
    return rounds

DEEDS = {
    "read": lambda at: open(at + "/there").read(),
    "list": lambda at: os.listdir(at),
    "rename": lambda at: os.rename(at + "/a", at + "/b"),
    "make": lambda at: os.mkdir(at + "/made"),
    "remove": lambda at: os.remove(at + "/b"),
    "mode": lambda at: os.chmod(at + "/there", 0o600),
    "temporary": lambda at: tempfile.TemporaryDirectory(dir=at).cleanup(),
    "database": lambda at: sqlite3.connect(at + "/base").close(),
    "memory": lambda at: sqlite3.connect(":memory:").close(),
    "start": lambda at: subprocess.run(["/bin/true"]),
    "system": lambda at: os.system("true"),
    "signal": lambda at: os.kill(os.getppid(), signal.SIGCONT),
    "look up": lambda at: socket.getaddrinfo("localhost", 80),
    "datagram": lambda at: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)),
    "listen": lambda at: socket.socket().bind(("127.0.0.1", 0)),
    "unix": lambda at: socket.socket(socket.AF_UNIX).connect_ex(at + "/none"),
    "environment": lambda at: os.environ.update(PACTGATE_TRIED="1"),
    "folder": lambda at: os.chdir(os.getcwd()),
    "native": lambda at: __import__("ctypes").CDLL(None).getpid(),
    "import": lambda at: __import__("wave"),
    "own source": lambda at: __import__("inspect").getsource(write),
    "nowhere": lambda at: open("/dev/null", "w").close(),
    "time zone": lambda at: __import__("zoneinfo").ZoneInfo("Europe/Lisbon"),
}

@tool(**query)
def do(deed: str, at: str) -> None:
    "Do one thing."
    DEEDS[deed](at)

@tool(**query)
def go_on(path: str) -> None:
    "Answer first, write later."
    go = threading.Event()
    threading.Thread(target=lambda: (go.wait(0.05), write(path))).start()

@tool(**query)
def many(path: str) -> None:
    "Read a lot, then write once."
    for number in range(300):
        try:
            open(f"{path}/{number}").close()
        except FileNotFoundError:
            pass

class Litter:
    def __init__(self, path):
        self.path, self.me = path, self
    def __del__(self):
        write(self.path)

@tool(**query)
def litter(path: str) -> None:
    "Leave something that writes when it is collected."
    gc.collect()
    gc.disable()
    Litter(path)

@tool(**query)
def collect() -> None:
    "Collect what others left."
    gc.enable()
    gc.collect()
"""
WAYS = ("write", "by_thread", "by_subclass", "by_timer", "by_raw_thread", "by_pool", "by_own_pool")
ASYNC_WAYS = ("plain", "to_thread", "executor", "task", "call_later")
REPORT = "notifications/dev.pactgate/report"


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    with Driven(write_tools(tmp_path_factory.mktemp("kit"), KIT), "--reports") as driven:
        yield driven


@pytest.mark.requirement("S2/MCP-002")
def test_each_deed_is_put_down_to_the_call_that_did_it_and_to_no_other(kit: Driven, tmp_path: Path) -> None:
    started: dict[int, str] = {}
    idle: list[int] = []
    for round_ in range(5):
        for tool, ways in (("write_somehow", WAYS), ("write_async", ASYNC_WAYS)):
            for how in ways:
                path = str(tmp_path / f"{round_}-{how}")
                started[kit.begin(tool, how=how, path=path)] = path
            idle.append(kit.begin("honest"))
    for identity, path in started.items():
        assert operations(kit.answer(identity)["result"]) == [{"kind": "filesystem.write", "target": path}]
    for identity in idle:
        assert operations(kit.answer(identity)["result"]) == []


@pytest.mark.parametrize(
    ("deed", "kinds"),
    [
        *((deed, ["filesystem.read"]) for deed in ("read", "list")),
        *((deed, ["filesystem.write"]) for deed in ("rename", "make", "remove", "mode", "database")),
        *((deed, ["process"]) for deed in ("start", "system", "signal")),
        *((deed, ["network"]) for deed in ("look up", "datagram", "listen", "unix")),
        *((deed, ["state"]) for deed in ("environment", "folder")),
        *((deed, []) for deed in ("memory", "import", "own source", "nowhere", "time zone")),
    ],
)
def test_what_counts_as_which_effect(
    kit: Driven, deed: str, kinds: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    at = tmp_path_factory.getbasetemp() / "world"
    at.mkdir(exist_ok=True)
    for name in ("there", "a"):
        (at / name).write_text("x")
    (at / "b").write_text("x")
    result = kit.call("do", deed=deed, at=str(at))
    assert not result["isError"], result
    assert [one["kind"] for one in operations(result)] == kinds
    if (at / "made").exists():
        (at / "made").rmdir()


def test_native_code_is_named_because_nothing_of_what_it_does_is_seen(kit: Driven, tmp_path: Path) -> None:
    assert {"kind": "process", "target": "native code getpid"} in operations(
        kit.call("do", deed="native", at=str(tmp_path))
    )


def test_what_happens_after_the_answer_is_told_all_the_same(kit: Driven, tmp_path: Path) -> None:
    assert operations(kit.call("go_on", path=str(tmp_path / "late"))) == []
    told = kit.hear(REPORT)["params"]
    done = [{"kind": "filesystem.write", "target": str(tmp_path / "late")}]
    assert told == {"what": "late_operations", "tool": "go_on", "operations": done}


def test_whoever_runs_when_the_collector_does_is_not_blamed_for_what_others_left(kit: Driven, tmp_path: Path) -> None:
    path = tmp_path / "litter"
    assert operations(kit.call("litter", path=str(path))) == []
    assert operations(kit.call("collect")) == []
    assert path.exists()
    told = kit.hear(REPORT)["params"]
    assert (told.get("tool", ""), told["operations"][0]["target"]) == ("", str(path))


def test_a_tool_that_does_a_lot_has_a_bounded_list_that_says_so(kit: Driven, tmp_path: Path) -> None:
    done = operations(kit.call("many", path=str(tmp_path)))
    assert done[-1] == {"more": 300 - MAX_UNDECLARED}
    assert len(done) == MAX_UNDECLARED + 1


@pytest.mark.requirement("S2/MCP-002")
def test_where_it_is_asked_for_what_is_not_declared_does_not_happen(tmp_path: Path) -> None:
    with Driven(write_tools(tmp_path, KIT), "--undeclared", "refuse") as driven:
        path = tmp_path / "never"
        for tool, how in (("write_somehow", "write"), ("write_somehow", "by_pool"), ("write_async", "to_thread")):
            result = driven.call(tool, how=how, path=str(path))
            assert error(result)["code"] == "PERMISSION_DENIED"
            assert operations(result) == [{"kind": "filesystem.write", "target": str(path), "refused": True}]
        assert not path.exists()
        assert not driven.call("honest")["isError"]


def watched(*effects: Effect, late: list[Operation] | None = None, refuses: bool = False) -> EffectWatch:
    told: list[Operation] = [] if late is None else late
    return EffectWatch("x", effects, refuses=refuses, on_late=lambda _, done: told.append(done))


def test_what_is_not_declared_is_never_crowded_out_by_what_is() -> None:
    watch = watched(Effect.READ)
    for number in range(1000):
        watch.note(Effect.READ, f"/{number}")
    watch.note(Effect.NETWORK, "a:1")
    seen = watch.operations()
    assert seen[0] == Operation("network", "a:1")
    assert (len(seen), seen[-1]) == (MAX_OPERATIONS + 1, Operation(more=1000 - MAX_OPERATIONS + 1))


def test_the_same_thing_done_again_is_told_once() -> None:
    watch = watched()
    for _ in range(500):
        watch.note(Effect.NETWORK, "a:1")
    assert watch.operations() == [Operation("network", "a:1")]


def test_late_reports_are_bounded_and_only_about_what_is_not_declared() -> None:
    late: list[Any] = []
    watch = watched(Effect.READ, late=late)
    watch.has_ended = True
    for number in range(100):
        watch.note(Effect.READ, f"/{number}")
        watch.note(Effect.WRITE, f"/{number}")
    assert len(late) == MAX_LATE
    assert {one.kind for one in late} == {"filesystem.write"}


def test_a_refusal_is_an_error_every_program_knows() -> None:
    watch = watched(refuses=True)
    with pytest.raises(PermissionError):
        watch.note(Effect.PROCESS, "start true")
    assert issubclass(UndeclaredEffectError, OSError)
    assert watch.operations() == [Operation("process", "start true", refused=True)]
