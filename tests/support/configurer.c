/* configurer: applies a valid configuration, then tries invalid ones.
 *
 * usage: configurer GOOD WRONG...
 *
 * For each WRONG file it prints the result and the error of weir_configure_file as a line of JSON, and adds a
 * value, which must still follow the configuration GOOD. */

#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        if ((unsigned char)*text < 0x20)
            printf("\\u%04x", *text);
        else
            putchar(*text);
    }
    putchar('"');
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    if (weir_configure_file(argv[1])) {
        fprintf(stderr, "configurer: %s\n", weir_last_error());
        return 1;
    }
    weir_stream *stream = weir_get_stream("my_app");
    for (int i = 2; i < argc; i++) {
        int code = weir_configure_file(argv[i]);
        printf("{\"code\":%d,\"error\":", code);
        print_text(weir_last_error());
        puts("}");
        weir_add_int(stream, "n", i - 2);
    }
    return 0;
}
