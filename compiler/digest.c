/* digest.c -- digests of bytes and files; the one file that knows xxHash.
 *
 * A digest is XXH3 of 128 bits.  Collisions by chance are so unlikely that no code considers them.
 * The hash is not cryptographic: an attacker can construct a collision. */
#include "compiler/batch.h"
#include "compiler/compiler.h"
#define XXH_INLINE_ALL /* one function of it is a tenth of the library */
#include <xxhash.h>

Digest digest_bytes(const void *data, size_t n)
{
    assert(data);
    XXH128_hash_t h = XXH3_128bits(data, n);
    Digest d;
    snprintf(d.hex, sizeof d.hex, "%016llx%016llx", (unsigned long long)h.high64,
             (unsigned long long)h.low64);
    return d;
}

bool digest_file(Files *files, const char *path, Digest *out, File **is, Diag *d)
{
    const uint8_t *data;
    size_t n;
    *is = file_map(files, path, &data, &n, d);
    if (*is)
        *out = digest_bytes(n ? data : (const uint8_t *)"", n);
    return *is != NULL;
}
