/* no_libraries.c -- dlopen, dlsym and dlerror of etc-static, which cannot load a library, because
 * that would need the C library with which it was linked.  These functions replace those of the C
 * library; dlerror says why nothing is loaded. */
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
