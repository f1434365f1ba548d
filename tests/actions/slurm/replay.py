"""Plays scontrol and squeue from a recording: a program of its own, found by PATH like the real ones.

The text form of jobs is printed field by field from the recorded `scontrol show jobs`, because
squeue was not recorded with the fields that the program asks for. Partitions were recorded in JSON
only: `partitions.txt` has the form of 22.05 and the partitions of the scene.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
NOTHING = {"(null)", "Unknown"}


def install(folder: Path, recording: Path, *, with_json: bool = True) -> Path:
    """Make a folder with the tools; what is written through them lands in `updates`."""
    folder.mkdir(exist_ok=True)
    for tool in ("scontrol", "squeue", "sdiag"):
        script = folder / tool
        script.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(HERE)!r})\n"
            f"from replay import main\nmain({tool!r}, {str(recording)!r}, {with_json}, sys.argv[1:])\n"
        )
        script.chmod(0o755)
    return folder


def main(tool: str, recording: str, with_json: bool, argv: list[str]) -> None:
    folder = Path(recording)
    words = [word for word in argv if not word.startswith("-")]
    if "--version" in argv:
        print(f"slurm {folder.name}.0")
    elif tool == "sdiag":
        sys.exit("sdiag was not recorded")
    elif tool == "squeue":
        print_jobs(folder, argv, with_json)
    elif words[0] == "update":
        log = Path(sys.argv[0]).parent / "updates"
        log.write_text((log.read_text() if log.exists() else "") + "\0".join(argv) + "\n")
    else:
        show(folder, words[1:], json="--json" in argv, with_json=with_json)


def show(folder: Path, words: list[str], *, json: bool, with_json: bool) -> None:
    kind = {"node": "nodes", "reservations": "res"}.get(words[0], words[0])
    file = folder / f"scontrol-{kind}.{'json' if json else 'txt'}"
    if kind == "partitions" and not json:
        file = HERE / "partitions.txt"
    if json and (not with_json or not file.exists()):
        sys.exit(
            "scontrol: unrecognized option '--json'\nTry \"scontrol --help\" for more information"
        )
    text = file.read_text()
    if words[0] == "node":
        text = one_node(text, words[1], json=json)
    print(text, end="")


def one_node(text: str, name: str, *, json: bool) -> str:
    if json:
        import json as reader

        answer = reader.loads(text)
        answer["nodes"] = [node for node in answer["nodes"] if node["name"] == name]
        return reader.dumps(answer)
    for record in text.split("\n\n"):
        if record.startswith(f"NodeName={name} "):
            return record + "\n\n"
    print(f"Node {name} not found")
    sys.exit(1)


def print_jobs(folder: Path, argv: list[str], with_json: bool) -> None:
    if "--json" in argv:
        files = [folder / "scontrol-jobs.json", folder / "squeue.json"]
        file = next((file for file in files if file.exists()), None)
        if not with_json or file is None:
            sys.exit("squeue: unrecognized option '--json'")
        print(file.read_text(), end="")
        return
    options = dict(word[2:].split("=", 1) for word in argv if "=" in word)
    for record in (folder / "scontrol-jobs.txt").read_text().split("\n\n"):
        if "JobId=" not in record:
            continue
        job = squeue_fields(record.strip("\n"))
        nodes = options.get("nodelist")
        if nodes and nodes not in expanded(job["NodeList"]):
            continue
        if "format" in options:
            line = options["format"].replace("%A", job["JobID"]).replace("%x", job["ExcNodes"])
        else:
            parts = [field.split(":", 1) for field in options["Format"].split(",")]
            line = "".join(job[field] + suffix for field, suffix in parts)
        print(line)


def expanded(nodes: str) -> list[str]:
    found = re.fullmatch(r"(.*)\[(\d+)-(\d+)\]", nodes)
    if found is None:
        return [nodes]
    return [f"{found[1]}{number:02}" for number in range(int(found[2]), int(found[3]) + 1)]


def squeue_fields(record: str) -> dict[str, str]:
    """What squeue would print for a job that scontrol showed so."""

    def of(key: str, nothing: str = "N/A") -> str:
        found = re.search(rf"(?:^|\s){re.escape(key)}=(\S*)", record)
        return found[1] if found and found[1] not in NOTHING and found[1] else nothing

    def line(key: str) -> str:
        found = re.search(rf"^ *(?:.* )?{key}=(.*?) *$", record, re.MULTILINE)
        return found[1] if found else "(null)"

    job, array, task = of("JobId"), of("ArrayJobId", ""), of("ArrayTaskId")
    written = f"{array}_{task}" if task.isdigit() else f"{array}_[{task}]" if array else job
    reason = of("Reason")
    return {
        "JobID": job,
        "JobArrayID": written,
        "ArrayJobID": array or job,
        "ArrayTaskID": task,
        "HetJobID": "N/A",
        "UserName": of("UserId").partition("(")[0],
        "Account": of("Account", "(null)"),
        "State": of("JobState"),
        "Reason": reason.replace("_", " "),
        "Partition": of("Partition"),
        "NodeList": of("NodeList", ""),
        "ReqNodes": of("ReqNodeList", ""),
        "ExcNodes": of("ExcNodeList", ""),
        "NumNodes": of("NumNodes").partition("-")[0],
        "NumTasks": of("NumTasks", "1"),
        "tres-alloc": of("AllocTRES", of("TRES")),
        "tres-per-node": of("TresPerNode"),
        "tres-per-job": of("TresPerJob"),
        "tres-per-task": of("TresPerTask"),
        "BatchFlag": of("BatchFlag"),
        "Requeue": of("Requeue"),
        "RestartCnt": of("Restarts"),
        "PriorityLong": of("Priority"),
        "QOS": of("QOS", "(null)"),
        "Reservation": of("Reservation", "(null)"),
        "Dependency": of("Dependency", "(null)"),
        "SubmitTime": of("SubmitTime"),
        "StartTime": of("StartTime"),
        "EndTime": of("EndTime"),
        "TimeLimit": of("TimeLimit"),
        "Cluster": "mini",
        **dict.fromkeys(("Origin", "SiblingsActive", "SiblingsViable"), "NA"),
        "BatchHost": of("BatchHost", "n/a"),
        "EligibleTime": of("EligibleTime"),
        "OverSubscribe": of("OverSubscribe"),
        "Feature": of("Features", "(null)"),
        "WorkDir": line("WorkDir"),
        "STDOUT": line("StdOut"),
        "Comment": line("Comment"),
        "Name": line("JobName"),
    }
