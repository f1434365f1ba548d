"""A configuration is accepted as a whole, or everything wrong with it is told at once."""

from pathlib import Path

import pytest

from config.fields import MaxOut
from config.load import ConfigErrors, load
from config.node_names import NodeSet
from config.permissions import Permission
from config.settings import Settings

EXAMPLE = Path(__file__).parents[2] / "config" / "example.yaml"
SMALL = """\
clusters:
  train:
    kind: slurm
    pools:
      h100: {partitions: [train], max_out: 2}
    protected: ctl-1
people:
  ann: {slack: [T1/U1], os_users: [ann], roles: [admin]}
pages:
  - {kind: webhook, url: "http://127.0.0.1:1/hook"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def loaded(folder: Path, *texts: str) -> Settings:
    """Settings of files `1.yaml`, `2.yaml`, … with these texts."""
    paths = []
    for number, text in enumerate(texts, 1):
        path = folder / f"{number}.yaml"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return load(paths)


def errors(folder: Path, *texts: str) -> list[str]:
    """What is wrong with them, without the folder's name."""
    with pytest.raises(ConfigErrors) as caught:
        loaded(folder, *texts)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def with_line(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def test_the_example_loads() -> None:
    settings = load([EXAMPLE])
    assert settings.clusters["train"].pools["h100"].max_out == MaxOut(percent=10)
    assert settings.clusters["train"].protected == NodeSet.of(
        ["ctl-1", "ctl-2", "login-1", "login-2", *(f"storage-{n:02}" for n in range(1, 13))]
    )
    assert str(settings.slack and settings.slack.app_token) == "file:/etc/nodewarden/app-token"


def test_the_shipped_roles_are_there_and_can_be_replaced(folder: Path) -> None:
    """A role of the same name is the site's, not a mixture."""
    assert set(loaded(folder, SMALL).roles) == {
        "viewer",
        "researcher",
        "oncall",
        "admin",
        "auditor",
    }
    own = "roles:\n  viewer:\n    help: x\n    grants: [{permissions: [audit.read]}]\n"
    replaced = loaded(folder, SMALL, own).role("viewer")
    assert [grant.permissions for grant in replaced.grants] == [{Permission.AUDIT_READ}]


def test_settings_cannot_be_changed_after_loading(folder: Path) -> None:
    settings = loaded(folder, SMALL)
    with pytest.raises(ValueError, match="frozen"):
        settings.bot = settings.bot  # the refusal is the point


def test_everything_wrong_is_told_at_once_with_file_line_key_and_what_would_be_right(
    folder: Path,
) -> None:
    text = """\
clusters:
  train:
    kind: slrum
    polls: {}
    pools:
      h100: {partitions: [train], max_out: 0}
      a100: {nodes: "gpu-[1-30000000]", max_out: 110%}
    protected: []
    units: ["slurmd; reboot"]
    channel: "#ops"
people:
  ann: {slack: [U1], roles: [onkall]}
policy:
  approvals: {expiry: 15}
  autonomy: {default: propse}
pages:
  - {kind: webhook}
"""
    assert errors(folder, text) == [
        "1.yaml:3:5: clusters.train.kind: one of these is expected: 'slurm' or 'simulated'; "
        "did you mean slurm?",
        "1.yaml:4:5: clusters.train.polls: there is no such key; did you mean pools?",
        "1.yaml:6:35: clusters.train.pools.h100.max_out: "
        "a number of nodes of at least 1, or a share from 1% to 100%",
        "1.yaml:7:14: clusters.train.pools.a100.nodes: 'gpu-[1-30000000]' would name "
        "30,000,000 nodes; at most 20,000 are accepted: name fewer",
        "1.yaml:7:41: clusters.train.pools.a100.max_out: "
        "a number of nodes of at least 1, or a share from 1% to 100%",
        "1.yaml:8:5: clusters.train.protected: at least one node must be named, as gpu-[001-016]",
        "1.yaml:9:13: clusters.train.units.0: a systemd unit name, for example slurmd",
        "1.yaml:10:5: clusters.train.channel: a Slack channel id begins with C or G; "
        "a #name can change",
        "1.yaml:12:17: people.ann.slack.0: a Slack user is written TEAM/USER, "
        "for example T0AB/U0CD",
        "1.yaml:12:30: people.ann.roles.0: there is no such role; did you mean oncall?",
        "1.yaml:14:15: policy.approvals.expiry: text is expected here, not a number; "
        "quotes make a text",
        "1.yaml:15:14: policy.autonomy.default: one of these is expected: 'observe', 'propose' "
        "or 'act'; did you mean propose?",
        "1.yaml:17:5: pages.0: kind webhook needs url",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    protected: ctl-1\n", "", "1.yaml:2:3: clusters.train.protected: is missing: Hosts"),
        ("protected: ctl-1", 'protected: ""', "an empty node set is never taken to mean all"),
        (
            "protected: ctl-1",
            'protected: "@x;touch F"',
            "'@' at position 1 cannot be in a node name",
        ),
        ("protected: ctl-1", 'protected: "*"', "'*' at position 1"),
        ("roles: [admin]", "roles: [admin], shared: 1", "should be a valid boolean"),
        ("os_users: [ann]", "os_users: [root]", "give root a person with shared: true"),
        ("os_users: [ann]", "slack_groups: [S1]", "this user group is not under groups"),
        ("kind: slurm", "kind: simulated", "kind simulated needs simulated_socket"),
        ("kind: slurm", "kind: slurm\n    simulated_socket: /s", "only for kind simulated"),
        (
            "partitions: [train], max",
            'partitions: [train], nodes: "g-1", max',
            "exactly one of them",
        ),
        ("partitions: [train]", 'nodes: "g-[1-4]"', ""),
        (
            '  - {kind: webhook, url: "http://127.0.0.1:1/hook"}',
            "  []",
            "at least one is needed: Ways to wake",
        ),
        (
            "kind: webhook, url",
            "kind: slack, channel: C1, url",
            "kind slack needs the section slack",
        ),
        ("http://127", "http://u:hunter2@127", "a password must not stand in an address"),
        ("http://127.0.0.1:1/hook", "ftp://x", "beginning with https:// or http://"),
        ("max_out: 2", 'max_out: "2"', "a number of nodes"),
        ("max_out: 2", "max_out: true", "a number of nodes"),
        ("kind: slurm", "kind: slurm\n    ssh_config: etc/ssh", "an absolute path"),
        (
            "kind: slurm",
            "kind: slurm\n    rma: [{nodes: g-1, owner: bob, until: '2027-01-31'}]",
            "nobody",
        ),
        (
            "kind: slurm",
            "kind: slurm\n    rma: [{nodes: g-1, owner: ann, until: '31.1.27'}]",
            "a day is",
        ),
        ("kind: slurm", "kind: slurm\n    reference_hosts: [ctl]", "a host and a port"),
        ("pages:", "anchors: {interval: 60}\npages:", "text is expected here, not a number"),
        ("pages:", "anchors: {records: '9'}\npages:", "valid integer"),
        ("pages:", "polcy: {}\npages:", "polcy: there is no such key; did you mean policy?"),
    ],
)
def test_each_mistake_is_named(folder: Path, old: str, new: str, said: str) -> None:
    text = with_line(SMALL, old, new)
    if not said:
        loaded(folder, text)
        return
    (problem,) = errors(folder, text)
    assert said in problem


