"""The arguments of `stk entities`, and the option of `stk evaluate` that names the database of entities."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from toolkit.command import Action, Command, EvaluateOptions, add_actions, add_json, add_number
from toolkit.workloads.entity_disambiguation.config import HEAD_ABOVE, TORSO_ABOVE

_DESCRIPTION = """\
Files of sentences with mentions, and databases of the entities that the mentions may mean.

  stk entities import profiles.jsonl entity_db         a database from profiles, one entity per line
  stk entities show entity_db "ivory coast"            candidates of an alias, or all data of an entity
  stk entities split sentences.jsonl data --split 10   train.jsonl, dev.jsonl, test.jsonl
  stk entities slices data/dev.jsonl entity_db --train data/train.jsonl
                                                       head, torso, tail, unseen: sizes and difficulty
"""

_PROFILES = "profiles, one JSON object per line: entity_id, mentions, title, description, types, relations"
_SENTENCES = "sentences, one JSON object per line: sentence, sent_idx_unq, aliases, spans, qids, gold"


def _path(parser: ArgumentParser, name: str, help_: str) -> None:
    parser.add_argument(name, type=Path, metavar=name.upper(), help=help_)


def _database(parser: ArgumentParser, help_: str = "folder of the database") -> None:
    _path(parser, "db", help_)


def _profile_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--pids",
        choices=("refuse", "keep", "drop"),
        default="refuse",
        help="relations named by the number of a property, such as P530: refuse (default), keep or drop them",
    )
    parser.add_argument(
        "--as-written",
        action="store_true",
        help="keep aliases as they are, instead of lower case without accents and punctuation",
    )


def _import(parser: ArgumentParser) -> None:
    _path(parser, "profiles", _PROFILES)
    _database(parser, "new folder of the database; it must not exist yet")
    add_number(parser, "--max-candidates", 30, "most candidates of an alias")
    add_number(parser, "--max-types", 10, "most types of an entity in a type system")
    add_number(parser, "--max-connections", 100, "most relations of an entity")
    _profile_options(parser)
    add_json(parser)


def _export(parser: ArgumentParser) -> None:
    _database(parser)
    _path(parser, "profiles", "file to be written (JSON lines)")


def _change(parser: ArgumentParser) -> None:
    _database(parser)
    parser.add_argument("profiles", type=Path, nargs="+", metavar="PROFILES", help=_PROFILES)
    _profile_options(parser)


def _remove(parser: ArgumentParser) -> None:
    _database(parser)
    parser.add_argument("ids", nargs="+", metavar="ID", help="id of an entity, such as Q881")


def _show(parser: ArgumentParser) -> None:
    _database(parser)
    parser.add_argument("name", nargs="?", metavar="ID|ALIAS", help="id of an entity, or an alias")
    add_json(parser)


def _split(parser: ArgumentParser) -> None:
    _path(parser, "sentences", _SENTENCES)
    _path(parser, "out", "folder for the files")
    add_number(parser, "--split", 10, "percent of test, and of dev")
    parser.add_argument(
        "--by",
        choices=("source", "sentence"),
        default="source",
        help="source (default): keep the sentences of a text together; sentence: divide them too",
    )
    add_json(parser)


def _convert(parser: ArgumentParser) -> None:
    _path(parser, "sentences", _SENTENCES)
    _path(parser, "out", "file to be written")


def _slices(parser: ArgumentParser) -> None:
    _path(parser, "sentences", _SENTENCES)
    _database(parser)
    parser.add_argument(
        "--train", type=Path, required=True, metavar="SENTENCES", help="the sentences of training"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the sentences with their slices")
    add_number(parser, "--torso-above", TORSO_ABOVE, "tail: seen at most N times")
    add_number(parser, "--head-above", HEAD_ABOVE, "head: seen more than N times")
    parser.add_argument("--no-weak", action="store_true", help="count gold mentions only, no weak labels")
    add_json(parser)


_ACTIONS = {
    "import": Action(
        "make a database from profiles",
        "Make a database from a file of profiles. An alias keeps its best candidates by score.",
        _import,
    ),
    "export": Action(
        "write a database as profiles",
        "Write all entities of a database as profiles, which import reads.",
        _export,
    ),
    "add": Action("add entities", "Add entities that the database does not have yet.", _change),
    "update": Action(
        "replace entities",
        "Replace all data of entities by their profiles. `show DB ID --json` prints a profile to edit.",
        _change,
    ),
    "remove": Action(
        "remove entities",
        "Remove entities, the aliases that mean no other entity, and the relations to them.",
        _remove,
    ),
    "show": Action(
        "show the data of an entity or an alias",
        "Show an entity's title, description, aliases, types and relations, or the candidates of an\n"
        "alias. Without a name, show the size of the database.",
        _show,
    ),
    "split": Action(
        "divide sentences into train, dev and test",
        "Divide a file by a hash of the text that a sentence is from (parent_qid, parent_title), so all\n"
        "sentences of a text are in one split. Write train.jsonl, dev.jsonl and test.jsonl, shuffled,\n"
        "and the counts of golds in training: qid2cnt.json, alias2qid_cnt.json, and …_gold.json without\n"
        "weak labels.",
        _split,
    ),
    "convert": Action(
        "write spans of words and of characters",
        "Write the sentences with both spans (of words) and char_spans (of characters).",
        _convert,
    ),
    "slices": Action(
        "show how many mentions are head, torso, tail and unseen, and how difficult they are",
        "Show the slices by how often training has seen the gold: HD (head), TO (torso), TL (tail,\n"
        "including TS), TS (unseen). NS_: more than one candidate; NPOP_: the gold is not the first\n"
        "candidate. With --output, also write the members under the key `slices` of each line.",
        _slices,
    ),
}

ENTITIES = Command(
    summary="sentences with mentions, and what they may mean",
    description=_DESCRIPTION,
    add_arguments=partial(add_actions, actions=_ACTIONS),
    run="toolkit.workloads.entity_disambiguation.commands.entities:run",
)


def _add_to_evaluate(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("entity disambiguation")
    group.add_argument(
        "--entity-db", metavar="DIR", help="database of entities for --data, read as it is now"
    )


def _overrides(arguments: Namespace) -> Sequence[str]:
    if arguments.entity_db is None:
        return ()
    folder = os.path.abspath(os.path.expanduser(arguments.entity_db))
    return (f"data.entity_db={json.dumps(folder)}",)


EVALUATE = EvaluateOptions(add_arguments=_add_to_evaluate, run_options=("entity_db",), overrides=_overrides)
