/* internal.h -- what the files of quant/ share: what annotate settled for a graph. */
#ifndef ETC_QUANT_INTERNAL_H
#define ETC_QUANT_INTERNAL_H

#include "ir/views.h"
#include "quant/quant.h"

/* -- annotate.c: what each node and value gets ------------------------------------------------- */

/* How a node is computed. */
typedef enum Mode {
    MODE_FLOAT,
    MODE_STATIC,  /* of integers whose scales are known */
    MODE_DYNAMIC, /* of integers whose scales are found when it runs */
    MODE_WEIGHT   /* of floats, with weights that are kept smaller */
} Mode;

/* Values that have one scale and zero point in common. */
typedef struct Point {
    const char *name; /* of the first of them, by which statistics know it */
    QuantFormat format;
    Observer *observer;
    float lo, hi; /* the range that the integers cover */
    double scale;
    int64_t zero;
} Point;

enum { WINDOW_AXES = 3 };

/* The part of an operand that a row of weights is multiplied with at a position: so many channels
 * and the taps of each.  Blocks of channels lie one behind the other. */
typedef struct Window {
    int64_t channels, taps, blocks;
    int64_t kernel[WINDOW_AXES], stride[WINDOW_AXES], padding[WINDOW_AXES], dilation[WINDOW_AXES];
    int64_t n_axes; /* 0: a position is a row */
    int64_t rows; /* that are wanted per column */
} Window;

/* The sums of products of each two of them. */
typedef struct Products {
    struct Products *next; /* of the same value, by another window */
    Window window;
    int64_t n, blocks; /* columns of a block */
    double *gram; /* of each block n x n, its lower triangle; NULL: not yet */
} Products;

/* Moments of a value's channels over all samples. */
typedef struct Moments {
    const char *name;
    bool is_before; /* channels are rescaled */
    int axis;
    int64_t n; /* channels */
    float *mean, *square, *magnitude; /* by channel: of x, of x^2; the largest |x| */
    double *sum, *sum_square, count;  /* while samples come */
    Products *products; /* NULL: nobody asked */
} Moments;

typedef struct NodePlan {
    Mode mode;
    QuantChoice choice; /* as settled */
    const Node *tail;   /* MODE_STATIC: the node behind it that is part of it, or NULL */
    const Node *head;   /* of that node: what it is part of */
    bool may_be_dynamic; /* MODE_STATIC, could be MODE_DYNAMIC */
    bool is_left;        /* in floats, though weights were to be kept smaller */
    bool is_coarser;     /* has a scale per result, though groups were asked for */
} NodePlan;

typedef struct Annotation {
    Graph *g;
    Arena *arena;
    Uses uses;
    int n_values;    /* of g when it was annotated */
    NodePlan *plan;  /* by index of a node's first result */
    int *point;      /* by value index: in `points`, or -1 */
    Point **points;
    int n_points;
    Moments **moments; /* by value index, or NULL */
    bool observes;     /* points have observers */
    bool has_sums;     /* moments have seen all samples */
} Annotation;

Annotation annotate(Graph *g, const QuantJob *job, Arena *a);
/* Writes the decisions of a search into job->seen. */
void annotation_tell(const Annotation *a, const QuantJob *job);
NodePlan *plan_of(const Annotation *a, const Node *n); /* NULL: n has no results */
Point *point_of(const Annotation *a, const Value *v);  /* NULL: v stays as it is */

/* -- latency.c --------------------------------------------------------------------------------- */

/* Marks nodes, by their first result, that would gain no time by integers, and counts them. */
int latency_refuse(Annotation *a, bool *refused);

/* -- of operators ------------------------------------------------------------------------------ */

/* The operands of a node that multiplies x with weights, or looks rows of them up, without an x. */
bool weights_of(const Node *n, Weighted *v);
bool is_weight(const Value *v); /* f32, the same in every call, its bytes at hand */
bool is_class(const Node *n, const char *quant); /* of ops.def's column */

/* -- samples.c ------------------------------------------------------------------------------------- */

typedef struct Turns Turns;

/* A sample that is being run. */
typedef struct Turn {
    Turns *turns;
    int sample, nth; /* its number; how many of this run come before it */
    const char *name;
    Arena *tmp, *eval; /* its own; eval: for EvalHow */
    Diag *diag;
} Turn;

