/* series_codec: definitions of series on disk, as a spool and a journal both store them: texts, each with a
 * NUL: group, name, unit and help if the flags name them, key and value of each label, and the upper bounds of
 * the buckets if the flags name them, in one text: of each the bits of its double, in hexadecimal. */
#ifndef WR_SERIES_CODEC_H
#define WR_SERIES_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "registry/family.h"
#include "registry/registry.h"

/* Flags of a definition. */
enum {
    WR_SERIES_CODEC_CUMULATIVE = 1u << 0,
    WR_SERIES_CODEC_UNIT = 1u << 1,
    WR_SERIES_CODEC_HELP = 1u << 2,
    WR_SERIES_CODEC_BUCKETS = 1u << 3,
    WR_SERIES_CODEC_FOREIGN = 1u << 4,
    WR_SERIES_CODEC_PART = 1u << 5,       /* only in journals, which have all series */
    WR_SERIES_CODEC_INSTRUMENT_SHIFT = 8, /* enum weir_instrument, in two bits */
};

enum { WR_SERIES_CODEC_LABELS_MOST = 64 };

/* ---- Writing --------------------------------------------------------------------------------- */

uint16_t wr_series_codec_flags(const weir_series *view);

/* The length of the texts in bytes. */
size_t wr_series_codec_bytes(const weir_series *view);

/* Writes the texts, and returns the position behind them. Takes no memory. */
char *wr_series_codec_put(char *to, const weir_series *view);

/* ---- Reading --------------------------------------------------------------------------------- */

/* Returns the next text and moves *at behind it; NULL if no NUL follows before `end`. */
const char *wr_series_codec_take_text(const char **at, const char *end);

/* Reads `count` pairs of texts. Returns false if one is cut off. */
bool wr_series_codec_take_labels(const char **at, const char *end, weir_label *labels, size_t count);

/* Room for the labels and buckets of a definition. */
struct wr_series_codec_room {
    weir_label labels[WR_SERIES_CODEC_LABELS_MOST];
    double buckets[WR_FAMILY_BUCKETS_MAX];
};

/* Reads a definition; its texts stay where they are. Returns false if it is cut off, has too many labels, or
 * buckets that are not rising. */
bool wr_series_codec_take(const char **at, const char *end, uint16_t flags, uint16_t label_count,
                          weir_series *view, struct wr_series_codec_room *room);

/* The series of this process that a definition stands for. */
struct wr_series_codec_place {
    uint32_t number; /* its id plus 1; 0: it is refused */
    bool is_shared;  /* the limits leave no room for it: it is the one that has the values of all such series */
};

/* Finds or makes the series in this process, and describes it unless this process has done so itself. If it is
 * refused, *no_memory is set if that was the reason. */
struct wr_series_codec_place wr_series_codec_intern(struct wr_registry *registry, const weir_series *view,
                                                    bool *no_memory);

#endif
