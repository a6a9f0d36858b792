// Failures as values: a status to branch on, and the calling thread's detail for a person.
//
//   return failure(TY_E_IO, "write the journal").at(path, offset).cause(errno).remedy("free some space and try again");
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <taiyen/status.h>
#include <taiyen/storage.h>

namespace taiyen {

class [[nodiscard]] failure {
public:
    // operation: a verb phrase that completes "cannot ...", printf-like.
    [[gnu::format(printf, 3, 4)]] failure(ty_status status, const char *operation, ...);

    failure &at(const char *path); // NULL: no path
    failure &at(const char *path, uint64_t offset);
    failure &cause(int system_error); // an errno
    [[gnu::format(printf, 2, 3)]] failure &remedy(const char *format, ...);

    // Sets the thread's detail and returns the status.
    operator ty_status();

private:
    ty_error error_;
};

// As snprintf, but a text that does not fit is cut after a word and ends with " ...": no number, address or name is
// cut, as if it were whole. bytes: at least 5.
[[gnu::format(printf, 3, 4)]] void write_text(char *text, size_t bytes, const char *format, ...);
[[gnu::format(printf, 3, 0)]] void write_text_of(char *text, size_t bytes, const char *format, va_list arguments);

// For "%zu page%s".
constexpr const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

// The status for an errno of a file operation.
ty_status status_of_errno(int system_error);

// The detail of the last failure, to be reported again after other calls.
inline ty_error keep_error() {
    ty_error error;
    ty_error_detail(&error);
    return error;
}
inline ty_status report_again(const ty_error &error, ty_status status) {
    return ty_error_set(status, error.system_error, error.operation, error.path, error.offset, error.remedy);
}
inline ty_status report_again(const ty_error &error) {
    return report_again(error, error.status);
}
void clear_error(); // as if nothing had failed in this thread

// A call that succeeds changes no detail: for one that looks for what may be missing.
class kept_detail {
public:
    ty_status after(ty_status status) const {
        if (status != TY_OK)
            return status;
        if (error_.status == TY_OK)
            clear_error();
        else
            static_cast<void>(report_again(error_));
        return TY_OK;
    }

private:
    const ty_error error_ = keep_error();
};

} // namespace taiyen
