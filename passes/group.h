/* group.h -- what group.c and stream.c share: clusters, which become groups. */
#ifndef ETC_PASSES_GROUP_H
#define ETC_PASSES_GROUP_H

#include "passes/internal.h"

enum { NO_GROUP = -1, MAX_STAGES = 4 };

typedef struct Cluster {
    Node *last, *anchor; /* anchor NULL: pointwise nodes only */
    Type type;           /* a pointwise member's result has no other; but for the last's its own */
    bool is_narrow;      /* its last node makes bytes of floats, so no anchor grows in the result */
    bool mixed;          /* its last node reads or gives other dtypes, so nothing joins it */
    int n;               /* 0: it went into another one */
    Node **member;       /* in the order of the graph, once all are known */
    int n_stages;        /* convolutions that run by rows, or 0 */
    int64_t rows[MAX_STAGES]; /* that a stage keeps in lines; of the last, rows made at a time */
} Cluster;

/* Joins clusters of convolutions where running them by rows lowers the peak.  of: the cluster of
 * the node that defines a value, by value index. */
void stream_clusters(Graph *g, const Uses *uses, Cluster *cluster, int n, const int *of,
                     Arena *tmp);

#endif
