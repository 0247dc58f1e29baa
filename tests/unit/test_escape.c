/* test_escape.c -- tests how text is escaped for terminals, HTML, JSON, C and the textual IR. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/import/internal.h"
#include "emit/c_emit.h"
#include "ir/escape.h"

static const struct {
    const char *text, *as[6];
} row[] = {
    {"a b.c", {"a b.c", "a b.c", "a b.c", "a b.c", "a b.c", "a b.c"}},
    {"\033[2J\r\a", {"\\x1b[2J\\x0d\\x07", "\\x1b[2J\\x0d\\x07", "\\u001b[2J\\u000d\\u0007",
                     "\\x1b[2J\\x0d\\x07", "\\033[2J\\015\\007", "_[2J__"}},
    {"1\n2\t\x7f", {"1\\x0a2\\x09\\x7f", "1\\x0a2\\x09\\x7f", "1\\u000a2\\u0009\\u007f",
                    "1\\x0a2\\x09\\x7f", "1\\0122\\011\\177", "1_2__"}},
    /* C1 as UTF-8 and as a byte */
    {"\xc2\x9b" "2J", {"\\u009b2J", "\\u009b2J", "\\u009b2J", "\\xc2\\x9b2J", "\\302\\2332J", "__2J"}},
    {"\x9b" "2J", {"\\x9b2J", "\\x9b2J", "\\ufffd2J", "\\x9b2J", "\\2332J", "_2J"}},
    /* U+202E, U+2066, U+200F, U+061C */
    {"\xe2\x80\xae" "x", {"\\u202ex", "\\u202ex", "\\u202ex", "\\xe2\\x80\\xaex",
                          "\\342\\200\\256x", "___x"}},
    {"\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c",
     {"\\u2066\\u200f\\u061c", "\\u2066\\u200f\\u061c", "\\u2066\\u200f\\u061c",
      "\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c", "\\342\\201\\246\\342\\200\\217\\330\\234",
      "________"}},
    /* overlong, surrogate, beyond U+10FFFF, cut off */
    {"\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82",
     {"\\xc0\\xaf|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xe2\\x82",
      "\\xc0\\xaf|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xe2\\x82",
      "\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd",
      "\\xc0\\xaf|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xe2\\x82",
      "\\300\\257|\\355\\240\\200|\\364\\220\\200\\200|\\342\\202", "__|___|____|__"}},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
     {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
      "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
      "\\303\\251\\342\\202\\254\\360\\237\\230\\200", "_________"}},
    {"<&>\"'\\?", {"<&>\"'\\?", "&#60;&#38;&#62;&#34;&#39;\\?", "<&>\\\"'\\\\?", "<&>\\\"'\\\\?",
                   "<&>\\042'\\134\\077", "<&>\"'__"}},
    {"*/ /* */*", {"*/ /* */*", "*/ /* */*", "*/ /* */*", "*/ /* */*", "*/ /* */*", "* / / * * / *"}},
};

Test(escape, each_kind_has_its_way)
{
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (EscapeKind k = ESCAPE_TERMINAL; k <= ESCAPE_COMMENT; k++) {
            char *text;
            size_t n;
            FILE *f = open_memstream(&text, &n);
            escape_put(f, k, row[i].text, strlen(row[i].text));
            fclose(f);
            cr_expect_str_eq(text, row[i].as[k], "row %zu, kind %d: %s", i, (int)k, text);
            cr_expect_str_eq(escape(a, k, row[i].text), row[i].as[k], "row %zu, kind %d", i, (int)k);
            free(text);
        }
    cr_expect_eq(escape(a, ESCAPE_JSON, row[0].text), row[0].text);
    arena_free(a);
}

/* The line's end is the format's, any other is an argument's. */
Test(escape, arguments_cannot_end_a_line)
{
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    say(f, "%s: ", "a\n");
    say(f, "%s\n\n", "b\n");
    say(f, "%s", "");
    say(f, "\n");
    fclose(f);
    cr_expect_str_eq(text, "a\\x0a: b\\x0a\n\n\n");
    free(text);
}

Test(escape, messages_are_escaped_where_they_are_printed)
{
    char *text;
    size_t n;
    Diag d = {.out = open_memstream(&text, &n)};
    diag_error(&d, (Loc){"m\033.pt2", 0, 0, "n\r", "o\n", "b\xc2\x9b", "\xe2\x80\xae.py"}, "w%s",
               "\a\n");
    diag_note(&d, "it has '%s'", "\x1b]0;title\a");
    fclose(d.out);
    cr_expect_str_eq(text, "m\\x1b.pt2: error: node 'n\\x0d' (o\\x0a): w\\x07\\x0a\n"
                           "  note: module b\\u009b, \\u202e.py\n"
                           "  note: it has '\\x1b]0;title\\x07'\n");
    free(text);
}

/* JSON reads back as it was, but for bytes that are no UTF-8. */
Test(escape, json_reads_back)
{
    Arena *a = arena_new();
    Diag d = {0};
    JsonDoc doc;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *s = row[i].text;
        s = arena_printf(a, "{\"s\": \"%s\"}", escape(a, ESCAPE_JSON, s));
        cr_assert(json_parse(a, "t", (const uint8_t *)s, strlen(s), &d, &doc), "row %zu", i);
        if (is_utf8(row[i].text, strlen(row[i].text)))
            cr_expect_str_eq(json_string(json_get(doc.root, "s")), row[i].text, "row %zu", i);
    }
    arena_free(a);
}

Test(escape, lines_of_code_are_not_broken_within_a_string)
{
    Arena *a = arena_new();
    Text t = {.a = a};
    put_wrapped(&t, "        stop(\"a text that is long, and goes on, as \\\" texts do, one, two, "
                    "three, four, five, six\", argument_one);\n");
    cr_expect_str_eq(t.s, "        stop(\"a text that is long, and goes on, as \\\" texts do, one, "
                          "two, three, four, five, six\",\n            argument_one);\n");
    arena_free(a);
}
