/* comma_locale: a locale with a decimal comma, "comma", which tests make in a folder. Include after criterion.
 */
#ifndef COMMA_LOCALE_H
#define COMMA_LOCALE_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Sets LOCPATH to the folder. Skips the test if there is no localedef. It warns that it defines nothing else.
 */
static void make_comma_locale(const char *folder)
{
    char command[400];
    snprintf(command, sizeof command,
             "cd %s && printf 'LC_NUMERIC\\ncopy \"de_DE\"\\nEND LC_NUMERIC\\n' >source && "
             "localedef -c -i ./source -f UTF-8 ./comma >log 2>&1",
             folder);
    if (system(command) < 0)
        cr_skip_test("no shell");
    setenv("LOCPATH", folder, 1);
    snprintf(command, sizeof command, "%s/comma/LC_NUMERIC", folder);
    if (access(command, R_OK) != 0)
        cr_skip_test("cannot create a locale with a decimal comma");
}

static void set_comma_locale(void)
{
    cr_assert(setlocale(LC_NUMERIC, "comma"));
}

#endif
