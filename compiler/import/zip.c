/* zip.c -- members of an archive of torch.export.save, or of a folder it was unpacked into.
 *
 * The members are those of the central directory, after these checks: it lies exactly between the
 * members and the end record, the names of its entries are safe and unique, and their bytes do not
 * overlap.  So no byte belongs to two members, whatever a header claims.  The local header and the
 * checksum of a member are checked when it is first read.  Other members are never touched.
 * Source: APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3. */
#define _GNU_SOURCE
#include "compiler/import/internal.h"
#include "ir/escape.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    END_SIZE = 22,     /* end record without a comment */
    LOCATOR_SIZE = 20, /* of the zip64 end record */
    END64_SIZE = 56,
    CENTRAL_SIZE = 46, /* an entry's fixed part */
    LOCAL_SIZE = 30,
    MAX_NAME = 4096,
    ENCRYPTED = 1 | 1 << 6 | 1 << 13,
    SIZES_FOLLOW = 1 << 3, /* a data descriptor holds crc and sizes */
    STORED = 0,
    DEFLATED = 8,
    ZIP64_EXTRA = 1
};
static const uint64_t max_inflated = 32 << 20; /* plus 16 times the archive, of all members */

typedef struct Member {
    const char *name;     /* not terminated */
    uint8_t *data;        /* once read */
    uint64_t header, end; /* the start of the local header; the end of the member's bytes */
    uint64_t packed, size;
    uint32_t crc;
    uint16_t n_name, method, flags;
    bool was_read;
} Member;

struct Archive {
    Files *files; /* of a folder: records the files that are read */
    Arena *arena;
    Diag *diag;
    Loc loc;
    uint8_t *data; /* the bytes of a zip; NULL: it is a folder */
    uint64_t n;
    Member *member;
    int n_members;
    Table names;           /* from the whole name of a member to its Member */
    const char *root;      /* of a zip: the prefix of all names, "model/" */
    Folder folder;         /* the folder, if it is one */
    Folder weights;        /* of a folder: the other folder that has its "data/", */
    const char *data_name; /* and the prefix there: "data/" or ""; NULL: there is no other folder */
    uint64_t inflated;
    Table inside; /* from a member that is an archive itself to its Archive */
    bool is_inside;
};

/* -- bytes ------------------------------------------------------------------------------- */

static uint16_t u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32(const uint8_t *p)
{
    return u16(p) | (uint32_t)u16(p + 2) << 16;
}

static uint64_t u64(const uint8_t *p)
{
    return u32(p) | (uint64_t)u32(p + 4) << 32;
}

static bool is_sig(const uint8_t *p, int a, int b)
{
    return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b;
}

/* -- names ------------------------------------------------------------------------------- */

/* Returns whether a name is a relative path of plain components.  A '/' at its end marks a folder.
 */
static bool is_safe_name(const char *s, size_t n)
{
    if (!n || n > MAX_NAME || !is_utf8(s, n))
        return false;
    size_t start = 0; /* of the current component */
    for (size_t i = 0; i <= n; i++) {
        if (i < n && s[i] != '/') {
            if ((unsigned char)s[i] < ' ' || s[i] == '\\' || s[i] == ':' || s[i] == '\x7f')
                return false;
            continue;
        }
        size_t len = i - start;
        bool is_dots = len && len <= 2 && s[start] == '.' && s[i - 1] == '.';
        if (is_dots || (!len && i < n))
            return false;
        start = i + 1;
    }
    return true;
}

/* Reports what is wrong with a member. */
static bool refuse(const Archive *z, const Member *m, const char *what)
{
    enum { SHOWN = 60 };
    int n = m->n_name < SHOWN ? m->n_name : SHOWN;
    return diag_error(z->diag, z->loc, "member '%.*s' %s", n, m->name, what);
}

/* -- central directory ------------------------------------------------------------------- */

typedef struct End {
    uint64_t entries, size, offset;
    uint64_t limit; /* where the directory must end */
} End;

