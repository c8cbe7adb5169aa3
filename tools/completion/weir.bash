# shellcheck shell=bash
# Completion of `weir` for bash. What there is to complete is asked of the command itself, by its help texts, so it is always that of
# the version that is installed. Works with and without the package bash-completion.

# The commands that a version has.
_weir_commands() {
    "$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z0-9_-]*\)  *[A-Z].*/\1/p'
}

# The options in a help text on standard input.
_weir_options() {
    sed -n 's/^  *\(\(-[A-Za-z]\), \)\{0,1\}\(--[a-z-]*\).*/\2 \3/p'
}

# What an option in a help text takes: FILE, GROUP, ...; nothing for one that takes nothing.
_weir_argument_of() {
    local option=$1
    sed -n "s/^  *\(-[A-Za-z], \)\{0,1\}\(--[a-z-]*\) \([A-Z][A-Z=]*\)  .*/\1 \2, \3/p" | while read -r line; do
        case " ${line%, *}," in *" $option,"*) printf '%s\n' "${line##*, }" ;; esac
    done
}

# What stands at the places of the usage line on standard input, a line each: FILE, or list|verify|replay. Options and what they take
# are left out; the last place counts for all that follow when it has dots behind it.
_weir_places() {
    sed -n '1s/^usage: weir [a-z]* *//p' | sed 's/ | / /g; s/--[a-z]*\[=[A-Z]*\]//g; s/-\{1,2\}[a-z]* [A-Z][A-Z=]*//g; s/-\{1,2\}[a-z][a-z]*//g; s/[][]/ /g; s/ \.\.\.//g' |
        tr -s ' ' '\n' | grep '[A-Za-z]'
}

# The configuration among the words, and the groups that have a route in it.
_weir_groups() {
    local weir=$1 file='' i
    for ((i = 2; i < ${#COMP_WORDS[@]}; i++)); do
        case ${COMP_WORDS[i]} in
        -c | --config) file=${COMP_WORDS[i + 1]:-} ;;
        *) [ "${COMP_WORDS[1]}" != check ] || [ $i -eq "$COMP_CWORD" ] || [ ! -f "${COMP_WORDS[i]}" ] || file=${COMP_WORDS[i]} ;;
        esac
    done
    "$weir" check ${file:+"$file"} 2>/dev/null | sed -n 's/^  \([^* ][^ ]*\) *-> .*/\1/p'
}

_weir_processes() {
    local process
    for process in /proc/[0-9]*; do
        [ ! -O "$process" ] || printf '%s\n' "${process#/proc/}"
    done
}

# Offers what a place takes, as far as it goes on from the word that is there.
_weir_offer() {
    local weir=$1 place=$2 word=$3
    case $place in
    FILE | FILE...)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        ;;
    FOLDER | FOLDER...)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        ;;
    COMMAND) mapfile -t COMPREPLY < <(compgen -W "$(_weir_commands "$weir")" -- "$word") ;;
    TYPE) mapfile -t COMPREPLY < <(compgen -W "$("$weir" handlers 2>/dev/null | sed 's/ .*//')" -- "$word") ;;
    FORMAT) mapfile -t COMPREPLY < <(compgen -W "$("$weir" formats 2>/dev/null | sed 's/ .*//')" -- "$word") ;;
    GROUP) mapfile -t COMPREPLY < <(compgen -W "$(_weir_groups "$weir")" -- "$word") ;;
    PID | PID...) mapfile -t COMPREPLY < <(compgen -W "$(_weir_processes)" -- "$word") ;;
    *[a-z]*) mapfile -t COMPREPLY < <(compgen -W "${place//|/ }" -- "$word") ;;
    esac
}

# Which of the places the present word is at: those before it that are neither options nor what these take are counted.
_weir_place() {
    local help=$1 i number=0 places
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -?*) [ -z "$(_weir_argument_of "${COMP_WORDS[i]}" <<<"$help")" ] || ((i++)) ;;
        *) ((number++)) ;;
        esac
    done
    mapfile -t places < <(_weir_places <<<"$help")
    if [ "$number" -ge ${#places[@]} ] && [ ${#places[@]} -gt 0 ] && [[ ${places[-1]} == *... ]]; then
        number=$((${#places[@]} - 1))
    fi
    printf '%s\n' "${places[number]:-}"
}

_weir() {
    local weir=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]:-} before=${COMP_WORDS[COMP_CWORD - 1]} help taken
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_weir_commands "$weir") $("$weir" --help 2>/dev/null | _weir_options)" -- "$word")
        return
    fi
    help=$("$weir" "${COMP_WORDS[1]}" --help 2>/dev/null) || return 0
    taken=$(_weir_argument_of "$before" <<<"$help")
    if [ -n "$taken" ]; then
        _weir_offer "$weir" "$taken" "$word"
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_weir_options <<<"$help")" -- "$word")
    else
        _weir_offer "$weir" "$(_weir_place "$help")" "$word"
    fi
}

complete -F _weir weir
