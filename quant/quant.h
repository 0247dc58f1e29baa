/* quant.h -- quantization: from a float program at stage core to the same with quantize/dequantize
 * pairs.  A recipe says what is wanted, a backend's spec what can be had; annotate settles what
 * each value gets, observers see the values of sample inputs, convert writes the pairs.
 */
#ifndef ETC_QUANT_H
#define ETC_QUANT_H

#include "ir/backend.h"
#include "ir/ir.h"

/* -- recipe.c: what is wanted ---------------------------------------------------------------- */

typedef enum ObserverKind {
    OBS_MINMAX,
    OBS_MOVING_AVERAGE, /* of each sample's least and largest */
    OBS_PERCENTILE,
    OBS_MSE, /* of a histogram: the range with the least squared error */
    OBS_KL,  /* of a histogram: with the least divergence (Migacz 2017) */
    N_OBSERVERS
} ObserverKind;

typedef enum Algorithm { /* bits */
    ALG_BIAS_CORRECTION = 1 << 0,
    ALG_EQUALIZATION = 1 << 1, /* cross-layer */
    ALG_SMOOTHQUANT = 1 << 2,
    ALG_AWQ = 1 << 3,
    ALG_SCALE_ESTIMATION = 1 << 4,
    ALG_GPTQ = 1 << 5,
    ALG_HQQ = 1 << 6
} Algorithm;

/* How the values of one side of a node are kept.  dtype ETC_F32: as they are; ETC_F16; ETC_I8 with
 * bits 8 or 4. */
typedef enum Granularity { PER_TENSOR, PER_CHANNEL, PER_GROUP, PER_TOKEN } Granularity;

typedef struct QuantFormat {
    EtcDtype dtype;
    int bits;
    Granularity granularity;
    int group; /* elements of PER_GROUP along the reduced axis */
    bool symmetric;
    bool dynamic; /* scales are computed at run time; of activations */
    bool may_be_dynamic; /* where scales known beforehand would be too coarse */
    ObserverKind observer;
    double percentile; /* of OBS_PERCENTILE, in (50, 100] */
} QuantFormat;

/* A rule speaks for the nodes its scope matches: all fields that are set must.  Of several rules
 * that match the last one holds, field by field.
 *
 * In a glob '*' is any run of characters and '?' one of them.  `op` may leave out "aten." and
 * the overload; a module's path also stands for what lies in it; `backend` is who takes the
 * node, of those that the program is given to, or "portable". */
typedef struct QuantRule {
    const char *name, *op, *module, *backend; /* globs of node, operator, module path; NULL: any */
    int line, column; /* of the scope in the recipe's file; 0: of a preset, which may match none */
    bool has_activation, has_weight, has_algorithms;
    QuantFormat activation, weight;
    bool has_with_samples;
    unsigned algorithms;
    unsigned with_samples; /* algorithms besides, where there are samples or statistics of them */
} QuantRule;

typedef enum Metric {
    METRIC_NONE,
    METRIC_TOP1,
    METRIC_COSINE,
    METRIC_SQNR,
    METRIC_MAX_ABS_ERROR
} Metric;
extern const char *const metric_name[]; /* of METRIC_TOP1 and those behind it; then NULL */

typedef struct Recipe {
    const char *file; /* of the recipe, or the preset's name */
    QuantRule *rule;
    int n_rules;
    bool for_latency;    /* --objective latency: only where the cost model shows a gain */
    Metric metric;       /* of --max-drop */
    int output;          /* of which alone it is, counted from 1; 0: of all */
    double max_drop;     /* of METRIC_SQNR: the least that is kept */
    uint64_t id;         /* of its text */
} Recipe;

typedef struct QuantChoice {
    QuantFormat activation, weight;
    unsigned algorithms, with_samples;
} QuantChoice;

/* The settings of a node, from all rules that match it. */
QuantChoice recipe_choice(const Recipe *r, const Node *n, const Backend *backend);

/* Checks that every scope matches a node of p.  Scopes that match none are reported with what comes
 * near; then it returns false. */
MUST_USE bool recipe_check_scopes(const Recipe *r, const Program *p, Diag *d);

/* -- sample inputs: who reads them is the driver's matter ------------------------------------- */

typedef struct Samples {
    int n;
    /* Sample i: in[k] and the sizes that its symbols stand for, in `a`; its name for messages.
     * False: reported. */
    bool (*read)(void *ctx, int i, Arena *a, EtcTensor **in, int64_t *symbol, const char **name,
                 Diag *d);
    void *ctx;
    int threads; /* that evaluate them, which changes no result; each reads in its turn */
    /* Reports progress: samples from `first` on are run, and those before `done` have been; `first`
     * below 0 says that all is over.  May be NULL. */
    void (*progress)(void *ctx, int first, int done, int n);
    void *progress_ctx;
} Samples;

/* -- statistics.c: what observers saw, to be kept in a file ----------------------------------- */

typedef struct Statistics Statistics;

/* The text of a file, which need not be one.  NULL: reported. */
Statistics *statistics_read(Arena *a, const char *file, const char *text, size_t n, Diag *d);
void statistics_write(const Statistics *s, FILE *out);
int statistics_count(const Statistics *s); /* of ranges */

/* The library by which samples were multiplied when these were seen; NULL: none. */
const char *statistics_library(const Statistics *s);

/* Continues hash h with n bytes; the same on any machine of this endianness. */
uint64_t statistics_hash(uint64_t h, const void *data, size_t n);

/* Makes statistics of no model that keep the first results of the named nodes in floats. */
Statistics *statistics_keeping(Arena *a, const char *const *name, int n);

