/* internal.h -- shared by the files of quant/: the decisions of annotate, moments and products of
 * activations, statistics, and integer weights. */
#ifndef ETC_QUANT_INTERNAL_H
#define ETC_QUANT_INTERNAL_H

#include "ir/views.h"
#include "quant/quant.h"

/* -- annotate.c: the format of each node and value -------------------------------------------- */

/* This says how a node is computed. */
typedef enum Mode {
    MODE_FLOAT,
    MODE_STATIC,  /* with integers whose scales are known beforehand */
    MODE_DYNAMIC, /* with integers whose scales are computed at run time */
    MODE_WEIGHT   /* with floats; its weights are stored in fewer bits */
} Mode;

/* Values that share one scale and zero point. */
typedef struct Point {
    const char *name; /* the name of the first value; statistics use it */
    QuantFormat format;
    Observer *observer;
    float lo, hi; /* the range that the integers cover */
    double scale;
    int64_t zero;
} Point;

enum { WINDOW_AXES = 3 };

/* The part of an operand that one row of weights is multiplied with: `channels` times `taps`
 * elements.  With groups there are several blocks of channels. */
typedef struct Window {
    int64_t channels, taps, blocks;
    int64_t kernel[WINDOW_AXES], stride[WINDOW_AXES], padding[WINDOW_AXES], dilation[WINDOW_AXES];
    int64_t n_axes; /* 0: of a linear layer, a window is a row */
    int64_t rows;   /* how many positions are taken per column */
} Window;

/* Sums over positions of x[i] * x[j], for all elements i and j of a window (the Gram matrix). */
typedef struct Products {
    struct Products *next; /* those of the same value with another window */
    Window window;
    int64_t n, blocks; /* n: the columns of a block */
    double *gram; /* the lower triangle of an n x n matrix for each block; NULL: not computed yet */
} Products;

/* The moments of a value's channels over all samples. */
typedef struct Moments {
    const char *name;
    bool is_before; /* they are those before channels are rescaled */
    int axis;
    int64_t n;                        /* the number of channels */
    float *mean, *square, *magnitude; /* by channel: the means of x and x^2, the largest |x| */
    double *sum, *sum_square, count;  /* sums of the samples so far */
    Products *products;               /* a list; NULL: no algorithm needs them */
} Moments;

typedef struct NodePlan {
    Mode mode;
    QuantChoice choice; /* the final settings */
    const Node *tail;   /* MODE_STATIC: the clamp or activation that is computed with it, or NULL */
    const Node *head;   /* for such a clamp or activation: the node it is computed with */
    bool is_inner;       /* only the rest of a function of one value reads its result, which has no scale */
    bool may_be_dynamic; /* it is MODE_STATIC and could be MODE_DYNAMIC */
    bool is_left;        /* it stays float although the recipe wants smaller weights */
    bool is_coarser;     /* it has a scale per output channel although the recipe wants groups */
} NodePlan;

typedef struct Annotation {
    Graph *g;
    Arena *arena;
    Uses uses;
    int n_values;   /* of g when it was annotated */
    NodePlan *plan; /* by the index of a node's first result */
    const Value **function_of; /* by value index, see functions_find; NULL: the target has no fixed point */
    int *point;     /* by value index: an index in `points`, or -1 */
    Point **points;
    int n_points;
    Moments **moments; /* by value index; an item may be NULL */
    bool observes;     /* points have observers */
    bool has_sums;     /* moments are complete */
} Annotation;

Annotation annotate(Graph *g, const QuantJob *job, Arena *a);
/* Writes the decisions of a search into job->seen. */
void annotation_record(const Annotation *a, const QuantJob *job);
NodePlan *plan_of(const Annotation *a, const Node *n); /* NULL: n has no results */
Point *point_of(const Annotation *a, const Value *v);  /* NULL: v stays as it is */

/* -- functions.c ------------------------------------------------------------------------------- */

/* Sets a->function_of: by value index, the value that a value is a function of, element by element;
 * NULL: its node computes anything else. */
void functions_find(Annotation *a);
bool is_function(const Annotation *a, const Node *n); /* of one value; functions_find has found it */
/* Leaves the static mode to the last node of each function; sets `is_inner` of the others. */
void functions_merge(Annotation *a);

/* -- latency.c --------------------------------------------------------------------------------- */

/* Marks nodes, by their first result, that would gain no time by integers, and counts them. */
int latency_refuse(Annotation *a, bool *refused);

/* -- of operators ------------------------------------------------------------------------------ */

/* Reads a node that multiplies x with weights, or an embedding, which has weights but no x. */
bool weights_of(const Node *n, Weighted *v);
bool is_weight(const Value *v); /* it is f32 and constant, and its bytes are available */
bool is_class(const Node *n, const char *quant); /* its row has this in the column `quant` */

