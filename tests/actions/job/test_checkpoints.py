"""A checkpoint is whole only where its format says so; what is not known is called unknown."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.checkpoints import Seen, Wholeness, judged, newest_complete, newest_first, step_of
from actions.node_readings import Folder, FolderEntry
from config.job_settings import CheckpointFormat as Format
from tests.actions.fakes import NOW

WHOLE, TORN, UNKNOWN = Wholeness.COMPLETE, Wholeness.INCOMPLETE, Wholeness.UNKNOWN


def folder(*names: str, more: bool = False, **sizes: int) -> Folder:
    """Files in the order in which they were written, a second apart; a name with `/` is a folder."""
    entries = [
        FolderEntry(
            name=name.rstrip("/"),
            kind="folder" if name.endswith("/") else "file",
            size=sizes.get(name.partition(".")[0], 100),
            modified=NOW + timedelta(seconds=index),
        )
        for index, name in enumerate(names)
    ]
    return Folder(real="/ck", entries=tuple(entries), more=more)


def whole(kind: Format, name: str, inside: Folder, **beside: object) -> Wholeness:
    given = {"beside": folder(f"{name}/"), **beside}
    return judged(kind, Seen(name=name, inside=inside, **given)).whole  # type: ignore[arg-type]


DCP = ("__0_0.distcp", "__1_0.distcp", ".metadata")


def test_pytorchs_metadata_must_be_newer_than_every_shard() -> None:
    assert whole(Format.DCP, "step-100", folder(*DCP)) is WHOLE
    overwritten = folder("__0_0.distcp", ".metadata", "__1_0.distcp")
    assert whole(Format.DCP, "step-100", overwritten) is TORN
    assert whole(Format.DCP, "step-100", folder(*DCP[:2])) is TORN
    assert whole(Format.DCP, "step-100", folder(".metadata")) is TORN
    assert whole(Format.DCP, "step-100", folder(*DCP, __0_0=0)) is TORN


def test_megatrons_tracker_is_written_last_and_is_not_enough() -> None:
    ranks = folder("mp_rank_00/", "mp_rank_01/")
    for tracker, said in (("200\n", WHOLE), ("100", TORN), ("", UNKNOWN), ("release", UNKNOWN)):
        assert whole(Format.MEGATRON, "iter_0000200", ranks, tracker=tracker) is said
    gap = folder("mp_rank_00/", "mp_rank_02/")
    assert whole(Format.MEGATRON, "iter_0000200", gap, tracker="200") is TORN
    shards = folder(*DCP[:2])
    assert whole(Format.MEGATRON, "iter_0000200", shards, tracker="200") is TORN
    assert whole(Format.MEGATRON, "iter_0000200", folder("x"), tracker="200") is UNKNOWN


def test_deepspeed_has_the_files_of_every_rank() -> None:
    files = [f"mp_rank_0{rank}_model_states.pt" for rank in range(2)]
    zero = [f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in range(3)]
    for names, said in (
        ([*files, *zero], WHOLE),
        ([*files, *zero[1:]], TORN),
        ([files[1]], TORN),
        ([], UNKNOWN),
    ):
        seen = whole(Format.DEEPSPEED, "global_step9", folder(*names), tracker="global_step9")
        assert seen is said
    late = folder(*files)
    assert whole(Format.DEEPSPEED, "global_step9", late, tracker="global_step8") is TORN
    assert whole(Format.DEEPSPEED, "global_step9", late, tracker="../x") is UNKNOWN


def test_nemo_marks_what_is_not_finished() -> None:
    inside = folder("weights/", "meta.ckpt")
    assert whole(Format.NEMO, "m-step=7-last", inside) is WHOLE
    assert whole(Format.NEMO, "m-step=7-unfinished", inside) is TORN
    beside = folder("m-step=7/", "m-step=7-unfinished")
    assert whole(Format.NEMO, "m-step=7", inside, beside=beside) is TORN
    assert whole(Format.NEMO, "m-step=7", inside, beside=folder("a/", more=True)) is UNKNOWN


def test_orbax_renames_or_says_commit_success() -> None:
    assert whole(Format.ORBAX, "700", folder("d/", "_CHECKPOINT_METADATA")) is WHOLE
    assert whole(Format.ORBAX, "700", folder("d/", "commit_success.txt")) is WHOLE
    assert whole(Format.ORBAX, "700.orbax-checkpoint-tmp-17", folder("d/")) is TORN
    assert whole(Format.ORBAX, "700", folder("state.orbax-checkpoint-tmp-17/")) is TORN
    assert whole(Format.ORBAX, "700", folder("d/")) is UNKNOWN


def test_hugging_face_has_state_and_model() -> None:
    inside = folder("model.safetensors", "trainer_state.json")
    assert whole(Format.HF, "checkpoint-700", inside) is WHOLE
    assert whole(Format.HF, "checkpoint-700", folder("model.safetensors")) is TORN
    assert whole(Format.HF, "checkpoint-700", folder("trainer_state.json")) is UNKNOWN
    empty = folder("model.safetensors", "trainer_state.json", model=0)
    assert whole(Format.HF, "checkpoint-700", empty) is TORN


def test_a_site_names_its_own_marker() -> None:
    assert whole(Format.MARKER, "step-7", folder("a", "DONE"), marker="DONE") is WHOLE
    assert whole(Format.MARKER, "step-7", folder("a"), marker="DONE") is TORN
    assert whole(Format.MARKER, "step-7", folder("a", "DONE")) is UNKNOWN


@pytest.mark.parametrize("kind", list(Format))
def test_a_list_that_was_cut_proves_nothing(kind: Format) -> None:
    assert whole(kind, "step-7", folder(*DCP, more=True), tracker="7", marker="DONE") is UNKNOWN


@given(kind=st.sampled_from(list(Format)), name=st.text(max_size=30), text=st.text(max_size=30))
def test_no_name_and_no_tracker_breaks_it(kind: Format, name: str, text: str) -> None:
    found = judged(kind, Seen(name=name, inside=folder(text), beside=folder(), tracker=text))
    assert found.whole is not WHOLE or step_of(kind, name) is not None


def test_the_newest_complete_one_counts() -> None:
    names = newest_first(Format.DCP, folder("step-90/", "step-200/", "step-100/", "log", "step-x/"))
    assert names == ("step-200", "step-100", "step-90")
    insides = {"step-200": folder(*DCP[:1]), "step-100": folder(*DCP), "step-90": folder(*DCP)}
    found = [
        judged(Format.DCP, Seen(name=name, inside=insides[name], beside=folder())) for name in names
    ]
    newest = newest_complete(found)
    assert newest is not None
    assert (newest.step, newest.at) == (100, NOW + timedelta(seconds=2))
    assert newest_complete(found[:1]) is None
