/* partition.h -- who computes what: regions of a core graph become calls of a backend. */
#ifndef ETC_PARTITION_H
#define ETC_PARTITION_H

#include "ir/backend.h"

extern const Backend xnnpack_backend;

/* Backends by --backend's name, in a table that ends with NULL. */
extern const Backend *const all_backends[];
const Backend *backend_find(const char *name, size_t len); /* NULL: there is none */

/* What was decided, for the report. */
typedef struct RegionReport {
    const Backend *backend;
    int n_nodes, n_in, n_out;
    int64_t macs, border_bytes;
    double seconds, seconds_outside;
} RegionReport;

typedef struct Rejected {
    Loc loc;
    const char *why;
} Rejected;

struct PartitionReport {
    RegionReport *region;
    Rejected *rejected;
    int n_regions, n_rejected, n_nodes, n_taken;
    int64_t macs, macs_taken;
};

bool pass_partition(Program *p, Arena *tmp, Diag *d);

#endif
