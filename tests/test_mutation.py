"""The planted faults of tests/mutation.py still have their places and their tests; the script tries them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from tests.mutation import ROOT, Fault, Ran, faults

FOUND = faults()


def test_there_are_faults_in_every_room_and_no_name_twice():
    rooms = Counter(one.file.partition("/")[0] if "/" in one.file else "core" for one in FOUND)
    wanted = {"mechanisms", "games", "efb", "nvo", "bandits", "inference", "core", "cli", "report"}
    assert len(FOUND) >= 60 and wanted <= rooms.keys()
    assert len({one.name for one in FOUND}) == len(FOUND)


def test_a_fault_has_its_place_once_and_is_python():
    for one in FOUND:
        compile(one.planted(one.path.read_text(encoding="utf-8")), one.file, "exec")


def test_the_tests_that_should_notice_are_there_and_not_slow():
    texts: dict[str, str] = {}
    for one in FOUND:
        assert one.tests
        for node in one.tests:
            file, _, test = node.partition("::")
            text = texts.setdefault(file, (ROOT / "tests" / file).read_text(encoding="utf-8"))
            named = re.escape(test.partition("[")[0])
            above = re.search(rf"((?:^[@ )\]].*\n)*)^def {named or 'test_'}", text, re.MULTILINE)
            assert above, node
            assert "mark.slow" not in above[1] and not re.search(r"^pytestmark.*slow", text, re.MULTILINE), (
                node
            )


def test_a_place_that_is_gone_or_not_alone_is_named():
    one = Fault("a fault", "_live.py", "lock", "look", ())
    for text in ("nothing", "lock and lock"):
        with pytest.raises(ValueError, match=r"a fault: _live\.py must have 'lock' once"):
            one.planted(text)
    assert one.planted("a lock") == "a look"


@pytest.mark.parametrize(
    ("code", "failed", "noticed"), [(1, ["a"], True), (1, [], False), (0, [], False), (2, ["a"], False)]
)
def test_only_a_test_that_fails_notices(code, failed, noticed):
    assert Ran(code, failed, "", 1.0, 1.0).noticed == noticed


GIVE = """
import sys
from pathlib import Path
from tests import mutation
trees, base, kernels = map(Path, sys.argv[1:])
fault = mutation.Fault("a fault", "bandits/rewards.py", "", "", ())
for name in ("of another fault", "tree"):
    mutation.give_kernels(fault, mutation.copied(trees / name), base, kernels / name)
"""
LOOK = "from equinoise import _jit\nprint(*sorted(path.name for path in _jit.cache_directory().iterdir()))"


def test_kernels_that_a_fault_cannot_change_are_where_the_changed_tree_looks(tmp_path):
    trees, base, kernels = (tmp_path / name for name in ("trees", "base", "kernels"))
    trees.mkdir()
    (base / "equinoise-0").mkdir(parents=True)
    for module in ("efb.kernels", "bandits.rewards", "bandits.policies.ucb"):
        (base / "equinoise-0" / f"f.g-equinoise.{module}-1.nbi").touch()
    apart = os.environ | {"NUMBA_CACHE_DIR": str(kernels / "tree")}
    for script, where, given in ((GIVE, ROOT, (trees, base, kernels)), (LOOK, trees / "tree" / "src", ())):
        command = [sys.executable, "-c", script, *map(str, given)]
        path = {"PYTHONPATH": os.pathsep.join(map(str, (where, ROOT / "src")))}
        ran = subprocess.run(command, env=apart | path, capture_output=True, text=True, check=True)
    assert ran.stdout == "f.g-equinoise.efb.kernels-1.nbi\n"
