// Failures as values: a status to branch on, and the calling thread's detail for a person.
//
//   return failure(TY_E_IO, "write the journal").at(path, offset).cause(errno).remedy("free some space and try again");
#pragma once

#include <cstdint>
#include <taiyen/status.h>

namespace taiyen {

class [[nodiscard]] failure {
public:
    // operation: a verb phrase that completes "cannot ...". printf-like, so that figures can be named.
    [[gnu::format(printf, 3, 4)]] failure(ty_status status, const char *operation, ...);

    failure &at(const char *path); // NULL leaves it empty
    failure &at(const char *path, uint64_t offset);
    failure &cause(int system_error); // an errno
    [[gnu::format(printf, 2, 3)]] failure &remedy(const char *format, ...);

    // Sets the thread's detail and gives the status.
    operator ty_status();

private:
    ty_error error_;
};

// The status that fits an errno of a file operation.
ty_status status_of_errno(int system_error);

} // namespace taiyen