/* Returns whether a value of the end record is saturated or equal to the value of zip64. */
static bool agrees(uint64_t plain, uint64_t saturated, uint64_t value)
{
    return plain == value || plain == saturated;
}

static bool read_end64(Archive *z, const uint8_t *end, const uint8_t *locator, End *e)
{
    uint64_t at = u64(locator + 8);
    uint64_t room = (uint64_t)(locator - z->data);
    if (u32(locator + 4) != 0 || u32(locator + 16) > 1)
        return diag_error(z->diag, z->loc, "the archive is split over several disks");
    if (!fits(at, END64_SIZE, room) || !is_sig(z->data + at, 6, 6))
        return diag_error(z->diag, z->loc, "zip64 end record is not where its locator says");
    const uint8_t *p = z->data + at;
    if (u64(p + 4) != room - at - 12)
        return diag_error(z->diag, z->loc, "zip64 end record has a wrong size");
    if (u32(p + 16) != 0 || u32(p + 20) != 0 || u64(p + 24) != u64(p + 32))
        return diag_error(z->diag, z->loc, "the archive is split over several disks");
    *e = (End){.entries = u64(p + 32), .size = u64(p + 40), .offset = u64(p + 48), .limit = at};
    return (agrees(u16(end + 10), 0xffff, e->entries) &&
            agrees(u32(end + 12), 0xffffffff, e->size) &&
            agrees(u32(end + 16), 0xffffffff, e->offset)) ||
           diag_error(z->diag, z->loc, "end record and zip64 end record contradict each other");
}

static bool read_end(Archive *z, End *e)
{
    if (z->n < END_SIZE || !is_sig(z->data + z->n - END_SIZE, 5, 6))
        return diag_error(z->diag, z->loc,
                          "no zip end record in the last 22 bytes: not an archive, or cut off, or "
                          "with a comment appended");
    const uint8_t *end = z->data + z->n - END_SIZE;
    if (u16(end + 20) != 0)
        return diag_error(z->diag, z->loc, "the archive's comment is cut off");
    const uint8_t *locator = z->n >= END_SIZE + LOCATOR_SIZE ? end - LOCATOR_SIZE : NULL;
    if (locator && is_sig(locator, 6, 7)) {
        if (!read_end64(z, end, locator, e))
            return false;
    } else {
        if (u16(end + 4) != 0 || u16(end + 6) != 0 || u16(end + 8) != u16(end + 10))
            return diag_error(z->diag, z->loc, "the archive is split over several disks");
        *e = (End){u16(end + 10), u32(end + 12), u32(end + 16), z->n - END_SIZE};
    }
    if (!fits(e->offset, e->size, e->limit) || e->offset + e->size != e->limit)
        return diag_error(z->diag, z->loc,
                          "central directory at byte %llu of %llu bytes does not "
                          "end at the end record, byte %llu",
                          (unsigned long long)e->offset, (unsigned long long)e->size,
                          (unsigned long long)e->limit);
    return e->entries <= e->size / CENTRAL_SIZE ||
           diag_error(z->diag, z->loc,
                      "%llu entries do not fit into a central directory of %llu "
                      "bytes",
                      (unsigned long long)e->entries, (unsigned long long)e->size);
}

/* Replaces saturated values by those of the zip64 extra field, in their fixed order. */
static bool read_extra64(const uint8_t *extra, size_t n, Member *m)
{
    uint64_t *field[] = {&m->size, &m->packed, &m->header};
    bool wanted = m->size == 0xffffffff || m->packed == 0xffffffff || m->header == 0xffffffff;
    while (wanted && n >= 4) {
        size_t len = u16(extra + 2);
        if (len > n - 4)
            return false;
        if (u16(extra) == ZIP64_EXTRA) {
            const uint8_t *p = extra + 4;
            for (int i = 0; i < 3; i++)
                if (*field[i] == 0xffffffff) {
                    if (len < 8)
                        return false;
                    *field[i] = u64(p);
                    p += 8;
                    len -= 8;
                }
            return true;
        }
        extra += 4 + len;
        n -= 4 + len;
    }
    return !wanted;
}

