/* partition.h -- who computes what: regions of a core graph become calls of a backend. */
#ifndef ETC_PARTITION_H
#define ETC_PARTITION_H

#include "ir/backend.h"

#define BACKEND(name) extern const Backend name##_backend;
#include "partition/backends.def"
#undef BACKEND

/* Backends by --backend's name, in a table that ends with NULL. */
extern const Backend *const all_backends[];
const Backend *backend_find(const char *name, size_t len); /* NULL: there is none */

/* The decisions of the partitioner, for its report.  All times are estimates of the backends. */
typedef struct RegionReport {
    const Backend *backend;
    const char *method;
    const Node **node; /* as they were; no graph holds them any more */
    const Value **in, **out;
    const Graph *body; /* in the call that stands for it; NULL before there is one */
    int n_nodes, n_in, n_out;
    int64_t macs, border_bytes;
    double seconds, switching; /* the whole; of it, for the call and the border */
    double seconds_outside;    /* in the kernels */
} RegionReport;

typedef struct Rejected {
    Loc loc;
    OpId op;
    const char *method;
    Refusal refusal;
    int64_t macs;
    double seconds; /* in its kernel */
} Rejected;

typedef struct PartitionReport {
    RegionReport *region;
    Rejected *rejected;
    int n_regions, n_rejected, n_nodes, n_taken;
    int64_t macs, macs_taken;
    double seconds, seconds_outside; /* of the model as decided; without backends */
} PartitionReport;

bool pass_partition(Program *p, Arena *tmp, Diag *d);

#endif
