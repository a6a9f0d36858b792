/* Taiyen: addresses of code in a heap.
 *
 * Purpose: pointers to functions, tables of virtual functions and addresses of static data that lie in a heap are good
 * only as long as the program and its libraries lie where they did. A heap that knows its code refuses an open that
 * would end in a crash, or gives such words their new values.
 *
 * Vocabulary: an *object* is the program, or a shared object (library, plug-in) that is loaded. Its *build* is told by
 * the build id that the linker gave it (without one, by a checksum of what it never writes). A *pinned* heap is opened
 * only where the objects lie that wrote it. In a *mapped* one, words that lead into an object that has moved, or was
 * built anew, are *repointed*: they get the address that the same symbol has now.
 *
 * Guarantees:
 *  - What is recorded: the objects that are loaded when the heap is opened for writing, and when ty_note_code is
 * called; not those in a namespace of their own (dlmopen). A plug-in that is loaded later must be noted before the
 * heap has addresses in it; it must be loaded before the heap is opened again, else the open is refused (if words lead
 * into it).
 *  - Repointed are the words, and only those, that lie in live blocks at multiples of 8 and whose value is an address
 *    in an object that was recorded and has moved or changed. If the build is the same, each of these moves along with
 *    its object. In another build a function is found by its name and exactly its first byte; a variable, a constant,
 *    or a table of virtual functions by its name and the place within; the end of an array by the array, if its size is
 *    the same and an address within it is near by (four words). What is not found so, or not for certain (two of one
 * name; lambdas, and what the compiler numbers, as several static variables of one name within one function: their
 * names count by their order; an address that may be the end of one array or the begin of what is behind it, where one
 * into the array is near by; a variable or a C function that the dynamic linker takes from
 * another object now: a copy that the program has, -fPIC not given; what is preloaded, or comes first), refuses the
 * open, which names it. Of copies of one file, which are one build, the files' names tell which is which. Nothing in
 * the files is changed by a refused open.
 *  - Single numbers don't look like that: position-independent programs and libraries lie at high addresses. Two
 *    numbers of 32 bits side by side may, if the second is from 21,845 to 22,101 or from 32,511 to 32,767. What stands
 *    in the heap before this process opens it, or before it notes a plug-in, is none of its addresses, so such words
 * are kept as numbers, until something else stands there or the block moves. Those that are stored while a process has
 * the heap open cannot be told: about one in a hundred runs that store a large array of such pairs has one where its
 * objects lie, and the next run would change it without a word. Heaps into which such arrays go are to be pinned: no
 * word of a pinned heap is ever changed. A program that is linked at a fixed low address (-no-pie) never moves; in
 * another build of it, words could not be told from numbers, and the open is refused.
 *  - All words are repointed in one step: in a transaction, or with a snapshot, that is durable when the open returns.
 * A crash amid that leaves the heap as it was. An open for reading repoints its own memory alone.
 *  - What the new build does with the old one's data is the program's matter: structures must mean the same.
 *  - A function that the dynamic linker chooses by the processor (IFUNC: memcpy, strcmp) is the one that was chosen:
 * keep no addresses of such in a heap that goes to other processors.
 *
 * Not in a mapped heap: archive heaps (TY_E_UNSUPPORTED: a crash would leave a mixture of old and new words). An undo
 * history that has addresses of what has moved, changed or is missing refuses the open of any heap with a record
 * (TY_E_UNSUPPORTED): an undo would bring them back. A heap that
 * receives another one's transactions is not compared: its words are those of the other heap's program.
 *
 * Cost: an open that finds everything in its place compares names and builds, some ten microseconds. Where objects have
 * moved (each run, where addresses are randomised), a mapped heap's live blocks are read once, about a second for some
 * GB; ty_pin_code avoids that. The record takes some hundred bytes an object, and in a mapped heap about 60 bytes for
 * each symbol of the objects.
 */
#ifndef TAIYEN_CODE_H
#define TAIYEN_CODE_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The roots of what the library keeps of code in a heap: the objects, and (mapped) their symbols, and words that look
 * like addresses of them and are numbers. */
#define TY_CODE_ROOT "taiyen.code"
#define TY_SYMBOLS_ROOT "taiyen.symbols"
#define TY_NUMBERS_ROOT "taiyen.numbers"

