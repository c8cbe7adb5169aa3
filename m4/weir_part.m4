# WEIR_PART(NAME, WHAT, PROGRAM, NEEDS, PACKAGES)
#
# An optional part of weir: WHAT is built if the shell command PROGRAM succeeds, which tests that NEEDS are there; PACKAGES are their names in
# Debian. With --disable-NAME it is left out; with --enable-NAME configure fails without NEEDS. Sets have_NAME to yes or no, defines the
# conditional HAVE_NAME, and adds lines to weir_parts, which configure prints at its end.
AC_DEFUN([WEIR_PART], [
AC_ARG_ENABLE([$1], [AS_HELP_STRING([--disable-$1], [leave out $2; without this it is built if there is $4])],, [enable_$1=auto])
AS_IF([test "x$enable_$1" = xno], [have_$1=no weir_reason="no (--disable-$1)"],
  [$3], [have_$1=yes weir_reason=yes],
  [test "x$enable_$1" = xauto], [have_$1=no weir_reason="no: needs $4 (Debian: $5)"],
  [AC_MSG_ERROR([--enable-$1: $4 is missing (Debian: $5)])])
AM_CONDITIONAL([HAVE_]m4_toupper([$1]), [test $have_$1 = yes])
weir_parts="$weir_parts
$(printf '  %-46s %s' "$2" "$weir_reason")"
])
