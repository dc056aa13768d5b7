"""The test cluster by hand: `python -m tests.cluster up|down|status|shell`."""

import argparse
import os
import sys
from pathlib import Path

from .cluster import Cluster
from .errors import ClusterError
from .machine.prerequisites import prepare_machine, require_linux_and_root

DEFAULT_NAME = "demo"


def main() -> int:
    arguments = _parse()
    actions = {"up": _up, "down": _down, "status": _status, "shell": _shell}
    try:
        return actions[arguments.action](Cluster(arguments.name), arguments)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="cluster", description="A Slurm cluster of four hosts in this machine."
    )
    parser.add_argument("--directory", type=Path, default=Path(), help="where `shell` starts (default: here)")
    actions = parser.add_subparsers(dest="action", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--name", default=DEFAULT_NAME, help=f"which of several clusters (default: {DEFAULT_NAME})"
    )
    actions.add_parser("up", parents=[common], help="start it")
    actions.add_parser("down", parents=[common], help="stop it and remove every trace of it")
    actions.add_parser("status", parents=[common], help="show its hosts and jobs")
    shell = actions.add_parser("shell", parents=[common], help="open a shell on its login node")
    shell.add_argument("command", nargs="*", metavar="-- command", help="run this command instead of a shell")
    return parser.parse_args()


def _up(cluster: Cluster, _: argparse.Namespace) -> int:
    if cluster.is_up():
        print(f"The cluster {cluster.name!r} is up already.")
    else:
        prepare_machine()
        cluster.up()
        print(f"The cluster {cluster.name!r} is up: {', '.join(cluster.hosts)}.")
    for variable, value in cluster.environment.items():
        print(f"\n  export {variable}={value}\n")
    print(f"makes sbatch, srun, squeue and sacct use it; `{_script('shell', cluster)}` opens such a shell.")
    print(f"Logs: {cluster.state.logs}. Stop it with `{_script('down', cluster)}`.")
    return 0


def _down(cluster: Cluster, _: argparse.Namespace) -> int:
    require_linux_and_root()
    cluster.down()
    print(f"The cluster {cluster.name!r} is down.")
    return 0


def _status(cluster: Cluster, _: argparse.Namespace) -> int:
    _require_up(cluster)
    print(cluster.run("sinfo").stdout)
    print(cluster.run("squeue").stdout, end="")
    return 0


def _shell(cluster: Cluster, arguments: argparse.Namespace) -> int:
    _require_up(cluster)
    command: list[str] = arguments.command
    if not command:
        print(
            f"On the login node of {cluster.name!r}. Try `sinfo` or `srun -N2 hostname`; `exit` leaves it up."
        )
        command = [os.environ.get("SHELL", "/bin/sh")]
    os.chdir(arguments.directory)
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, os.environ | cluster.environment)
    except OSError as error:
        raise ClusterError(f"cannot run {command[0]}: {error.strerror}") from error


def _require_up(cluster: Cluster) -> None:
    if not cluster.is_up():
        raise ClusterError(
            f"the cluster {cluster.name!r} is not up; start it with `{_script('up', cluster)}`"
        )


def _script(action: str, cluster: Cluster) -> str:
    return f"./scripts/cluster {action}" + ("" if cluster.name == DEFAULT_NAME else f" --name {cluster.name}")


if __name__ == "__main__":
    sys.exit(main())