def test_a_share_that_is_less_than_one_node_is_refused(folder: Path) -> None:
    """Rounded down it would be none, and nothing could ever be done in that pool."""
    text = with_line(SMALL, "partitions: [train], max_out: 2", 'nodes: "g-[1-9]", max_out: 10%')
    (problem,) = errors(folder, text)
    assert "10% of 9 nodes is less than one node" in problem
    loaded(folder, text.replace("g-[1-9]", "g-[1-10]"))


def test_a_share_is_rounded_down() -> None:
    assert [MaxOut(percent=10).of(size) for size in (9, 10, 19, 20)] == [0, 1, 1, 2]
    assert MaxOut(count=3).of(1000) == 3


def test_one_slack_user_cannot_be_two_persons(folder: Path) -> None:
    """Or somebody could approve their own request under the second name."""
    more = "people:\n  bob: {slack: [T1/U1], os_users: [ann]}\n"
    assert [line.split(": ", 2)[2] for line in errors(folder, SMALL, more)] == [
        "T1/U1 belongs to ann already; a user is one person",
        "ann belongs to ann already; a user is one person",
    ]


def test_a_node_counts_in_one_pool_only(folder: Path) -> None:
    pools = (
        "h100: {partitions: [train], max_out: 2}\n      b: {partitions: [train], max_out: 1}\n"
        '      c: {nodes: "g-[1-4]", max_out: 1}\n      d: {nodes: "g-[3-6]", max_out: 1}'
    )
    text = with_line(SMALL, "h100: {partitions: [train], max_out: 2}", pools)
    assert [line.split(": ", 2)[2] for line in errors(folder, text)] == [
        "train is in pool h100 already; a node counts in one pool",
        "g-[3-4] is in pool c already; a node counts in one pool",
    ]


