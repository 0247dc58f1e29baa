/* partition.h -- chooses which backend computes which nodes of a core graph; regions of nodes
 * become calls of a backend. */
#ifndef ETC_PARTITION_H
#define ETC_PARTITION_H

#include "ir/backend.h"

#define BACKEND(name) extern const Backend name##_backend;
#include "partition/backends.def"
#undef BACKEND

extern const Backend *const all_backends[];                /* ends with NULL */
const Backend *backend_find(const char *name, size_t len); /* NULL: there is none of this name */

/* The decisions of the partitioner, for its report.  All times are estimates of the backends. */
typedef struct RegionReport {
    const Backend *backend;
    const char *method;
    const Node **node; /* the nodes before the partition; they are in no graph any more */
    const Value **in, **out;
    const Graph *body; /* the graph in the call of the backend; NULL until it is made */
    int n_nodes, n_in, n_out;
    int64_t macs, border_bytes; /* border_bytes enter and leave */
    double seconds, switching;  /* switching: the part for the call and for entering and leaving */
    double seconds_outside;     /* what the kernels would take */
} RegionReport;

typedef struct Rejected {
    Loc loc;
    OpId op;
    const char *method;
    Refusal refusal;
    int64_t macs;
    double seconds; /* what its kernel takes */
} Rejected;

typedef struct PartitionReport {
    RegionReport *region;
    Rejected *rejected;
    int n_regions, n_rejected, n_nodes, n_taken;
    int64_t macs, macs_taken;
    double seconds, seconds_outside; /* of the whole model: as decided, and without backends */
} PartitionReport;

bool pass_partition(Program *p, Arena *tmp, Diag *d);

#endif
