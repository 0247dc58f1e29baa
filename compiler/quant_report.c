/* quant_report.c -- writes what quantization costs, layer by layer, as a page and as JSON.
 *
 * The page is a single file without scripts, which loads no other file.  It has a table of the
 * layers, in the order of their damage.  Each layer has a histogram of its float result, drawn as
 * SVG, in which the range that the integers cover is shaded.
 */
#include "compiler/compiler.h"
#include "compiler/quantize.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BAR_WIDTH = 6, BAR_HEIGHT = 36 };

static double clipped_of(const LayerReport *l)
{
    return l->error.n ? (double)l->n_clipped / (double)l->error.n : 0;
}

static const LayerReport **by_rank(const QuantReport *r, Arena *a)
{
    const LayerReport **order = NEW(a, const LayerReport *, r->n_layers + 1);
    for (int i = 0; i < r->n_layers; i++)
        order[r->layer[i].rank - 1] = &r->layer[i];
    return order;
}

/* -- the page --------------------------------------------------------------------------------- */

static const char *sqnr_text(const Difference *d, Arena *a)
{
    double v = difference_sqnr(d);
    if (!d->n)
        return "\xe2\x80\x93";
    return v > 1e6 ? "exact" : arena_printf(a, "%.1f dB", v);
}

static const char *cosine_text(const Difference *d, Arena *a)
{
    return d->n ? arena_printf(a, "%.6f", difference_cosine(d)) : "\xe2\x80\x93";
}

/* Returns the x coordinate of v in the histogram. */
static double x_of(const LayerReport *l, double v)
{
    double width = (double)l->seen_hi - (double)l->seen_lo;
    double x = width > 0 ? (v - (double)l->seen_lo) / width : v >= (double)l->seen_hi;
    return (x < 0 ? 0 : x > 1 ? 1 : x) * (double)REPORT_BARS * (double)BAR_WIDTH;
}

/* Draws a histogram.  The heights are square roots of counts, so that rare values are visible. */
static void put_histogram(const LayerReport *l, FILE *f)
{
    const int width = REPORT_BARS * BAR_WIDTH;
    uint64_t most = 1;
    for (int i = 0; i < REPORT_BARS; i++)
        most = l->bar[i] > most ? l->bar[i] : most;
    fprintf(f, "<svg width=\"%d\" height=\"%d\" role=\"img\"><title>%.6g to %.6g</title>", width,
            BAR_HEIGHT, (double)l->seen_lo, (double)l->seen_hi);
    if (l->has_range)
        fprintf(f, "<rect class=\"kept\" x=\"%.1f\" width=\"%.1f\" height=\"%d\"/>",
                x_of(l, (double)l->lo), x_of(l, (double)l->hi) - x_of(l, (double)l->lo),
                BAR_HEIGHT);
    for (int i = 0; i < REPORT_BARS; i++) {
        double h = (double)BAR_HEIGHT * sqrt((double)l->bar[i] / (double)most);
        if (l->bar[i])
            fprintf(f, "<rect class=\"bar\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>",
                    i * BAR_WIDTH, (double)BAR_HEIGHT - h, BAR_WIDTH - 1, h);
    }
    fputs("</svg>", f);
}

static void put_name(const LayerReport *l, FILE *f)
{
    fputs("<td><b>", f);
    html_put(f, l->loc.node);
    fputs("</b><br><span>", f);
    html_put(f, l->loc.op);
    fputs("<br>", f);
    html_put(f, l->loc.module);
    fputs(l->loc.module && l->loc.source ? ", " : "", f);
    html_put(f, l->loc.source);
    fputs("</span></td><td>", f);
    html_put(f, l->kept);
    fputs("</td>", f);
}

static void put_layer(const LayerReport *l, double most, Arena *a, FILE *f)
{
    fprintf(f, "<tr><td class=\"n\">%d</td>", l->rank);
    put_name(l, f);
    fprintf(f, "<td><div class=\"damage\" style=\"width:%.0fpx\"></div>%.3g</td>",
            most > 0 ? 80 * l->damage / most : 0, l->damage);
    fprintf(f, "<td class=\"n\">%s</td><td class=\"n\">%s</td><td>", sqnr_text(&l->error, a),
            cosine_text(&l->error, a));
    if (l->error.n)
        put_histogram(l, f);
    fputs("</td><td>", f);
    if (l->error.n)
        fprintf(f, "%.4g to %.4g", (double)l->seen_lo, (double)l->seen_hi);
    if (l->has_range)
        fprintf(f, "<br><span>kept %.4g to %.4g</span>", (double)l->lo, (double)l->hi);
    fprintf(f, "</td><td class=\"n\">%s</td>",
            l->has_range ? arena_printf(a, "%.3g %%", 100 * clipped_of(l)) : "");
    fprintf(f, "<td class=\"n\">%s<br><span>from %s</span></td></tr>\n",
            in_units(a, (double)l->bytes_after), in_units(a, (double)l->bytes_before));
}