static bool check_entry(const Archive *z, const Member *m, int disk)
{
    if (!is_safe_name(m->name, m->n_name))
        return refuse(z, m, "has an unsafe name");
    if (m->flags & ENCRYPTED)
        return refuse(z, m, "is encrypted");
    if (m->method != STORED && m->method != DEFLATED)
        return refuse(z, m, "has a compression method other than stored and deflated");
    if (disk)
        return refuse(z, m, "is on another disk");
    if (m->method == STORED && m->packed != m->size)
        return refuse(z, m, "is stored, but its two sizes differ");
    return true;
}

/* Reads the entry at *p and moves past it. */
static bool read_entry(Archive *z, const uint8_t **p, const uint8_t *limit, Member *m)
{
    const uint8_t *e = *p;
    if (limit - e < CENTRAL_SIZE || !is_sig(e, 1, 2))
        return diag_error(z->diag, z->loc, "central directory is damaged at byte %lld",
                          (long long)(e - z->data));
    size_t n_name = u16(e + 28), n_extra = u16(e + 30), n_comment = u16(e + 32);
    if (!fits(CENTRAL_SIZE, n_name + n_extra + n_comment, (uint64_t)(limit - e)))
        return diag_error(z->diag, z->loc, "central directory is damaged at byte %lld",
                          (long long)(e - z->data));
    *m = (Member){.name = (const char *)e + CENTRAL_SIZE,
                  .n_name = u16(e + 28),
                  .flags = u16(e + 8),
                  .method = u16(e + 10),
                  .crc = u32(e + 16),
                  .packed = u32(e + 20),
                  .size = u32(e + 24),
                  .header = u32(e + 42)};
    if (!read_extra64(e + CENTRAL_SIZE + n_name, n_extra, m))
        return refuse(z, m, "has damaged zip64 sizes");
    *p = e + CENTRAL_SIZE + n_name + n_extra + n_comment;
    return check_entry(z, m, u16(e + 34) == 0xffff ? 0 : u16(e + 34));
}

static int by_header(const void *a, const void *b)
{
    const Member *l = *(Member *const *)a, *r = *(Member *const *)b;
    return (l->header > r->header) - (l->header < r->header);
}

/* Gives each member its end, the next one's header, and checks that it can end there. */
static bool check_overlaps(Archive *z, uint64_t directory, Arena *tmp)
{
    Member **m = NEW(tmp, Member *, z->n_members);
    bool sorted = true;
    for (int i = 0; i < z->n_members; i++) {
        m[i] = &z->member[i];
        sorted = sorted && (!i || m[i - 1]->header < m[i]->header);
    }
    if (!sorted)
        qsort(m, (size_t)z->n_members, sizeof *m, by_header);
    for (int i = 0; i < z->n_members; i++) {
        m[i]->end = i + 1 < z->n_members ? m[i + 1]->header : directory;
        uint64_t least = LOCAL_SIZE + (uint64_t)m[i]->n_name;
        if (!fits(m[i]->header, least, m[i]->end) ||
            !fits(m[i]->header + least, m[i]->packed, m[i]->end))
            return refuse(z, m[i], "overlaps what follows it, or lies outside the file");
    }
    return true;
}

