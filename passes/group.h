/* group.h -- shared by group.c and stream.c: clusters of nodes, which become groups. */
#ifndef ETC_PASSES_GROUP_H
#define ETC_PASSES_GROUP_H

#include "passes/internal.h"

enum { NO_GROUP = -1, MAX_STAGES = 4 };

typedef struct Cluster {
    Node *last, *anchor; /* anchor NULL: pointwise nodes only */
    Type type;           /* of the results of pointwise members, except that of the last node */
    bool is_narrow;      /* its last node makes bytes of floats; most anchors have no room there */
    int reads;           /* the operands that members read, without results of members, and sizes */
    bool mixed;          /* its last node reads or makes another dtype, so no node joins it */
    int n;               /* 0: it was joined to another cluster */
    Node **member;       /* in the order of the graph, once all are known */
    int n_stages;        /* convolutions that run by rows, or 0 */
    int64_t rows[MAX_STAGES]; /* by stage: the rows in its lines; of the last: rows per turn */
} Cluster;

/* Joins clusters of convolutions if running them by rows lowers the peak.  `of` has, by value
 * index, the cluster of the node that computes the value. */
void stream_clusters(Graph *g, const Uses *uses, Cluster *cluster, int n, const int *of,
                     Arena *tmp);

#endif
