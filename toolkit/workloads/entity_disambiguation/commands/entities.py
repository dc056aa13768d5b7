"""The command `stk entities`."""

from __future__ import annotations

import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from toolkit.command import Host, check_positive, run_action
from toolkit.errors import DataError, UserError
from toolkit.system.output.json_text import json_text
from toolkit.workloads.entity_disambiguation.data.entities.contents import Limits
from toolkit.workloads.entity_disambiguation.data.entities.database import (
    EntityDatabase,
    edited,
    import_profiles,
)
from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import write_lines
from toolkit.workloads.entity_disambiguation.data.entities.profiles import Profile, read_profiles
from toolkit.workloads.entity_disambiguation.data.entities.rewriting import convert, divide, write_slices
from toolkit.workloads.entity_disambiguation.data.entities.sentences import read_sentences
from toolkit.workloads.entity_disambiguation.data.entities.slices import GoldCounts, Survey


def run(arguments: Namespace, host: Host) -> int:
    """Run an action on sentences and entities. Raises DataError, UserError."""
    actions = {
        "import": _import,
        "export": _export,
        "add": _add,
        "update": _update,
        "remove": _remove,
        "show": _show,
        "split": _split,
        "convert": _convert,
        "slices": _slices,
    }
    return run_action(arguments, actions)


def _import(arguments: Namespace) -> None:
    if arguments.db.exists():
        raise UserError(
            f"{arguments.db} exists already; name another folder, or change it with add and update"
        )
    check_positive(arguments, "max_candidates", "max_types", "max_connections")
    limits = Limits(
        max_candidates=arguments.max_candidates,
        max_types=arguments.max_types,
        max_connections=arguments.max_connections,
    )
    database = import_profiles(
        arguments.profiles, limits, pids=arguments.pids, as_written=arguments.as_written
    )
    if not len(database):
        raise DataError(f"{arguments.profiles} has no profile")
    database.save(arguments.db)
    _print_size(arguments, database)


def _export(arguments: Namespace) -> None:
    database = EntityDatabase.load(arguments.db)
    write_lines(arguments.profiles, (profile.to_json() for profile in database.profiles()))
    print(f"wrote {arguments.profiles}: {len(database)} entities")


def _add(arguments: Namespace) -> None:
    with edited(arguments.db) as database:
        profiles = _profiles(arguments, database)
        for profile in profiles:
            database.add(profile)
    print(f"added {len(profiles)} entities to {arguments.db}, which has {len(database)}")


def _update(arguments: Namespace) -> None:
    with edited(arguments.db) as database:
        profiles = _profiles(arguments, database)
        for profile in profiles:
            database.update(profile)
    print(f"updated {len(profiles)} entities of {arguments.db}")


def _profiles(arguments: Namespace, database: EntityDatabase) -> list[Profile]:
    """Read profiles; an alias that the database has as it is written is that one."""
    known = database.contents.candidates.keys()
    options = {"pids": arguments.pids, "as_written": arguments.as_written, "known": known}
    return [profile for path in arguments.profiles for _, profile in read_profiles(path, **options)]


def _remove(arguments: Namespace) -> None:
    with edited(arguments.db) as database:
        for qid in arguments.ids:
            database.remove(qid)
    print(f"removed {len(arguments.ids)} entities from {arguments.db}, which has {len(database)}")


def _show(arguments: Namespace) -> None:
    database, name = EntityDatabase.load(arguments.db), arguments.name
    if name is None:
        _print_size(arguments, database)
    elif name in database:
        _print_entity(arguments, database, database.profile(name))
    elif database.has_alias(name):
        _print_alias(arguments, database, name)
    else:
        raise UserError(f"{arguments.db} has neither an entity nor an alias {name!r}")


def _print_size(arguments: Namespace, database: EntityDatabase) -> None:
    contents, types = database.contents, sorted(database.contents.types)
    counts = {
        "entities": len(database),
        "aliases": len(contents.candidates),
        "relations": sum(map(len, contents.relations.values())),
    }
    text = ", ".join(f"{count} {name}" for name, count in counts.items())
    size = {"path": str(arguments.db), **counts, "type_systems": types}
    _answer(arguments, size, f"{arguments.db}: {text}, types: {', '.join(types) or 'none'}")


def _print_entity(arguments: Namespace, database: EntityDatabase, profile: Profile) -> None:
    lines = [f"{profile.entity_id}  {profile.title}", f"  {profile.description or '(no description)'}"]
    lines.append("  aliases: " + ", ".join(f"{alias} ({score:g})" for alias, score in profile.mentions))
    lines += [f"  types ({system}): {', '.join(names)}" for system, names in profile.types.items()]
    for relation, qid in profile.relations:
        lines.append(f"  {relation}: {qid}" + (f"  {database.title(qid)}" if qid in database else ""))
    _answer(arguments, profile.to_json(), "\n".join(lines))


def _print_alias(arguments: Namespace, database: EntityDatabase, alias: str) -> None:
    rows = [
        {"entity_id": qid, "score": score, "title": database.title(qid)}
        | {"description": database.description(qid)}
        for qid, score in database.candidates(alias)
    ]
    if arguments.json:
        print(json_text({"alias": alias, "candidates": rows}))
    elif rows:
        _print_table(rows, numbers=("score",))
    else:
        print(f"{alias!r} has no candidates")


def _split(arguments: Namespace) -> None:
    sizes = divide(arguments.sentences, arguments.out, arguments.split, arguments.by)
    text = ", ".join(f"{size} {split}" for split, size in sizes.items())
    _answer(arguments, {"path": str(arguments.out), "sentences": sizes}, f"wrote {arguments.out}: {text}")


def _convert(arguments: Namespace) -> None:
    print(f"wrote {arguments.out}: {convert(arguments.sentences, arguments.out)} sentences")


def _slices(arguments: Namespace) -> None:
    if not 0 <= arguments.torso_above <= arguments.head_above:
        raise UserError(
            f"--torso-above is {arguments.torso_above}, --head-above {arguments.head_above}; "
            "expected 0 <= torso-above <= head-above"
        )
    counts = GoldCounts.of(read_sentences(arguments.train), count_weak=not arguments.no_weak)
    survey = Survey.of(arguments.sentences, EntityDatabase.load(arguments.db), counts.entities)
    slices = survey.slices(torso_above=arguments.torso_above, head_above=arguments.head_above)
    rows = list(survey.rows(slices))
    if arguments.json:
        print(json.dumps(rows))
    else:
        _print_table(rows, numbers=("mentions", "gold_outside", "candidates", "chance", "popularity"))
    if arguments.output is not None:
        count = write_slices(arguments.sentences, arguments.output, slices)
        print(
            f"wrote {arguments.output}: {count} sentences", file=sys.stderr if arguments.json else sys.stdout
        )


def _answer(arguments: Namespace, value: Any, text: str) -> None:
    print(json_text(value) if arguments.json else text)


def _print_table(rows: Sequence[dict[str, Any]], numbers: Sequence[str]) -> None:
    """Print rows in columns; on a terminal, lines are cut to fit, which affects the long last column."""
    head = [name.replace("_", " ") for name in rows[0]]
    lines = [head, *([_cell(each) for each in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in lines:
        cells = (
            text.rjust(size) if name in numbers else text.ljust(size)
            for name, text, size in zip(rows[0], line, widths, strict=True)
        )
        print("  ".join(cells).rstrip()[:width])


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
