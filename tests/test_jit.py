"""The kernel cache: never stale, never in the way. Each case runs new interpreters on a small copy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from llvmlite.binding import get_host_cpu_name

pytestmark = pytest.mark.compiled
SOURCE = Path(__file__).resolve().parents[1] / "src" / "equinoise"

CALLEE = """
from equinoise._jit import njit

@njit
def constant():
    return {value}
"""
CALLER = """
import numpy as np
from equinoise._callee import constant
from equinoise._jit import njit

@njit
def scaled(x):
    return constant() * x

@njit
def ratio(x, y):
    return x / y

@njit
def wrapped(x):
    return x * x + x

@njit
def beyond(array, i):
    return array[i]
"""
REPORT = """
import json
from equinoise import _caller
value = _caller.scaled(1.5)
stats = getattr(_caller.scaled, "stats", None)
hits, misses = (sum(stats.cache_hits.values()), sum(stats.cache_misses.values())) if stats else (0, 0)
print(json.dumps([value, hits, misses, stats.cache_path if stats else None]))
"""


def install(where):
    """Return the folder of a package named equinoise with the real decorator and two kernels of its own."""
    folder = where / "install" / "equinoise"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "_jit.py", "_lazy.py", "_version.py"):
        shutil.copy(SOURCE / name, folder)
    (folder / "_callee.py").write_text(CALLEE.format(value=2))
    (folder / "_caller.py").write_text(CALLER)
    return folder


@pytest.fixture
def package(tmp_path):
    """A package of the test's own."""
    return install(tmp_path)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The cache that the first process leaves, which is the same for every such package."""
    folder = tmp_path_factory.mktemp("first")
    assert report(install(folder), NUMBA_CACHE_DIR=str(folder / "cache"))[:3] == [3.0, 0, 1]
    return folder / "cache"


@pytest.fixture
def warm(compiled, tmp_path):
    """A copy of it."""
    return str(shutil.copytree(compiled, tmp_path / "cache"))


def start(package, script=REPORT, **variables):
    kept = {
        name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ
    }
    environment = kept | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"} | variables
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script],
        env=environment,
        cwd=package.parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(child):
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    assert err == ""
    return out


def report(package, **variables):
    return json.loads(finish(start(package, **variables)))


def test_a_second_process_loads_and_does_not_compile(package, warm):
    """Even one of another copy of the package, elsewhere."""
    value, hits, misses, where = report(package, NUMBA_CACHE_DIR=warm)
    assert (value, hits, misses) == (3.0, 1, 0)
    assert Path(where).parent == Path(warm)


TOLD = """
import json
from equinoise import _caller, _jit
seen = []
with _jit.compiling(seen.append):
    _caller.scaled(1.5)
    _caller.scaled(2.5)