static bool read_directory(Archive *z, Arena *tmp)
{
    End e = {0};
    if (!read_end(z, &e))
        return false;
    if (e.entries > INT32_MAX / 4)
        return diag_error(z->diag, z->loc, "%llu members", (unsigned long long)e.entries);
    z->names = (Table){.arena = z->arena};
    table_reserve(&z->names, e.entries);
    z->member = NEW(z->arena, Member, e.entries);
    const uint8_t *p = z->data + e.offset, *limit = z->data + e.limit;
    for (z->n_members = 0; z->n_members < (int)e.entries; z->n_members++) {
        Member *m = &z->member[z->n_members];
        if (!read_entry(z, &p, limit, m))
            return false;
        TableItem *known = table_at(&z->names, m->name, m->n_name);
        if (known->ptr)
            return refuse(z, m, "appears twice");
        known->ptr = m;
    }
    if (p != limit)
        return diag_error(z->diag, z->loc,
                          "central directory holds more than the %llu entries "
                          "announced",
                          (unsigned long long)e.entries);
    return check_overlaps(z, e.offset, tmp);
}

/* -- members ----------------------------------------------------------------------------- */

/* Checks that the local header repeats what the directory says, or leaves it out; *data is where
 * the bytes begin. */
static bool check_local(Archive *z, const Member *m, uint64_t *data)
{
    const uint8_t *h = z->data + m->header; /* check_overlaps: fixed part and name fit */
    if (!is_sig(h, 3, 4))
        return refuse(z, m, "has no local header");
    if (u16(h + 26) != m->n_name || memcmp(h + LOCAL_SIZE, m->name, m->n_name))
        return refuse(z, m, "has another name in its local header");
    bool same = u16(h + 8) == m->method && !(u16(h + 6) & ENCRYPTED);
    if (!(u16(h + 6) & SIZES_FOLLOW) || u32(h + 18) || u32(h + 22))
        same = same && u32(h + 14) == m->crc && agrees(u32(h + 18), 0xffffffff, m->packed) &&
               agrees(u32(h + 22), 0xffffffff, m->size);
    if (!same)
        return refuse(z, m, "has another size, checksum or method in its local header");
    *data = m->header + LOCAL_SIZE + m->n_name + u16(h + 28);
    return fits(*data, m->packed, m->end) || refuse(z, m, "overlaps what follows it");
}

/* Inflates n bytes to exactly n_out; zlib counts in unsigned int, so piece by piece. */
static bool inflate_all(const uint8_t *in, uint64_t n, uint8_t *out, uint64_t n_out)
{
    enum { PIECE = 1 << 30 };
    z_stream s = {0};
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
        return false;
    int status = Z_OK;
    uint64_t taken = 0, made = 0;
    while (status == Z_OK) {
        uint64_t in_left = n - taken, out_left = n_out - made;
        s.next_in = (Bytef *)(uintptr_t)(in + taken);
        s.avail_in = (uInt)(in_left < PIECE ? in_left : PIECE);
        s.next_out = out + made;
        s.avail_out = (uInt)(out_left < PIECE ? out_left : PIECE);
        status = inflate(&s, Z_NO_FLUSH);
        taken = (uint64_t)(s.next_in - in);
        made = (uint64_t)(s.next_out - out);
    }
    inflateEnd(&s);
    return status == Z_STREAM_END && taken == n && made == n_out;
}

static bool unpack(Archive *z, Member *m, const uint8_t *packed)
{
    uint64_t bound = max_inflated + 16 * z->n;
    if (m->size > bound || z->inflated > bound - m->size)
        return refuse(z, m, "claims to inflate to more than 32 MiB and 16 times the archive");
    z->inflated += m->size;
    m->data = NEW(z->arena, uint8_t, m->size + JSON_ROOM);
    return inflate_all(packed, m->packed, m->data, m->size) ||
           refuse(z, m, "does not inflate to the bytes announced");
}

static bool read_member(Archive *z, Member *m)
{
    uint64_t at = 0;
    if (!check_local(z, m, &at))
        return false;
    if (z->is_inside && m->method != STORED)
        return refuse(z, m, "is deflated, in an archive within an archive");
    if (m->method == STORED)
        m->data = z->data + at;
    else if (!unpack(z, m, z->data + at))
        return false;
    m->was_read = crc32_of(m->data, m->size) == m->crc;
    return m->was_read || refuse(z, m, "is damaged: its checksum is wrong");
}