/* What an open does about addresses of code in the heap (ty_open_options.code). */
typedef enum ty_code {
    TY_CODE_DEFAULT = 0,    /* what the heap was made with; a new one knows nothing of code */
    TY_CODE_PINNED = 1,     /* a new heap, or one without roots, becomes pinned; another one must be */
    TY_CODE_MAPPED = 2,     /* the same: mapped */
    TY_CODE_COMPATIBLE = 3, /* of a pinned heap: other builds of its objects, at the same places, are taken for the
                               same: the program knows that they are. Of a mapped one: words that in another build led
                               into the middle of a function, or to what had no name there, are no addresses to the
                               program, but what is left in memory that was not written (padding, copies of what was
                               not set): they stay as they are. What was stripped has too few names for that. What may
                               be the end of an array or the begin of what is behind it is the begin. Elsewhere as
                               TY_CODE_DEFAULT */
    TY_CODE_IGNORED = 4     /* nothing is compared, repointed or recorded: for programs that follow none of these
                               words, nor store any. Such as tools that copy or check */
} ty_code;

/* Sees to it that a pinned heap finds the program where it was: first thing in main, with its arguments. Where the
 * process was started with randomised addresses, it starts the program again without, once, and does not return. What
 * is done before is done twice; files that are not closed by exec stay open; other threads end. Processes that the
 * program starts inherit it (personality). Programs of all kinds: position-independent, fixed, static. The places are
 * the same as long as the program, its libraries, LD_PRELOAD, LD_LIBRARY_PATH, LD_AUDIT, the size of
 * /etc/ld.so.cache in pages, and the limit of the stack (ulimit -s) are.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY, TY_E_UNSUPPORTED (the system does not allow it, as some containers don't; it
 * was of no use; or the kernel has started something else, which loaded the program: the dynamic linker that was told
 * its name, valgrind. The program has not been started again, and goes on). For one thread. */
TY_API TY_CHECKED ty_status ty_pin_code(int argc, char **argv);

/* Records the objects that were loaded since the heap was opened: after dlopen, before the heap has addresses in them.
 * Durable when it returns: a transaction of its own, else a snapshot. Of a heap that knows nothing of code it does
 * nothing. Where something has come, a mapped heap's live blocks are read once. Errors: TY_E_ARGUMENT (a volatile heap;
 * a transaction of this thread is under way), TY_E_PERMISSION (open for reading only), TY_E_MISMATCH (something else
 * lies where a noted object was that words lead into), and those of ty_snapshot and ty_commit. Externally serialised;
 * of a transactional heap thread-safe. */
TY_API TY_CHECKED ty_status ty_note_code(ty_heap *heap);

/* What the heap was made with: TY_CODE_DEFAULT (it knows nothing of code), TY_CODE_PINNED or TY_CODE_MAPPED; of a
 * volatile heap TY_CODE_DEFAULT. Thread-safe. */
TY_API ty_code ty_heap_code(ty_heap *heap);

/* A word of a heap that leads into code. */
typedef struct ty_code_word {
    size_t struct_size; /* sizeof(ty_code_word) of the library */
    const void *address;
    uint64_t value;
    const void *block; /* in which it lies */
    size_t block_bytes;
    const char *object; /* into which it leads; valid during the callback */
    uint64_t offset;    /* from the object's begin */
} ty_code_word;

/* Calls back for each word of live blocks, at a multiple of 8, that leads into code, in order of address, until the
 * callback returns false: of a pinned or mapped heap into the objects of its record, which is as it should be. Of any
 * other one into the program or the libraries of a process that had the heap open for writing before this open, and
 * wrote there what lies nowhere in the next run: a fault. The last 64 such processes are known, by their ranges alone
 * (an object is "the program" or "its libraries", among which other memory may lie); an open with TY_CODE_IGNORED is
 * none of them. A program that lies below 4 GiB is not told of, as numbers look like its addresses. Undo's history is
 * not gone through. Other threads' allocations on the heap wait
 * meanwhile: for the callback holds what is said of ty_each_block. Errors: TY_E_ARGUMENT (a volatile heap),
 * TY_E_DAMAGED. O(live bytes). */
typedef bool ty_code_word_callback(const ty_code_word *word, void *context);
TY_API TY_CHECKED ty_status ty_each_code_word(ty_heap *heap, ty_code_word_callback *callback, void *context);

#ifdef __cplusplus
}
#endif
#endif
