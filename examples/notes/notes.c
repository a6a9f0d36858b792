/* notes: a document that saves itself.
 *
 *   notes FILE add "buy bread"     adds a line
 *   notes FILE list                lists the lines
 *
 * No code here reads or writes a file. The lines are ordinary structs with ordinary pointers; they are durable because
 * they lie in a heap of Taiyen. Build it with: cc notes.c -ltaiyen -lpthread
 */
#include <stdio.h>
#include <string.h>
#include <taiyen/taiyen.h>

struct line {
    char *text;
    struct line *next;
};

struct notes {
    struct line *first;
    struct line **last; /* pointers into the heap stay valid: it is always mapped at the same address */
    unsigned count;
};

/* Every failure has a text that says what, where, why, and what to do about it. */
static int fail(void) {
    fprintf(stderr, "notes: %s\n", ty_error_text());
    return 1;
}

/* The notes in the file: found by their root, or created in a new file. NULL: it failed. */
static struct notes *find_notes(ty_heap *heap) {
    struct notes *notes = ty_root(heap, "notes");
    if (notes != NULL)
        return notes;
    notes = ty_alloc_zeroed(heap, sizeof *notes);
    if (notes == NULL)
        return NULL;
    notes->last = &notes->first;
    return ty_root_set(heap, "notes", notes) == TY_OK ? notes : NULL;
}

static int add(ty_heap *heap, struct notes *notes, const char *text) {
    struct line *line = ty_alloc_zeroed(heap, sizeof *line);
    if (line == NULL || (line->text = ty_alloc(heap, strlen(text) + 1)) == NULL)
        return fail();
    strcpy(line->text, text);
    *notes->last = line;
    notes->last = &line->next;
    notes->count++;

    /* Here all of it becomes durable, atomically. Pull the plug during this call: after the next start the whole line
     * is there, or nothing of it. */
    return ty_snapshot(heap) == TY_OK ? 0 : fail();
}

static int list(const struct notes *notes) {
    for (const struct line *line = notes->first; line != NULL; line = line->next)
        printf("%s\n", line->text);
    return 0;
}

int main(int argc, char **argv) {
    int adding = argc == 4 && strcmp(argv[2], "add") == 0;
    if (!adding && !(argc == 3 && strcmp(argv[2], "list") == 0)) {
        fprintf(stderr, "usage: notes FILE add TEXT\n       notes FILE list\n");
        return 2;
    }

    ty_heap *heap;
    ty_open_options options = TY_OPEN_OPTIONS_INIT; /* zero means default everywhere; NULL would do as well */
    options.mode = adding ? TY_OPEN_OR_CREATE : TY_OPEN_EXISTING;
    if (ty_open(argv[1], &options, &heap, NULL) != TY_OK)
        return fail();
    struct notes *notes = find_notes(heap);
    int result = notes == NULL ? fail() : adding ? add(heap, notes, argv[3]) : list(notes);

    if (result != 0) {
        ty_discard(heap); /* the last snapshot is what counts */
        return result;
    }
    return ty_close(heap) == TY_OK ? 0 : fail();
}