_caller.ratio(1.0, 2.0)
print(json.dumps(seen))
"""


def test_compiling_is_told_and_loading_is_not(package, tmp_path):
    cache = str(tmp_path / "cache")
    told = json.loads(finish(start(package, TOLD, NUMBA_CACHE_DIR=cache)))
    assert told == [True, True, True, False]  # the callee within the caller
    assert json.loads(finish(start(package, TOLD, NUMBA_CACHE_DIR=cache))) == []


def test_a_changed_callee_in_another_file_compiles_anew(package, warm):
    callee = package / "_callee.py"
    times = callee.stat()
    callee.write_text(CALLEE.format(value=4))
    os.utime(callee, ns=(times.st_atime_ns, times.st_mtime_ns))  # as old and as long as before
    assert report(package, NUMBA_CACHE_DIR=warm)[:3] == [6.0, 0, 1]


def test_a_base_that_is_relative_is_taken_from_where_the_process_began(package, tmp_path):
    assert Path(report(package, NUMBA_CACHE_DIR="here")[3]).parent == tmp_path / "here"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="other systems have other cache folders")
def test_the_users_cache_directory_is_the_base_and_the_install_stays_untouched(package, tmp_path):
    before = sorted(package.rglob("*"))
    package.chmod(0o555)
    value, _, misses, where = report(package, XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert (value, misses) == (3.0, 1)
    assert Path(where).parent == tmp_path / "xdg" / "equinoise"
    assert Path(report(package, HOME=str(tmp_path / "home"))[3]).parent == tmp_path / "home/.cache/equinoise"
    assert sorted(package.rglob("*")) == before


def test_a_cache_that_cannot_be_made_costs_only_time(package, tmp_path):
    (tmp_path / "file").write_text("in the way")
    variables = {"NUMBA_CACHE_DIR": str(tmp_path / "file" / "cache")}
    assert report(package, **variables) == [3.0, 0, 1, None]


HOMELESS = "import pwd\ndef unknown(uid):\n    raise KeyError(uid)\npwd.getpwuid = unknown\n"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pwd")
def test_nobody_without_a_home_gets_no_folder_named_tilde(package, tmp_path):
    assert json.loads(finish(start(package, HOMELESS + REPORT))) == [3.0, 0, 1, None]
    assert [path.name for path in tmp_path.iterdir()] == ["install"]


def test_damaged_files_are_mended(package, warm):
    for suffix, damage in (("nbc", b""), ("nbi", b"no pickle" * 9)):
        damaged = [path for path in Path(warm).rglob(f"*.{suffix}") if "scaled" in path.name]
        assert len(damaged) == 1
        damaged[0].write_bytes(damaged[0].read_bytes()[:40] + damage)
        assert report(package, NUMBA_CACHE_DIR=warm)[:2] == [3.0, 0]
        assert report(package, NUMBA_CACHE_DIR=warm)[:2] == [3.0, 1]


TWO = """
import json
from equinoise import _caller
print(json.dumps([_caller.scaled(1.5), _caller.scaled(3), sum(_caller.scaled.stats.cache_hits.values())]))
"""


def test_code_of_other_types_is_not_taken_for_ones_own(package, warm):
    """Of two processes that compile a kernel for two types at once, one may name the other's file."""
    assert json.loads(finish(start(package, TWO, NUMBA_CACHE_DIR=warm))) == [3.0, 6, 1]
    first, second = sorted(path for path in Path(warm).rglob("*.nbc") if "scaled" in path.name)
    shutil.copyfile(first, second)
    for n in (1, 2):
        assert json.loads(finish(start(package, TWO, NUMBA_CACHE_DIR=warm))) == [3.0, 6, n]


READ_ONLY = """
import builtins, os, tempfile
def refused(*_, **__):
    raise PermissionError(13, "read-only")
tempfile.TemporaryFile = os.makedirs = os.mkdir = os.replace = os.utime = refused
def reading(file, mode="r", *rest, opened=builtins.open, **more):
    return (refused if set(mode) & set("wax+") else opened)(file, mode, *rest, **more)
builtins.open = reading
"""


def test_kernels_are_read_where_none_can_be_written(package, warm, tmp_path):
    none = str(tmp_path / "none")
    assert json.loads(finish(start(package, READ_ONLY + REPORT, NUMBA_CACHE_DIR=none))) == [3.0, 0, 1, None]
    assert not Path(none).exists()
    before = sorted(Path(warm).rglob("*"))
    assert json.loads(finish(start(package, READ_ONLY + REPORT, NUMBA_CACHE_DIR=warm)))[:3] == [3.0, 1, 0]
    other = READ_ONLY + TWO  # which compiles one kernel more
    assert json.loads(finish(start(package, other, NUMBA_CACHE_DIR=warm))) == [3.0, 6, 1]
    assert sorted(Path(warm).rglob("*")) == before


