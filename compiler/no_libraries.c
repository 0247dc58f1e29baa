/* no_libraries.c -- of etc-static: it cannot load a library, as that would need the C library with
 * which it was linked.  These stand for the functions of that library, and say so. */
#include <dlfcn.h>

void *dlopen(const char *file, int mode)
{
    (void)file;
    (void)mode;
    return 0;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
    (void)handle;
    (void)name;
    return 0;
}

char *dlerror(void)
{
    return (char *)"this etc is linked statically and loads no library; that of the .deb does";
}
