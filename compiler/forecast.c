/* forecast.c -- `etc bench --target`: what each layer costs on a microcontroller, without one.
 * Instructions and cycles come from the table of emit/c_forecast.c, the bytes from the plan. */
#include "compiler/compiler.h"
#include <inttypes.h>

typedef struct Forecast {
    const Options *o;
    Arena *arena;
    CFiles files;
    double instructions, cycles, macs;
    int64_t flash, ram;
    int stack, n_unknown;
} Forecast;

static void add_up(Forecast *f)
{
    for (int i = 0; i < f->files.n_layers; i++) {
        const CLayer *l = &f->files.layer[i];
        f->n_unknown += l->instructions < 0;
        f->instructions += l->instructions < 0 ? 0 : l->instructions;
        f->cycles += l->cycles < 0 ? 0 : l->cycles;
        f->macs += l->macs;
        f->flash += l->flash;
        f->ram = l->ram > f->ram ? l->ram : f->ram;
        f->stack = l->stack > f->stack ? l->stack : f->stack;
    }
}

static void put_number(double v)
{
    if (v < 0)
        printf("%12s", "-");
    else
        printf("%12.0f", v);
}

static void put_costs(double instructions, double cycles, int64_t flash, int64_t ram, int stack)
{
    put_number(instructions);
    put_number(cycles);
    put_number((double)flash);
    put_number((double)ram);
    put_number(stack ? stack : -1);
}

static void put_report(const Forecast *f)
{
    printf("%12s%12s%12s%12s%12s  %s\n", "instructions", "cycles", "flash", "RAM", "stack", "what");
    for (int i = 0; i < f->files.n_layers; i++) {
        const CLayer *l = &f->files.layer[i];
        put_costs(l->instructions, l->cycles, l->flash, l->ram, l->stack);
        say(stdout, "  %s, %s", l->function, *l->kernel ? l->kernel : "no row in the table");
        if (l->loc.module && *l->loc.module)
            say(stdout, ", %s", l->loc.module);
        if (l->loc.source && *l->loc.source)
            say(stdout, ", %s", l->loc.source);
        putchar('\n');
    }
    put_costs(f->instructions, f->cycles, f->flash, f->ram, f->stack);
    printf("  all");
    if (f->n_unknown)
        printf(" but %d without a forecast", f->n_unknown);
    putchar('\n');
    if (f->files.code)
        printf("%24s%12d  of code, about\n", "", f->files.code);
}

static const char *text_or_null(Arena *a, const char *s)
{
    return s && *s ? json_text(a, s) : "null";
}

static void json_costs(double instructions, double cycles, int64_t flash, int64_t ram, int stack)
{
    if (instructions < 0)
        printf("\"instructions\": null, \"cycles\": null, ");
    else
        printf("\"instructions\": %.0f, \"cycles\": %.0f, ", instructions, cycles);
    printf("\"flash\": %" PRId64 ", \"ram\": %" PRId64 ", ", flash, ram);
    if (stack)
        printf("\"stack\": %d", stack);
    else
        printf("\"stack\": null");
}

static void json_report(const Forecast *f)
{
    Arena *a = f->arena;
    printf("{\"schema\": 1, \"model\": %s, \"target\": %s, \"macs\": %.0f, "
           "\"without_forecast\": %d, ",
           json_text(a, f->o->model), json_text(a, f->o->target), f->macs, f->n_unknown);
    json_costs(f->instructions, f->cycles, f->flash, f->ram, f->stack);
    if (f->files.code)
        printf(", \"code\": %d", f->files.code);
    else
        printf(", \"code\": null");
    printf(", \"layers\": [");
    for (int i = 0; i < f->files.n_layers; i++) {
        const CLayer *l = &f->files.layer[i];
        printf("%s{\"function\": %s, \"kernel\": %s, ", comma(i), json_text(a, l->function),
               text_or_null(a, l->kernel));
        printf("\"op\": %s, \"module\": %s, \"source\": %s, ", json_text(a, l->op),
               text_or_null(a, l->loc.module), text_or_null(a, l->loc.source));
        printf("\"macs\": %.0f, \"steps\": %.0f, \"terms\": %.0f, \"outputs\": %.0f, "
               "\"rows\": %.0f, ",
               l->macs, l->steps, l->terms, l->outputs, l->rows);
        json_costs(l->instructions, l->cycles, l->flash, l->ram, l->stack);
        putchar('}');
    }
    puts("]}");
}

bool command_forecast(const Options *o, Arena *a, Diag *d)
{
    Forecast f = {.o = o, .arena = a};
    const Target *t = c_target(o);
    if (!t || !t->mcu)
        return diag_unsupported(d, (Loc){.file = o->model},
                                "bench: there is no table of instructions for --target %s; without "
                                "--target the model runs here",
                                o->target);
    if (!build_c_layers(o, a, &f.files, d))
        return false;
    add_up(&f);
    if (o->json)
        json_report(&f);
    else
        put_report(&f);
    return true;
}
