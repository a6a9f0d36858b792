// The calling thread's error detail, kept as the line of text for a person, with positions of its fields: that saves
// thread-local storage, of which a library that is loaded later gets less than 2 KB.
#include "failure.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <taiyen/storage.h>

namespace taiyen {
namespace {

struct slice {
    uint16_t start;
    uint16_t length;
};

constexpr size_t reason_bytes = 96;
constexpr size_t text_bytes = sizeof(ty_error::operation) + sizeof(ty_error::path) + sizeof(ty_error::remedy) +
                              reason_bytes + 64; // plus the words between them

struct thread_error {
    uint64_t offset;
    int system_error;
    uint8_t status;
    slice operation;
    slice path;
    slice remedy;
    char text[text_bytes];
};
thread_local thread_error last;

struct status_words {
    const char *name;
    const char *meaning;
};
constexpr status_words words[] = {
    {"TY_OK", "no failure"},
    {"TY_E_ARGUMENT", "the call is wrong"},
    {"TY_E_MEMORY", "no memory left"},
    {"TY_E_SPACE", "the disk is full"},
    {"TY_E_IO", "input or output failed"},
    {"TY_E_NOT_FOUND", "it does not exist"},
    {"TY_E_EXISTS", "it exists already"},
    {"TY_E_BUSY", "it is in use"},
    {"TY_E_PERMISSION", "it is not allowed"},
    {"TY_E_ADDRESS", "the address range is taken"},
    {"TY_E_FORMAT", "its form is not known here"},
    {"TY_E_DAMAGED", "it is damaged"},
    {"TY_E_MISMATCH", "what belongs together differs"},
    {"TY_E_UNSUPPORTED", "it is not supported here"},
    {"TY_E_FORKED", "it is the parent process's"},
    {"TY_E_IN_DOUBT", "it is in doubt"},
    {"TY_E_EXPIRED", "it has expired"},
};
constexpr size_t status_count = sizeof words / sizeof words[0];
static_assert(status_count == TY_E_EXPIRED + 1);

// Thread-safe, and untranslated, so that no locale data is loaded.
void describe_errno(int error, char *reason, size_t bytes) {
#if defined(__GLIBC__)
    const char *description = strerrordesc_np(error);
    if (description != nullptr)
        snprintf(reason, bytes, "%s", description);
    else
        snprintf(reason, bytes, "error %d", error);
#else
    if (strerror_r(error, reason, bytes) != 0)
        snprintf(reason, bytes, "error %d", error);
#endif
}

bool is_control(char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
}

// Appends to a text of fixed size; what does not fit is left out. The text stays one line: control characters of paths
// and names become question marks.
class line {
public:
    explicit line(char *text) : text_(text) { text_[0] = 0; }

