"""Lines of a batch script that check its run's folder before it executes anything there.

`toolkit.run.folder_trust` has checked the folder before the submission. The job may start hours later, and a
user who may write to the folder of all runs may have replaced this folder.
"""

from __future__ import annotations

from toolkit.run.folder_trust import VARIABLE

#: Lines of bash, for a run's folder, that exit if another user owns or may write files that are executed.
LINES = (
    "# Refuse to execute anything here that another user owns or may write.",
    "refuse_others() {",
    "    local each found group=(-perm -g+w) named here; here=$(pwd -P)",
    f'    IFS=: read -ra named <<<"${{{VARIABLE}:-}}"',
    '    for each in "${named[@]}"; do',
    """        [ "$each" != '*' ] && [[ $PWD/ != "${each%/}"/* && $here/ != "${each%/}"/* ]] || return 0""",
    "    done",
    '    [ "$(id -gn)" != "$(id -un)" ] || group+=(! -gid "$(id -g)")',
    '    local others=(! -uid "$(id -u)" ! -uid 0 -o -perm -o+w -o "${group[@]}")',
    r"""    local tell=(\( "${others[@]}" \) -ls -quit)""",
    '    found=$(find -L . config.yaml job.yaml -maxdepth 0 "${tell[@]}" 2>/dev/null',
    '        find -L code submitit "${tell[@]}" -o -type d ! -perm /011 -prune 2>/dev/null)',
    '    [ -z "$found" ] && return',
    '    echo "error: another user owns or may write what this job would execute in $PWD:" "$found" >&2',
    f'    echo "If you trust it, set {VARIABLE}=$PWD" >&2',
    "    exit 2",
    "}",
    "refuse_others",
)
