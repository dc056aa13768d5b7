"""The arguments of `stk entities`, whose actions are many."""

from __future__ import annotations

import argparse
from pathlib import Path

from slurm.arguments.common import Parsers, command

_DESCRIPTION = """\
Files of sentences with mentions, and databases of the entities that these may mean.

  stk entities import profiles.jsonl entity_db         a database of profiles, one entity a line
  stk entities show entity_db "ivory coast"            candidates of an alias; or all of an entity
  stk entities split sentences.jsonl data --split 10   train.jsonl, dev.jsonl, test.jsonl
  stk entities slices data/dev.jsonl entity_db --train data/train.jsonl
                                                       head, torso, tail, unseen: how many, how hard
"""

_PROFILES = "profiles, one JSON object a line: entity_id, mentions, title, description, types, relations"
_SENTENCES = "sentences, one JSON object a line: sentence, sent_idx_unq, aliases, spans, qids, gold"


def add(parsers: Parsers) -> None:
    """Add the actions and their arguments."""
    parser = command(parsers, "entities", "sentences with mentions, and what they may mean", _DESCRIPTION)
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    _add_import(actions)
    _add_export(actions)
    _add_changes(actions)
    _add_show(actions)
    _add_split(actions)
    _add_convert(actions)
    _add_slices(actions)


def _action(actions: Parsers, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(action=name)
    return parser


def _path(parser: argparse.ArgumentParser, name: str, help_: str) -> None:
    parser.add_argument(name, type=Path, metavar=name.upper(), help=help_)


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def _profile_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pids",
        choices=("refuse", "keep", "drop"),
        default="refuse",
        help="relations named by a property's number such as P530: refuse (default), keep or drop them",
    )
    parser.add_argument(
        "--as-written",
        action="store_true",
        help="keep aliases as they are, instead of lower case without accents and punctuation",
    )


def _add_import(actions: Parsers) -> None:
    parser = _action(
        actions,
        "import",
        "make a database of profiles",
        "Make a database of a file of profiles. An alias keeps its best candidates by score.",
    )
    _path(parser, "profiles", _PROFILES)
    _path(parser, "db", "folder that becomes the database; it must not be there yet")
    limits = (
        ("candidates", 30, "an alias"),
        ("types", 10, "a type system"),
        ("connections", 100, "an entity"),
    )
    for name, default, of in limits:
        parser.add_argument(
            f"--max-{name}", type=int, default=default, metavar="N", help=f"of {of} (default {default})"
        )
    _profile_options(parser)
    _json(parser)


def _add_export(actions: Parsers) -> None:
    parser = _action(
        actions,
        "export",
        "write a database as profiles",
        "Write all entities of a database as profiles, which import reads.",
    )
    _path(parser, "db", "folder of the database")
    _path(parser, "profiles", "file to be written (JSON lines)")


def _add_changes(actions: Parsers) -> None:
    for name, summary, description in (
        ("add", "add entities", "Add entities that the database does not have yet."),
        (
            "update",
            "replace entities",
            "Replace all that is known of entities by their profiles.\n"
            "`show DB ID --json` prints one to be edited.",
        ),
    ):
        parser = _action(actions, name, summary, description)
        _path(parser, "db", "folder of the database")
        parser.add_argument("profiles", type=Path, nargs="+", metavar="PROFILES", help=_PROFILES)
        _profile_options(parser)
    parser = _action(
        actions,
        "remove",
        "remove entities",
        "Remove entities, the aliases that mean no other one, and the relations that lead to them.",
    )
    _path(parser, "db", "folder of the database")
    parser.add_argument("ids", nargs="+", metavar="ID", help="id of an entity, such as Q881")


def _add_show(actions: Parsers) -> None:
    parser = _action(
        actions,
        "show",
        "what is known of an entity, or of an alias",
        "An entity's title, description, aliases, types and relations; or an alias' candidates.\n"
        "Without a name: how large the database is.",
    )
    _path(parser, "db", "folder of the database")
    parser.add_argument("name", nargs="?", metavar="ID|ALIAS", help="id of an entity, or an alias")
    _json(parser)


def _add_split(actions: Parsers) -> None:
    parser = _action(
        actions,
        "split",
        "divide sentences into train, dev and test",
        "Divide a file by a hash of the text that each sentence is from (parent_qid and parent_title), so\n"
        "that a text is in one split. Writes train.jsonl, dev.jsonl and test.jsonl, shuffled, and how often\n"
        "training has each gold (qid2cnt.json, alias2qid_cnt.json; …_gold.json without weak labels).",
    )
    _path(parser, "sentences", _SENTENCES)
    _path(parser, "out", "folder for the files")
    parser.add_argument(
        "--split", type=int, default=10, metavar="S", help="percent of test, and of dev (default 10)"
    )
    parser.add_argument(
        "--by",
        choices=("source", "sentence"),
        default="source",
        help="source (default): a text stays together; sentence: each sentence goes its own way",
    )
    _json(parser)


def _add_convert(actions: Parsers) -> None:
    parser = _action(
        actions,
        "convert",
        "write spans of words and of characters",
        "Write the sentences with both spans (of words) and char_spans (of characters), from what they have.",
    )
    _path(parser, "sentences", _SENTENCES)
    _path(parser, "out", "file to be written")


def _add_slices(actions: Parsers) -> None:
    parser = _action(
        actions,
        "slices",
        "head, torso, tail, unseen: how many mentions, how hard",
        "Show the slices that are built of how often training has each gold: HD (head), TO (torso),\n"
        "TL (tail, TS included), TS (unseen); NS_: more than one candidate; NPOP_: the gold is not the\n"
        "first one. With --output the members are written under the key `slices` of each line.",
    )
    _path(parser, "sentences", _SENTENCES)
    _path(parser, "db", "folder of the database")
    parser.add_argument(
        "--train", type=Path, required=True, metavar="SENTENCES", help="the sentences of training"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the sentences with their slices")
    parser.add_argument(
        "--torso-above", type=int, default=10, metavar="N", help="tail: seen N times or less (default 10)"
    )
    parser.add_argument(
        "--head-above",
        type=int,
        default=1000,
        metavar="N",
        help="head: seen more than N times (default 1000)",
    )
    parser.add_argument("--no-weak", action="store_true", help="count gold mentions alone, no weak labels")
    _json(parser)
