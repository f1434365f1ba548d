"""Promises of what runs as root on a node, and of who may be restarted there."""

from tests.mutants.mutant import Mutant

_ON_NODE = "actions/remote/on_node"
_TESTS = "tests/actions/remote/on_node"

MUTANTS = (
    Mutant(
        promise="no file outside of the roots is read on a node",
        file=f"{_ON_NODE}/words.py",
        old='    if not any(word.startswith(f"{root}/") for root in roots):',
        new='    if not any(word.startswith(f"{root}") for root in roots):',
        test=f"{_TESTS}/test_files.py",
    ),
    Mutant(
        promise="no link of a user leads out of the roots",
        file=f"{_ON_NODE}/files.py",
        old='    if not any(real == root or real.startswith(f"{root}/") for root in inside):',
        new="    if not inside:",
        test=f"{_TESTS}/test_files.py",
    ),
    Mutant(
        promise="no pipe and no device of a user is opened",
        file=f"{_ON_NODE}/files.py",
        old="    if not stat.S_ISREG(os.fstat(seen).st_mode):",
        new="    if stat.S_ISDIR(os.fstat(seen).st_mode):",
        test=f"{_TESTS}/test_files.py",
    ),
    Mutant(
        promise="files of users are read as that user for good",
        file=f"{_ON_NODE}/processes.py",
        old="    os.setresuid(user, user, user)\n    if os.getresuid() != (user, user, user) or",
        new="    os.seteuid(user)\n    if",
        test=f"{_TESTS}/test_files.py",
    ),
    Mutant(
        promise="an effect is carried out once for its name",
        file=f"{_ON_NODE}/effects.py",
        old="json.loads(_place(effect, site).read_bytes())",
        new='json.loads(Path("/nowhere").read_bytes())',
        test=f"{_TESTS}/test_effects.py",
    ),
    Mutant(
        promise="an effect whose end was never noted is unknown",
        file=f"{_ON_NODE}/effects.py",
        old="        return Answer(words.OUTCOME_UNKNOWN,",
        new="        return Answer(0,",
        test=f"{_TESTS}/test_effects.py",
    ),
    Mutant(
        promise="the lock of an effect lives as long as what it started",
        file=f"{_ON_NODE}/effects.py",
        old="site.environment(), LIMIT, keep=(lock,))",
        new="site.environment(), LIMIT)",
        test=f"{_TESTS}/test_effects.py",
    ),
    Mutant(
        promise="a configuration that others may write stops everything on a node",
        file=f"{_ON_NODE}/site.py",
        old="        if about.st_mode & _OTHERS_WRITE:",
        new="        if about.st_mode & 0:",
        test=f"{_TESTS}/test_verbs.py",
    ),
    Mutant(
        promise="no newline hides at the end of a word",
        file=f"{_ON_NODE}/words.py",
        old="    if not pattern.fullmatch(word) or not word.isascii():",
        new='    if not re.match(pattern.pattern + "$", word):',
        test=f"{_TESTS}/test_verbs.py",
    ),
    Mutant(
        promise="a sudo that says no is no failed start",
        file="actions/remote/program_words.py",
        old="    if result.exit_code == 1 and _SUDO_SAID.search(result.errors):",
        new="    if result.exit_code == 2 and _SUDO_SAID.search(result.errors):",
        test="tests/actions/remote/test_program.py",
    ),
    Mutant(
        promise="slurmd is not restarted under jobs where munge is broken",
        file="actions/service/rules.py",
        old="    if not facts.munge_ok:",
        new="    if facts.munge_ok is None:",
        test="tests/actions/service/test_services.py",
    ),
    Mutant(
        promise="slurmd is not restarted under jobs where Delegate was not read",
        file="actions/service/rules.py",
        old='    if service.delegate != "yes":',
        new='    if service.delegate == "no":',
        test="tests/actions/service/test_services.py",
    ),
)
