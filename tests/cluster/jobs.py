"""Reading what Slurm says about jobs."""

import re

# A value may hold spaces and equals signs (Command=/a b --x=1): a capitalised word and "=" begin a field.
_FIELD = re.compile(r"(?:^| )([A-Z][A-Za-z:/_]*)=")


def parse_records(text: str) -> list[dict[str, str]]:
    """Parse the lines of `scontrol show job --oneliner`, one job each."""
    return [_parse_record(line) for line in text.splitlines() if "=" in line]


def _parse_record(line: str) -> dict[str, str]:
    _, *words = _FIELD.split(line)
    return dict(zip(words[::2], (value.strip() for value in words[1::2]), strict=True))
