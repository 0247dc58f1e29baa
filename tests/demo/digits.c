/* digits.c -- splits and shows the test images of the demo, and scores the answers.
 *
 *     digits split IMAGES.npy FOLDER     FOLDER/0.npy, 1.npy ...: batches of one image
 *     digits score LABELS.npy FOLDER     how often the largest value stands at the label, in
 *                                        FOLDER/output_0.npy (all images) or FOLDER/K/output_0.npy
 *     digits show  IMAGES.npy K          the K-th image, 8 x 8, in characters
 *
 * It reads .npy files of version 1 in C order: float32 images and answers, int64 labels.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 8, MAX_HEADER = 65535 };

typedef struct Array {
    int rank;
    long dim[MAX_RANK];
    long n; /* elements */
    unsigned char *data;
} Array;

static void die(const char *file, const char *what)
{
    fprintf(stderr, "digits: %s: %s\n", file, what);
    exit(1);
}

/* The sizes after "'shape': (", which may be none. */
static void parse_shape(const char *file, const char *header, Array *a)
{
    const char *s = strstr(header, "'shape': (");
    if (!s || strstr(header, "'fortran_order': True"))
        die(file, "not a C-ordered array");
    a->n = 1;
    for (s += strlen("'shape': ("); *s != ')' && a->rank < MAX_RANK; s += strspn(s, ", ")) {
        char *end;
        long d = strtol(s, &end, 10);
        if (end == s || d < 0 || d > 1000000 || (a->n *= d) > 100000000)
            die(file, "a shape out of range");
        a->dim[a->rank++] = d;
        s = end;
    }
}

static Array load(const char *file, const char *descr, size_t item)
{
    Array a = {0};
    unsigned char head[10];
    static const char magic[] = "\x93NUMPY\x01";
    FILE *f = fopen(file, "rb");
    if (!f)
        die(file, "cannot be opened");
    if (fread(head, 1, 10, f) != 10 || memcmp(head, magic, 7) != 0)
        die(file, "no .npy file of version 1");
    size_t len = (size_t)head[8] | (size_t)head[9] << 8;
    char *header = calloc(1, MAX_HEADER + 1);
    if (!header || fread(header, 1, len, f) != len || !strstr(header, descr))
        die(file, "another element type than expected");
    parse_shape(file, header, &a);
    free(header);
    a.data = malloc((size_t)a.n * item + 1);
    if (!a.data || fread(a.data, item, (size_t)a.n, f) != (size_t)a.n)
        die(file, "shorter than its header says");
    fclose(f);
    return a;
}

static Array load_floats(const char *file)
{
    return load(file, "'<f4'", sizeof(float));
}

static float float_at(const Array *a, long i)
{
    float x;
    memcpy(&x, a->data + (size_t)i * sizeof x, sizeof x);
    return x;
}

/* -- split ------------------------------------------------------------------------------- */

static void save_one(const char *file, const Array *a, long k)
{
    char text[118]; /* magic, length and header come to 128 bytes, as numpy aligns them */
    int n = snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (1");
    for (int i = 1; i < a->rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %ld", a->dim[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, a->rank == 1 ? ",), }" : "), }");
    memset(text + n, ' ', sizeof text - (size_t)n);
    text[sizeof text - 1] = '\n';
    FILE *f = fopen(file, "wb");
    if (!f)
        die(file, "cannot be written");
    size_t size = (size_t)(a->n / a->dim[0]) * sizeof(float);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fwrite(text, 1, sizeof text, f);
    fwrite(a->data + (size_t)k * size, 1, size, f);
    if (fclose(f) != 0)
        die(file, "cannot be written");
}

static int split(const char *images, const char *folder)
{
    Array a = load_floats(images);
    if (a.rank < 1 || a.rank > 4)
        die(images, "not one to four dimensions");
    for (long k = 0; k < a.dim[0]; k++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%ld.npy", folder, k);
        save_one(file, &a, k);
    }
    printf("%ld\n", a.dim[0]);
    free(a.data);
    return 0;
}

/* -- score ------------------------------------------------------------------------------- */

static long largest(const Array *a, long row, long width)
{
    long best = 0;
    for (long i = 1; i < width; i++)
        if (float_at(a, row * width + i) > float_at(a, row * width + best))
            best = i;
    return best;
}

static int score(const char *labels, const char *folder)
{
    char file[4096];
    Array y = load(labels, "'<i8'", sizeof(int64_t));
    long right = 0, seen = 0;
    for (int k = -1; seen < y.n; k++) { /* -1: the one file of all images, if it is there */
        snprintf(file, sizeof file, k < 0 ? "%s/output_0.npy" : "%s/%d/output_0.npy", folder, k);
        FILE *there = fopen(file, "rb");
        if (!there && k < 0)
            continue;
        if (!there)
            die(file, "no answers for some images");
        fclose(there);
        Array a = load_floats(file);
        if (a.rank != 2 || a.dim[1] < 1 || a.dim[0] < 1 || a.dim[0] > y.n - seen)
            die(file, "not one row of values per image");
        for (long row = 0; row < a.dim[0]; row++, seen++) {
            int64_t label;
            memcpy(&label, y.data + (size_t)seen * sizeof label, sizeof label);
            right += largest(&a, row, a.dim[1]) == label;
        }
        free(a.data);
    }
    printf("%ld of %ld right, %.4f\n", right, y.n, (double)right / (double)y.n);
    free(y.data);
    return 0;
}

/* -- show -------------------------------------------------------------------------------- */

static int show(const char *images, const char *number)
{
    static const char shade[] = " .:-=+*#%@";
    Array a = load_floats(images);
    long k = strtol(number, NULL, 10);
    if (k < 0 || k >= a.dim[0] || a.n != 64 * a.dim[0])
        die(images, "no such image of 8 x 8");
    for (long i = 0; i < 64; i++) {
        float x = float_at(&a, 64 * k + i);
        char c = shade[x <= 0 ? 0 : x >= 1 ? 9 : (int)(x * 9.0f + 0.5f)];
        printf("%c%c%s", c, c, i % 8 == 7 ? "\n" : "");
    }
    free(a.data);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "split") == 0)
        return split(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "score") == 0)
        return score(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "show") == 0)
        return show(argv[2], argv[3]);
    fputs("usage: digits split IMAGES.npy FOLDER | score LABELS.npy FOLDER | show IMAGES.npy K\n",
          stderr);
    return 2;
}
