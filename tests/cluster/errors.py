"""What can go wrong with the test cluster."""

import subprocess


class ClusterError(Exception):
    """The cluster could not do what was asked; the message says what was found and what to do."""


class CommandFailed(ClusterError):
    """A command on the cluster ended with another exit code than 0; `result` holds its output."""

    def __init__(self, result: "subprocess.CompletedProcess[str]") -> None:
        self.result = result
        command = " ".join(str(word) for word in result.args)
        super().__init__(
            f"exit code {result.returncode} from: {command}\n{result.stdout}{result.stderr}".rstrip()
        )
