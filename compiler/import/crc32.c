/* crc32.c -- the checksum of zip. */
#include "compiler/import/internal.h"
#include <zlib.h>

uint32_t crc32_of(const uint8_t *data, size_t n)
{
    return (uint32_t)crc32_z(0, data, n);
}