static Member *find(const Archive *z, const char *name)
{
    return table_find_text(&z->names, arena_join(z->arena, z->root, name));
}

/* -- files ------------------------------------------------------------------------------- */

/* Maps a file into memory that has further zero pages after its end; MAP_FAILED: this fails. */
static void *map(int fd, size_t n)
{
    enum { ACCESS = PROT_READ | PROT_WRITE, KIND = MAP_PRIVATE | MAP_NORESERVE };
    void *room = mmap(NULL, n + JSON_ROOM, ACCESS, KIND | MAP_ANONYMOUS, -1, 0);
    return room == MAP_FAILED ? room : mmap(room, n, ACCESS, KIND | MAP_FIXED, fd, 0);
}

/* Maps a file, private and writable, and closes it; a small one is read, which costs less than to
 * copy the pages that are written one by one. */
static bool load(int fd, File *f, Arena *a, const char *path, uint8_t **data, size_t *n,
                 Diag *d)
{
    enum { SMALL = 4 << 20 };
    bool ok;
    *n = (size_t)f->size;
    if (f->size < SMALL) {
        *data = arena_bytes(a, *n + JSON_ROOM);
        ok = file_read(fd, path, *data, f->size, 0, d);
    } else {
        *data = map(fd, *n);
        ok = *data != MAP_FAILED || file_unreadable(path, d);
        f->is_kept = ok;
    }
    close(fd);
    return ok;
}

bool file_load(Files *files, Arena *a, const char *path, uint8_t **data, size_t *n, Diag *d)
{
    File *f;
    int fd = file_open(files, path, &f, d);
    return fd >= 0 && load(fd, f, a, path, data, n, d);
}

bool folder_load(Folder *in, const char *name, Files *files, Arena *a, const char *path,
                 uint8_t **data, size_t *n, Diag *d)
{
    File *f;
    int fd = folder_file(in, name, files, path, &f, d);
    return fd >= 0 && load(fd, f, a, path, data, n, d);
}

/* Returns the path of a member in an unpacked folder; data may have been moved elsewhere. */
static const char *member_path(const Archive *z, const char *name, bool *is_elsewhere)
{
    *is_elsewhere = z->data_name && !strncmp(name, "data/", 5);
    return *is_elsewhere
               ? arena_printf(z->arena, "%s%s%s", z->weights.path, z->data_name, name + 5)
               : arena_join(z->arena, z->folder.path, name);
}

static bool read_file(Archive *z, const char *name, uint8_t **data, size_t *n)
{
    bool is_elsewhere;
    const char *path = member_path(z, name, &is_elsewhere);
    Folder *in = is_elsewhere ? &z->weights : &z->folder;
    return folder_load(in, path + strlen(in->path), z->files, z->arena, path, data, n, z->diag);
}

/* -- programs ---------------------------------------------------------------------------- */