/* -- samples.c -------------------------------------------------------------------------------- */

typedef struct Turns Turns;

/* The evaluation of one sample, in a thread of its own. */
typedef struct Turn {
    Turns *turns;
    int sample, nth; /* its number among all samples, and among those of this run */
    const char *name;
    Arena *tmp, *eval; /* `eval` is the temporary memory of EvalHow */
    Diag *diag;
} Turn;

typedef struct SampleRun {
    const Samples *samples;
    const Graph *graph, *beside; /* the graph whose inputs they are; a second graph, or NULL */
    int first, n_places;
    bool (*run)(void *ctx, Turn *t, EtcTensor **in, int64_t *symbol); /* evaluates a sample */
    void *ctx;
    bool (*is_due)(void *ctx); /* is asked before each sample but the first; true ends the run */
    void *due_ctx;             /* is_due may be NULL */
} SampleRun;

/* Runs the samples from `first` on.  *done is the first sample that was not run.  Returns false
 * if a sample fails, which is reported. */
bool samples_run(const SampleRun *r, int *done, Diag *d);

/* Waits until this sample may enter a place, in which only one sample can be.  If at >= 0, it
 * enters as the visit with this number, counted over all samples, so that sums are added in the
 * same order with any number of threads.  Returns false if an earlier sample has failed; this
 * one then ends too. */
bool turn_enter(Turn *t, int place, int64_t at);
void turn_leave(Turn *t, int place);

/* -- calibrate.c ------------------------------------------------------------------------------- */

/* Runs the samples and chooses the range of each point.  Returns false if it fails, which is
 * reported. */
bool calibrate(Annotation *a, QuantJob *job, Diag *d);
/* Returns whether all numbers are finite; if not, *bad is the index of the first that is not. */
bool all_finite(const float *x, int64_t n, int64_t *bad);

/* -- moments.c --------------------------------------------------------------------------------- */

/* Creates empty moments for the operands of nodes with one of these algorithms, either of those
 * that need moments before channels are rescaled or of the others.  Returns whether there are
 * any. */
bool moments_ask(Annotation *a, unsigned algorithms, bool is_before);
/* Allocates the products before samples are run. */
void moments_begin(const Annotation *a);
/* Adds sample number `sample` of `n_samples` to the moments. */
void moments_observe(Moments *m, const EtcTensor *t, int sample, int n_samples, Arena *tmp);
void moments_end(const Annotation *a, Statistics *to);
/* Save the sums of the samples so far in statistics, and restore them from a file.  The second
 * returns false if the file has none that fit. */
void moments_keep(const Annotation *a, Statistics *to);
bool moments_take(const Annotation *a, const Statistics *from);
void moments_clear(const Annotation *a);
/* Write the moments to statistics, and read them from a file.  The second returns false if it
 * fails, which is reported. */
void moments_add(const Annotation *a, Statistics *to);
bool moments_read(const Annotation *a, const Statistics *s, Diag *d);
/* Returns the moments of the operand that n multiplies with its weights, or NULL. */
const Moments *moments_of(const Annotation *a, const Node *n);

/* -- products.c -------------------------------------------------------------------------------- */

/* Adds products for the window of n to the moments m of its operand, for weights of `bits` bits.
 * Returns false if n has no window that products are computed for. */
bool products_ask(Moments *m, const Node *n, int bits, Arena *a);
bool products_fit(const Node *n);                                       /* it has such a window */
const Products *products_of(const Moments *m, const Node *n, int bits); /* or NULL */
int64_t products_count(const Products *p); /* the number of elements of `gram` */
void products_observe(const Moments *m, Products *p, const EtcTensor *t, int sample, int n_samples,
                      Arena *tmp);

/* -- statistics.c ------------------------------------------------------------------------------ */

Statistics *statistics_new(Arena *a, uint64_t model);
const char *statistics_file(const Statistics *s);
bool statistics_is_file(const Statistics *s); /* they were read from a file, not just collected */
uint64_t statistics_model(const Program *p);  /* the identity of a program */
bool statistics_fit(const Statistics *s, const Program *p, Diag *d); /* reports what does not fit */
/* Adds n numbers for a value under a key without blanks.  They can be found after
 * statistics_sort. */
void statistics_add(Statistics *s, const char *key, const char *name, int n, const float *v);
void statistics_sort(Statistics *s);
/* Returns NULL if there are none. */
const float *statistics_get(const Statistics *s, const char *key, const char *name, int n);
/* Record that a node stays float; `name` is that of its first result. */
void statistics_keep(Statistics *s, const char *name);
bool statistics_keeps(const Statistics *s, const char *name);
/* Record that a node gets its scales at run time, if the recipe says `dynamic: auto`. */
void statistics_add_dynamic(Statistics *s, const char *name);
bool statistics_is_dynamic(const Statistics *s, const char *name);
void statistics_set_library(Statistics *s, const char *name);
/* Record that these are the result of a search within the recipe's budget. */
void statistics_set_budget(Statistics *s, const Recipe *r);
bool statistics_has_budget(const Statistics *s);
/* Remember the products of a value for its nth window, without a copy, and find them again (or
 * NULL).  They are not written to files. */
