/* unload: loads, uses and unloads a library that uses weir, repeatedly. weir's threads must survive this,
 * and everything is delivered at exit.
 *
 * usage: unload LIBRARY */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    for (int i = 0; i < 20; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "unload: %s\n", dlerror());
            return 3;
        }
        int (*use_weir)(int count) = (int (*)(int))(uintptr_t)dlsym(library, "use_weir");
        if (!use_weir || use_weir(100))
            return 4;
        if (dlclose(library))
            return 5;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return 0;
}
