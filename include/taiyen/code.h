/* Taiyen: addresses of code in a heap.
 *
 * Purpose: function pointers, virtual table pointers and addresses of static data in a heap are valid only as long as
 * the program and its libraries are loaded at the same addresses. A heap that records its code refuses an open that
 * would end in a crash, or repoints such words.
 *
 * Vocabulary: an *object* is the program, or a shared object (library, plug-in) that is loaded. Its *build* is
 * identified by the linker's build id (without one, by a checksum of its read-only parts). A *pinned* heap is opened
 * only if the objects are at the addresses where they were when it was written. In a *mapped* heap, words that point
 * into an object that has moved, or was rebuilt, are *repointed*: they get the address that the same symbol has now.
 *
 * Guarantees:
 *  - Recorded are the objects that are loaded when the heap is opened for writing, and when ty_register_code is called;
 *    not those in a separate namespace (dlmopen). A plug-in that is loaded later must be registered before the heap has
 *    addresses in it; it must be loaded before the heap is opened again, else the open is refused (if words point into
 *    it).
 *  - Repointed are the words, and only those, that lie in live blocks at multiples of 8 and whose value is an address
 *    in a recorded object that has moved or changed. If the build is the same, each of these words moves by the same
 *    distance as its object. In another build a function is found by its name, and only by the address of its first
 *    byte; a variable, a constant, or a virtual table by its name and the offset in it; the end of an array by the
 *    array, if its size is the same and an address within it is near by (four words). If a word cannot be resolved with
 *    certainty, the open is refused and the detail names the word. Examples: two symbols of one name; lambdas, and what
 *    the compiler numbers, such as several static variables of one name in one function (their names depend on their
 *    order); an address that may be the end of one array or the beginning of what follows it, if an address into the
 *    array is near by; a variable or a C function that the dynamic linker now takes from another object (a copy in the
 *    program, without -fPIC; a preloaded object; one that comes first). Copies of one file, which are the same build,
 *    are distinguished by file name. A refused open changes nothing in the files.
 *  - Single numbers do not look like addresses of code: position-independent programs and libraries lie at high
 *    addresses. Two adjacent 32-bit numbers may, if the second is from 21,845 to 22,101 or from 32,511 to 32,767. A
 *    word that was in the heap before this process opened it, or before it registered a plug-in, is not an address of
 *    its code, so such words are kept as numbers, until the word changes or the block moves. Numbers that are stored
 *    while a process has the heap open cannot be distinguished: about one in a hundred runs that store a large array of
 *    such pairs stores one that matches its objects, and the next run would silently change it. Pin heaps that hold
 *    such arrays: no word of a pinned heap is ever changed. A program that is linked at a fixed low address (-no-pie)
 *    never moves; for another build of it, words could not be distinguished from numbers, and the open is refused.
 *  - All words are repointed atomically: in a transaction, or with a snapshot, that is durable when the open returns. A
 *    crash meanwhile leaves the heap as it was. An open for reading repoints only its own memory.
 *  - The program must ensure that the new build can use the old one's data: structures must mean the same.
 *  - An address of a function that the dynamic linker selects by the processor (IFUNC: memcpy, strcmp) is that of the
 *    selected one: store no such addresses in a heap that moves to other processors.
 *
 * Archive heaps cannot be mapped (TY_E_UNSUPPORTED: a crash would leave a mixture of old and new words). If an undo
 * history has addresses of objects that have moved, changed or are missing, the open of any pinned or mapped heap is
 * refused (TY_E_UNSUPPORTED): an undo would restore them. A heap that receives another one's transactions (replica.h)
 * is not compared: its words are those of the other heap's program.
 *
 * Cost: an open that finds all objects in place compares names and builds, some ten microseconds. If objects have moved
 * (in each run, if addresses are randomised), a mapped heap's live blocks are read once, about a second for some GB;
 * ty_pin_code avoids that. The record takes some hundred bytes for each object, and in a mapped heap about 60 bytes for
 * each symbol of the objects.
 */
#ifndef TAIYEN_CODE_H
#define TAIYEN_CODE_H

#include "base.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The roots of the library's record of code in a heap: the objects, and (mapped) their symbols, and the words that look
 * like addresses in them and are numbers. */
#define TY_CODE_ROOT "taiyen.code"
#define TY_SYMBOLS_ROOT "taiyen.symbols"
#define TY_NUMBERS_ROOT "taiyen.numbers"