static void put_head(const QuantReport *r, Arena *a, FILE *f)
{
    fputs("<p>recipe ", f);
    html_put(f, r->recipe);
    if (r->library) {
        fputs(", ranges measured with ", f);
        html_put(f, r->library);
    }
    fprintf(f,
            "</p>\n<p>%s of constants, from %s. Outputs over %d sample%s: SQNR %s, cosine "
            "%s.</p>\n",
            in_units(a, (double)r->bytes_after), in_units(a, (double)r->bytes_before), r->n_samples,
            r->n_samples == 1 ? "" : "s", sqnr_text(&r->outputs, a), cosine_text(&r->outputs, a));
}

static void put_table_head(FILE *f)
{
    fputs("<table><tr><th></th><th>layer</th><th>kept as</th><th>damage</th>"
          "<th>SQNR</th><th>cosine</th><th>values</th><th>range</th><th>clipped</th>"
          "<th>constants</th></tr>\n", f);
}

/* Shows the layers with the most damage; the others are folded. */
void quant_report_body(const QuantReport *r, Arena *a, FILE *f)
{
    enum { SHOWN = 100 };
    const LayerReport **order = by_rank(r, a);
    put_head(r, a, f);
    fputs(
        "<p>SQNR and cosine compare a layer's result with what it is in floats, and hold what all "
        "layers before it did; damage is the noise it adds itself, in parts of its signal. Bars "
        "show the result in floats (heights are square roots of counts), shaded what the integers "
        "cover.</p>\n",
        f);
    put_table_head(f);
    for (int i = 0; i < r->n_layers; i++) {
        if (i == SHOWN) {
            fprintf(f, "</table>\n<details><summary>%d more</summary>\n", r->n_layers - SHOWN);
            put_table_head(f);
        }
        put_layer(order[i], order[0]->damage, a, f);
    }
    fprintf(f, "</table>\n%s", r->n_layers > SHOWN ? "</details>\n" : "");
}

void quant_report_html(const QuantReport *r, Arena *a, FILE *f)
{
    page_head(f, r->model, "quantized");
    quant_report_body(r, a, f);
    fputs("</body></html>\n", f);
}

/* -- JSON ------------------------------------------------------------------------------------- */

static void put_number(FILE *f, const char *key, double v)
{
    if (isfinite(v))
        fprintf(f, ", \"%s\": %.9g", key, v);
    else
        fprintf(f, ", \"%s\": null", key);
}

static void put_text(FILE *f, const char *key, const char *text, Arena *a)
{
    fprintf(f, ", \"%s\": %s", key, text ? json_text(a, text) : "null");
}

static void put_difference(FILE *f, const Difference *d)
{
    put_number(f, "sqnr_db", d->n ? difference_sqnr(d) : HUGE_VAL);
    put_number(f, "cosine", d->n ? difference_cosine(d) : HUGE_VAL);
    put_number(f, "max_abs_error", d->n ? d->most : HUGE_VAL);
}

static void put_values(FILE *f, const LayerReport *l)
{
    if (l->has_range)
        fprintf(f, ", \"range\": [%.9g, %.9g], \"clipped\": %.9g", (double)l->lo, (double)l->hi,
                clipped_of(l));
    if (!l->error.n)
        return;
    fprintf(f, ", \"seen\": [%.9g, %.9g], \"bars\": [", (double)l->seen_lo, (double)l->seen_hi);
    for (int i = 0; i < REPORT_BARS; i++)
        fprintf(f, "%s%" PRIu64, comma(i), l->bar[i]);
    fputc(']', f);
}

void quant_report_json(const QuantReport *r, Arena *a, FILE *f)
{
    fputs("{\"schema\": 1", f);
    put_text(f, "model", r->model, a);
    put_text(f, "recipe", r->recipe, a);
    if (r->library)
        put_text(f, "fast_calibrate", r->library, a);
    fprintf(f, ", \"samples\": %d, \"bytes_before\": %" PRId64 ", \"bytes_after\": %" PRId64,
            r->n_samples, r->bytes_before, r->bytes_after);
    put_difference(f, &r->outputs);
    for (int i = 0; i < r->n_outputs; i++) {
        fprintf(f, "%s{\"output\": %d", i ? ", " : ", \"outputs\": [", i);
        put_difference(f, &r->output[i]);
        fputs(i + 1 < r->n_outputs ? "}" : "}]", f);
    }
    fputs(", \"layers\": [", f);
    for (int i = 0; i < r->n_layers; i++) {
        const LayerReport *l = &r->layer[i];
        fprintf(f, "%s{\"rank\": %d", comma(i), l->rank);
        put_text(f, "node", l->loc.node, a);
        put_text(f, "op", l->loc.op, a);
        put_text(f, "module", l->loc.module, a);
        put_text(f, "source", l->loc.source, a);
        put_text(f, "kept", l->kept, a);
        put_number(f, "damage", l->damage);
        put_difference(f, &l->error);
        put_values(f, l);
        fprintf(f, ", \"bytes_before\": %" PRId64 ", \"bytes_after\": %" PRId64 "}",
                l->bytes_before, l->bytes_after);
    }
    fputs("]}\n", f);
}

bool quant_report_add(const Options *o, const QuantReport *r, OutBatch *out, Arena *a, Diag *d)
{
    Text t;
    FILE *f = text_open(&t);
    if (f && ends_in(o->report, ".json"))
        quant_report_json(r, a, f);
    else if (f)
        quant_report_html(r, a, f);
    return output_text(o, out, &t, o->report, d);
}
