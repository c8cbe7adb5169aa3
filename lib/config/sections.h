/* sections: the sections of a configuration, and where a name belongs that was found elsewhere. */
#ifndef WR_SECTIONS_H
#define WR_SECTIONS_H

enum wr_section {
    WR_SECTION_SCHEMA,
    WR_SECTION_INCLUDE,
    WR_SECTION_SETTINGS,
    WR_SECTION_HANDLERS,
    WR_SECTION_GROUPS,
    WR_SECTION_METRICS,
    WR_SECTION_SOURCES,
    WR_SECTION_UNKNOWN /* no section; their number */
};

/* Returns a section's name; section: not WR_SECTION_UNKNOWN. */
const char *wr_sections_name(enum wr_section section);

/* Returns the section of a name, or WR_SECTION_UNKNOWN. */
enum wr_section wr_sections_find(const char *name);

/* Returns where a name is allowed, for messages: "it belongs in "settings""; NULL: not known. */
const char *wr_sections_home(const char *name);

#endif