/* How an open treats addresses of code in the heap (ty_open_options.code). */
typedef enum ty_code {
    TY_CODE_DEFAULT = 0,    /* as the heap was created; a new heap records nothing about code */
    TY_CODE_PINNED = 1,     /* a new heap, or one without roots, becomes pinned; any other must be pinned */
    TY_CODE_MAPPED = 2,     /* the same: mapped */
    TY_CODE_COMPATIBLE = 3, /* for a pinned heap: other builds of its objects, at the same addresses, count as the same;
                               the program guarantees that. For a mapped heap: words that point into the middle of a
                               function of another build, or to something without a name there, are not addresses that
                               the program uses, but remains in memory that was not written (padding, copies of
                               uninitialised data): they stay as they are. A stripped object has too few names for that.
                               An address that may be the end of an array or the beginning of what follows it counts as
                               the beginning. Otherwise as TY_CODE_DEFAULT */
    TY_CODE_IGNORED = 4     /* nothing is compared, repointed or recorded: for programs that neither follow nor store
                               such words, such as tools that copy or check */
} ty_code;

/* Makes the program load at the same addresses in each run, as a pinned heap needs: call it first in main, with main's
 * arguments. If the process was started with randomised addresses, it executes the program again without randomisation,
 * once, and does not return. What the program did before is done twice; files that are not closed by exec stay open;
 * other threads end. Processes that the program starts inherit the setting (personality). Works for
 * position-independent, fixed and static programs. The addresses are the same as long as the program, its libraries,
 * LD_PRELOAD, LD_LIBRARY_PATH, LD_AUDIT, the size of /etc/ld.so.cache in pages, and the stack limit (ulimit -s) are.
 * Errors: TY_E_ARGUMENT, TY_E_MEMORY, TY_E_UNSUPPORTED (the system does not allow it, as in some containers; it had no
 * effect; or the program was loaded by another one: by the dynamic linker on the command line, or by valgrind. The
 * program was not executed again, and continues). Call it from one thread only. */
TY_API TY_CHECKED ty_status ty_pin_code(int argc, char **argv);

/* Records the objects that were loaded since the heap was opened: call it after dlopen, before the heap has addresses
 * in them. Durable when it returns: by a transaction of its own, else a snapshot. On a heap that records nothing about
 * code it does nothing. If objects were added, a mapped heap's live blocks are read once. Errors: TY_E_ARGUMENT (a
 * volatile heap; a transaction of this thread is under way), TY_E_PERMISSION (open for reading only), TY_E_MISMATCH
 * (words point into a registered object whose place something else has now), and those of ty_snapshot and ty_commit.
 * Externally serialised; on a transactional heap thread-safe. */
TY_API TY_CHECKED ty_status ty_register_code(ty_heap *heap);

/* How the heap treats code: TY_CODE_DEFAULT (it records nothing; also a volatile heap), TY_CODE_PINNED or
 * TY_CODE_MAPPED. Thread-safe. */
TY_API ty_code ty_heap_code(ty_heap *heap);

/* Whether a copy of the heap's memory can be used as a heap: its words of code lead to where its record says. Not of a
 * mapped heap that is open for reading, unless with TY_CODE_IGNORED: the open repoints words in memory, and the record
 * stays. ty_branch and ty_pack ask. Errors: TY_E_UNSUPPORTED, TY_E_ARGUMENT (not an open heap). Thread-safe. */
TY_API TY_CHECKED ty_status ty_check_code(ty_heap *heap);

/* A word of a heap that points into code. */
typedef struct ty_code_word {
    size_t struct_size; /* sizeof(ty_code_word) of the library */
    const void *address;
    uint64_t value;
    const void *block; /* that contains the word */
    size_t block_bytes;
    const char *object; /* that it points into; valid during the callback */
    uint64_t offset;    /* from the object's beginning */
} ty_code_word;

/* Calls back for each word of live blocks, at a multiple of 8, that points into code, in order of address, until the
 * callback returns false. In a pinned or mapped heap these are words that point into the recorded objects, as intended.
 * In any other heap they point into the program or the libraries of a process that had the heap open for writing before
 * this open; such an address is invalid in the next run, which is an error of the program. The last 64 such processes
 * are known, by their address ranges only (an object is "the program" or "its libraries", among which other memory may
 * lie); opens with TY_CODE_IGNORED are not counted. A program below 4 GiB is not reported, as numbers look like its
 * addresses. Undo's history is not scanned. Other threads' allocations on the heap wait meanwhile: the callback is
 * restricted as that of ty_each_block. Errors: TY_E_ARGUMENT (a volatile heap), TY_E_DAMAGED. O(live bytes). */
typedef bool ty_code_word_callback(const ty_code_word *word, void *context);
TY_API TY_CHECKED ty_status ty_each_code_word(ty_heap *heap, ty_code_word_callback *callback, void *context);

#ifdef __cplusplus
}
#endif
#endif