def test_files_are_joined_and_an_entry_given_twice_names_both_places(folder: Path) -> None:
    bob = "people:\n  bob: {os_users: [bob]}\n"
    assert set(loaded(folder, SMALL, bob).people) == {"ann", "bob"}
    again = "people:\n  ann: {os_users: [x]}\npages: []\n"
    assert errors(folder, SMALL, again) == [
        "2.yaml:2:3: people.ann: given already in 1.yaml, line 8; keep one",
        "2.yaml:3:1: pages: given already in 1.yaml, line 9; keep one",
    ]


def test_an_error_is_told_in_the_file_that_holds_it(folder: Path) -> None:
    bob = "people:\n  bob: {roles: [nobody]}\n"
    assert errors(folder, SMALL, bob)[0].startswith("2.yaml:2:17: people.bob.roles.0: ")


@pytest.mark.parametrize("place", ["bot_token", "app_token"])
@pytest.mark.parametrize(
    "secret", ["xoxb-hunter2", "0123456789012345678", "[hunter2]", "!hunter2 x"]
)
def test_a_secret_given_as_value_is_refused_and_not_printed(
    folder: Path, place: str, secret: str
) -> None:
    other = {"bot_token", "app_token"} - {place}
    slack = f"slack:\n  team: T1\n  {place}: {secret}\n  {other.pop()}: env:X\n"
    (problem,) = errors(folder, SMALL, slack)[:1]
    assert problem.startswith("2.yaml:3:")
    assert "hunter2" not in problem.replace("a tag (!hunter2)", "")
    assert "0123456789" not in problem


def test_yaml_problems_of_every_file_are_told_together(folder: Path) -> None:
    """And nothing else: what is missing cannot be known yet."""
    found = errors(folder, "a: no\nb: 010\n", "c: 1:30\n")
    places = [line.split(": ")[0] for line in found]
    assert places == ["1.yaml:1:4", "1.yaml:2:4", "2.yaml:1:4"]


def test_a_file_that_cannot_be_read_is_named(folder: Path) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load([folder / "missing.yaml"])
    assert "missing.yaml:1:1: cannot be read: No such file" in str(caught.value)
    (folder / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    with pytest.raises(ConfigErrors) as caught:
        load([folder / "latin.yaml"])
    assert "latin.yaml:2:1: this is not UTF-8 text" in str(caught.value)


def test_a_file_that_is_no_mapping_is_refused(folder: Path) -> None:
    assert "a mapping of sections is expected" in errors(folder, "- a\n")[0]


@pytest.mark.parametrize(
    "text", ["clusters: 1\n", "people: [a]\npages: {}\nroles: 3\n", "roles:\n"]
)
def test_wrong_shapes_are_errors_and_never_tracebacks(folder: Path, text: str) -> None:
    assert errors(folder, text)
