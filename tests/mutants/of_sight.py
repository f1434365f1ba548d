"""What the bot must see and may do on its cluster, broken: identity, take-overs, back ends (hands 1)."""

from tests.mutants.mutant import Mutant

SLURM = "tests/actions/slurm"
MUTANTS = (
    Mutant(
        promise="jobs of hidden partitions are listed",
        file="actions/slurm/tools.py",
        old='("squeue", "--all", "--local", "--states=all")',
        new='("squeue", "--local", "--states=all")',
        test=f"{SLURM}/test_client.py",
    ),
    Mutant(
        promise="a take-over counts as a start of the controller",
        file="actions/slurm/control.py",
        old="if not first and controller.in_control != self._in_control:",
        new="if False:",
        test=f"{SLURM}/test_control.py",
    ),
    Mutant(
        promise="a backup at the first look may have taken over a moment ago",
        file="actions/slurm/control.py",
        old="if first and controller.backup:",
        new="if False:",
        test=f"{SLURM}/test_control.py",
    ),
    Mutant(
        promise="nothing is written on the strength of a look from before a start",
        file="actions/slurm/cli.py",
        old="        seen = self._same_start(controller)\n",
        new="        seen = controller\n",
        test=f"{SLURM}/test_control.py",
    ),
    Mutant(
        promise="a write is not read back from a controller that started after it",
        file="actions/slurm/cli.py",
        old="        self._same_since_write(name)\n",
        new="",
        test=f"{SLURM}/test_control.py",
    ),
    Mutant(
        promise="a busy controller is asked less",
        file="actions/slurm/cli.py",
        old="limited=bool(received.overload)",
        new="limited=False",
        test=f"{SLURM}/test_load.py",
    ),
    Mutant(
        promise="a verb without its right is only told",
        file="runbooks/rails.py",
        old="    if lacks:\n",
        new="    if False:\n",
        test="tests/runbooks/engine/test_agreement.py",
    ),
    Mutant(
        promise="the plan knows what the bot's own user lacks",
        file="bot/wiring.py",
        old=", lacks=checks.lacks",
        new="",
        test="tests/bot/test_rights_that_are_missing.py",
    ),
    Mutant(
        promise="without accounting nothing is done that could end a job",
        file="actions/slurm/rights.py",
        old="if ends or verb in _OF_EMPTY_NODES)",
        new="if False)",
        test=f"{SLURM}/test_rights.py",
    ),
    Mutant(
        promise="pyslurm's answers of another cluster are none",
        file="actions/slurm/pyslurm_source.py",
        old='if record["cluster"] != self._cluster:',
        new="if False:",
        test=f"{SLURM}/test_pyslurm_child.py",
    ),
    Mutant(
        promise="what the library prints is no part of the answer",
        file="actions/slurm/snapshot_child.py",
        old="        os.dup2(2, 1)\n",
        new="",
        test=f"{SLURM}/test_pyslurm_child.py",
    ),
    Mutant(
        promise="task 0 of an array has its name with pyslurm too",
        file="actions/slurm/pyslurm_values.py",
        old='number_of(record, "array_task_id") or 0)',
        new='number_of(record, "array_task_id") or "")',
        test=f"{SLURM}/test_both_back_ends.py",
    ),
)
