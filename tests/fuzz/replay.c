/* replay: calls a fuzzer's function with each file of a folder.
 *
 * usage: NAME FOLDER. Prints the number of files. */

#include <dirent.h>

#include "fuzz.h"

static void replay(const char *folder, const char *name)
{
    static uint8_t data[1 << 20];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    FUZZ_CHECK(file);
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    /* memory of exactly this size, so that sanitizers detect reads beyond it */
    uint8_t *copy = malloc(size ? size : 1);
    FUZZ_CHECK(copy);
    memcpy(copy, data, size);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

int main(int argc, char **argv)
{
    int count = 0;
    const struct dirent *entry;
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (!folder)
        return 2;
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        replay(argv[1], entry->d_name);
        count++;
    }
    closedir(folder);
    printf("%d\n", count);
    return 0;
}