/* Adds NAME of "models/NAME.json"; `base` is "NAME.json". */
static void add_model(Archive *z, const char *base, size_t n, const char ***names, int *n_names)
{
    if (n > 5 && !memcmp(base + n - 5, ".json", 5) && !memchr(base, '/', n)) {
        const char *name = arena_str(z->arena, base, n - 5);
        PUSH(z->arena, *names, *n_names, name);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_folder(Archive *z, const char ***names)
{
    int n = 0;
    DIR *dir = folder_list(&z->folder, "models");
    for (struct dirent *e; dir && (e = readdir(dir));)
        add_model(z, e->d_name, strlen(e->d_name), names, &n);
    if (dir)
        closedir(dir);
    if (n)
        qsort(*names, (size_t)n, sizeof **names, by_name); /* a folder has no order */
    return n;
}

int archive_names(Archive *z, const char ***names)
{
    *names = NEW(z->arena, const char *, z->n_members);
    for (int i = 0; i < z->n_members; i++)
        (*names)[i] = arena_str(z->arena, z->member[i].name, z->member[i].n_name);
    return z->n_members;
}

int archive_models(Archive *z, const char ***names)
{
    *names = NULL;
    if (!z->data)
        return list_folder(z, names);
    const char *prefix = arena_printf(z->arena, "%smodels/", z->root);
    size_t len = strlen(prefix);
    int n = 0;
    for (const Member *m = z->member; m < z->member + z->n_members; m++)
        if (m->n_name > len && !memcmp(m->name, prefix, len))
            add_model(z, m->name + len, m->n_name - len, names, &n);
    return n;
}

/* -- interface --------------------------------------------------------------------------- */

bool archive_is_folder(const Archive *z)
{
    return !z->data;
}

bool archive_has(const Archive *z, const char *name)
{
    bool is_elsewhere;
    return z->data ? find(z, name) != NULL : access(member_path(z, name, &is_elsewhere), F_OK) == 0;
}

bool archive_read(Archive *z, const char *name, uint8_t **data, size_t *n)
{
    if (!z->data)
        return read_file(z, name, data, n);
    Member *m = find(z, name);
    if (!m)
        return diag_error(z->diag, z->loc, "the archive has no member '%s%s'", z->root, name);
    if (!m->was_read && !read_member(z, m))
        return false;
    *data = m->data;
    *n = (size_t)m->size;
    return true;
}

/* Finds the folder that contains all members.  Torch writes one; an archive that was zipped again
 * may have none. */
static void find_root(Archive *z)
{
    z->root = "";
    if (!z->n_members || find(z, "archive_format") || find(z, "models/model.json") ||
        find(z, "serialized_exported_program.json"))
        return;
    const Member *m = &z->member[0];
    const char *slash = memchr(m->name, '/', m->n_name);
    if (slash)
        z->root = arena_str(z->arena, m->name, (size_t)(slash + 1 - m->name));
}

Archive *archive_bytes(Arena *a, const char *name, uint8_t *data, size_t n, Diag *d)
{
    Archive *z = NEW(a, Archive, 1);
    *z = (Archive){.arena = a, .diag = d, .loc = {.file = name}, .data = data, .n = n};
    z->inside.arena = a;
    Arena *tmp = arena_within(a);
    bool ok = read_directory(z, tmp);
    arena_free(tmp);
    if (ok)
        find_root(z);
    return ok ? z : NULL;
}

Archive *archive_inside(Archive *z, const char *member)
{
    uint8_t *data;
    size_t n;
    Archive *known = table_find_text(&z->inside, member);
    if (known || !archive_read(z, member, &data, &n))
        return known;
    const char *name = arena_printf(z->arena, "%s: %s", z->loc.file, member);
    Archive *made = archive_bytes(z->arena, name, data, n, z->diag);
    if (!made)
        return NULL;
    made->is_inside = true;
    table_at_copy(&z->inside, member, strlen(member))->ptr = made;
    return made;
}

Archive *archive_open(Files *files, Arena *a, const char *path, Diag *d)
{
    uint8_t *data;
    size_t n;
    return file_load(files, a, path, &data, &n, d) ? archive_bytes(a, path, data, n, d) : NULL;
}

Archive *archive_folder(Files *files, Arena *a, const char *path, const char *weights_dir, Diag *d)
{
    struct stat st;
    Archive *z = NEW(a, Archive, 1);
    *z = (Archive){.files = files,
                   .arena = a,
                   .diag = d,
                   .loc = {.file = path},
                   .folder = folder_at(a, path),
                   .weights = {.fd = -1, .last_fd = -1},
                   .inside = {.arena = a}};
    if (!weights_dir)
        return z;
    z->weights = folder_at(a, weights_dir);
    bool has_data = lstat(arena_join(a, z->weights.path, "data"), &st) == 0;
    z->data_name = has_data && !S_ISREG(st.st_mode) ? "data/" : "";
    return z;
}

void archive_close(Archive *z)
{
    if (!z || z->data)
        return;
    folder_close(&z->folder);
    folder_close(&z->weights);
}