typedef struct SampleRun {
    const Samples *samples;
    const Graph *graph, *beside; /* whose inputs they are; another that is evaluated, or NULL */
    int first, n_places;
    bool (*run)(void *ctx, Turn *t, EtcTensor **in, int64_t *symbol); /* false: reported */
    void *ctx;
    bool (*is_due)(void *ctx); /* asked before each but the first: true ends the run; may be NULL */
    void *due_ctx;
} SampleRun;

/* Runs the samples from `first` on; *done: the first that was not.  False: reported. */
bool samples_run(const SampleRun *r, int *done, Diag *d);

/* A sample comes to a place: alone, and where at >= 0 as the visit of that number, of all samples.
 * False: one before it has failed, which ends it too. */
bool turn_enter(Turn *t, int place, int64_t at);
void turn_leave(Turn *t, int place);

/* -- calibrate.c ------------------------------------------------------------------------------- */

/* Runs the samples and gives each point its range.  False: reported. */
bool calibrate(Annotation *a, QuantJob *job, Diag *d);
bool all_finite(const float *x, int64_t n, int64_t *bad); /* bad: the first that is not */

/* -- moments.c --------------------------------------------------------------------------------- */

/* Asks anew for the moments of the operands whose nodes want some for one of these algorithms;
 * true: some do.  They are before or behind what rescale.c does. */
bool moments_ask(Annotation *a, unsigned algorithms, bool is_before);
/* Makes room for products, before samples come. */
void moments_begin(const Annotation *a);
/* Adds one of so many samples to the moments. */
void moments_see(Moments *m, const EtcTensor *t, int sample, int n_samples, Arena *tmp);
void moments_end(const Annotation *a, Statistics *to);
/* Keep the sums of samples that have been seen in statistics, and take them back from a file.
 * False: it has none, or none that fit. */
void moments_keep(const Annotation *a, Statistics *to);
bool moments_take(const Annotation *a, const Statistics *from);
void moments_clear(const Annotation *a);
/* Adds the moments that moments_read gave to other statistics. */
void moments_add(const Annotation *a, Statistics *to);
/* Reads from a file what moments_add wrote.  False: reported. */
bool moments_read(const Annotation *a, const Statistics *s, Diag *d);
/* Returns the moments of the operand that n multiplies with its weights; NULL: nobody asked for
 * them. */
const Moments *moments_of(const Annotation *a, const Node *n);

/* -- products.c -------------------------------------------------------------------------------- */

/* Asks for those of n's window, whose operand m is of, for weights of so many bits.  False: there
 * are none of such. */
bool products_ask(Moments *m, const Node *n, int bits, Arena *a);
bool products_fit(const Node *n); /* whether n has a window of which they are kept */
const Products *products_of(const Moments *m, const Node *n, int bits); /* NULL: nobody asked */
int64_t products_count(const Products *p); /* numbers in gram */
void products_see(const Moments *m, Products *p, const EtcTensor *t, int sample, int n_samples,
                  Arena *tmp);

/* -- statistics.c ------------------------------------------------------------------------------ */

Statistics *statistics_new(Arena *a, uint64_t model);
const char *statistics_file(const Statistics *s);
bool statistics_is_file(const Statistics *s); /* or of the run that saw the samples */
uint64_t statistics_model(const Program *p);
bool statistics_fit(const Statistics *s, const Program *p, Diag *d); /* false: reported */
/* n numbers under a key without blanks, of a value; sorted, they can be found; NULL: not there. */
void statistics_add(Statistics *s, const char *key, const char *name, int n, const float *v);
void statistics_sort(Statistics *s);
/* Notes that a node, by its first result's name, stays in floats. */
void statistics_keep(Statistics *s, const char *name);
bool statistics_keeps(const Statistics *s, const char *name);
/* Notes that a node's scales are found at run time, where the recipe leaves that open. */
void statistics_loosen(Statistics *s, const char *name);
bool statistics_loosens(const Statistics *s, const char *name);
void statistics_set_library(Statistics *s, const char *name);
/* Notes that a search has kept to the recipe's budget. */
void statistics_set_budget(Statistics *s, const Recipe *r);
bool statistics_has_budget(const Statistics *s);
/* Keeps the products of a value, by its nth window, where they are, and finds them again; NULL:
 * they are not there.  No file holds them. */
