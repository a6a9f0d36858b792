// The commands of `taiyen`, by subject, and their options.
#include "commands.hpp"

#include <cstdint>

namespace cli {

namespace {

// Declares a command: each member adds to what it takes.
class declared {
public:
    declared(std::vector<command> &all, const char *name, int (*run)(const request &given), const char *summary,
             const char *details)
        : command_(all.emplace_back(command{name, "", 0, 0, summary, details, run, {}})) {}

    declared &operands(const char *names, size_t least, size_t most) {
        command_.operands = names;
        command_.operands_min = least;
        command_.operands_max = most;
        return *this;
    }
    declared &flag(const char *name, bool request::*to, const char *help) {
        command_.options.push_back({name, 0, nullptr, help, to});
        return *this;
    }
    declared &text(const char *name, const char *value, std::string request::*to, const char *help, char letter = 0) {
        command_.options.push_back({name, letter, value, help, nullptr, to});
        return *this;
    }
    declared &texts(const char *name, const char *value, std::vector<std::string> request::*to, const char *help) {
        command_.options.push_back({name, 0, value, help, nullptr, nullptr, to});
        return *this;
    }

    // What several commands take.
    declared &json(const char *help) { return flag("json", &request::json, help); }
    declared &heap() {
        return text("journal", "PATH", &request::journal_path, "the heap's journal, if it is not FILE-journal")
            .text("log", "PATH", &request::log_path, "the heap's log, if it is not FILE-log");
    }
    declared &new_log() {
        return text("log-size", "SIZE", &request::log_size, "of a new log: 256M if left out")
            .text("log-streams", "COUNT", &request::streams, "in how many rings a new log is: 1 if left out");
    }
    declared &changes() {
        return text("kind", "KIND", &request::kind, "archive, snapshot, transactional; or else as it was")
            .text("limit", "SIZE", &request::limit, "another limit, such as 500M or 64G");
    }
    declared &types() {
        return text("types", "FILE", &request::types_path, "what is a pointer; or else what the heap keeps of it");
    }
    // The heap's blocks come to lie elsewhere.
    declared &moves() {
        return types().flag("force", &request::force, "go on although addresses will be wrong, or may be");
    }
    declared &elsewhere() {
        return flag("elsewhere", &request::elsewhere, "at another address, which is found")
            .text("base", "ADDRESS", &request::base, "at this address, a multiple of 64 MiB")
            .flag("defragment", &request::defragment, "lay the blocks out anew, without gaps")
            .moves();
    }
    declared &threads() {
        return text("threads", "COUNT", &request::threads, "that work at once; one a processor if left out");
    }
#if TAIYEN_HAS_STANDBY
    declared &engine() {
        return text("server", "URL", &request::server,
                    "nats://HOST:PORT,... or kafka://HOST:PORT,...; nats://127.0.0.1:4222 if left out")
            .text("credentials", "PATH", &request::credentials,
                  "a file with credentials, as NATS has them; with Kafka, settings of librdkafka")
            .text("replicas", "COUNT", &request::replicas, "of what is made there: 1 if left out")
            .flag("flushed", &request::flushed, "each replica flushes before it acknowledges; with Kafka alone")
            .text("wait", "TIME", &request::wait,
                  "for the server, and a base or a publisher: 1m if left out; 0: not at all");
    }
    declared &no_base() {
        return flag("no-base", &request::no_base, "as the primary, leave it to 'taiyen publish' to put a base");
    }
#endif

private:
    command &command_;
};

void add_look(std::vector<command> &all) {
    declared(all, "info", info, "what a heap is, how it was closed, what an open would do",
             "Shows what the files of a heap say: its kind and size, its snapshots, how it\n"
             "was closed, and what an open would do. Opens nothing, and works while the heap\n"
             "is in use.")
        .operands("FILE...", 1, SIZE_MAX)
        .json("a JSON document for each FILE, one a line")
        .heap();
    declared(all, "stat", stat_heaps, "the metrics of a heap: blocks, roots, log, undo",
             "Shows what 'taiyen info' shows, and looks into the heap: blocks by size class,\n"
             "how full its pages are, what is free and can be used, named roots and their\n"
             "blocks (with their types, where the heap keeps descriptors), how full log and\n"
             "undo are, and what the image does not hold yet. Works while another process has\n"
             "the heap open: it follows the heap then. --watch shows it again and again: in\n"
             "place on a terminal, one after the other elsewhere.")
        .operands("FILE...", 1, SIZE_MAX)
        .json("a JSON document for each FILE, one a line")
        .flag("watch", &request::watch, "again and again, until an interrupt")
        .text("interval", "TIME", &request::interval, "how often, such as 5s or 1m: 1s if left out")
        .heap();
#if TAIYEN_HAS_LIVE
    declared(all, "live", cli::live, "a page in the browser that shows a heap while it is used",
             "Serves a page on this machine alone, under an address that nobody can guess, and\n"
             "prints that: commits a second and how long they take, the log and when the next\n"
             "snapshot frees it, snapshots on a time line, blocks by size class, a map in\n"
             "levels down to a block's bytes and the pages that the next snapshot writes,\n"
             "roots, undo; all that 'taiyen stat' shows. The program that has the heap open\n"
             "need not be prepared for it, and pays nothing when nobody looks. Shows the files\n"
             "of a heap that no process has open, too. The page can be saved as one file, and\n"
             "--output makes one without a browser. Ends with an interrupt, or by --idle.")
        .operands("FILE", 1, 1)
        .text("port", "PORT", &request::port, "1 to 65535; a free one if left out")
        .text("address", "ADDRESS", &request::address, "127.0.0.1 or ::1; 127.0.0.1 if left out")
        .text("idle", "TIME", &request::idle, "end when nobody has looked for so long, such as 30m; never if left out")
        .text("output", "PAGE", &request::picture_path, "make this file of it, and end: a page by itself", 'o')
        .json("as a JSON document")
        .heap();
#endif
    declared(all, "dump", dump, "the roots and blocks of a heap, or one block as hex",
             "Prints a heap's named roots, and the address of each block, by size class. With\n"
             "--block, the bytes of the block that the address lies in, where it lies, the\n"
             "roots that lead there, its type and fields where the heap keeps descriptors and\n"
             "a root leads to it, and which of its words lead to blocks or into code. The text\n"
             "has the first 4,096 bytes of a block, JSON has all. A heap that is open\n"
             "elsewhere is dumped as it was durable when the command began.")
        .operands("FILE", 1, 1)
        .text("block", "ADDRESS", &request::block, "the block there, as hex, with what is known of it")
        .json("a JSON document for each entry, one a line")
        .heap();
    declared(all, "diff", diff, "what differs in two heaps, or since the last snapshot",
             "Compares two heaps, such as a heap and a copy of it: roots, blocks by size\n"
             "class, the content of each block, and pages. Of one heap, shows what an open\n"
             "would do to it: what the log holds since the last snapshot, and which pages the\n"
             "journal holds and the image does not. Blocks are '+' new, '-' gone, '~' changed.\n"
             "Kind, base and limit are shown, and do not count.\n"
             "Exit code 1: they differ, or something has changed; 2: they cannot be compared.")
        .operands("FILE [FILE]", 1, 2)

        .text("shown", "COUNT", &request::shown, "list so many blocks at the most: 20 if left out")
        .json("as a JSON document")
        .heap();
    declared(all, "verify", verify, "check a heap's files, then its structures",
             "Checks image, journal, log and marks against their checksums, then opens the\n"
             "heap for reading and checks its structures. Shows each problem and its place,\n"
             "one a line.")
        .operands("FILE...", 1, SIZE_MAX)
        .json("a JSON document for each FILE, one a line")
        .flag("quick", &request::quick, "the structures only, not the checksum of each page")
        .heap();
    declared(all, "scrub", scrub, "check a heap's files without opening it",
             "Checks image, journal, log and marks against their checksums, without opening\n"
             "the heap. Shows each problem and its place, one a line.")
        .operands("FILE...", 1, SIZE_MAX)
        .json("a JSON document for each FILE, one a line")
        .heap();
    declared(all, "map", map, "draw what a heap's pages are used for",
             "Draws a picture of what the heap's pages are used for, and of its memory by\n"
             "size of block. Opens the heap for reading. With --json, prints the metrics; the\n"
             "picture may then be left out. It follows a heap that is open elsewhere.")
        .operands("FILE", 1, 1)
        .text("output", "PICTURE", &request::picture_path, "where to draw it: a path that ends in .svg or .png", 'o')
        .text("width", "PIXELS", &request::width, "the picture's width: 600 to 8000, 1200 if left out")
        .json("a JSON document for each FILE, one a line")
        .heap();
    declared(all, "log stat", log_stat, "how full the log is; what an open would replay",
             "Shows how full the log of a transactional heap is, and what an open would\n"
             "replay.")
        .operands("FILE...", 1, SIZE_MAX)
        .json("a JSON document for each FILE, one a line")
        .heap();
    declared(all, "log dump", log_dump, "the transactions that an open would replay",
             "Prints the transactions that an open would replay from the log of a\n"
             "transactional heap, one entry a line. The text has the first 32 bytes of long\n"
             "entries, JSON has all bytes.")
        .operands("FILE...", 1, SIZE_MAX)
        .json("a JSON document for each entry, one a line")
        .heap();
}

void add_make(std::vector<command> &all) {
    declared(all, "create", create, "make an empty heap",
             "Makes an empty heap in files, durably. A file that is there is not replaced. The\n"
             "limit is address space: the files grow as the heap is filled.")
        .operands("FILE", 1, 1)
        .text("kind", "KIND", &request::kind, "archive, snapshot (if left out) or transactional")
        .text("limit", "SIZE", &request::limit, "how large it may become, such as 500M or 64G (if left out)")
        .text("base", "ADDRESS", &request::base, "at this address, a multiple of 64 MiB")
        .text("class-table", "TABLE", &request::class_table, "the size classes: cache-line (if left out) or dense")
        .new_log()
        .json("as a JSON document")
        .heap();
    declared(all, "resize", resize, "give a heap a larger limit",
             "Raises the limit of a heap, up to which it can grow, in place: durably, or not\n"
             "at all. A smaller limit takes a copy: taiyen copy FILE COPY --limit SIZE.")
        .operands("FILE", 1, 1)
        .text("limit", "SIZE", &request::limit, "how large it may become, such as 500M or 64G")
        .json("as a JSON document")
        .heap();
    declared(all, "convert", convert, "make another kind of heap of one",
             "Makes a copy of a heap that is of another kind, as 'taiyen copy' does. With\n"
             "--in-place, the heap itself becomes one: of an archive heap a snapshot or\n"
             "transactional one, of a snapshot heap a transactional one, and back. A crash\n"
             "leaves a heap of the old kind or of the new one, or a snapshot heap. What is to\n"
             "become an archive heap takes a copy.")
        .operands("FILE [COPY]", 1, 2)
        .text("kind", "KIND", &request::kind, "archive, snapshot or transactional")
        .flag("in-place", &request::in_place, "the heap itself, without a COPY")
        .new_log()
        .elsewhere()
        .json("as a JSON document")
        .heap();
}

void add_repair(std::vector<command> &all) {
    declared(all, "repair", repair, "make a heap of what can be had of a damaged one",
             "Makes another heap, OUT, of what can be had of a damaged one, whose files are\n"
             "only read: the last snapshot up to which all is whole, and the transactions that\n"
             "the log still has, as a recovery would do them. Shows what is missing: pages and\n"
             "the blocks in them, roots, snapshots, transactions. Damaged pages are taken as\n"
             "they are. OUT's pages have no checksums until they are written again. A file\n"
             "that is there is not replaced. One that is ended leaves a folder OUT-unfinished,\n"
             "or OUT-journal and OUT-log without OUT: remove them. Try 'taiyen verify' before,\n"
             "and look at OUT after.\n"
             "Exit code 1: something is missing; 2: nothing could be had.")
        .operands("FILE OUT", 2, 2)
        .json("as a JSON document")
        .heap();
    declared(all, "resolve", resolve, "show whether a heap's last transaction is in doubt",
             "A transaction that is prepared, and neither committed nor rolled back, keeps a\n"
             "heap from being opened by programs that do not know its outcome. Exit code\n"
             "1: there is one. To resolve it by hand is right only if the other heaps of its\n"
             "group, or the database, are known to have the same.\n"
             "With --restored, FILEs are all the heaps of a group, which came back from\n"
             "backups of different moments: from now on they go on together as they are.\n"
             "What one of them has of a distributed transaction that another one has not stays\n"
             "half.")
        .operands("FILE...", 1, SIZE_MAX)
        .flag("ask", &request::ask, "ask who knows: the other heaps of its group")
        .flag("commit", &request::commit, "by hand: it counts")
        .flag("rollback", &request::roll_back, "by hand: it does not")
        .flag("restored", &request::restored, "heaps of one group that were restored go on together")
        .json("a JSON document for each FILE, one a line")
        .heap();
}

void add_move(std::vector<command> &all) {
    declared(all, "pack", pack, "write a heap as one compressed file",
             "Packs the live blocks of a heap, and its roots, into one compressed file, which\n"
             "'taiyen unpack' makes a heap of again. A PACKED of '-' is the standard output.\n"
             "A file that is there is not replaced. The heap may be open elsewhere: then it\n"
             "is packed as it was durable when the command began.")
        .operands("FILE PACKED", 2, 2)
        .text("codec", "CODEC", &request::codec, "lz4 (if left out), zstd or none")
        .text("level", "LEVEL", &request::level, "how hard to try: lz4 3 to 12, zstd 1 to 22")
        .threads()
        .json("as a JSON document")
        .heap();
    declared(all, "unpack", unpack, "make a heap of a packed one",
             "Makes a heap in files of a packed one: the same, or smaller, or elsewhere. A\n"
             "PACKED of '-' is the standard input. The heap gets its name when it is whole;\n"
             "a file that is there is not replaced. A heap whose blocks move needs to know\n"
             "its pointers (see --types).")
        .operands("PACKED FILE", 2, 2)
        .changes()
        .elsewhere()
        .text("class-table", "TABLE", &request::class_table, "the same, with the size classes cache-line or dense")
        .threads()
        .json("as a JSON document");
    declared(all, "copy", copy, "a heap of its own with the same content",
             "Makes a copy of a heap, with an identity of its own. It lies at the same\n"
             "address, unless an option says otherwise. The copy gets its name when it is\n"
             "whole; a file that is there is not replaced. The heap may be open elsewhere:\n"
             "then it is copied as it was durable when the command began.")
        .operands("FILE COPY", 2, 2)
        .changes()
        .elsewhere()
        .json("as a JSON document")
        .heap();
    declared(all, "compact", compact, "lay a heap's blocks out anew, without gaps",
             "Lays the blocks of a heap out anew, without gaps, and gives disk space back. It\n"
             "needs to know the heap's pointers (see --types), and opens it for writing.\n"
             "A crash leaves the heap as it was, or compacted; one that is transactional may\n"
             "be a snapshot heap then: the next compact goes on, or 'convert --in-place'.")
        .operands("FILE", 1, 1)
        .moves()
        .json("as a JSON document")
        .heap();
    declared(all, "mark", mark, "mark the state of a heap, durably",
             "Marks the state that a heap has, to which 'taiyen return' goes back. No process\n"
             "has the heap open. Then lists its marks, as 'taiyen marks' does.")
        .operands("FILE NAME", 2, 2)
        .json("as a JSON document")
        .heap();
    declared(all, "marks", marks, "list the durable marks of a heap, or drop one",
             "Lists the durable marks of a heap: when they were made, after which one, and how\n"
             "much had changed since. A star is before the current one.")
        .operands("FILE", 1, 1)
        .text("drop", "NAME", &request::drop, "drop this mark first; the heap stays as it is")
        .json("as a JSON document")
        .heap();
    declared(all, "return", return_to, "make a heap what it was at a mark",
             "The heap becomes as it was at a durable mark: durably, or not at all. What\n"
             "changed since the last mark is gone, unless it is marked first. No process has\n"
             "the heap open. Then lists its marks, as 'taiyen marks' does.")
        .operands("FILE NAME", 2, 2)
        .json("as a JSON document")
        .heap();
    declared(all, "branch", branch, "make a heap of its own of what one is, or was at a mark",
             "Makes a snapshot heap in NEW, at the same address, with what the heap has, or\n"
             "had at a durable mark. Both then go their own ways. Works while a process has\n"
             "the heap open. A file that is there is not replaced.")
        .operands("FILE[@MARK] NEW", 2, 2)
        .json("as a JSON document")
        .heap();
    declared(all, "check", check, "check a packed heap, or where a heap's pointers lead",
             "Checks a packed heap: its checksums, and that it is whole. With --pointers,\n"
             "holds what is said of a heap's pointers (see --types) against its content:\n"
             "pointers that lead to nothing, words that look like pointers and that nobody\n"
             "named, blocks that nothing leads to, words that lead into a program.")
        .operands("FILE", 1, 1)
        .flag("pointers", &request::pointers, "check what leads where in a heap")
        .types()
        .json("as a JSON document")
        .heap();
}

void add_replication(std::vector<command> &all) {
    declared(all, "ship", ship, "keep a folder from which a heap can be restored",
             "Puts all transactions of a transactional heap to a folder, as they come, while\n"
             "the heap is in use or not: bases and segments, from which 'taiyen restore'\n"
             "makes the heap as it was after any of them. Goes on where the folder ends;\n"
             "ends with an interrupt. One process at a time ships to a folder.")
        .operands("FILE FOLDER", 1, 2)
        .flag("once", &request::once, "ship what there is now, and end")
        .flag("list", &request::list, "list what the folder holds; FILE is left out")
        .flag("verify", &request::verify, "read and check all that the folder holds; likewise")
        .text("keep", "TIME", &request::keep, "how long to keep, such as 36h or 7d; for ever if left out")
        .text("base-age", "TIME", &request::base_age, "when a new base is made: 1d if left out")
        .text("interval", "TIME", &request::interval, "how often to ship: 1s if left out")
        .json("as a JSON document")
        .heap();
    declared(all, "restore", restore, "make a heap of what was shipped to a folder",
             "Makes a heap as it was after a transaction, or at a time; without --to, the\n"
             "newest there is. It gets its name when it is whole; a file that is there is not\n"
             "replaced.")
        .operands("FOLDER FILE", 2, 2)
        .text("to", "WHEN", &request::to, "a transaction's number, or a time: 2026-11-27T08:30:00Z")
        .flag("receives", &request::receives, "the heap goes on receiving: nobody writes to it")
        .json("as a JSON document");
}

#if TAIYEN_HAS_STANDBY
void add_standby(std::vector<command> &all) {
    declared(all, "publish", publish, "publish a heap for standbys",
             "Puts all transactions of a transactional heap to JetStream of a NATS server, or\n"
             "to Kafka, as they come, while the heap is in use or not; NAME is the stream's or\n"
             "the topic's. Puts a base, of which standbys are made, where there is none, and\n"
             "now and then. Goes on where the stream ends; ends with an interrupt. Once a\n"
             "standby was promoted, the old heap is refused: exit code 3, as whatever to\n"
             "start it again does not cure.")
        .operands("FILE NAME", 2, 2)
        .engine()
        .flag("base", &request::only_base, "put a base and end, beside a program that publishes by itself")
        .text("base-age", "TIME", &request::base_age, "when a new base is made: 1d if left out")
        .heap();
    declared(all, "standby", standby, "keep a second copy of a heap that is published",
             "Makes the heap FILE of the newest base, if it is not there, and takes what is\n"
             "published; other programs may read it meanwhile. Goes on where it was; ends with\n"
             "an interrupt. With --take-over-after it becomes the primary by itself once the\n"
             "old one has been silent for so long, puts a base, and ends: exit code 0; 1:\n"
             "interrupted. Exit code 3: it can go on no more; what it says is to be done.")
        .operands("FILE NAME", 2, 2)
        .engine()
        .text("take-over-after", "TIME", &request::take_over_after,
              "become the primary when it is silent for so long, such as 10s")
        .no_base()
        .heap();
    declared(all, "promote", promote, "make a standby the primary",
             "Takes all there is, begins a new term, and makes the heap one that is written\n"
             "to. From then on the old primary is refused. 'taiyen standby' is ended before.\n"
             "Then puts a base of it, of which standbys are made, and without which\n"
             "synchronous commits wait. Exit code 3: it cannot become one.")
        .operands("FILE NAME", 2, 2)
        .engine()
        .flag("take-back", &request::takes_back, "also from a heap that superseded this one and published nothing")
        .no_base()
        .heap();
}
#endif

void add_rest(std::vector<command> &all) {
    declared(all, "device", device_profile, "what a disk does, and what settings follow from it",
             "Writes to files of its own in DIR, or here, in sizes of 4 KiB to 4 MiB, in all\n"
             "ways to make writes durable, and with several threads. Shows the writes and the\n"
             "bytes a second, what is cached on the way as far as that can be known, and what\n"
             "a heap's settings should be. With --load, also runs a heap for half of the\n"
             "time, whose commits change BYTES bytes in PAGES pages out of SET, and shows how\n"
             "many there are a second beside how many the metrics predict. Its files are in a\n"
             "folder 'taiyen-device-...', which is gone when it ends, however it ends; a power\n"
             "cut alone leaves it. Other programs that use the disk meanwhile distort the\n"
             "metrics.")
        .operands("[DIR]", 0, 1)
        .text("seconds", "COUNT", &request::seconds, "how long to measure: 1 to 3600, 20 if left out")
        .text("size", "SIZE", &request::size, "the space to use: 64M or more, 256M if left out")
        .text("load", "LOAD", &request::load, "BYTES,PAGES or BYTES,PAGES,SET: also run a heap")
        .text("output", "PICTURE", &request::picture_path, "where to draw it: a path that ends in .svg or .png", 'o')
        .json("as a JSON document");
    declared(all, "types", cli::descriptors, "describe where a program's types hold pointers",
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
             "Exit code 1: the text is not complete; what is left to do stands in it.")
        .operands("PROGRAM", 1, 1)
        .texts("root", "NAME=TYPE", &request::roots, "what a root leads to; TYPE[] and TYPE[N]: many")
        .text("hints", "FILE", &request::hints_path, "hints, one a line; from # on, a comment")
        .texts("hint", "HINT", &request::hints, "one hint: 'TYPE.FIELD: count FIELD'");
    declared(all, "completion", completion, "completion of these words for bash, zsh or fish",
             "Prints what a shell completes the words of 'taiyen' by: bash, zsh or fish. Where\n"
             "taiyen was installed, it is in its place already; else\n"
             "  source <(taiyen completion bash)     in ~/.bashrc\n"
             "  source <(taiyen completion zsh)      in ~/.zshrc, after compinit\n"
             "  taiyen completion fish | source      in ~/.config/fish/config.fish")
        .operands("SHELL", 1, 1);
    declared(all, "version", run_version, "the version of taiyen", "Prints the version of taiyen.")
        .json("as a JSON document");
    declared(all, "help", run_help, "this text, or the help of a command",
             "Prints what taiyen does, or what a command does.")
        .operands("[COMMAND]", 0, 2);
}

} // namespace

const std::vector<command> &commands() {
    static const std::vector<command> all = [] {
        std::vector<command> list;
        add_look(list);
        add_make(list);
        add_move(list);
        add_repair(list);
        add_replication(list);
#if TAIYEN_HAS_STANDBY
        add_standby(list);
#endif
        add_rest(list);
        return list;
    }();
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
