/* quantize.h -- quantization with samples, and what it costs. */
#ifndef ETC_COMPILER_QUANTIZE_H
#define ETC_COMPILER_QUANTIZE_H

#include "compiler/compiler.h"

/* -- quant_report.c ------------------------------------------------------------------------ */

/* Writes the report on the cost of quantization: as an HTML page in one file, or as JSON, whose
 * schema is in docs/quantization.md. */
void quant_report_body(const QuantReport *r, Arena *a, FILE *f); /* only the body of the page */
void quant_report_html(const QuantReport *r, Arena *a, FILE *f);
void quant_report_json(const QuantReport *r, Arena *a, FILE *f);
/* Adds the file of --report: the page, or JSON if the name ends in ".json". */
MUST_USE bool quant_report_add(const Options *o, const QuantReport *r, OutBatch *out, Arena *a,
                               Diag *d);

/* -- quantize.c ----------------------------------------------------------------------------- */

/* Sets the session's `quant` from --recipe and the flags beside it.  The statistics are `known`, or
 * come from samples if it is NULL. */
MUST_USE bool quant_prepare(const Options *o, Program *p, const Statistics *known, Arena *a,
                            Diag *d);
/* If the recipe has a budget and there are samples: finds the layers that must stay float, as `etc
 * quantize` does, and tells the job to keep them float. */
MUST_USE bool quant_meet_budget(const Options *o, Program *p, Arena *a, Diag *d);
/* Returns the samples of --calibrate, for as many threads as --threads says. */
Samples quant_samples(const Options *o, Data *data, const char *what, Arena *a);
/* Measures the cost of quantization for p, which was compiled with samples, by running them
 * again. */
MUST_USE bool quant_remeasure(const Options *o, const Program *p, QuantReport *r, Arena *a,
                              Diag *d);
void quant_finish(const Program *p); /* closes the samples; call it after the passes */

/* Asks that the observations of the samples are stored beside the statistics. */
void quant_keep(const Options *o, const Program *p, Arena *a);

/* Compares p, which was observed, with its quantized form. */
MUST_USE bool quant_measure(const Options *o, const Program *p, QuantReport *r, Arena *a, Diag *d);

/* -- checkpoint.c --------------------------------------------------------------------------- */

/* Opens the checkpoint that `etc quantize` writes beside its output from time to time and on
 * SIGINT and SIGTERM, and reads the one of an earlier run.  NULL without a report: it cannot be
 * written. */
Checkpoint *checkpoint_open(const Options *o, uint64_t id, int n_samples, Arena *a);
/* Gives signals their usual effect again.  c may be NULL. */
void checkpoint_close(const Checkpoint *c);
void checkpoint_remove(const Options *o); /* deletes the file, when its work is done */
const char *checkpoint_path(const Options *o, Arena *a); /* FILE.part */

/* Reads the file of --labels, i64[N].  It is in mixed.c. */
MUST_USE bool labels_read(Files *files, const char *path, Arena *a, const int64_t **label,
                          int64_t *n, Diag *d);

/* -- mixed.c ------------------------------------------------------------------------------- */

/* Finds the layers that must stay float to keep the recipe's budget.  *keep is NULL if there are
 * none, or no budget.  p was observed with no layer kept float. */
MUST_USE bool mixed_search(const Options *o, const Program *p, const Statistics **keep, Arena *a,
                           Diag *d);

#endif
