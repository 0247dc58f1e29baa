/* delegate.c -- the runtime's part of echo: reads the words that backend.c wrote, and computes. */
#include "tests/backends/echo/echo.h"
#include <stdlib.h>
#include <string.h>

typedef struct Echo {
    uint32_t *word;
    size_t n;
    float **value; /* of the run: an argument's memory, or one of ours */
    bool *is_ours;
} Echo;

static EtcStatus bad(EtcError *e, const char *what)
{
    e->what = what;
    return ETC_BAD_FILE;
}

static void echo_free(void *state)
{
    Echo *s = state;
    free(s->word);
    free(s->value);
    free(s->is_ours);
    free(s);
}

static EtcStatus echo_init(void *host, const EtcBlob *blob, void **state, EtcError *e)
{
    (void)host;
    if (blob->n_bytes < ECHO_HEADER * 4 || blob->n_bytes % 4)
        return bad(e, "blob is not a list of words");
    Echo *s = calloc(1, sizeof *s);
    s->n = blob->n_bytes / 4;
    s->word = malloc(blob->n_bytes);
    memcpy(s->word, blob->data, blob->n_bytes);
    s->value = calloc(s->word[1] + 1u, sizeof *s->value);
    s->is_ours = calloc(s->word[1] + 1u, sizeof *s->is_ours);
    *state = s;
    if (s->word[0] == ECHO_MAGIC)
        return ETC_OK;
    echo_free(s);
    *state = NULL;
    return bad(e, "blob has another magic");
}

static float *made(Echo *s, uint32_t id, size_t count)
{
    if (!s->value[id]) {
        s->value[id] = malloc(count * sizeof(float) + 1);
        s->is_ours[id] = true;
    }
    return s->value[id];
}

static size_t run_add(Echo *s, const uint32_t *at)
{
    const float *a = s->value[at[ADD_A]], *b = s->value[at[ADD_B]];
    float *y = made(s, at[ADD_Y], at[ADD_COUNT]);
    for (uint32_t i = 0; i < at[ADD_COUNT]; i++)
        y[i] = a[i] + b[i];
    return ADD_WORDS;
}

/* One output: image b, filter o, at row i and column k. */
static double sum_at(const uint32_t *g, const float *x, const float *w, const uint32_t to[4])
{
    const uint32_t *size = g + CONV_SIZE, *kernel = g + CONV_KERNEL;
    const uint32_t in = g[CONV_IN] / g[CONV_GROUPS], out = g[CONV_OUT] / g[CONV_GROUPS];
    double sum = 0;
    for (uint32_t c = 0; c < in; c++)
        for (uint32_t u = 0; u < kernel[0]; u++)
            for (uint32_t v = 0; v < kernel[1]; v++) {
                int64_t row = (int64_t)to[2] * g[CONV_STRIDE] + u * g[CONV_DILATION] - g[CONV_PAD];
                int64_t col = (int64_t)to[3] * g[CONV_STRIDE + 1] + v * g[CONV_DILATION + 1] -
                              g[CONV_PAD + 1];
                if (row < 0 || col < 0 || row >= size[0] || col >= size[1])
                    continue;
                uint32_t channel = to[1] / out * in + c;
                sum += (double)x[((to[0] * g[CONV_IN] + channel) * size[0] + row) * size[1] + col] *
                       (double)w[((to[1] * in + c) * kernel[0] + u) * kernel[1] + v];
            }
    return sum;
}

static size_t run_conv(Echo *s, const uint32_t *g)
{
    const size_t n_weights = (size_t)g[CONV_OUT] * (g[CONV_IN] / g[CONV_GROUPS]) * g[CONV_KERNEL] *
                             g[CONV_KERNEL + 1];
    const float *x = s->value[g[CONV_X]], *w = (const float *)(g + CONV_WORDS);
    size_t at = 0;
    float *y = made(s, g[CONV_Y], (size_t)g[CONV_BATCH] * g[CONV_OUT] * g[CONV_TO] * g[CONV_TO + 1]);
    for (uint32_t b = 0; b < g[CONV_BATCH]; b++)
        for (uint32_t o = 0; o < g[CONV_OUT]; o++)
            for (uint32_t i = 0; i < g[CONV_TO]; i++)
                for (uint32_t k = 0; k < g[CONV_TO + 1]; k++) {
                    double bias = g[CONV_HAS_BIAS] ? (double)w[n_weights + o] : 0;
                    y[at++] = (float)(bias + sum_at(g, x, w, (uint32_t[4]){b, o, i, k}));
                }
    return CONV_WORDS + n_weights + (g[CONV_HAS_BIAS] ? g[CONV_OUT] : 0);
}

static EtcStatus echo_run(void *state, EtcValue *const *arg, int32_t n_args, EtcError *e)
{
    Echo *s = state;
    const uint32_t *h = s->word, *out = h + ECHO_HEADER, *at = out + h[3];
    if ((uint32_t)n_args < h[2] + h[3])
        return bad(e, "call with too few arguments");
    for (uint32_t i = 0; i < h[2]; i++)
        s->value[i] = arg[i]->as.tensor->data;
    for (uint32_t i = 0; i < h[3]; i++)
        s->value[out[i]] = arg[h[2] + i]->as.tensor->data;
    for (uint32_t i = 0; i < h[4]; i++)
        at += 1 + (at[0] == ECHO_CONV ? run_conv(s, at + 1) : run_add(s, at + 1));
    for (uint32_t i = 0; i < h[1]; i++) {
        if (s->is_ours[i])
            free(s->value[i]);
        s->value[i] = NULL;
        s->is_ours[i] = false;
    }
    return ETC_OK;
}

const EtcDelegate echo_delegate = {
    .id = "EchoBackend", .init = echo_init, .run = echo_run, .free = echo_free};