    slice add(const char *part) {
        size_t bytes = strnlen(part, text_bytes - 1 - used_);
        slice place{static_cast<uint16_t>(used_), static_cast<uint16_t>(bytes)};
        for (size_t i = 0; i < bytes; i++)
            text_[used_ + i] = is_control(part[i]) ? '?' : part[i];
        used_ += bytes;
        text_[used_] = 0;
        return place;
    }

private:
    char *text_;
    size_t used_ = 0;
};

[[gnu::cold]] void render(const ty_error &error, thread_error &into) {
    char number[40];
    char reason[reason_bytes];
    line text(into.text);
    text.add("cannot ");
    into.operation = text.add(error.operation);
    text.add(error.path[0] != 0 ? ": " : "");
    into.path = text.add(error.path);
    if (error.offset != UINT64_MAX) {
        snprintf(number, sizeof number, " at offset %llu", static_cast<unsigned long long>(error.offset));
        text.add(number);
    }
    if (error.system_error == 0) {
        size_t index = static_cast<size_t>(error.status);
        text.add(": ");
        text.add(index < status_count ? words[index].meaning : "unknown status");
    } else if (error.system_error != TY_CAUSE_IN_OPERATION) {
        describe_errno(error.system_error, reason, sizeof reason);
        text.add(": ");
        text.add(reason);
    }
    text.add(error.remedy[0] != 0 ? "; " : "");
    into.remedy = text.add(error.remedy);
}

void remember(const ty_error &error) {
    last.status = static_cast<uint8_t>(error.status);
    last.system_error = error.system_error;
    last.offset = error.offset;
    render(error, last);
}

void copy_slice(const thread_error &from, slice place, char *to) {
    memcpy(to, from.text + place.start, place.length);
    to[place.length] = 0;
}

// Copies the end of a long path, which says more than its beginning.
void copy_end(char *to, size_t bytes, const char *from) {
    size_t length = strlen(from);
    if (length < bytes) {
        memcpy(to, from, length + 1);
        return;
    }
    memcpy(to, "...", 3);
    memcpy(to + 3, from + length - (bytes - 4), bytes - 3);
}

// Restores errno: in failure(...).cause(errno) it is read after the earlier parts have run.
class errno_kept {
public:
    errno_kept() : error_(errno) {}
    ~errno_kept() { errno = error_; }

private:
    int error_;
};

} // namespace

[[gnu::cold]] void write_text_of(char *text, size_t bytes, const char *format, va_list arguments) {
    constexpr char more[] = " ...";
    const int length = vsnprintf(text, bytes, format, arguments);
    if (length < 0 || static_cast<size_t>(length) < bytes)
        return;
    char *end = text + bytes - sizeof more;
    char *word_end = end;
    while (word_end > text && *word_end != ' ')
        word_end--;
    memcpy(word_end > text ? word_end : end, more, sizeof more);
}

[[gnu::cold]] void write_text(char *text, size_t bytes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_text_of(text, bytes, format, arguments);
    va_end(arguments);
}

[[gnu::cold]] failure::failure(ty_status status, const char *operation, ...) : error_() {
    errno_kept kept;
    error_.status = status;
    error_.offset = UINT64_MAX;
    va_list arguments;
    va_start(arguments, operation);
    write_text_of(error_.operation, sizeof error_.operation, operation, arguments);
    va_end(arguments);
}

failure &failure::at(const char *path) {
    return at(path, UINT64_MAX);
}

failure &failure::at(const char *path, uint64_t offset) {
    if (path != nullptr)
        copy_end(error_.path, sizeof error_.path, path);
    error_.offset = offset;
    return *this;
}

failure &failure::cause(int system_error) {
    error_.system_error = system_error;
    return *this;
}

failure &failure::remedy(const char *format, ...) {
    errno_kept kept;
    va_list arguments;
    va_start(arguments, format);
    write_text_of(error_.remedy, sizeof error_.remedy, format, arguments);
    va_end(arguments);
    return *this;
}

failure::operator ty_status() {
    errno_kept kept;
    remember(error_);
    return error_.status;
}

ty_status status_of_errno(int system_error) {
    switch (system_error) {
    case 0:
        return TY_OK;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return TY_E_SPACE;
    case EACCES:
    case EPERM:
    case EROFS:
        return TY_E_PERMISSION;
    case ENOENT:
        return TY_E_NOT_FOUND;
    case EEXIST:
        return TY_E_EXISTS;
    case EAGAIN:
        return TY_E_BUSY;
    case ENOMEM:
        return TY_E_MEMORY;
    default:
        return TY_E_IO;
    }
}

} // namespace taiyen

using namespace taiyen;

const char *ty_status_name(ty_status status) {
    size_t index = static_cast<size_t>(status);
    return index < status_count ? words[index].name : "unknown status";
}

const char *ty_error_text(void) {
    return last.text;
}

void ty_error_detail(ty_error *error) {
    *error = ty_error{};
    error->status = static_cast<ty_status>(last.status);
    error->system_error = last.system_error;
    error->offset = last.status == TY_OK ? UINT64_MAX : last.offset;
    copy_slice(last, last.operation, error->operation);
    copy_slice(last, last.path, error->path);
    copy_slice(last, last.remedy, error->remedy);
}

void taiyen::clear_error() {
    last = {};
}

ty_status ty_error_set(ty_status status, int system_error, const char *operation, const char *path, uint64_t offset,
                       const char *remedy) {
    failure detail(status, "%s", operation != nullptr ? operation : "do what was asked");
    detail.at(path, offset).cause(system_error);
    if (remedy != nullptr)
        detail.remedy("%s", remedy);
    return detail;
}
