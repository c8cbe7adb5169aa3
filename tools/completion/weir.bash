# shellcheck shell=bash
# Completion of `weir` for bash. It reads the help texts of the installed command, so both always agree. It does not need the package
# bash-completion.

# The commands.
_weir_commands() {
    "$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z0-9_-]*\)  *[A-Z].*/\1/p'
}

# The options in a help text on standard input.
_weir_options() {
    sed -n 's/^  *\(\(-[A-Za-z]\), \)\{0,1\}\(--[a-z-]*\).*/\2 \3/p'
}

# The argument of an option in a help text: FILE, GROUP, ...; empty if it has none.
_weir_argument_of() {
    local option=$1
    sed -n "s/^  *\(-[A-Za-z], \)\{0,1\}\(--[a-z-]*\) \([A-Z][A-Z=]*\)  .*/\1 \2, \3/p" | while read -r line; do
        case " ${line%, *}," in *" $option,"*) printf '%s\n' "${line##*, }" ;; esac
    done
}

# The operands in the usage line on standard input, one per line: FILE, or list|verify|replay. Options and their arguments are left out.
# A last operand that ends in ... may be repeated.
_weir_operands() {
    sed -n '1s/^usage: weir [a-z-]* *//p' | sed 's/ | / /g; s/-\{1,2\}[a-z]* [A-Z][A-Z=]*//g; s/-\{1,2\}[a-z][a-z]*//g; s/[][]/ /g; s/ \.\.\.//g' |
        tr -s ' ' '\n' | grep '[A-Za-z]'
}

# The groups with a route in the configuration that the words name.
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

# Offers the completions of a word for an operand or an argument.
_weir_offer() {
    local weir=$1 operand=$2 word=$3
    case $operand in
    FILE | FILE...)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        ;;
    PROGRAM)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
        ;;
    ARGUMENT)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        ;;
    FOLDER | FOLDER...)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        ;;
    COMMAND) mapfile -t COMPREPLY < <(compgen -W "$(_weir_commands "$weir")" -- "$word") ;;
    TYPE) mapfile -t COMPREPLY < <(compgen -W "$("$weir" handlers 2>/dev/null | sed 's/ .*//')" -- "$word") ;;
    SOURCE) mapfile -t COMPREPLY < <(compgen -W "$("$weir" sources 2>/dev/null | sed 's/ .*//')" -- "$word") ;;
    FORMAT) mapfile -t COMPREPLY < <(compgen -W "$("$weir" formats 2>/dev/null | sed 's/ .*//')" -- "$word") ;;
    GROUP) mapfile -t COMPREPLY < <(compgen -W "$(_weir_groups "$weir")" -- "$word") ;;
    PID | PID...) mapfile -t COMPREPLY < <(compgen -W "$(_weir_processes)" -- "$word") ;;
    *[a-z]*) mapfile -t COMPREPLY < <(compgen -W "${operand//|/ }" -- "$word") ;;
    esac
}

# The operand that the current word is: the words before it that are neither options nor their arguments are counted.
_weir_operand() {
    local help=$1 i number=0 operands
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -?*) [ -z "$(_weir_argument_of "${COMP_WORDS[i]}" <<<"$help")" ] || ((i++)) ;;
        *) ((number++)) ;;
        esac
    done
    mapfile -t operands < <(_weir_operands <<<"$help")
    if [ "$number" -ge ${#operands[@]} ] && [ ${#operands[@]} -gt 0 ] && [[ ${operands[-1]} == *... ]]; then
        number=$((${#operands[@]} - 1))
    fi
    printf '%s\n' "${operands[number]:-}"
}

_weir() {
    local weir=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]:-} previous=${COMP_WORDS[COMP_CWORD - 1]} help argument
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_weir_commands "$weir") $("$weir" --help 2>/dev/null | _weir_options)" -- "$word")
        return
    fi
    help=$("$weir" "${COMP_WORDS[1]}" --help 2>/dev/null) || return 0
    argument=$(_weir_argument_of "$previous" <<<"$help")
    if [ -n "$argument" ]; then
        _weir_offer "$weir" "$argument" "$word"
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_weir_options <<<"$help")" -- "$word")
    else
        _weir_offer "$weir" "$(_weir_operand "$help")" "$word"
    fi
}

complete -F _weir weir
