# WEIR_LIBRARY(VARIABLE, MODULE, PACKAGE, [WHAT])
#
# Looks for a library, like PKG_CHECK_MODULES(VARIABLE, MODULE). WHAT (by default MODULE) and its PACKAGE in Debian are shown where a part
# needs it.
AC_DEFUN([WEIR_LIBRARY], [
PKG_CHECK_MODULES([$1], [$2], [weir_found_$1=yes], [weir_found_$1=no])
_WEIR_NEED([$1], m4_default_quoted([$4], [$2]), [$3])])

# WEIR_FOUND(VARIABLE, TEST, PACKAGE, WHAT)
#
# The same for what pkg-config does not know: it is found if the shell command TEST succeeds.
AC_DEFUN([WEIR_FOUND], [
AS_IF([$2], [weir_found_$1=yes], [weir_found_$1=no])
_WEIR_NEED([$1], [$4], [$3])])

m4_define([_WEIR_NEED], [m4_define([weir need $1], [$2])weir_what_$1="$2" weir_package_$1="$3"])
m4_define([_WEIR_WHAT], [m4_ifdef([weir need $1], [m4_indir([weir need $1])], [$1])])

# WEIR_PART(NAME, WHAT, [PARTS], [LIBRARIES])
#
# An optional part of weir: WHAT is built if the other PARTS are and all LIBRARIES (the VARIABLEs of the macros above) were found. With
# --disable-NAME it is left out; with --enable-NAME configure fails without what it needs. Sets have_NAME to yes or no, defines the
# conditional and the C macro HAVE_NAME, and adds a line to weir_parts, which configure prints at its end.
AC_DEFUN([WEIR_PART], [
AC_ARG_ENABLE([$1], [AS_HELP_STRING([--disable-$1],
  [leave out $2]m4_ifval([$3$4], [[ (needs ]m4_map_args_w([$3 $4], [_WEIR_WHAT(], [)], [[, ]])[)]]))],, [enable_$1=auto])
WEIR_RESULT([$1], [$2], [$3], [$4])
AS_IF([test $have_$1 = yes], [AC_DEFINE([HAVE_]m4_toupper([$1]), [1], [Whether $2 is built.])])])

# WEIR_RESULT(NAME, WHAT, [PARTS], [LIBRARIES])
#
# WEIR_PART without its options: enable_NAME is auto, yes, no, or "no (REASON)".
AC_DEFUN([WEIR_RESULT], [
weir_lacks= weir_packages=
for weir_need in $4; do
  AS_IF([eval "test x\$weir_found_$weir_need != xyes"],
    [eval "weir_lacks=\"\$weir_lacks\${weir_lacks:+, }\$weir_what_$weir_need\" weir_packages=\"\$weir_packages \$weir_package_$weir_need\""])
done
AS_IF([test -n "$weir_lacks"], [weir_lacks="needs $weir_lacks: not found; Debian:$weir_packages"])
weir_left_out=
for weir_need in $3; do
  AS_IF([eval "test \$have_$weir_need != yes"], [weir_left_out="$weir_left_out${weir_left_out:+, }$weir_need"])
done
AS_IF([test -n "$weir_left_out"], [weir_lacks="needs $weir_left_out: left out"])
AS_CASE([$enable_$1],
  [no], [have_$1=no weir_reason="no (disabled)"],
  ["no "*], [have_$1=no weir_reason=$enable_$1],
  [AS_IF([test -z "$weir_lacks"], [have_$1=yes weir_reason=yes],
    [test "x$enable_$1" = xauto], [have_$1=no weir_reason="no ($weir_lacks)"],
    [AC_MSG_ERROR([--enable-$1: $2: $weir_lacks])])])
AM_CONDITIONAL([HAVE_]m4_toupper([$1]), [test $have_$1 = yes])
weir_parts="$weir_parts
$(printf '  %-46s %s' "$2" "$weir_reason")"
])
