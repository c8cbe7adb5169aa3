/* ucum: units in the Unified Code for Units of Measure, which OpenTelemetry uses. Values are not converted. */
#ifndef WR_UCUM_H
#define WR_UCUM_H

struct wr_buffer;

/* Appends a unit: "bytes/s" becomes "By/s". What is no unit of UCUM is what is counted, in braces: {requests}.
 */
void wr_ucum_put(struct wr_buffer *out, const char *unit);

#endif
