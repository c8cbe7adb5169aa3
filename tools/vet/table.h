/* table: what the checks of handler types and of source types share about descriptions and options. */
#ifndef WEIR_TOOLS_VET_TABLE_H
#define WEIR_TOOLS_VET_TABLE_H

#include <weir/options.h>

#include "config/options.h"
#include "vet.h"

/* Fail the check if a text is empty or more than one line, or if a row has a mistake that the core accepts. */
void vet_check_line(const char *what, const char *text);
void vet_check_row(const weir_option *row);

/* Creates an instance whose option has this value instead of the one in --options. It may be refused with a
 * reason. */
typedef void vet_try_value(const struct vet_subject *subject, const weir_option *row, const char *value);

/* Tries each option at its bounds and with odd texts, and passes. */
void vet_check_values_with(const struct vet_subject *subject, const struct wr_options_table *table,
                           vet_try_value *try_value);

#endif
