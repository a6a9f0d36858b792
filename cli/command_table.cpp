// The commands of `taiyen` and their options.
#include "commands.hpp"

#include <cstdint>

namespace cli {

namespace {

const option journal{
    "journal", 0, "PATH", nullptr, &request::journal_path, "the heap's journal, if it is not FILE-journal"};
const option log_file{"log", 0, "PATH", nullptr, &request::log_path, "the heap's log, if it is not FILE-log"};
const option as_json{"json", 0, nullptr, &request::json, nullptr, "a JSON document for each FILE, one a line"};
const option entries_as_json{"json", 0, nullptr, &request::json, nullptr, "a JSON document for each entry, one a line"};
const option as_json_once{"json", 0, nullptr, &request::json, nullptr, "as a JSON document"};
const option watch{"watch", 0, nullptr, &request::watch, nullptr, "again and again, until an interrupt"};
const option every{"interval", 0, "TIME", nullptr, &request::interval, "how often, such as 5s or 1m: 1s if left out"};
const option block{
    "block", 0, "ADDRESS", nullptr, &request::block, "the block there, as hex, with what is known of it"};
const option shown{"shown", 0, "COUNT", nullptr, &request::shown, "list so many blocks at the most: 20 if left out"};
const option quick{"quick", 0, nullptr, &request::quick, nullptr, "the structures only, not the checksum of each page"};
const option output{
    "output", 'o', "PICTURE", nullptr, &request::picture_path, "where to draw it: a path that ends in .svg or .png"};
const option width{
    "width", 0, "PIXELS", nullptr, &request::width, "the picture's width: 600 to 8000, 1200 if left out"};
const option codec{"codec", 0, "CODEC", nullptr, &request::codec, "lz4 (if left out), zstd or none"};
const option level{"level", 0, "LEVEL", nullptr, &request::level, "how hard to try: lz4 3 to 12, zstd 1 to 22"};
const option threads{
    "threads", 0, "COUNT", nullptr, &request::threads, "that work at once; one a processor if left out"};
const option kind{"kind", 0, "KIND", nullptr, &request::kind, "archive, snapshot, transactional; or else as it was"};
const option limit{"limit", 0, "SIZE", nullptr, &request::limit, "another limit, such as 500M or 64G"};
const option elsewhere{"elsewhere", 0, nullptr, &request::elsewhere, nullptr, "at another address, which is found"};
const option base{"base", 0, "ADDRESS", nullptr, &request::base, "at this address, a multiple of 64 MiB"};
const option defragment{"defragment",         0,       nullptr,
                        &request::defragment, nullptr, "lay the blocks out anew, without gaps"};
const option new_kind{"kind", 0, "KIND", nullptr, &request::kind, "archive, snapshot (if left out) or transactional"};
const option other_kind{"kind", 0, "KIND", nullptr, &request::kind, "archive, snapshot or transactional"};
const option new_limit{
    "limit", 0, "SIZE", nullptr, &request::limit, "how large it may become, such as 500M or 64G (if left out)"};
const option larger_limit{"limit", 0, "SIZE", nullptr, &request::limit, "how large it may become, such as 500M or 64G"};
const option new_classes{
    "class-table", 0, "TABLE", nullptr, &request::class_table, "the size classes: cache-line (if left out) or dense"};
const option log_size{"log-size", 0, "SIZE", nullptr, &request::log_size, "of a new log: 256M if left out"};
const option streams{
    "log-streams", 0, "COUNT", nullptr, &request::streams, "in how many rings a new log is: 1 if left out"};
const option in_place{"in-place", 0, nullptr, &request::in_place, nullptr, "the heap itself, without a COPY"};
const option class_table{
    "class-table", 0, "TABLE", nullptr, &request::class_table, "the same, with the size classes cache-line or dense"};
const option descriptors{
    "types", 0, "FILE", nullptr, &request::types_path, "what is a pointer; or else what the heap keeps of it"};
const option pointers{"pointers", 0, nullptr, &request::pointers, nullptr, "check what leads where in a heap"};
const option force{"force", 0, nullptr, &request::force, nullptr, "go on although addresses will be wrong, or may be"};
const option root{"root",         0, "NAME=TYPE", nullptr, nullptr, "what a root leads to; TYPE[] and TYPE[N]: many",
                  &request::roots};
const option hints{"hints", 0, "FILE", nullptr, &request::hints_path, "hints, one a line; from # on, a comment"};
const option hint{"hint", 0, "HINT", nullptr, nullptr, "one hint: 'TYPE.FIELD: count FIELD'", &request::hints};
const option once{"once", 0, nullptr, &request::once, nullptr, "ship what there is now, and end"};
const option list{"list", 0, nullptr, &request::list, nullptr, "list what the folder holds; FILE is left out"};
const option verify_shipped{"verify",         0,       nullptr,
                            &request::verify, nullptr, "read and check all that the folder holds; likewise"};
const option keep{
    "keep", 0, "TIME", nullptr, &request::keep, "how long to keep, such as 36h or 7d; for ever if left out"};
const option base_age{"base-age", 0, "TIME", nullptr, &request::base_age, "when a new base is made: 1d if left out"};
const option interval{"interval", 0, "TIME", nullptr, &request::interval, "how often to ship: 1s if left out"};
const option to{"to", 0, "WHEN", nullptr, &request::to, "a transaction's number, or a time: 2026-11-27T08:30:00Z"};
const option receives{"receives",         0,       nullptr,
                      &request::receives, nullptr, "the heap goes on receiving: nobody writes to it"};
#if TAIYEN_HAS_STANDBY
const option take_over{"take-over-after",
                       0,
                       "TIME",
                       nullptr,
                       &request::take_over_after,
                       "become the primary when it is silent for so long, such as 10s"};
const option wait_time{"wait",         0,
                       "TIME",         nullptr,
                       &request::wait, "for the server, and a base or a publisher: 1m if left out; 0: not at all"};
const option take_back{"take-back", 0,
                       nullptr,     &request::takes_back,
                       nullptr,     "also from a heap that superseded this one and published nothing"};
const option no_base{"no-base",         0,       nullptr,
                     &request::no_base, nullptr, "as the primary, leave it to 'taiyen publish' to put a base"};
const option server{"server",
                    0,
                    "URL",
                    nullptr,
                    &request::server,
                    "nats://HOST:PORT,... or kafka://HOST:PORT,...; nats://127.0.0.1:4222 if left out"};
const option credentials{"credentials",
                         0,
                         "PATH",
                         nullptr,
                         &request::credentials,
                         "a file with credentials, as NATS has them; with Kafka, settings of librdkafka"};
const option replicas{"replicas", 0, "COUNT", nullptr, &request::replicas, "of what is made there: 1 if left out"};
const option flushed{"flushed",         0,       nullptr,
                     &request::flushed, nullptr, "each replica flushes before it acknowledges; with Kafka alone"};
const option only_base{
    "base", 0, nullptr, &request::only_base, nullptr, "put a base and end, beside a program that publishes by itself"};
#endif
#if TAIYEN_HAS_LIVE
const option port{"port", 0, "PORT", nullptr, &request::port, "1 to 65535; a free one if left out"};
const option address{"address", 0, "ADDRESS", nullptr, &request::address, "127.0.0.1 or ::1; 127.0.0.1 if left out"};
const option idle{"idle",         0,
                  "TIME",         nullptr,
                  &request::idle, "end when nobody has looked for so long, such as 30m; never if left out"};
const option saved_page{
    "output", 'o', "PAGE", nullptr, &request::picture_path, "make this file of it, and end: a page by itself"};
#endif
const option seconds{
    "seconds", 0, "COUNT", nullptr, &request::seconds, "how long to measure: 1 to 3600, 20 if left out"};
const option size{"size", 0, "SIZE", nullptr, &request::size, "the space to use: 64M or more, 256M if left out"};
const option load{"load", 0, "LOAD", nullptr, &request::load, "BYTES,PAGES or BYTES,PAGES,SET: also run a heap"};
const option resolve_in_doubt{"ask", 0, nullptr, &request::ask, nullptr, "ask who knows: the other heaps of its group"};
const option commit_doubt{"commit", 0, nullptr, &request::commit, nullptr, "by hand: it counts"};
const option roll_back_doubt{"rollback", 0, nullptr, &request::roll_back, nullptr, "by hand: it does not"};
const option accept_restored{"restored",         0,       nullptr,
                             &request::restored, nullptr, "heaps of one group that were restored go on together"};

const std::vector<command> all {
    {"info",
     "FILE...",
     1,
     SIZE_MAX,
     "what a heap is, how it was closed, what an open would do",
     "Shows what the files of a heap say: its kind and size, its snapshots, how it\n"
     "was closed, and what an open would do. Opens nothing, and works while the heap\n"
     "is in use.",
     {&as_json, &journal, &log_file},
     info},
        {"stat",
         "FILE...",
         1,
         SIZE_MAX,
         "the metrics of a heap: blocks, roots, log, undo",
         "Shows what 'taiyen info' shows, and looks into the heap: blocks by size class,\n"
         "how full its pages are, what is free and can be used, named roots and their\n"
         "blocks (with their types, where the heap keeps descriptors), how full log and\n"
         "undo are, and what the image does not hold yet. Works while another process has\n"
         "the heap open: it reads a copy of the files then, which takes a while and space\n"
         "of a large heap. --watch shows it again and again: in place on a terminal, one\n"
         "after the other elsewhere.",
         {&as_json, &watch, &every, &journal, &log_file},
         stat_heaps},
#if TAIYEN_HAS_LIVE
        {"live",
         "FILE",
         1,
         1,
         "a page in the browser that shows a heap while it is used",
         "Serves a page on this machine alone, under an address that nobody can guess, and\n"
         "prints that: commits a second and how long they take, the log and when the next\n"
         "snapshot frees it, snapshots on a time line, blocks by size class, a map in\n"
         "levels down to a block's bytes and the pages that the next snapshot writes,\n"
         "roots, undo; all that 'taiyen stat' shows. The program that has the heap open\n"
         "need not be prepared for it, and pays nothing when nobody looks. Shows the files\n"
         "of a heap that no process has open, too. The page can be saved as one file, and\n"
         "--output makes one without a browser. Ends with an interrupt, or by --idle.",
         {&port, &address, &idle, &saved_page, &as_json_once, &journal, &log_file},
         cli::live},
#endif
        {"dump",
         "FILE",
         1,
         1,
         "the roots and blocks of a heap, or one block as hex",
         "Prints a heap's named roots, and the address of each block, by size class. With\n"
         "--block, the bytes of the block that the address lies in, where it lies, the\n"
         "roots that lead there, its type and fields where the heap keeps descriptors and\n"
         "a root leads to it, and which of its words lead to blocks or into code. The text\n"
         "has the first 4,096 bytes of a block, JSON has all. A heap that is open\n"
         "elsewhere is dumped as it was durable when the command began.",
         {&block, &entries_as_json, &journal, &log_file},
         dump},
        {"diff",
         "FILE [FILE]",
         1,
         2,
         "what differs in two heaps, or since the last snapshot",
         "Compares two heaps, such as a heap and a copy of it: roots, blocks by size\n"
         "class, the content of each block, and pages. Of one heap, shows what an open\n"
         "would do to it: what the log holds since the last snapshot, and which pages the\n"
         "journal holds and the image does not. Blocks are '+' new, '-' gone, '~' changed.\n"
         "Kind, base and limit are shown, and do not count.\n"
         "Exit code 1: they differ, or something has changed; 2: they cannot be compared.",
         {&shown, &as_json_once, &journal, &log_file},
         diff},
        {"verify",
         "FILE...",
         1,
         SIZE_MAX,
         "check a heap's files, then its structures",
         "Checks image, journal and log against their checksums, then opens the heap for\n"
         "reading and checks its structures. Shows each problem and its place, one a\n"
         "line.",
         {&as_json, &quick, &journal, &log_file},
         verify},
        {"scrub",
         "FILE...",
         1,
         SIZE_MAX,
         "check a heap's files without opening it",
         "Checks image, journal and log against their checksums, without opening the\n"
         "heap. Shows each problem and its place, one a line.",
         {&as_json, &journal, &log_file},
         scrub},
        {"map",
         "FILE",
         1,
         1,
         "draw what a heap's pages are used for",
         "Draws a picture of what the heap's pages are used for, and of its memory by\n"
         "size of block. Opens the heap for reading. With --json, prints the metrics; the\n"
         "picture may then be left out. Of a heap that is open elsewhere it draws a copy.",
         {&output, &width, &as_json, &journal, &log_file},
         map},
        {"log stat",
         "FILE...",
         1,
         SIZE_MAX,
         "how full a heap's log is, and what an open would replay",
         "Shows how full the log of a transactional heap is, and what an open would\n"
         "replay.",
         {&as_json, &journal, &log_file},
         log_stat},
        {"log dump",
         "FILE...",
         1,
         SIZE_MAX,
         "the transactions that an open would replay",
         "Prints the transactions that an open would replay from the log of a\n"
         "transactional heap, one entry a line. The text has the first 32 bytes of long\n"
         "entries, JSON has all bytes.",
         {&entries_as_json, &journal, &log_file},
         log_dump},
        {"create",
         "FILE",
         1,
         1,
         "make an empty heap",
         "Makes an empty heap in files, durably. A file that is there is not replaced. The\n"
         "limit is address space: the files grow as the heap is filled.",
         {&new_kind, &new_limit, &base, &new_classes, &log_size, &streams, &as_json_once, &journal, &log_file},
         create},
        {"resize",
         "FILE",
         1,
         1,
         "give a heap a larger limit",
         "Raises the limit of a heap, up to which it can grow, in place: durably, or not\n"
         "at all. A smaller limit takes a copy: taiyen copy FILE COPY --limit SIZE.",
         {&larger_limit, &as_json_once, &journal, &log_file},
         resize},
        {"convert",
         "FILE [COPY]",
         1,
         2,
         "make another kind of heap of one",
         "Makes a copy of a heap that is of another kind, as 'taiyen copy' does. With\n"
         "--in-place, the heap itself becomes one: of an archive heap a snapshot or\n"
         "transactional one, of a snapshot heap a transactional one, and back. A crash\n"
         "leaves a heap of the old kind or of the new one, or a snapshot heap. What is to\n"
         "become an archive heap takes a copy.",
         {&other_kind, &in_place, &log_size, &streams, &elsewhere, &base, &defragment, &descriptors, &force,
          &as_json_once, &journal, &log_file},
         convert},
        {"repair",
         "FILE OUT",
         2,
         2,
         "make a heap of what can be had of a damaged one",
         "Makes another heap, OUT, of what can be had of a damaged one, whose files are\n"
         "only read: the last snapshot up to which all is whole, and the transactions that\n"
         "the log still has, as a recovery would do them. Shows what is missing: pages and\n"
         "the blocks in them, roots, snapshots, transactions. Damaged pages are taken as\n"
         "they are. OUT's pages have no checksums until they are written again. A file\n"
         "that is there is not replaced. One that is ended leaves a folder OUT-unfinished,\n"
         "or OUT-journal and OUT-log without OUT: remove them. Try 'taiyen verify' before,\n"
         "and look at OUT after.\n"
         "Exit code 1: something is missing; 2: nothing could be had.",
         {&as_json_once, &journal, &log_file},
         repair},
        {"pack",
         "FILE PACKED",
         2,
         2,
         "write a heap as one compressed file",
         "Packs the live blocks of a heap, and its roots, into one compressed file, which\n"
         "'taiyen unpack' makes a heap of again. A PACKED of '-' is the standard output.\n"
         "A file that is there is not replaced. The heap may be open elsewhere: then it\n"
         "is packed as it was durable when the command began.",
         {&codec, &level, &threads, &as_json_once, &journal, &log_file},
         pack},
        {"unpack",
         "PACKED FILE",
         2,
         2,
         "make a heap of a packed one",
         "Makes a heap in files of a packed one: the same, or smaller, or elsewhere. A\n"
         "PACKED of '-' is the standard input. The heap gets its name when it is whole;\n"
         "a file that is there is not replaced. A heap whose blocks move needs to know\n"
         "its pointers (see --types).",
         {&kind, &limit, &elsewhere, &base, &defragment, &class_table, &descriptors, &force, &threads, &as_json_once},
         unpack},
        {"copy",
         "FILE COPY",
         2,
         2,
         "a heap of its own with the same content",
         "Makes a copy of a heap, with an identity of its own. It lies at the same\n"
         "address, unless an option says otherwise. The copy gets its name when it is\n"
         "whole; a file that is there is not replaced. The heap may be open elsewhere:\n"
         "then it is copied as it was durable when the command began.",
         {&kind, &limit, &elsewhere, &base, &defragment, &descriptors, &force, &as_json_once, &journal, &log_file},
         copy},
        {"compact",
         "FILE",
         1,
         1,
         "lay a heap's blocks out anew, without gaps",
         "Lays the blocks of a heap out anew, without gaps, and gives disk space back. It\n"
         "needs to know the heap's pointers (see --types), and opens it for writing.\n"
         "A crash leaves the heap as it was, or compacted; one that is transactional may\n"
         "be a snapshot heap then: the next compact goes on, or 'convert --in-place'.",
         {&descriptors, &force, &as_json_once, &journal, &log_file},
         compact},
        {"check",
         "FILE",
         1,
         1,
         "check a packed heap, or where a heap's pointers lead",
         "Checks a packed heap: its checksums, and that it is whole. With --pointers,\n"
         "holds what is said of a heap's pointers (see --types) against its content:\n"
         "pointers that lead to nothing, words that look like pointers and that nobody\n"
         "named, blocks that nothing leads to, words that lead into a program.",
         {&pointers, &descriptors, &as_json_once, &journal, &log_file},
         check},
        {"ship",
         "FILE FOLDER",
         1,
         2,
         "keep a folder from which a heap can be restored",
         "Puts all transactions of a transactional heap to a folder, as they come, while\n"
         "the heap is in use or not: bases and segments, from which 'taiyen restore'\n"
         "makes the heap as it was after any of them. Goes on where the folder ends;\n"
         "ends with an interrupt. One process at a time ships to a folder.",
         {&once, &list, &verify_shipped, &keep, &base_age, &interval, &as_json_once, &journal, &log_file},
         ship},
        {"restore",
         "FOLDER FILE",
         2,
         2,
         "make a heap of what was shipped to a folder",
         "Makes a heap as it was after a transaction, or at a time; without --to, the\n"
         "newest there is. It gets its name when it is whole; a file that is there is not\n"
         "replaced.",
         {&to, &receives, &as_json_once},
         restore},
#if TAIYEN_HAS_STANDBY
        {"publish",
         "FILE NAME",
         2,
         2,
         "publish a heap for standbys",
         "Puts all transactions of a transactional heap to JetStream of a NATS server, or\n"
         "to Kafka, as they come, while the heap is in use or not; NAME is the stream's or\n"
         "the topic's. Puts a base, of which standbys are made, where there is none, and\n"
         "now and then. Goes on where the stream ends; ends with an interrupt. Once a\n"
         "standby was promoted, the old heap is refused: exit code 3, as whatever to\n"
         "start it again does not cure.",
         {&server, &credentials, &replicas, &flushed, &wait_time, &only_base, &base_age, &journal, &log_file},
         publish},
        {"standby",
         "FILE NAME",
         2,
         2,
         "keep a second copy of a heap that is published",
         "Makes the heap FILE of the newest base, if it is not there, and takes what is\n"
         "published; other programs may read it meanwhile. Goes on where it was; ends with\n"
         "an interrupt. With --take-over-after it becomes the primary by itself once the\n"
         "old one has been silent for so long, puts a base, and ends: exit code 0; 1:\n"
         "interrupted. Exit code 3: it can go on no more; what it says is to be done.",
         {&server, &credentials, &replicas, &flushed, &wait_time, &take_over, &no_base, &journal, &log_file},
         standby},
        {"promote",
         "FILE NAME",
         2,
         2,
         "make a standby the primary",
         "Takes all there is, begins a new term, and makes the heap one that is written\n"
         "to. From then on the old primary is refused. 'taiyen standby' is ended before.\n"
         "Then puts a base of it, of which standbys are made, and without which\n"
         "synchronous commits wait. Exit code 3: it cannot become one.",
         {&server, &credentials, &replicas, &flushed, &wait_time, &take_back, &no_base, &journal, &log_file},
         promote},
#endif
        {"resolve",
         "FILE...",
         1,
         SIZE_MAX,
         "show whether a heap's last transaction is in doubt",
         "A transaction that is prepared, and neither committed nor rolled back, keeps a\n"
         "heap from being opened by programs that do not know its outcome. Exit code\n"
         "1: there is one. To resolve it by hand is right only if the other heaps of its\n"
         "group, or the database, are known to have the same.\n"
         "With --restored, FILEs are all the heaps of a group, which came back from\n"
         "backups of different moments: from now on they go on together as they are.\n"
         "What one of them has of a distributed transaction that another one has not stays\n"
         "half.",
         {&resolve_in_doubt, &commit_doubt, &roll_back_doubt, &accept_restored, &as_json, &journal, &log_file},
         resolve},
        {"device",
         "[DIR]",
         0,
         1,
         "what a disk does, and what settings follow from it",
         "Writes to files of its own in DIR, or here, in sizes of 4 KiB to 4 MiB, in all\n"
         "ways to make writes durable, and with several threads. Shows the writes and the\n"
         "bytes a second, what is cached on the way as far as that can be known, and what\n"
         "a heap's settings should be. With --load, also runs a heap for half of the\n"
         "time, whose commits change BYTES bytes in PAGES pages out of SET, and shows how\n"
         "many there are a second beside how many the metrics predict. Its files are in a\n"
         "folder 'taiyen-device-...', which is gone when it ends, however it ends; a power\n"
         "cut alone leaves it. Other programs that use the disk meanwhile distort the\n"
         "metrics.",
         {&seconds, &size, &load, &output, &as_json_once},
         device_profile},
        {"types",
         "PROGRAM",
         1,
         1,
         "describe where a program's types hold pointers",
         "Prints the type descriptors of the types that the roots lead to, from the debug\n"
         "information of a program or library: what --types and ty_types_read take.\n"
         "What debug information does not say, a hint does, 'TYPE.FIELD: ' and\n"
         "  count N, count FIELD, count FIELD times N   it leads to so many\n"
         "  block           to as many as the block has room for\n"
         "  end FIELD       up to where FIELD leads\n"
         "  to TYPE, bytes  to this, or to what holds no addresses\n"
         "  reference       into what is reached by another way\n"
         "  place FIELD     into what FIELD leads to\n"
         "  used FIELD      of an array, so many are in use\n"
         "  tag MASK        these bits are no part of the address\n"
         "or of a type: 'TYPE: bytes', it holds no addresses; 'TYPE: trace' and\n"
         "'TYPE: moved', the program has this hook. Commas part several.\n"
         "Exit code 1: the text is not complete; what is left to do stands in it.",
         {&root, &hints, &hint},
         cli::descriptors},
        {"completion",
         "SHELL",
         1,
         1,
         "completion of these words for bash, zsh or fish",
         "Prints what a shell completes the words of 'taiyen' by: bash, zsh or fish. Where\n"
         "taiyen was installed, it is in its place already; else\n"
         "  source <(taiyen completion bash)     in ~/.bashrc\n"
         "  source <(taiyen completion zsh)      in ~/.zshrc, after compinit\n"
         "  taiyen completion fish | source      in ~/.config/fish/config.fish",
         {},
         completion},
        {"version", "", 0, 0, "the version of taiyen", "Prints the version of taiyen.", {&as_json_once}, run_version},
        {"help",
         "[COMMAND]",
         0,
         2,
         "this text, or the help of a command",
         "Prints what taiyen does, or what a command does.",
         {},
         run_help},
};

} // namespace

const std::vector<command> &commands() {
    return all;
}

const std::vector<left_out> &left_out_commands() {
    static const std::vector<left_out> missing = {
#if !TAIYEN_HAS_STANDBY
        {"publish", "libnats (Debian: libnats-dev) or librdkafka (Debian: librdkafka-dev)"},
        {"standby", "libnats (Debian: libnats-dev) or librdkafka (Debian: librdkafka-dev)"},
        {"promote", "libnats (Debian: libnats-dev) or librdkafka (Debian: librdkafka-dev)"},
#endif
#if !TAIYEN_HAS_LIVE
        {"live", "libmicrohttpd (Debian: libmicrohttpd-dev)"},
#endif
    };
    return missing;
}

} // namespace cli