void statistics_keep_products(Statistics *s, const char *name, int nth, const Products *p);
bool statistics_has_products(const Statistics *s);
double *statistics_products(const Statistics *s, const char *name, int nth, const Products *p);
const float *statistics_get(const Statistics *s, const char *key, const char *name, int n);
/* The same in doubles that a file keeps to the last bit; such keys begin with "part.". */
double *statistics_add_exact(Statistics *s, const char *key, const char *name, int n); /* zeroed */
const double *statistics_get_exact(const Statistics *s, const char *key, const char *name, int n);
/* Appends all records but products. */
void statistics_copy(Statistics *to, const Statistics *from);
uint64_t statistics_of(const Statistics *s); /* the model */

/* -- weights.c --------------------------------------------------------------------------------- */

/* Weights [outer, n, inner] as integers; scale i belongs to all that have i in the middle. */
typedef struct Ints {
    int64_t outer, n, inner;
    int lo, hi;
    int threads; /* that look for scales and round, which changes no result; 0: one */
    int8_t *q;
    float *scale;
} Ints;

Ints ints_new(const QuantFormat *f, const Value *w, int axis, Arena *a);
/* h, an importance per weight, may be NULL: all alike. */
void ints_set_scales(Ints *k, const QuantFormat *f, const float *w, const float *h);
void ints_fit_scales(Ints *k, const QuantFormat *f, const float *w, const float *h);
void ints_shrink_scales(Ints *k, const QuantFormat *f, const float *w);
void ints_round(Ints *k, const float *w);
int ints_nearest(const Ints *k, double v); /* v in steps */
float scale_kept(double scale, const QuantFormat *f); /* as runtimes keep it */

/* Where a weight's element stands: the result it counts for and the operand's channel. */
typedef struct Geometry {
    int64_t results, row, taps, results_of_group, channels_of_group;
    bool by_column; /* results lie along the last axis */
} Geometry;

/* False: results do not lie in rows, or the weight has no elements or open sizes. */
bool geometry_of(const Node *n, Geometry *g);
int64_t result_at(const Geometry *g, int64_t element);
int64_t channel_at(const Geometry *g, int64_t element);

/* -- rescale.c --------------------------------------------------------------------------------- */

void rescale_all(Annotation *a);

/* -- gptq.c ------------------------------------------------------------------------------------ */

/* State that all readers of one operand share. */
typedef struct Gptq {
    const Products *of;
    struct GptqBlock *block;
} Gptq;

Gptq gptq_of(const Products *p, int bits, Arena *a); /* of weights; p->gram is there */
/* Rounds the weights of a node, whose rows lie as `rows` says. */
void gptq_round(Ints *k, const float *w, const Geometry *rows, const Gptq *g, Arena *tmp);

/* -- convert.c --------------------------------------------------------------------------------- */

bool convert(const Annotation *a, Arena *tmp, Diag *d);

/* -- checkpoint.c ------------------------------------------------------------------------------ */

/* Which run over the samples: what is seen in it, in the order of runs. */
typedef enum Part { PART_BEFORE, PART_BEHIND, PART_RANGES, PART_AGAIN, N_PARTS } Part;

/* How many samples the checkpoint has seen of that run, whose points and moments are then as they
 * were; 0: none. */
int checkpoint_take(const Annotation *a, const QuantJob *job, Part part);
/* Returns whether the checkpoint is of a run behind that one. */
bool checkpoint_is_past(const QuantJob *job, Part part);
bool checkpoint_keep(const Annotation *a, const QuantJob *job, Part part, int done, Diag *d);

/* -- observe.c ------------------------------------------------------------------------------- */

/* Keep the state of an observer of one channel as numbers, of which there are observer_size(), and
 * take it back.  Numbers of a file may be anything: false says that no observer can hold such. */
int observer_size(const Observer *o);
void observer_keep(const Observer *o, double *v);
bool observer_take(Observer *o, const double *v);

double log_of(double x); /* natural; x is positive and normal; the same bits on any machine */

/* Who will compute n: the first backend that takes it; NULL: the kernels.  annotate.c */
const Backend *taker_of(const Node *n, const Uses *u);

#endif
