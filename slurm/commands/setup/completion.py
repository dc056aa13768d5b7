"""stk completion"""

from __future__ import annotations

from argparse import Namespace

from slurm.commands.parser import make_parser
from toolkit.errors import UserError

#: All ask the command itself, so that they are always current.
_BASH = r"""# Completion of stk for bash:  source <(stk completion bash)
_stk() {
    local line=${COMP_LINE:0:COMP_POINT} words candidate rest
    read -ra words <<<"$line"
    [[ $line != *[[:space:]] ]] || words+=("")
    # readline splits the word at = and :, and replaces only the part after the last of them.
    local current=${words[-1]} cut=
    [[ $current != *[=:]* ]] || cut=${current%"${current##*[=:]}"}
    COMPREPLY=()
    while IFS=$'\t' read -r candidate rest; do
        if [[ $candidate == :files ]]; then
            compopt -o default
            # Without other candidates, readline's own completion of files is better.
            ((!${#COMPREPLY[@]})) || mapfile -O ${#COMPREPLY[@]} -t COMPREPLY < <(compgen -f -- "$current")
        else
            [[ $candidate != *= ]] || compopt -o nospace
            COMPREPLY+=("${candidate#"$cut"}")
        fi
    done < <("${words[0]}" completion --candidates "${words[@]:1}" 2>/dev/null)
}
complete -F _stk stk
"""

_ZSH = r"""#compdef stk
# Completion of stk for zsh:  source <(stk completion zsh)  after compinit, or as _stk in a folder of $fpath
_stk() {
    local -a plain open
    local line word files=
    for line in "${(@f)$("${words[1]}" completion --candidates "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        word=${line%%$'\t'*}
        case $word in
            '') ;;
            :files) files=1 ;;
            *=) open+=("${word//:/\\:}") ;;
            *) plain+=("${word//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    ((${#plain})) && _describe -t words 'stk' plain
    ((${#open})) && _describe -t keys 'key' open -S ''
    [[ -z $files ]] || _files
}
if [[ ${funcstack[1]} == _stk ]]; then _stk "$@"; else compdef _stk stk; fi
"""

_FISH = r"""# Completion of stk for fish:  stk completion fish > ~/.config/fish/completions/stk.fish
function __stk_candidates
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] completion --candidates $words[2..-1] 2>/dev/null)
        if string match -q ':files*' -- $line
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c stk -f -a '(__stk_candidates)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def run(arguments: Namespace) -> int:
    """Print the script of a shell, or candidates for the next word."""
    if "candidates" in arguments:
        from slurm.commands.completion.candidates import candidates

        words = arguments.candidates
        # The parser of the named command has all its arguments.
        parser = make_parser(words[:1] if len(words) > 1 else None)
        for each in candidates(parser, words):
            print(each)
    elif arguments.shell is None:
        raise UserError("which shell? stk completion bash, zsh or fish")
    else:
        print(SCRIPTS[arguments.shell], end="")
    return 0