/* The state of a run over samples, from which another run can go on. */
typedef struct Checkpoint {
    uint64_t id;            /* of recipe, samples and whatever else decides what is seen */
    const Statistics *from; /* what an earlier run kept, or NULL */
    int first;              /* out: how many samples that one had seen; 0: it does not fit */
    bool (*is_due)(void *ctx); /* asked before each sample, by one thread at a time */
    bool (*keep)(void *ctx, const Statistics *s, int done, Diag *d); /* false: reported */
    void *ctx;
} Checkpoint;

/* -- quantize.c: the pass --------------------------------------------------------------------- */

/* The quantization job of a session. */
typedef struct QuantJob {
    const Recipe *recipe;
    const Samples *samples; /* of method 0; NULL: none */
    const Statistics *statistics; /* what stands for samples, or NULL */
    const Statistics *keep;       /* what stays in floats; NULL: what `statistics` says does */
    Statistics *seen;             /* of the samples, in the program's arena */
    const Statistics *loose; /* what has scales at run time, after a first look; NULL: nothing */
    Checkpoint *checkpoint;       /* of the samples, or NULL */
    const Blas *blas;             /* which multiplies while samples are seen, or NULL */
    int threads;                  /* that turn weights into integers; 0: one */
    bool only_observe;            /* the program stays as it is */
    bool is_refit; /* statistics are of this graph, which the caller has seen to, with other weights */
    bool is_nested; /* of graphs in nodes, whose values no sample is seen of */
} QuantJob;

bool pass_quantize(Program *p, Arena *tmp, Diag *d);

/* -- observe.c: ranges of values, in constant memory ------------------------------------------ */

/* Statistics of one value over all samples.  Its size does not depend on their number. */
typedef struct Observer Observer;

Observer *observer_new(Arena *a, ObserverKind kind, double percentile, int channels);
/* n elements, channel of element i is i / inner % channels.  False: a NaN or an infinity, whose
 * index is in *bad. */
bool observer_see(Observer *o, const float *x, int64_t n, int64_t inner, int64_t *bad);
/* Clamps the statistics: values beyond lo or hi count as lo or hi from now on; lo <= 0 <= hi. */
void observer_clip(Observer *o, float lo, float hi);
/* The range that integers from quant_min to quant_max should cover; lo <= 0 <= hi.  Both are 0
 * where every value was, or none was seen. */
void observer_range(const Observer *o, int channel, int quant_min, int quant_max, bool symmetric,
                    float *lo, float *hi);
/* How much of what was seen the integers from quant_min to quant_max keep that cover lo to hi, in
 * dB; 0 where nothing but zeros was seen, or the kind keeps no histogram. */
double observer_sqnr(const Observer *o, int channel, int quant_min, int quant_max, bool symmetric,
                     float lo, float hi);
/* How many values lie in each of n equal parts of all that was seen.  False: nothing was, or the
 * kind keeps no histogram. */
bool observer_bars(const Observer *o, int channel, int n, uint64_t *bar, float *lo, float *hi);

/* -- report.c: what quantizing costs, layer by layer ------------------------------------------ */

enum { REPORT_BARS = 24 };

/* Sums over all elements that were compared with what they are in floats. */
typedef struct Difference {
    double signal, noise, square, dot; /* of squares: in floats, of errors, as they are; products */
    double most; /* the largest error; NaN: of one that is none */
    int64_t n;
} Difference;

void difference_add(Difference *d, const float *want, const float *got, int64_t n);
double difference_sqnr(const Difference *d);   /* in dB; infinite where nothing differs, -infinite where a number is none */
double difference_cosine(const Difference *d); /* 1 where both are nothing but zeros */
int64_t largest_of(const float *x, int64_t n); /* where it stands, the first of equals; n > 0 */

typedef struct LayerReport {
    Loc loc;
    const Node *node;   /* of the program before */
    bool is_quantized;  /* its weights or all its operands are integers */
    const char *kept;   /* "int8, weights int4 in groups of 32" */
    bool has_partner;   /* it is one node in both programs; else nothing below is known but bytes */
    Difference error;   /* of its result, and of all that came before it */
    double damage;      /* the noise of its result beyond its operands', in parts of the signal */
    int rank;           /* by damage, from 1 on */
    bool has_range;     /* its result is kept as integers, which cover lo to hi */
    float lo, hi;
    int64_t n_clipped;  /* elements beyond that */
    uint64_t bar[REPORT_BARS]; /* of its result in floats, over seen_lo to seen_hi */
    float seen_lo, seen_hi;
    int64_t bytes_before, bytes_after; /* of what is constant at it */
} LayerReport;

typedef struct QuantReport {
    const char *model, *recipe, *library; /* library: of --fast-calibrate, or NULL; the caller's */
    int n_samples, n_layers;
    LayerReport *layer; /* in the order of the program */
    Difference outputs; /* all of them */
    Difference *output; /* one by one; nothing was compared of what is no float32 */
    int n_outputs;
    int64_t bytes_before, bytes_after; /* of all that is constant; what two layers share, once */
    const int64_t *label;              /* of each row of the first output, or NULL: the caller's */
    int64_t n_labels, n_rows;
    int64_t right[2]; /* rows whose largest element stands at the label: before and after */
} QuantReport;

/* Runs both on the samples: `after` is what pass_quantize made of `before`, both at stage core.
 * What differs is told in `a`.  False: reported. */
MUST_USE bool report_measure(const Graph *before, const Graph *after, const Samples *s, Arena *a,
                             QuantReport *out, Diag *d);

typedef struct LayerDamage {
    int layer; /* its place in the report */
    double damage;
} LayerDamage;

/* The quantized layers, the one that does most damage first.  What clamps or bends a layer's
 * result is part of that layer. */
LayerDamage *report_worst(const QuantReport *r, int *n, Arena *a);

#endif
