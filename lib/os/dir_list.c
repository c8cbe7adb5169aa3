#include "os/dir_list.h"

#include <stdlib.h>

#include "text/buffer.h"

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return first < second ? -1 : first > second;
}

uint64_t *wr_dir_list_numbers(const char *path, wr_dir_list_read *read, const char *kind, size_t *count)
{
    struct wr_buffer numbers = {0};
    const struct dirent *entry;
    uint64_t number;
    int problem = 0;
    DIR *folder = opendir(path);
    bool good = folder && wr_buffer_reserve(&numbers, sizeof number);
    while (good && (entry = wr_dir_list_next(folder, &problem)))
        if (read(entry->d_name, kind, &number))
            wr_buffer_put(&numbers, &number, sizeof number);
    if (folder)
        closedir(folder);
    if (!good || problem || numbers.failed) {
        wr_buffer_fini(&numbers);
        errno = problem ? problem : errno;
        return NULL;
    }
    *count = numbers.length / sizeof number;
    qsort(numbers.data, *count, sizeof number, compare);
    return (uint64_t *)numbers.data;
}
