"""The arguments of the commands about this machine, the cluster, the editor and the shell."""

from __future__ import annotations

from slurm.commands.common import CONFIG_HELP, Parsers, cluster, command, experiment
from toolkit.command import add_json

_DOCTOR = """\
Check the cluster, this machine and its file systems. Print for each finding whether it is fine, or what to
change. With CONFIG, also check whether that experiment fits. Needs no special rights and submits
nothing, unless --on-node is given. Exit code 4 if there is a problem, 3 if --cluster slurm is given
and Slurm does not answer.
"""
_DRILL = """\
Interrupt a run on purpose (preempted, out of time, killed, on another number of processes), compare its
checkpoints with those of an undisturbed run, and print a verdict. Without CONFIG it trains a tiny task
that needs no data. Exit code 0 if the run always resumed with the same bytes, else 4.
"""
_SCHEMA = """\
Print the JSON Schema of an experiment file, with the tasks and models of all installed packages.
With CONFIG, it also has the keys of model and data from the functions of that experiment's task.
An editor completes and checks a file whose first line is
# yaml-language-server: $schema=stk.schema.json
"""
_COMPLETION = """\
Print a script that completes stk on Tab: commands, options and their choices, runs, keys of the experiment.

  source <(stk completion bash)                                    in ~/.bashrc
  source <(stk completion zsh)                                     in ~/.zshrc, after compinit
  stk completion fish > ~/.config/fish/completions/stk.fish
"""


def doctor(parsers: Parsers) -> None:
    summary = "check what this cluster and this machine offer to a job"
    parser = command(parsers, "doctor", summary, _DOCTOR)
    experiment(parser, nargs="?")
    parser.add_argument(
        "--on-node",
        action="store_true",
        help="also check a host of the cluster, in a job of one task that waits at most a minute for it",
    )
    parser.add_argument("--partition", metavar="NAME", help="only this partition, also for --on-node")
    cluster(parser, help="auto (default): Slurm if a controller answers; local: only this machine")
    add_json(parser)


def drill(parsers: Parsers) -> None:
    parser = command(parsers, "drill", "test on this cluster that an interrupted run resumes", _DRILL)
    experiment(parser, nargs="?")
    cluster(parser)
    parser.add_argument("--procs", type=int, default=2, metavar="N", help="local processes (default 2)")
    parser.add_argument("--keep", action="store_true", help="keep the drill's runs even if all is well")
    add_json(parser)


def schema(parsers: Parsers) -> None:
    parser = command(parsers, "schema", "print the JSON Schema of an experiment file, for editors", _SCHEMA)
    parser.add_argument("config", nargs="*", metavar="CONFIG", help=CONFIG_HELP)


def completion(parsers: Parsers) -> None:
    parser = command(parsers, "completion", "completion on Tab for bash, zsh and fish", _COMPLETION)
    parser.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), help="shell of the script")
