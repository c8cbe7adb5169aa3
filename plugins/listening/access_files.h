/* access_files: the files by which the commands of this machine get access to a collector. They are in its
 * folder, which only its owner can enter:
 *
 *     token          for the header "Authorization: Bearer TOKEN"
 *     url            where the collector listens
 *     once-ID        tickets: for one request within ten minutes, which gets a session
 *     session-ID     for thirty days
 *
 * A ticket is a text of 64 hexadecimal digits: the first half is in the name of its file, the second half is
 * what it contains. Those who may write to the folder make one; a collector needs no memory of them. */
#ifndef WEIR_PLUGINS_ACCESS_FILES_H
#define WEIR_PLUGINS_ACCESS_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { ACCESS_TICKET_ROOM = 65, ACCESS_URL_ROOM = 128 };

enum access_kind { ACCESS_ONCE, ACCESS_SESSION };

/* Makes the folder with those above it, mode 0700. Returns what is wrong with it, or NULL. */
const char *access_files_make_folder(const char *folder);

/* Makes the token if it is missing. Returns 0 or errno. */
int access_files_make_token(const char *folder);

/* Makes a ticket, and removes those that are too old. Returns 0 or errno. */
int access_files_make_ticket(const char *folder, enum access_kind kind, char ticket[ACCESS_TICKET_ROOM]);

/* Whether a ticket is valid; the time that it takes does not depend on the secret half. One for a single use is
 * removed. */
bool access_files_check_ticket(const char *folder, enum access_kind kind, const char *ticket);

/* Stores and reads where the collector listens: "http://127.0.0.1:8080". url NULL: removes it, if it is `own`.
 * Returns 0 or errno. */
int access_files_write_url(const char *folder, const char *url);
int access_files_read_url(const char *folder, char url[ACCESS_URL_ROOM]);
void access_files_remove_url(const char *folder, const char *own);

#endif
