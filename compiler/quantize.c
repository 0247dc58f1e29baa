/* quantize.c -- `etc quantize`, and what --recipe, --calibrate and --statistics ask of a build. */
#define _POSIX_C_SOURCE 200809L
#include "compiler/compiler.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- stopgap: folders of K.npy, or of folders with input_I.npy, until data.c is here ---------------- */

typedef struct Data {
    const Options *o;
    const Graph *g;
    const char **path;
    int n;
} Data;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool data_open(Data *data, const char *dir, Arena *a, Diag *d)
{
    DIR *f = opendir(dir);
    if (!f)
        return diag_io(d, (Loc){.file = dir}, "cannot be opened");
    for (struct dirent *e; (e = readdir(f));)
        if (e->d_name[0] != '.')
            PUSH(a, data->path, data->n, arena_printf(a, "%s/%s", dir, e->d_name));
    closedir(f);
    qsort(data->path, (size_t)data->n, sizeof *data->path, by_name);
    return true;
}

static bool data_read(void *ctx, int i, Arena *a, EtcTensor **in, int64_t *symbol,
                      const char **name, Diag *d)
{
    const Data *data = ctx;
    const char *path = data->path[i], *slash = strrchr(path, '/');
    size_t n = strlen(path);
    bool is_file = n > 4 && !strcmp(path + n - 4, ".npy");
    *name = slash ? slash + 1 : path;
    for (int k = 0; k < data->g->n_in; k++) {
        const char *file = is_file ? path : arena_printf(a, "%s/input_%d.npy", path, k);
        if (!model_input(data->o, file, data->g, k, a, &in[k], d))
            return false;
    }
    inputs_read_symbols(data->g, in, symbol);
    return true;
}

static QuantRule *preset(const char *s, Arena *a)
{
    const QuantFormat i8 = {.dtype = ETC_I8, .bits = 8, .granularity = PER_CHANNEL, .symmetric = true};
    const QuantFormat x = {.dtype = ETC_I8, .bits = 8};
    QuantFormat i4 = {.dtype = ETC_I8, .bits = 4, .granularity = PER_GROUP, .group = 32, .symmetric = true};
    QuantFormat token = x;
    token.granularity = PER_TOKEN;
    token.dynamic = true;
    QuantRule *c = NEW(a, QuantRule, 1);
    *c = (QuantRule){.activation = {.dtype = ETC_F32}, .weight = {.dtype = ETC_F32}, .has_weight = true, .has_activation = true, .has_algorithms = true};
    if (strstr(s, "wmse"))
        i4.observer = OBS_MSE;
    c->weight = i8;
    if (!strncmp(s, "int8-dynamic", 12))
        c->activation = token;
    else if (!strncmp(s, "int8-weight", 11))
        ;
    else if (!strncmp(s, "int8", 4))
        c->activation = x;
    else if (!strncmp(s, "int4-group32", 12))
        c->weight = i4;
    else if (!strncmp(s, "8da4w", 5))
        c->activation = token, c->weight = i4;
    else if (!strncmp(s, "fp16", 4))
        c->weight.dtype = ETC_F16;
    c->activation.observer = strstr(s, "+mse") ? OBS_MSE : strstr(s, "+kl") ? OBS_KL : OBS_MINMAX;
    if (strstr(s, "+pct"))
        c->activation.observer = OBS_PERCENTILE, c->activation.percentile = 99.99;
    c->weight.observer = strstr(s, "wmse") ? OBS_MSE : OBS_MINMAX;
    static const char *const alg[] = {"+bias", "+cle", "+smooth", "+awq", "+scale", "+gptq", "+hqq"};
    for (int i = 0; i < 7; i++)
        c->algorithms |= strstr(s, alg[i]) ? 1u << i : 0;
    return c;
}

/* -- progress ---------------------------------------------------------------------------------------- */

typedef struct Progress {
    double start, shown;
} Progress;

static void show(void *ctx, int done, int n)
{
    Progress *p = ctx;
    double now = seconds_now();
    if (done < n && now - p->shown < 0.2)
        return;
    p->shown = now;
    fprintf(stderr, "\rcalibrating: sample %d of %d, %.0f s left ", done, n,
            (now - p->start) / done * (n - done));
    if (done == n)
        fputs("\r\033[K", stderr);
}

/* -- what is asked for --------------------------------------------------------------------------------- */

static const Statistics *read_statistics(const char *path, Arena *a, Diag *d)
{
    const uint8_t *data;
    size_t n;
    return map_file(path, &data, &n, d) ? statistics_read(a, path, (const char *)data, n, d) : NULL;
}

bool quant_prepare(const Options *o, Program *p, Arena *a, Diag *d)
{
    if (!o->recipe)
        return true;
    QuantJob *job = NEW(a, QuantJob, 1);
    Recipe *r = NEW(a, Recipe, 1);
    r->file = o->recipe;
    r->rule = preset(o->recipe, a);
    r->n_rules = 1;
    *job = (QuantJob){.recipe = r, .only_observe = o->command == CMD_QUANTIZE};
    if (o->command != CMD_QUANTIZE && o->statistics &&
        !(job->statistics = read_statistics(o->statistics, a, d)))
        return false;
    if (o->calibrate) {
        Data *data = NEW(a, Data, 1);
        Samples *s = NEW(a, Samples, 1);
        *data = (Data){.o = o, .g = p->method[0]};
        if (!data_open(data, o->calibrate, a, d))
            return false;
        *s = (Samples){.n = data->n, .read = data_read, .ctx = data};
        job->samples = s;
    }
    if (!o->quiet && isatty(fileno(stderr))) {
        Progress *shown = NEW(a, Progress, 1);
        shown->start = seconds_now();
        job->progress = show;
        job->ctx = shown;
    }
    p->quant = job;
    return true;
}

/* -- the command ------------------------------------------------------------------------------------------ */

void command_quantize(const Options *o, Arena *a, Diag *d)
{
    OutBatch out = {.arena = a};
    char *text = NULL;
    size_t n = 0;
    Program *p = model_observe(o, a, d);
    FILE *f = p ? open_memstream(&text, &n) : NULL;
    if (f)
        statistics_write(p->quant->seen, f);
    if (p && (!f || fclose(f)))
        diag_io(d, (Loc){.file = o->statistics}, "no memory to write it");
    OutPiece piece = {text, (int64_t)n, 0};
    OutFile file = {&piece, 1};
    bool ok = p && !diag_errors(d) && out_stage(&out, &file, o->statistics, d) &&
              finish_files(&out, d);
    if (ok && !o->quiet)
        fprintf(stderr, "%s: ranges of %d values over %d samples\n", o->statistics,
                statistics_count(p->quant->seen), p->quant->samples->n);
    if (!ok)
        out_discard(&out);
    free(text);
}