TOGETHER = """
import os, warnings
import numba.core.registry  # once; what is of the package is imported and compiled eight times
warnings.simplefilter("ignore")  # that it is multi-threaded, with BLAS's own threads
children = []
for _ in range(8):
    children.append(os.fork())
    if not children[-1]:
        code = 1
        try:
            from equinoise import _caller
            code = int(_caller.scaled(1.5) != 3.0)
        finally:
            os._exit(code)
print([os.waitpid(child, 0)[1] for child in children])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_processes_that_start_together_do_not_disturb_each_other(package, tmp_path):
    cache = str(tmp_path / "cache")
    assert finish(start(package, TOGETHER, NUMBA_CACHE_DIR=cache)) == f"{[0] * 8}\n"
    assert report(package, NUMBA_CACHE_DIR=cache)[:3] == [3.0, 1, 0]


def test_threads_and_both_kinds_of_processes_call_a_kernel_at_once(package, tmp_path):
    script = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from equinoise import _caller
if __name__ == "__main__":
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(_caller.scaled, [1.5] * 8))
    for way in ("fork", "spawn"):
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(way)) as pool:
            found += pool.map(_caller.scaled, [1.5] * 4)
    print(found == [3.0] * 16)
"""
    (tmp_path / "script.py").write_text(script)
    run = "import runpy, sys; sys.argv[0] = 'script.py'; runpy.run_path('script.py', run_name='__main__')"
    variables = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert finish(start(package, run, **variables)) == "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_compiles_that_was_forked_while_a_thread_compiled(package, tmp_path):
    script = """
import os, signal, threading, time
from equinoise import _caller, _jit
begun = threading.Event()
def slowly(start):
    begun.set()
    time.sleep(0.5)
with _jit.compiling(slowly):
    thread = threading.Thread(target=_caller.scaled, args=(1.5,))
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        signal.alarm(30)
        os._exit(_caller.scaled(1.5) != 3.0 or _caller.ratio(1.0, 2.0) != 0.5)
    thread.join()
print(os.waitpid(child, 0)[1], _caller.scaled(1.5))
"""
    run = "import warnings; warnings.simplefilter('ignore')  # that it is multi-threaded\n" + script
    assert finish(start(package, run, NUMBA_CACHE_DIR=str(tmp_path / "cache"))) == "0 3.0\n"


FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_full_disk_costs_only_time(package, tmp_path):
    cache = str(tmp_path / "cache")
    assert json.loads(finish(start(package, FULL + REPORT, NUMBA_CACHE_DIR=cache)))[:2] == [3.0, 0]
    assert report(package, NUMBA_CACHE_DIR=cache)[:2] == [3.0, 0]
    assert report(package, NUMBA_CACHE_DIR=cache)[:2] == [3.0, 1]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits, and no pwd")
@pytest.mark.parametrize(
    ("before", "folder", "kept"),
    [
        ("", "cache", True),
        ("", "file/cache", False),
        (HOMELESS, None, False),
        (READ_ONLY, "cache", False),
        (FULL, "cache", False),
    ],
)
def test_whether_kernels_can_be_kept_is_known(package, tmp_path, before, folder, kept):
    (tmp_path / "file").write_text("in the way")
    variables = {} if folder is None else {"NUMBA_CACHE_DIR": str(tmp_path / folder)}
    said = finish(start(package, before + "from equinoise import _jit\nprint(_jit.keeps())", **variables))
    assert said == f"{kept}\n"


def test_processors_of_two_makes_share_a_cache(package, warm):
    variables = {"NUMBA_CACHE_DIR": warm}
    other = {"NUMBA_CPU_NAME": "generic" if get_host_cpu_name() != "generic" else "x86-64"} | variables
    theirs, mine, again = (report(package, **given) for given in (other, variables, other))
    assert mine[3] != theirs[3] == again[3]
    assert (theirs[:3], mine[:3], again[:3]) == ([3.0, 0, 1], [3.0, 1, 0], [3.0, 1, 0])


def upgraded(package, tmp_path, cache, module):
    """Return what a process reports that imports a module, waits, and goes on when a callee was replaced."""
    waiting = f"import pathlib, time\nfrom equinoise import {module}\npathlib.Path('ready').touch()\n"
    waiting += "while pathlib.Path('ready').exists():\n    time.sleep(0.01)\n"
    child = start(package, waiting + REPORT, NUMBA_CACHE_DIR=cache)
    while not (tmp_path / "ready").exists() and child.poll() is None:
        time.sleep(0.01)
    (package / "_callee.py").write_text(CALLEE.format(value=4))
    (tmp_path / "ready").unlink()
    return json.loads(finish(child))


