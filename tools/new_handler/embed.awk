# Makes a C file of the template's files: an array of pairs, the file's name and one of its lines, and a NULL at the end.
BEGIN {
    print "/* Made by embed.awk from the files beside it. */"
    print "extern const char *const new_handler_lines[];"
    print "const char *const new_handler_lines[] = {"
}

{
    name = FILENAME
    sub(/.*\//, "", name)
    gsub(/[\\"]/, "\\\\&")
    printf "    \"%s\", \"%s\",\n", name, $0
}

END {
    print "    0,"
    print "};"
}
