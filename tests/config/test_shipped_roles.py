"""What the shipped roles allow, as data."""

from pathlib import Path

from config.load import SHIPPED_ROLES
from config.permissions import Permission, Role
from config.role_entries import RoleEntry
from config.yaml_reader import read


def roles() -> dict[str, Role]:
    document = read(Path(SHIPPED_ROLES).read_text("utf-8"), "roles.yaml").value
    assert isinstance(document, dict)
    return {
        name: RoleEntry.model_validate(entry).role(name)
        for name, entry in document["roles"].items()
    }


def allowed(role: str) -> set[Permission]:
    return {permission for grant in roles()[role].grants for permission in grant.permissions}


def test_five_roles_ship() -> None:
    assert list(roles()) == ["viewer", "researcher", "oncall", "admin", "auditor"]


def test_the_admin_holds_every_permission_without_limit() -> None:
    """A permission that is added later must be added to the role."""
    assert allowed("admin") == set(Permission)
    assert {grant.scope.max_nodes for grant in roles()["admin"].grants} == {None}


def test_a_viewer_reads_and_an_auditor_reads_the_log_only() -> None:
    assert allowed("viewer") == {Permission.NODE_READ}
    assert allowed("auditor") == {Permission.AUDIT_READ}


def test_a_researcher_acts_only_on_own_jobs() -> None:
    unlimited = {
        p
        for grant in roles()["researcher"].grants
        if not grant.scope.own_jobs
        for p in grant.permissions
    }
    assert unlimited == {Permission.NODE_READ}
    assert Permission.RUN_APPROVE not in allowed("researcher")


def test_oncall_acts_on_at_most_four_nodes_and_may_not_clear_a_halt() -> None:
    limits = {
        p: grant.scope.max_nodes for grant in roles()["oncall"].grants for p in grant.permissions
    }
    acting = {p for p in limits if p.value.startswith(("node.", "service.", "hands_off"))}
    assert {limits[p] for p in acting - {Permission.NODE_READ}} == {4}
    assert set(Permission) - set(limits) == {
        Permission.HALT_CLEAR,
        Permission.RUNBOOK_RELEASE,
        Permission.AUDIT_MANAGE,
    }


def test_whoever_is_on_call_may_hold_the_ground_of_a_job_of_any_size() -> None:
    limits = {
        p: grant.scope.max_nodes for grant in roles()["oncall"].grants for p in grant.permissions
    }
    assert limits[Permission.RESERVATION_HOLD] is None
    assert limits[Permission.JOB_REQUEUE] == 4