def test_an_upgrade_in_place_disturbs_no_process_that_runs(package, tmp_path):
    cache = str(tmp_path / "cache")  # an empty one: the old process compiles after the upgrade
    assert upgraded(package, tmp_path, cache, "_caller")[0] == 3.0
    assert report(package, NUMBA_CACHE_DIR=cache)[:3] == [6.0, 0, 1]


@pytest.mark.parametrize("known", [False, True])  # whether the old kernels are in the cache already
def test_what_is_imported_after_an_upgrade_is_not_kept_as_of_the_old_version(package, tmp_path, known):
    cache, old = str(tmp_path / "cache"), (package / "_callee.py").read_text()
    (package / "_other.py").write_text("from equinoise._jit import njit\n@njit\ndef one():\n    return 1\n")
    if known:
        assert report(package, NUMBA_CACHE_DIR=cache)[:3] == [3.0, 0, 1]
    assert upgraded(package, tmp_path, cache, "_other")[:3] == [
        6.0,
        0,
        1,
    ]  # what it imported, not what was kept
    (package / "_callee.py").write_text(old)
    assert report(package, NUMBA_CACHE_DIR=cache)[0] == 3.0


def test_kernels_that_no_process_used_for_a_month_are_removed(package, warm):
    cache, (mine,) = Path(warm), Path(warm).iterdir()
    old, recent, foreign = (
        cache / name for name in ("equinoise-" + 20 * "0", "equinoise-" + 20 * "1", "other")
    )
    for folder, days in ((old, 31), (recent, 29), (foreign, 99), (mine, 31)):
        folder.mkdir(exist_ok=True)
        (folder / "file").touch()
        then = time.time() - days * 86_400
        os.utime(folder, (then, then))
    assert report(package, NUMBA_CACHE_DIR=warm)[:2] == [3.0, 1]  # its own, which it uses
    assert sorted(path.name for path in cache.iterdir()) == sorted([recent.name, foreign.name, mine.name])


def test_bounds_checking_has_kernels_of_its_own(package, warm):
    script = """
import numpy as np
from equinoise import _caller
try:
    _caller.beyond(np.zeros(2), 1 << 10)
except IndexError:
    print("checked")
"""
    (plain,) = Path(warm).iterdir()
    checked = report(package, NUMBA_CACHE_DIR=warm, NUMBA_BOUNDSCHECK="1")
    assert checked[1:3] == [0, 1]
    assert checked[3] != str(plain)
    assert finish(start(package, script, NUMBA_CACHE_DIR=warm, NUMBA_BOUNDSCHECK="1")) == "checked\n"


@pytest.mark.parametrize("disabled", ["0", "1"])
def test_numbers_behave_alike_compiled_and_not(package, tmp_path, disabled):
    script = """
import numpy as np
from equinoise import _caller
print(_caller.ratio(np.float64(1), np.float64(0)), _caller.ratio(np.float64(0), np.float64(0)))
print(int(_caller.wrapped(np.uint64(2**63 + 1))) & (2**64 - 1))
"""
    variables = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": disabled}
    x = 2**63 + 1
    assert finish(start(package, script, **variables)) == f"inf nan\n{(x * x + x) % 2**64}\n"


def test_without_jit_nothing_is_compiled_or_written(package, tmp_path):
    assert report(package, NUMBA_CACHE_DIR=str(tmp_path / "cache"), NUMBA_DISABLE_JIT="1") == [
        3.0,
        0,
        0,
        None,
    ]
    assert not (tmp_path / "cache").exists()


def test_no_module_compiles_when_imported(tmp_path):
    script = """
import importlib, pkgutil
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    import equinoise
    names = [module.name for module in pkgutil.walk_packages(equinoise.__path__, "equinoise.")]
    for name in names:
        importlib.import_module(name)
print(len(names) > 10, len(recorder.buffer))
"""
    child = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(SOURCE.parent), "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (child.stdout, child.stderr) == ("True 0\n", "")