void statistics_keep_products(Statistics *s, const char *name, int nth, const Products *p);
bool statistics_has_products(const Statistics *s);
double *statistics_products(const Statistics *s, const char *name, int nth, const Products *p);
/* The same as statistics_add and _get for doubles, which a file holds exactly.  Such keys begin
 * with "part.".  The added numbers are 0 and the caller sets them. */
double *statistics_add_exact(Statistics *s, const char *key, const char *name, int n);
const double *statistics_get_exact(const Statistics *s, const char *key, const char *name, int n);
/* Appends all records except products. */
void statistics_copy(Statistics *to, const Statistics *from);
uint64_t statistics_of(const Statistics *s); /* the identity of its model */

/* -- weights.c --------------------------------------------------------------------------------- */

/* Weights as integers, [outer, n, inner] with a scale for each of the n. */
typedef struct Ints {
    int64_t outer, n, inner;
    int lo, hi;
    int threads; /* how many threads are used, with the same result; 0: one */
    int vector_bytes; /* of the functions that are used, with the same result */
    int8_t *q;
    float *scale;
} Ints;

Ints ints_new(const QuantFormat *f, const Value *w, int axis, Arena *a);
/* h has an importance for each weight; NULL: all are equally important. */
void ints_set_scales(Ints *k, const QuantFormat *f, const float *w, const float *h);
void ints_fit_scales(Ints *k, const QuantFormat *f, const float *w, const float *h);
void ints_shrink_scales(Ints *k, const QuantFormat *f, const float *w);
void ints_round(Ints *k, const float *w);
int ints_nearest(const Ints *k, double v);            /* v is in units of the scale */
float scale_kept(double scale, const QuantFormat *f); /* the scale as a runtime stores it */

/* The layout of weights: for each element, the output channel and the channel of the operand. */
typedef struct Geometry {
    int64_t results, row, taps, results_of_group, channels_of_group;
    bool by_column; /* output channels lie along the last axis */
} Geometry;

/* Returns false if the weights are no rows of output channels, have no elements or symbolic
 * sizes. */
bool geometry_of(const Node *n, Geometry *g);
int64_t result_at(const Geometry *g, int64_t element);
int64_t channel_at(const Geometry *g, int64_t element);

/* -- rescale.c --------------------------------------------------------------------------------- */

void rescale_all(Annotation *a);

/* -- gptq.c ------------------------------------------------------------------------------------ */

/* All nodes that read one operand share these factorized Gram matrices. */
typedef struct Gptq {
    const Products *of;
    struct GptqBlock *block;
} Gptq;

Gptq gptq_of(const Products *p, int bits, Arena *a); /* for weights of `bits` bits; needs p->gram */
/* Rounds the weights w of a node with the layout `rows` into k->q. */
void gptq_round(Ints *k, const float *w, const Geometry *rows, const Gptq *g, Arena *tmp);

/* -- convert.c --------------------------------------------------------------------------------- */

bool convert(const Annotation *a, Arena *tmp, Diag *d);

/* -- checkpoint.c ------------------------------------------------------------------------------ */

/* The runs over the samples, in their order: moments before and after channels are rescaled,
 * ranges, and ranges again after products became dynamic. */
typedef enum Part { PART_BEFORE, PART_AFTER, PART_RANGES, PART_AGAIN, N_PARTS } Part;

/* Restores points and moments from the checkpoint if it is of this run.  Returns how many
 * samples of the run it has; 0: none. */
int checkpoint_take(const Annotation *a, const QuantJob *job, Part part);
/* Returns whether the checkpoint is of a later run. */
bool checkpoint_is_past(const QuantJob *job, Part part);
bool checkpoint_keep(const Annotation *a, const QuantJob *job, Part part, int done, Diag *d);

/* -- observe.c ------------------------------------------------------------------------------- */

/* Save the state of an observer of one channel as observer_size() numbers, and restore it.
 * Numbers of a file may be anything: observer_take returns false if they are no state of an
 * observer. */
int observer_size(const Observer *o);
void observer_keep(const Observer *o, double *v);
bool observer_take(Observer *o, const double *v);

double log_of(double x); /* ln x with the same bits on any machine; x is positive and normal */

/* annotate.c: returns the first backend that takes n; NULL: the kernels compute it. */
const Backend *taker_of(const Node *n, const Uses *u);

#endif
